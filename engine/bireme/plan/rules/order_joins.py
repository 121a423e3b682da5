"""Orders joins by cost: which relations meet first, where semi-joins apply, and which side is built.

The rule finds the regions of a plan that consist of joins, takes each apart into a join graph (`order_joins_graph`),
searches for the cheapest order (`order_joins_search`, with sizes from `order_joins_sizes`) and builds the plan
of it (`order_joins_build`). The columns of a region keep their order by a projection above. FULL joins, and relations
that are read in several places and so run once, stay what they are, and are leaves of the regions around them.
"""

from __future__ import annotations

from typing import Final

from bireme.plan import tree
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel
from bireme.plan.rules.order_joins_build import apply_local, build
from bireme.plan.rules.order_joins_graph import extract, is_region
from bireme.plan.rules.order_joins_search import best_order, given_order
from bireme.plan.rules.order_joins_sizes import GraphSizes
from bireme.plan.statistics.estimator import Estimator

# The order that a plan has is kept unless another one is cheaper by more than rounding.
_GAIN_MIN: Final = 1 - 1e-9


def order_joins(plan: Rel, context: PlanContext) -> Rel:
    """The same rows and columns, with joins in the order that is estimated to be cheapest."""
    return _Ordering(plan, context.estimates).visit(plan)


class _Ordering:
    """One run over a plan. Every relation is ordered once, wherever it is read."""

    def __init__(self, plan: Rel, estimator: Estimator) -> None:
        self._estimator = estimator
        self._done: dict[Rel, Rel] = {}
        self._shared = _read_twice(plan)

    def visit(self, rel: Rel) -> Rel:
        found = self._done.get(rel)
        if found is None:
            found = self._done[rel] = self._order(rel) if is_region(rel) else self._inside(rel)
        return found

    def _inside(self, rel: Rel) -> Rel:
        rebuilt = tree.with_inputs(rel, [self.visit(source) for source in rel.inputs])
        return tree.map_subqueries(rebuilt, self.visit)

    def _order(self, region: Rel) -> Rel:
        graph = extract(region, self.visit, lambda rel: rel in self._shared)
        apply_local(graph)
        sizes = GraphSizes(graph, self._estimator)
        order, given = best_order(sizes), given_order(sizes, graph.shape)
        if order.cost >= given.cost * _GAIN_MIN:
            order = given
        return build(graph, order, region.schema.names)


def _read_twice(plan: Rel) -> frozenset[Rel]:
    """Relations that more than one other reads."""
    seen: set[Rel] = set()
    twice: set[Rel] = set()
    for rel in tree.relations(plan):
        readers = [*rel.inputs, *[inner for expr in tree.expressions(rel) for inner in tree.subquery_plans(expr)]]
        for source in readers:
            (twice if source in seen else seen).add(source)
    return frozenset(twice)

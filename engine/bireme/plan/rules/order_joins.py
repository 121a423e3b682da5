"""Orders joins by cost: which relations meet first, where semi-joins apply, and which side is built.

The rule finds the regions of a plan that consist of joins, takes each apart into a join graph (`order_joins_graph`),
reduces the groupings in it (`order_joins_reduce`), searches for the cheapest order (`order_joins_search`, sizes from
`order_joins_sizes`) and builds the plan of it (`order_joins_build`). The columns of a region keep their order by a
projection above. FULL joins stay what they are, and are leaves of the regions around them.

A join that is read in several places is ordered in each of them: what is common to two regions as they were written
need not be worth keeping, and where it is, both get the same order, and it is one relation again.
"""

from __future__ import annotations

from typing import Final

from bireme.data.node import holds_join, read_twice
from bireme.plan import tree
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel
from bireme.plan.rules.order_joins_build import apply_local, build
from bireme.plan.rules.order_joins_graph import extract, is_region
from bireme.plan.rules.order_joins_reduce import reduce_groups
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
        self._read_twice = read_twice(plan)

    def visit(self, rel: Rel) -> Rel:
        if not holds_join(rel):
            return rel
        found = self._done.get(rel)
        if found is None:
            found = self._done[rel] = self._order(rel) if is_region(rel) else self._inside(rel)
        return found

    def _inside(self, rel: Rel) -> Rel:
        rebuilt = tree.with_inputs(rel, [self.visit(source) for source in rel.inputs])
        return tree.map_subplans(rebuilt, self.visit)

    def _order(self, region: Rel) -> Rel:
        graph = extract(region, self.visit)
        apply_local(graph)
        reduce_groups(graph, self._estimator, self._read_twice, self.visit)
        sizes = GraphSizes(graph, self._estimator)
        order, given = best_order(sizes), given_order(sizes, graph.shape)
        if order.cost >= given.cost * _GAIN_MIN:
            order = given
        return build(graph, order, region.schema.names)

"""Plans whose outer columns must be renumbered, when a query turns out to sit deeper or less deep than it was bound."""

from __future__ import annotations

from collections.abc import Callable

from bireme.plan import tree
from bireme.plan.expr import Expr, OuterColumn
from bireme.plan.relation import DependentJoin, Rel

# Called with an outer column and the depth that the operator around the whole plan has at that place.
OuterMap = Callable[[OuterColumn, int], Expr]


def map_outer(plan: Rel, change: OuterMap) -> Rel:
    """`plan` with `change` applied to each column that it reads from around itself."""
    done: dict[tuple[Rel, int], Rel] = {}

    def relation(rel: Rel, level: int) -> Rel:
        found = done.get((rel, level))
        if found is None:
            found = done[rel, level] = rebuild(rel, level)
        return found

    def rebuild(rel: Rel, level: int) -> Rel:
        inputs = [relation(source, level) for source in rel.inputs]
        if isinstance(rel, DependentJoin):
            inputs[1] = relation(rel.right, level + 1)
        changed = tree.map_operands(rel, lambda expr: expression(expr, level))
        return tree.with_inputs(changed, inputs)

    def expression(expr: Expr, level: int) -> Expr:
        if isinstance(expr, OuterColumn):
            return change(expr, level) if expr.depth >= level else expr
        inner = tree.with_plan(expr, lambda plan: relation(plan, level + 1))
        return tree.map_operands(inner, lambda part: expression(part, level))

    return relation(plan, 1)


def deepen(plan: Rel, by: int) -> Rel:
    """`plan` put `by` queries further inside (or, negative, outside) than it was bound."""
    if by == 0:
        return plan
    return map_outer(plan, lambda column, _: OuterColumn(column.depth + by, column.index, column.type))

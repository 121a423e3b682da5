"""Plans and expressions whose columns must be renumbered, since they sit deeper or less deep than they were bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bireme.plan import tree
from bireme.plan.expr import Column, Expr, OuterColumn
from bireme.plan.relation import DependentJoin, Rel

# Called with an outer column and the depth that the operator around the whole plan has at that place.
OuterMap = Callable[[OuterColumn, int], Expr]
# The same for any expression; None leaves it to its parts.
WholeMap = Callable[[Expr, int], Expr | None]


def map_outer(plan: Rel, change: OuterMap, whole: WholeMap = lambda expr, level: None) -> Rel:
    """`plan` with `change` applied to each column that it reads from around itself, where `whole` gives nothing for an
    expression around it.
    """
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
        found = whole(expr, level)
        if found is not None:
            return found
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


def moved(expr: Expr, by: int) -> Expr:
    """An expression put `by` queries further inside (or, negative, outside) than it was bound."""
    if isinstance(expr, Column | OuterColumn):
        depth = by + (expr.depth if isinstance(expr, OuterColumn) else 0)
        return OuterColumn(depth, expr.index, expr.type) if depth else Column(expr.index, expr.type)
    inner = tree.with_plan(expr, lambda plan: deepen(plan, by))
    return tree.map_operands(inner, lambda part: moved(part, by))


def depths(expr: Expr) -> Iterator[int]:
    """How far out the columns are that an expression reads, those in its subqueries included; 0 is the query that it
    stands in.
    """
    found: list[int] = []

    def noted(column: OuterColumn, level: int) -> Expr:
        found.append(column.depth - level)
        return column

    for part in tree.walk(expr):
        if isinstance(part, Column | OuterColumn):
            yield part.depth if isinstance(part, OuterColumn) else 0
        for plan in part.inputs:
            map_outer(plan, noted)
    yield from found

"""`Apply`, the form that subqueries have while they are being unnested, and which outer columns a plan is waiting for.

How expressions become `Apply` is in `unnest_subqueries`; how `Apply` goes away, in `unnest`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bireme.data.node import Role, holds_outer, node
from bireme.data.schema import Schema
from bireme.plan.expr import Expr, OuterColumn
from bireme.plan.relation import DependentJoin, JoinKind, Rel, join_schema
from bireme.plan.tree import map_expr, map_operands, operands, subplans, with_inputs, with_plan

OuterColumns = frozenset[OuterColumn]
NONE: Final[OuterColumns] = frozenset()


@node(role=Role.DEPENDENT, inputs=("left", "right"))
class Apply(Rel):
    """A join whose right side is evaluated anew for each left row; exists only inside the rule `unnest`.

    `OuterColumn(1, i)` in the right side is column `i` of the left row. `operands`, over the left row, are compared
    with the first columns of the right side: plainly, or three-valued where `null_aware` (as in `Join`). `condition` is
    over left columns followed by right columns.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    operands: tuple[Expr, ...] = ()
    condition: Expr | None = None
    null_aware: bool = False

    def _derive(self) -> Schema:
        return join_schema(self.left.schema, self.right.schema, self.kind, self.null_aware)

    def own_expressions(self) -> list[Expr]:
        """The operands and the condition."""
        return [*self.operands, *([] if self.condition is None else [self.condition])]


class FreeColumns:
    """Which outer columns plans and expressions wait for, at the depth they have from where the plan stands."""

    def __init__(self) -> None:
        self._of_relation: dict[Rel, OuterColumns] = {}
        self._of_expr: dict[Expr, OuterColumns] = {}

    def of(self, rel: Rel) -> OuterColumns:
        if not holds_outer(rel):
            return NONE
        found = self._of_relation.get(rel)
        if found is None:
            found = self._of_relation[rel] = self._derive(rel)
        return found

    def _derive(self, rel: Rel) -> OuterColumns:
        if isinstance(rel, Apply):
            parts = [self.of_expr(expr) for expr in rel.own_expressions()]
            return self.of(rel.left).union(_outside(self.of(rel.right)), *parts)
        parts = [self.of_expr(expr) for expr in operands(rel)]
        if isinstance(rel, DependentJoin):
            return self.of(rel.left).union(_outside(self.of(rel.right)), *parts)
        return NONE.union(*parts, *[self.of(source) for source in rel.inputs])

    def of_expr(self, expr: Expr) -> OuterColumns:
        """The outer columns in `expr`, those that the plans of its subqueries wait for included."""
        if not holds_outer(expr):
            return NONE
        found = self._of_expr.get(expr)
        if found is None:
            found = frozenset([expr]) if isinstance(expr, OuterColumn) else NONE
            found = found.union(*[self.of_expr(part) for part in operands(expr)])
            if not operands(expr):
                found = found.union(*[_outside(self.of(plan)) for plan in subplans(expr)])
            self._of_expr[expr] = found
        return found


def _outside(columns: OuterColumns) -> OuterColumns:
    """The same columns seen from one level further out."""
    return frozenset([OuterColumn(c.depth - 1, c.index, c.type) for c in columns if c.depth > 1]) if columns else NONE


def replace_outer(expr: Expr, replacements: dict[OuterColumn, Expr]) -> Expr:
    """`expr` with outer columns replaced."""
    if not replacements:
        return expr
    return map_expr(expr, lambda part: replacements.get(part, part) if isinstance(part, OuterColumn) else part)


def map_outer(plan: Rel, change: Callable[[OuterColumn, int], Expr]) -> Rel:
    """`plan` with `change` applied to its outer columns, at any depth of subqueries.

    The second argument is the depth that a reference to the row around `plan` has at that place (1 outside subqueries).
    """

    def in_expr(expr: Expr, level: int) -> Expr:
        def at(part: Expr) -> Expr:
            if isinstance(part, OuterColumn):
                return change(part, level)
            return with_plan(part, lambda inner: visit(inner, level + 1))

        return map_expr(expr, at)

    def visit(rel: Rel, level: int) -> Rel:
        if isinstance(rel, Apply):
            condition = None if rel.condition is None else in_expr(rel.condition, level)
            own = tuple([in_expr(part, level) for part in rel.operands])
            return Apply(visit(rel.left, level), visit(rel.right, level + 1), rel.kind, own, condition, rel.null_aware)
        if isinstance(rel, DependentJoin):
            inputs = [visit(rel.left, level), visit(rel.right, level + 1)]
        else:
            inputs = [visit(source, level) for source in rel.inputs]
        return map_operands(with_inputs(rel, inputs), lambda expr: in_expr(expr, level))

    return visit(plan, 1)


def move_outer(plan: Rel, positions: Sequence[int]) -> Rel:
    """`plan`, whose references to the row around it follow that row's columns to other positions."""

    def change(part: OuterColumn, level: int) -> Expr:
        return OuterColumn(level, positions[part.index], part.type) if part.depth == level else part

    return map_outer(plan, change)


def rebase(plan: Rel, positions: dict[int, int]) -> Rel:
    """The right side of an `Apply` whose left side now brings the columns of the row around it, at `positions`.

    What was column `i` two levels out is column `positions[i]` of the left side.
    """

    def change(part: OuterColumn, level: int) -> Expr:
        return OuterColumn(level, positions[part.index], part.type) if part.depth == level + 1 else part

    return map_outer(plan, change)

"""Subqueries and dependent joins leave the plan (general unnesting after Neumann and Kemper 2015).

First every subquery becomes an `Apply` (`unnest_subqueries`). Then each `Apply` goes away, the outermost first: its
right side is made independent of the left row (`unnest_push`), and a plain join is left. Meanings are exact under
three-valued logic; what a backend must know of that is in the flags of `relation.Join`.
"""

from __future__ import annotations

from bireme.plan.context import PlanContext
from bireme.plan.expr import Expr
from bireme.plan.nullable import is_nullable
from bireme.plan.relation import DependentJoin, Filter, JoinKind, Project, Rel
from bireme.plan.rules.unnest_apply import Apply, FreeColumns
from bireme.plan.rules.unnest_domain import Domain, Pushed, never_null, padded, relaxed, term_over, with_marker
from bireme.plan.rules.unnest_join_push import join_by, replace_null_aware
from bireme.plan.rules.unnest_push import Pusher
from bireme.plan.rules.unnest_subqueries import Subqueries
from bireme.plan.tree import all_columns, conjoin, conjuncts, relations, shift, subplans, with_inputs

Pair = tuple[Expr, Expr, bool]


def unnest(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without outer columns and without subqueries, other than scalar ones that wait for nothing."""
    if not any(isinstance(rel, DependentJoin) or subplans(rel) for rel in relations(plan, subqueries=False)):
        return plan
    return _Unnesting().whole(plan)


class _Unnesting:
    """One run of the rule."""

    def __init__(self) -> None:
        self.free = FreeColumns()
        self.subqueries = Subqueries(self.free, self.finish)
        self._done: dict[Rel, Rel] = {}

    def whole(self, plan: Rel) -> Rel:
        return self.finish(self.subqueries.replace(plan))

    def finish(self, rel: Rel) -> Rel:
        """`rel`, which waits for nothing, without `Apply`."""
        found = self._done.get(rel)
        if found is None:
            if isinstance(rel, Apply):
                found = self._join(rel, self.finish(rel.left))
            else:
                found = with_inputs(rel, [self.finish(source) for source in rel.inputs])
            self._done[rel] = found
        return found

    def _join(self, rel: Apply, left: Rel) -> Rel:
        domain = Domain(left)
        pushed = Pusher(domain, self.free, self.finish).push(rel.right, pull=True)
        if pushed.default is not None:
            if _can_pad(rel):
                return _padded_join(rel, left, pushed)
            pushed = domain.materialize(pushed)
        null_aware = rel.null_aware and _may_be_unknown(rel, left, pushed)
        if null_aware:
            pushed = relaxed(pushed)
        operands: list[Pair] = [(operand, pushed.column(index), False) for index, operand in enumerate(rel.operands)]
        kind = JoinKind.LEFT if rel.kind is JoinKind.SINGLE and pushed.at_most_one else rel.kind
        parts = [*_residual(pushed, left), *conjuncts(rel.condition)]
        joined = join_by(left, pushed.rel, kind, _ties(pushed, left) + operands, conjoin(parts))
        if null_aware:
            joined = replace_null_aware(joined)
        if kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) or len(pushed.rel.schema) == pushed.width:
            return joined
        width = len(left.schema) + pushed.width
        return Project(joined, all_columns(joined.schema)[:width], joined.schema.names[:width])


def _can_pad(rel: Apply) -> bool:
    """Whether a left join can fill in the row that stands for no rows."""
    if rel.operands:
        return False
    return rel.kind in (JoinKind.INNER, JoinKind.SINGLE) or (rel.kind is JoinKind.LEFT and rel.condition is None)


def _padded_join(rel: Apply, left: Rel, pushed: Pushed) -> Rel:
    """Joins a right side that has exactly one row for each left row."""
    assert pushed.default is not None
    source, marker = with_marker(pushed)
    joined = join_by(left, source, JoinKind.LEFT, _ties(pushed, left), conjoin(_residual(pushed, left)))
    base = len(left.schema)
    values = padded(pushed, [term_over(value) for value in pushed.default], base, marker)
    names = (*left.schema.names, *pushed.rel.schema.names[: pushed.width])
    result = Project(joined, (*all_columns(left.schema), *values), names)
    return result if rel.condition is None else Filter(result, rel.condition)


def _ties(pushed: Pushed, left: Rel) -> list[Pair]:
    """The key pairs that tie the right side to the left row; whether NULL equals NULL only where that can matter."""
    fields = pushed.rel.schema.fields
    pairs: list[Pair] = []
    for key in pushed.keys:
        null_equal = not key.strict and fields[key.position].nullable and not never_null(key.term, left)
        pairs.append((term_over(key.term), pushed.column(key.position), null_equal))
    return pairs


def _residual(pushed: Pushed, left: Rel) -> list[Expr]:
    return [term_over(shift(part, len(left.schema))) for part in pushed.residual]


def _may_be_unknown(rel: Apply, left: Rel, pushed: Pushed) -> bool:
    """Whether a comparison of operands can be NULL."""
    fields = pushed.rel.schema.fields
    return any(
        fields[index].nullable or is_nullable(operand, left.schema) for index, operand in enumerate(rel.operands)
    )

"""Subqueries and dependent joins leave the plan (general unnesting after Neumann and Kemper 2015).

First every subquery becomes an `Apply` (`unnest_subqueries`). Then each `Apply` goes away, the outermost first: its
right side is made independent of the left row (`unnest_push`), and a plain join is left. Meanings are exact under
three-valued logic; what a backend must know of that is in the flags of `relation.Join`.
"""

from __future__ import annotations

from bireme.data.node import holds_dependent
from bireme.plan.expr import Expr, OuterColumn
from bireme.plan.nullable import is_nullable
from bireme.plan.relation import Filter, JoinKind, Project, Rel, Unnest, Values
from bireme.plan.rules.unnest_apply import Apply, FreeColumns
from bireme.plan.rules.unnest_domain import Domain, Pushed, never_null, padded, relaxed, term_over, with_marker
from bireme.plan.rules.unnest_join_push import join_by, replace_null_aware
from bireme.plan.rules.unnest_outer_joins import numbered_rows
from bireme.plan.rules.unnest_push import Pusher
from bireme.plan.rules.unnest_subqueries import Subqueries
from bireme.plan.tree import (
    all_columns,
    conjoin,
    conjuncts,
    holds_subquery,
    remap,
    select,
    shift,
    walk,
    with_inputs,
)

Pair = tuple[Expr, Expr, bool]


class Unnesting:
    """One run of the rule `unnest`."""

    def __init__(self) -> None:
        self.free = FreeColumns()
        self.subqueries = Subqueries(self.free, self.finish)
        self._done: dict[Rel, Rel] = {}

    def whole(self, plan: Rel) -> Rel:
        return self.finish(self.subqueries.replace(plan))

    def finish(self, rel: Rel) -> Rel:
        """`rel`, which waits for nothing, without `Apply`."""
        if not holds_dependent(rel):
            return rel
        found = self._done.get(rel)
        if found is None:
            if isinstance(rel, Apply):
                found = self._join(rel, self.finish(rel.left))
            else:
                found = with_inputs(rel, [self.finish(source) for source in rel.inputs])
            self._done[rel] = found
        return found

    def _join(self, rel: Apply, left: Rel) -> Rel:
        direct = _unnested_at_once(rel, left)
        if direct is not None:
            return direct
        if any(column.depth == 1 and column.type.is_nested for column in self.free.of(rel.right)):
            return self._join_by_number(rel, left)
        return self._joined(rel, left, Domain(left))

    def _join_by_number(self, rel: Apply, left: Rel) -> Rel:
        """For a right side that reads lists and the like: the number of the left row stands for them as a key."""
        width = len(left.schema)
        numbered = numbered_rows(left)
        condition = rel.condition
        if condition is not None:
            right_columns = range(width, len(rel.schema) + len(rel.right.schema))
            condition = remap(condition, {**{i: i for i in range(width)}, **{i: i + 1 for i in right_columns}})
        wider = Apply(numbered, rel.right, rel.kind, rel.operands, condition, rel.null_aware)
        joined = self._joined(wider, numbered, Domain(numbered, width))
        return select(joined, [*range(width), *range(width + 1, len(joined.schema))])

    def _joined(self, rel: Apply, left: Rel, domain: Domain) -> Rel:
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


def _unnested_at_once(rel: Apply, left: Rel) -> Rel | None:
    """The elements of lists of the left row itself need no join: each row gives its own."""
    right = rel.right
    if isinstance(right, Project) and rel.kind is JoinKind.INNER and not rel.operands:
        return _projected_at_once(rel, right, left)
    if not isinstance(right, Unnest) or right.kept or rel.operands or not _is_plain_row(right.input):
        return None
    if not (rel.kind is JoinKind.INNER or (rel.kind is JoinKind.LEFT and rel.condition is None)):
        return None
    assert isinstance(right.input, Project)
    width = len(left.schema)
    lists = [right.input.exprs[place] for place in right.lists]
    if any(isinstance(part, OuterColumn) and part.depth != 1 for each in lists for part in walk(each)):
        return None
    names = (*left.schema.names, *["list" for _ in lists])
    source = Project(left, (*all_columns(left.schema), *[term_over(each) for each in lists]), names)
    places = tuple(range(width, width + len(lists)))
    keeps_empty = right.keeps_empty or rel.kind is JoinKind.LEFT
    made = Unnest(source, tuple(range(width)), places, right.names, keeps_empty, right.has_ordinality)
    return made if rel.condition is None else Filter(made, rel.condition)


def _projected_at_once(rel: Apply, right: Project, left: Rel) -> Rel | None:
    """The same for what is computed of the elements alone."""
    if any(isinstance(part, OuterColumn) or holds_subquery(part) for expr in right.exprs for part in walk(expr)):
        return None
    made = _unnested_at_once(Apply(left, right.input, rel.kind), left)
    if made is None:
        return None
    width = len(left.schema)
    values = [shift(expr, width) for expr in right.exprs]
    projected = Project(made, (*all_columns(left.schema), *values), (*left.schema.names, *right.names))
    return projected if rel.condition is None else Filter(projected, rel.condition)


def _is_plain_row(rel: Rel) -> bool:
    """Whether `rel` computes one row from constants and outer columns alone."""
    if not isinstance(rel, Project) or not isinstance(rel.input, Values) or len(rel.input.rows) != 1:
        return False
    return not rel.input.row_schema.fields and not holds_subquery(rel)


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

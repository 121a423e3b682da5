"""Moves predicates through joins, kind by kind, and makes keys of those that compare both sides; see `push_filters`.

What is about the preserved side of an outer join, or about the left side of a semi, anti, mark or single join, moves
there. What the join itself tests moves to a side where dropping rows means the same as not matching.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.raises import may_raise
from bireme.plan.relation import Join, JoinKind, Project, Rel, Values
from bireme.plan.rules.push_predicates import (
    about_one_column,
    equality_sides,
    implied,
    rejects_null,
    without_raising,
)
from bireme.plan.tree import (
    FALSE,
    TRUE,
    all_columns,
    column_mask,
    conjoin,
    conjuncts,
    filtered,
    holds_subquery,
    is_call,
    remap,
    select,
    shift,
)
from bireme.records import dataclass

if TYPE_CHECKING:
    from bireme.plan.rules.push_filters import Pushing

Parts = tuple[Expr, ...]


@dataclass(slots=True)
class _Sorted:
    """Where the predicates of a join go; those of the right side are over its own columns."""

    left: dict[Expr, None] = field(default_factory=dict)
    right: dict[Expr, None] = field(default_factory=dict)
    keys: dict[tuple[Expr, Expr], None] = field(default_factory=dict)
    residual: dict[Expr, None] = field(default_factory=dict)
    above: dict[Expr, None] = field(default_factory=dict)


def push_join(pushing: Pushing, rel: Join, parts: Parts, required: int) -> Rel:
    """The rows of the join for which `parts` are TRUE; see `Pushing.push`."""
    kind = rel.kind
    if kind is JoinKind.RIGHT:
        return pushing.push(_mirrored(rel), parts, required)
    if kind is JoinKind.MARK:
        decided = _decided_mark(rel, parts)
        if decided is not None:
            mark, rest, value = decided
            names = rel.schema.names
            whole = Project(mark, (*all_columns(rel.left.schema), value), names)
            return pushing.push(whole, rest, required)
    stricter = _stricter_kind(rel, parts, required)
    if stricter is not kind:
        rel = Join(rel.left, rel.right, stricter, rel.left_keys, rel.right_keys, rel.residual, rel.null_equal_count)
        return pushing.push(rel, parts, required)
    if kind is JoinKind.LEFT and any(_marks_unmatched(rel, part) for part in parts):
        return pushing.push(_unmatched(rel), parts, required)
    sorted_ = _sort(rel, parts)
    _transfer(rel, sorted_)
    return _rebuilt(pushing, rel, sorted_, required)


def _mirrored(rel: Join) -> Rel:
    """A right join as a left join of the sides exchanged."""
    left, right = len(rel.left.schema), len(rel.right.schema)
    swap = [*range(right, right + left), *range(right)]
    residual = None if rel.residual is None else remap(rel.residual, swap)
    join = Join(rel.right, rel.left, JoinKind.LEFT, rel.right_keys, rel.left_keys, residual, rel.null_equal_count)
    return select(join, swap)


def _decided_mark(rel: Join, parts: Parts) -> tuple[Join, Parts, Literal] | None:
    """A mark join of which only the marked, or only the unmarked rows are kept, as a semi or anti join."""
    mark = len(rel.left.schema)
    for part in parts:
        negated = is_call(part, "not")
        inner = part.args[0] if negated else part  # type: ignore[attr-defined]
        if isinstance(inner, Column) and inner.index == mark:
            kind = JoinKind.ANTI if negated else JoinKind.SEMI
            aware = rel.null_aware and negated
            sides = rel.left, rel.right, kind, rel.left_keys, rel.right_keys, rel.residual
            rest = tuple([other for other in parts if other is not part])
            return Join(*sides, rel.null_equal_count, aware), rest, FALSE if negated else TRUE
    return None


def _stricter_kind(rel: Join, parts: Parts, required: int) -> JoinKind:
    """The kind without the padded rows that the predicates above would drop."""
    if rel.kind not in (JoinKind.LEFT, JoinKind.FULL):
        return rel.kind
    width, whole = len(rel.left.schema), len(rel.schema)
    left_mask = (1 << width) - 1
    right_mask = ((1 << whole) - 1) ^ left_mask
    schema = rel.schema
    drops_right = bool(required & right_mask) or any(rejects_null(part, right_mask, schema) for part in parts)
    if rel.kind is JoinKind.LEFT:
        return JoinKind.INNER if drops_right else JoinKind.LEFT
    drops_left = bool(required & left_mask) or any(rejects_null(part, left_mask, schema) for part in parts)
    if drops_left:
        return JoinKind.INNER if drops_right else JoinKind.LEFT
    return JoinKind.RIGHT if drops_right else JoinKind.FULL


def _marks_unmatched(rel: Join, part: Expr) -> bool:
    """Whether `part` is TRUE only for left rows without a match: it wants NULL where a matching right row has none."""
    if not is_call(part, "is_null") or not isinstance(part.args[0], Column):  # type: ignore[attr-defined]
        return False
    position = part.args[0].index - len(rel.left.schema)  # type: ignore[attr-defined]
    if position < 0:
        return False
    if not rel.right.schema.fields[position].nullable:
        return True
    return any(isinstance(key, Column) and key.index == position for key in rel.right_keys[rel.null_equal_count :])


def _unmatched(rel: Join) -> Rel:
    """The left rows without a match, padded with NULL."""
    sides = rel.left, rel.right, JoinKind.ANTI, rel.left_keys, rel.right_keys, rel.residual, rel.null_equal_count
    padding = [Literal(None, each.type) for each in rel.right.schema.fields]
    return Project(Join(*sides), (*all_columns(rel.left.schema), *padding), rel.schema.names)


def keyed(rel: Rel, parts: Parts) -> tuple[Rel, Parts]:
    """`rel`, the input of a filter, and the predicates of the filter; a product of two sides becomes a join by an
    equality that may fail, if that is what pairs are tested by first, and there is no other.
    """
    if not isinstance(rel, Join) or rel.kind is not JoinKind.INNER or rel.left_keys or rel.residual is not None:
        return rel, parts
    width = len(rel.left.schema)
    left_mask = (1 << width) - 1
    safe = [without_raising(part) for part in parts]
    if any(part is not None and equality_sides(part, left_mask) for part in safe):
        return rel, parts
    tested = [place for place, part in enumerate(safe) if part is None or _reads_both(part, left_mask)]
    first = parts[tested[0]] if tested and safe[tested[0]] is None else TRUE
    sides = equality_sides(first, left_mask)
    if sides is None:
        return rel, parts
    join = Join(rel.left, rel.right, rel.kind, sides[:1], (shift(sides[1], -width),))
    return join, tuple([part for part in parts if part is not first])


def _reads_both(part: Expr, left_mask: int) -> bool:
    used = column_mask(part)
    return bool(used & left_mask and used & ~left_mask) or holds_subquery(part)


# ------------------------------------------------------------------------------------------- sorting


def _sort(rel: Join, parts: Parts) -> _Sorted:
    found = _Sorted()
    if not parts and rel.residual is None:
        return found
    width = len(rel.left.schema)
    left_mask = (1 << width) - 1
    for part in conjuncts(rel.residual):
        _sort_condition(rel, part, left_mask, found)
    for part in parts:
        safe = without_raising(part)
        if safe is None:
            found.above[part] = None
        elif rel.kind is JoinKind.INNER:
            _sort_inner(safe, width, left_mask, found)
        elif rel.kind is not JoinKind.FULL and not column_mask(safe) & ~left_mask:
            found.left[safe] = None
        else:
            found.above[part] = None
    return found


def _sort_condition(rel: Join, part: Expr, left_mask: int, found: _Sorted) -> None:
    """Sorts what the join itself tests."""
    safe = without_raising(part)
    width = len(rel.left.schema)
    if safe is None:
        sides = _first_sides(rel, part, left_mask, found)
        if sides is None:
            found.residual[part] = None
        else:
            found.keys[sides[0], shift(sides[1], -width)] = None
        return
    if rel.kind is JoinKind.INNER:
        _sort_inner(safe, width, left_mask, found)
        return
    used = column_mask(safe)
    if used and not used & left_mask and rel.kind is not JoinKind.FULL:
        found.right[shift(safe, -width)] = None
    elif used and not used & ~left_mask and rel.kind is JoinKind.SEMI:
        found.left[safe] = None
    else:
        sides = None if rel.null_aware else equality_sides(safe, left_mask)
        if sides is None:
            found.residual[safe] = None
            if rel.kind is not JoinKind.FULL:
                _imply(safe, width, left_mask, found, left=rel.kind is JoinKind.SEMI)
        else:
            found.keys[sides[0], shift(sides[1], -width)] = None


def _first_sides(rel: Join, part: Expr, left_mask: int, found: _Sorted) -> tuple[Expr, Expr] | None:
    """The sides of an equality that may fail, where nothing else has to be TRUE of a pair before it is looked at.

    As keys they are computed of rows of one side only where the other side has rows too (`operators.join_keys`).
    """
    is_first = not (rel.left_keys or found.keys or found.residual or rel.null_aware)
    return equality_sides(part, left_mask) if is_first else None


def _sort_inner(part: Expr, width: int, left_mask: int, found: _Sorted) -> None:
    used = column_mask(part)
    if not used & ~left_mask:
        found.left[part] = None
    elif not used & left_mask:
        found.right[shift(part, -width)] = None
    else:
        sides = equality_sides(part, left_mask)
        if sides is None:
            found.residual[part] = None
            _imply(part, width, left_mask, found, left=True)
        else:
            found.keys[sides[0], shift(sides[1], -width)] = None


def _imply(part: Expr, width: int, left_mask: int, found: _Sorted, *, left: bool) -> None:
    """Adds what a disjunction over both sides says of each."""
    if not is_call(part, "or"):
        return
    on_left = implied(part, left_mask) if left else None
    if on_left is not None:
        found.left.update(dict.fromkeys(conjuncts(on_left)))
    on_right = implied(part, ~left_mask)
    if on_right is not None:
        found.right.update(dict.fromkeys([shift(p, -width) for p in conjuncts(on_right)]))


def _transfer(rel: Join, found: _Sorted) -> None:
    """What is known of one key column is known of the other, where only matching rows count."""
    kind = rel.kind
    if kind is JoinKind.FULL or rel.null_aware or not (found.left or found.right):
        return
    pairs = [*zip(rel.left_keys, rel.right_keys, strict=True), *found.keys]
    columns = [(a, b) for a, b in pairs if isinstance(a, Column) and isinstance(b, Column)]
    if not columns:
        return
    to_right = {a.index: b for a, b in columns}
    for part in list(found.left):
        _copy(part, to_right, found.right)
    if kind in (JoinKind.INNER, JoinKind.SEMI):
        to_left = {b.index: a for a, b in columns}
        for part in list(found.right):
            _copy(part, to_left, found.left)


def _copy(part: Expr, across: dict[int, Column], target: dict[Expr, None]) -> None:
    index = about_one_column(part)
    if index is None or index not in across or may_raise(part):
        return
    other = across[index]
    target[remap(part, {index: other.index})] = None


# ------------------------------------------------------------------------------------------ building


def _rebuilt(pushing: Pushing, rel: Join, found: _Sorted, required: int) -> Rel:
    keys = [*zip(rel.left_keys, rel.right_keys, strict=True)]
    if found.keys:
        known = frozenset(keys)
        keys += [pair for pair in found.keys if len(known) < len(keys) or pair not in known]
    left_required, right_required = _required(rel, keys, required)
    left = pushing.push(rel.left, tuple(found.left), left_required)
    right = pushing.push(rel.right, tuple(found.right), right_required)
    residual = conjoin(list(found.residual))
    joined = Join(
        left,
        right,
        rel.kind,
        tuple([key for key, _ in keys]),
        tuple([key for _, key in keys]),
        residual,
        rel.null_equal_count,
        rel.null_aware,
    )
    return filtered(_without_empty(pushing.subqueries(joined)), list(found.above))


def _required(rel: Join, keys: list[tuple[Expr, Expr]], required: int) -> tuple[int, int]:
    """The columns of either side of which NULL cannot survive."""
    kind, width = rel.kind, len(rel.left.schema)
    left = required & ((1 << width) - 1)
    right = required >> width if kind is JoinKind.INNER else 0
    for a, b in keys[rel.null_equal_count :]:
        if isinstance(a, Column) and kind in (JoinKind.INNER, JoinKind.SEMI):
            left |= 1 << a.index
        if isinstance(b, Column) and kind is not JoinKind.FULL and not rel.null_aware:
            right |= 1 << b.index
    return (0 if kind is JoinKind.FULL else left), right


def _without_empty(rel: Rel) -> Rel:
    """A join with a side that has no rows is empty itself, or only its other side."""
    if not isinstance(rel, Join):
        return rel
    no_left, no_right = _is_empty(rel.left), _is_empty(rel.right)
    kind = rel.kind
    if not no_left and not no_right:
        return rel
    if (no_left and kind is not JoinKind.FULL) or (no_right and kind in (JoinKind.INNER, JoinKind.SEMI)):
        return Values((), rel.schema)
    if no_right and kind is JoinKind.ANTI:
        return rel.left
    if no_right:
        width = len(rel.left.schema)
        padding = [Literal(None, each.type) for each in rel.schema.fields[width:]]
        if kind is JoinKind.MARK:
            padding = [FALSE]
        return Project(rel.left, (*all_columns(rel.left.schema), *padding), rel.schema.names)
    return rel


def _is_empty(rel: Rel) -> bool:
    return isinstance(rel, Values) and not rel.rows

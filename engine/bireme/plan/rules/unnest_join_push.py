"""Makes joins inside a correlated plan independent of the outer row; see `unnest_push`.

An inner join passes on what both sides need. The other kinds must compare rows of one and the same outer row, so their
left side is given the outer columns that the right side or the condition needs, and these become keys of the join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bireme.data.types import BOOL
from bireme.plan.expr import Call, Column, Expr, OuterColumn
from bireme.plan.relation import Join, JoinKind, Rel
from bireme.plan.rules.unnest_apply import Apply, OuterColumns, rebase, replace_outer
from bireme.plan.rules.unnest_domain import Key, Pushed, outer_in, relaxed, settled
from bireme.plan.tree import all_columns, conjoin, conjuncts, filtered, project, remap, select, shift

if TYPE_CHECKING:
    from bireme.plan.rules.unnest_push import Pusher

_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


def push_join(pusher: Pusher, rel: Join, *, pull: bool) -> Pushed:
    """A join that waits for outer columns."""
    match rel.kind:
        case JoinKind.INNER:
            return _inner(pusher, rel, pull)
        case JoinKind.RIGHT:
            return _right(pusher, rel, pull)
        case JoinKind.FULL:
            return _full(pusher, rel)
        case _:
            return _one_sided(pusher, rel, pull)


# --------------------------------------------------------------------------------------------- inner


def _inner(pusher: Pusher, rel: Join, pull: bool) -> Pushed:
    width = len(rel.left.schema)
    kept: list[tuple[Expr, Expr, bool]] = []
    waiting: list[Expr] = []
    for index, (a, b) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True)):
        null_equal = index < rel.null_equal_count
        if outer_in([a, b]):
            waiting.append(Call("is_not_distinct" if null_equal else "eq", (a, shift(b, width)), BOOL))
        else:
            kept.append((a, b, null_equal))
    own = [part for part in conjuncts(rel.residual) if not outer_in([part])]
    waiting += [part for part in conjuncts(rel.residual) if outer_in([part])]
    left = pusher.domain.materialize(pusher.push(rel.left, pull=pull))
    right = pusher.domain.materialize(pusher.push(rel.right, pull=pull))
    joined = _joined(left, right, kept, own)
    return pusher.filter(_decide(joined), waiting, pull=pull)


def _joined(left: Pushed, right: Pushed, pairs: list[tuple[Expr, Expr, bool]], own: list[Expr]) -> Pushed:
    """The inner join of both sides: rows of one outer row meet where both sides are tied to the same term."""
    by_term = {key.term: key for key in left.keys}
    keys = list(left.keys)
    base = len(left.rel.schema)
    for key in right.keys:
        twin = by_term.get(key.term)
        if twin is None:
            keys.append(Key(key.term, base + key.position, key.strict))
        else:
            null_equal = not (key.strict or twin.strict)
            pairs = [*pairs, (left.column(twin.position), right.column(key.position), null_equal)]
    moved = [*range(left.width), *range(base, base + right.width)]
    residual = conjoin([remap(part, moved) for part in own])
    rel = join_by(left.rel, right.rel, JoinKind.INNER, pairs, residual)
    parts = (*left.residual, *[shift(part, base) for part in right.residual])
    whole = Pushed(rel, len(rel.schema), tuple(keys), parts, None, left.at_most_one and right.at_most_one)
    return rearranged(whole, moved)


def _decide(pushed: Pushed) -> Pushed:
    """Open comparisons that the keys of the other side can decide become a filter."""
    known = pushed.known()
    decided = [part for part in pushed.residual if outer_in([part]) <= known.keys()]
    rest = tuple([part for part in pushed.residual if part not in decided])
    rel = filtered(pushed.rel, [replace_outer(part, known) for part in decided])
    return replace(pushed, rel=rel, residual=rest)


def join_by(left: Rel, right: Rel, kind: JoinKind, pairs: list[tuple[Expr, Expr, bool]], residual: Expr | None) -> Join:
    """A join by key pairs that say whether NULL equals NULL."""
    ordered = sorted(pairs, key=lambda pair: not pair[2])
    return Join(
        left,
        right,
        kind,
        tuple([pair[0] for pair in ordered]),
        tuple([pair[1] for pair in ordered]),
        residual,
        sum(pair[2] for pair in ordered),
    )


def rearranged(pushed: Pushed, order: list[int]) -> Pushed:
    """The columns at `order` first, those behind that keys and residual need."""
    seen = set(order)
    behind = [position for position in replace(pushed, width=0).extras() if position not in seen]
    whole = [*order, *behind]
    where = {position: index for index, position in enumerate(whole)}
    keys = tuple([Key(key.term, where[key.position], key.strict) for key in pushed.keys])
    residual = remap(pushed.residual, where)
    return replace(pushed, rel=select(pushed.rel, whole), width=len(order), keys=keys, residual=residual)


# ----------------------------------------------------------------------------- kinds that keep the left


def _one_sided(pusher: Pusher, rel: Join, pull: bool) -> Pushed:
    domain = pusher.domain
    left = domain.materialize(pusher.push(rel.left, pull=pull))
    right = domain.materialize(pusher.push(rel.right, pull=True))
    right = domain.cover(right, outer_in(rel.right_keys))
    condition = conjuncts(rel.residual)
    left = domain.cover(left, _needs(right, [*rel.left_keys, *condition]))
    if rel.null_aware:
        right = relaxed(right)
    base = len(left.rel.schema)
    known_left, known_right = left.known(), right.known()
    left, right = settled(left), settled(right)
    ties = [(replace_outer(k.term, known_left), right.column(k.position), not k.strict) for k in right.keys]
    own = [
        (replace_outer(a, known_left), replace_outer(b, known_right), index < rel.null_equal_count)
        for index, (a, b) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True))
    ]
    moved = [*range(left.width), *range(base, base + right.width)]
    parts = [replace_outer(remap(part, moved), known_left) for part in condition]
    parts += [replace_outer(shift(part, base), known_left) for part in right.residual]
    joined = join_by(left.rel, right.rel, rel.kind, ties + own, conjoin(parts))
    if rel.null_aware:
        joined = replace_null_aware(joined)
    kept = [*range(left.width)] if rel.kind in _LEFT_ONLY else moved
    if rel.kind is JoinKind.MARK:
        kept = [*range(left.width), base]
    single = left.at_most_one and (right.at_most_one or rel.kind is not JoinKind.LEFT)
    whole = Pushed(joined, len(joined.schema), left.keys, left.residual, None, single)
    return rearranged(whole, kept)


def _needs(right: Pushed, exprs: list[Expr]) -> OuterColumns:
    """The outer columns that the left side must bring."""
    return outer_in([*[key.term for key in right.keys], *right.residual, *exprs])


def replace_null_aware(join: Join) -> Join:
    """The same join, null-aware."""
    return Join(
        join.left,
        join.right,
        join.kind,
        join.left_keys,
        join.right_keys,
        join.residual,
        join.null_equal_count,
        True,
    )


def _right(pusher: Pusher, rel: Join, pull: bool) -> Pushed:
    """As a left join of the sides exchanged."""
    left_width, right_width = len(rel.left.schema), len(rel.right.schema)
    swap = [*range(right_width, right_width + left_width), *range(right_width)]
    residual = None if rel.residual is None else remap(rel.residual, swap)
    mirrored = Join(rel.right, rel.left, JoinKind.LEFT, rel.right_keys, rel.left_keys, residual, rel.null_equal_count)
    return rearranged(_one_sided(pusher, mirrored, pull), swap)


def _full(pusher: Pusher, rel: Join) -> Pushed:
    """Both sides are joined with the domain; the outer row of a result is that of the side which is there."""
    domain = pusher.domain
    left = domain.materialize(pusher.push(rel.left, pull=False))
    right = domain.materialize(pusher.push(rel.right, pull=False))
    condition = conjuncts(rel.residual)
    wanted = _needs(left, []) | _needs(right, [*rel.left_keys, *rel.right_keys, *condition])
    left, right = domain.cover(left, wanted, always=True), domain.cover(right, wanted, always=True)
    known_left, known_right = left.known(), right.known()
    base = len(left.rel.schema)
    left, right = settled(left), settled(right)
    ordered = [key.term for key in left.keys if isinstance(key.term, OuterColumn)]
    ties = [(known_left[column], known_right[column], True) for column in ordered]
    own = [
        (replace_outer(a, known_left), replace_outer(b, known_right), index < rel.null_equal_count)
        for index, (a, b) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True))
    ]
    moved = [*range(left.width), *range(base, base + right.width)]
    parts = [replace_outer(remap(part, moved), known_left) for part in condition]
    joined = join_by(left.rel, right.rel, JoinKind.FULL, ties + own, conjoin(parts))
    columns = all_columns(joined.schema)
    values: list[Expr] = [columns[index] for index in moved]
    for column in ordered:
        either = (known_left[column], shift(known_right[column], base))
        values.append(Call("coalesce", either, column.type))
    names = [*rel.schema.names, *["outer" for _ in ordered]]
    keys = tuple([Key(column, len(moved) + index, False) for index, column in enumerate(ordered)])
    return Pushed(project(joined, values, names), len(moved), keys)


# -------------------------------------------------------------------------------------------- nested


def push_apply(pusher: Pusher, rel: Apply, *, pull: bool) -> Pushed:
    """An `Apply` inside: its left side is given the outer columns that its right side asks for, then it goes away."""
    left = pusher.domain.materialize(pusher.push(rel.left, pull=pull))
    deeper = frozenset([c for c in pusher.free.of(rel.right) if c.depth == 2])
    wanted = outer_in(rel.own_expressions()) | {type(c)(1, c.index, c.type) for c in deeper}
    left = pusher.domain.cover(left, wanted)
    known = left.known()
    positions = {column.index: value.index for column, value in known.items() if isinstance(value, Column)}
    base = len(left.rel.schema)
    right_width = len(rel.right.schema)
    moved = [*range(left.width), *range(base, base + right_width)]
    condition = None if rel.condition is None else replace_outer(remap(rel.condition, moved), known)
    operands = tuple([replace_outer(part, known) for part in rel.operands])
    right = rebase(rel.right, positions)
    done = pusher.finish(Apply(left.rel, right, rel.kind, operands, condition, rel.null_aware))
    kept = [*range(left.width)] if rel.kind in _LEFT_ONLY else [*range(left.width), *range(base, len(done.schema))]
    single = left.at_most_one and rel.kind in (*_LEFT_ONLY, JoinKind.MARK, JoinKind.SINGLE)
    return rearranged(Pushed(done, len(done.schema), left.keys, left.residual, None, single), kept)

"""Joins of the DataFrame API: keys from names or expressions, and what the output columns are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bireme.errors import ArgumentFault, TypeFault
from bireme.frontend.expression import Expression, tree_of
from bireme.frontend.resolve import Scalars, shallow
from bireme.plan import functions
from bireme.plan.expr import Cast, Column, Expr
from bireme.plan.relation import Join, JoinKind, Project, Rel

_KINDS: Final = {
    "inner": JoinKind.INNER, "left": JoinKind.LEFT, "right": JoinKind.RIGHT, "full": JoinKind.FULL,
    "outer": JoinKind.FULL, "semi": JoinKind.SEMI, "anti": JoinKind.ANTI, "cross": JoinKind.INNER,
}  # fmt: skip


def join(
    left: Rel, right: Rel, how: str, on: Any, left_on: Any, right_on: Any, suffix: str, *, nulls_equal: bool
) -> Rel:
    """The join as a plan with named output columns. Raises ArgumentFault, NameFault or TypeFault."""
    kind = _KINDS.get(how)
    if kind is None:
        raise ArgumentFault(f"how must be one of {', '.join(_KINDS)}, not {how!r}")
    left_keys, right_keys = _keys(left, right, how, on, left_on, right_on)
    joined = Join(left, right, kind, left_keys, right_keys, None, len(left_keys) if nulls_equal else 0)
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return joined
    return _named(joined, suffix)


def _keys(
    left: Rel, right: Rel, how: str, on: Any, left_on: Any, right_on: Any
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    if how == "cross":
        if not (on is None and left_on is None and right_on is None):
            raise ArgumentFault("a cross join takes no keys")
        return (), ()
    if on is not None and (left_on is not None or right_on is not None):
        raise ArgumentFault("give either on, or left_on and right_on")
    ours, theirs = _listed(on if on is not None else left_on), _listed(on if on is not None else right_on)
    if not ours or len(ours) != len(theirs):
        raise ArgumentFault("a join needs as many keys on the left as on the right: on, or left_on and right_on")
    pairs = [_pair(left, right, mine, other) for mine, other in zip(ours, theirs, strict=True)]
    return tuple([pair[0] for pair in pairs]), tuple([pair[1] for pair in pairs])


def _listed(keys: Any) -> list[Any]:
    if keys is None:
        return []
    return [keys] if isinstance(keys, (str, Expression)) or not isinstance(keys, Iterable) else list(keys)


def _pair(left: Rel, right: Rel, ours: Any, theirs: Any) -> tuple[Expr, Expr]:
    mine = Scalars(left.schema).resolve(shallow(tree_of(ours, strings_are_columns=True)))
    other = Scalars(right.schema).resolve(shallow(tree_of(theirs, strings_are_columns=True)))
    try:
        kind = functions.common_type([mine.type, other.type])
    except TypeFault as fault:
        raise TypeFault(f"the join keys {ours!r} and {theirs!r} do not compare: {fault.message}") from None
    return functions.coerce(mine, kind), functions.coerce(other, kind)


def _named(joined: Join, suffix: str) -> Rel:
    """Left columns, then right ones without keys that repeat the left's; a right join keeps the right's instead."""
    width = len(joined.left.schema)
    schema = joined.schema
    dropped: set[int] = set()
    if joined.kind is JoinKind.RIGHT:
        dropped = _plain(joined.left_keys, 0)
    elif joined.kind is not JoinKind.FULL:
        dropped = _plain(joined.right_keys, width)
    kept = [index for index in range(len(schema)) if index not in dropped]
    taken = {schema.names[index] for index in kept if index < width}
    names = []
    for index in kept:
        name = schema.names[index]
        if index >= width and name in taken:
            name += suffix
            if name in taken:
                raise ArgumentFault(f"the join would give two columns called {name!r}; choose another suffix")
            taken.add(name)
        names.append(name)
    return Project(joined, tuple([Column(index, schema[index].type) for index in kept]), tuple(names))


def _plain(keys: tuple[Expr, ...], offset: int) -> set[int]:
    """The columns that are keys themselves, converted or not."""
    bare = [key.arg if isinstance(key, Cast) else key for key in keys]
    return {offset + key.index for key in bare if isinstance(key, Column)}

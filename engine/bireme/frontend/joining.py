"""Joins of the DataFrame API: keys from names or expressions, and what the output columns are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bireme.errors import ArgumentFault, TypeFault
from bireme.frontend.asof import Nearness, asof_join
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
    width = len(left.schema)
    dropped: set[int] = set()
    if kind is JoinKind.RIGHT:
        dropped = _plain(left_keys, 0)
    elif kind is not JoinKind.FULL:
        dropped = _plain(right_keys, width)
    return _named(joined, width, dropped, suffix)


_NEAREST: Final = {"backward": ("ge", "gt"), "forward": ("le", "lt")}


def join_asof(
    left: Rel, right: Rel, on: tuple[Any, Any], by: tuple[Any, Any], strategy: str, suffix: str, *, allow_exact: bool
) -> Rel:
    """Each left row with the nearest right row; pairs are what was given for the left and for the right side."""
    if strategy not in _NEAREST:
        raise ArgumentFault(f"strategy must be one of {', '.join(_NEAREST)}, not {strategy!r}")
    if on[0] is None or on[1] is None:
        raise ArgumentFault("join_asof() needs the column whose nearest value is wanted: on, or left_on and right_on")
    ours, theirs = _listed(by[0]), _listed(by[1])
    if len(ours) != len(theirs):
        raise ArgumentFault("join_asof() needs as many keys on the left as on the right: by, or by_left and by_right")
    place = _pair(left, right, on[0], on[1])
    keys = [_pair(left, right, mine, other) for mine, other in zip(ours, theirs, strict=True)]
    near = Nearness(*place, _NEAREST[strategy][not allow_exact])
    made = asof_join(left, right, keys, near, JoinKind.LEFT)
    width = len(left.schema)
    same_place = isinstance(on[0], str) and on[0] == on[1]
    dropped = _plain(tuple([key for _, key in keys]) + ((place[1],) if same_place else ()), width)
    return _named(made, width, dropped, suffix)


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


def _named(joined: Rel, width: int, dropped: set[int], suffix: str) -> Rel:
    """The `width` left columns, then right ones, without those that are dropped as keys that repeat others."""
    schema = joined.schema
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

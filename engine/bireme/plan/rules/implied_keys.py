"""Keys of a grouping that the other keys determine are computed from them afterwards, a group instead of a row.

Constants are such keys, and so are repeats of a key and expressions over columns that are keys themselves. Values that
are equal must be the same value for that: of 0.0 and -0.0, which are one key, 1 / x gives two. One key always stays,
since a grouping without keys has a row also over no input.
"""

from __future__ import annotations

from typing import Final

from bireme.data.types import Kind
from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.relation import Aggregate, Project, Rel
from bireme.plan.tree import all_columns, column_mask, remap

# Types of which equal values are the same in every way.
_EXACT: Final = frozenset(
    {
        Kind.BOOL, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.UINT16, Kind.UINT32, Kind.UINT64,
        Kind.DECIMAL, Kind.STRING, Kind.BINARY, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.DURATION,
    }
)  # fmt: skip


def without_implied_keys(rel: Aggregate) -> Rel:
    """`rel` by as few keys as give the same groups, and the others computed on top."""
    if len(rel.keys) < 2 or rel.grouping_sets is not None:
        return rel
    kept = _kept(rel.keys)
    if len(kept) == len(rel.keys):
        return rel
    width = len(rel.keys)
    names = (*[rel.names[index] for index in kept], *rel.names[width:])
    grouped = Aggregate(rel.input, tuple([rel.keys[index] for index in kept]), rel.aggregates, names)
    columns = all_columns(grouped.schema)
    places = {rel.keys[index]: place for place, index in enumerate(kept)}
    below = {key.index: place for key, place in places.items() if isinstance(key, Column)}
    values = [columns[places[key]] if key in places else remap(key, below) for key in rel.keys]
    return Project(grouped, (*values, *columns[len(kept) :]), rel.names)


def _kept(keys: tuple[Expr, ...]) -> list[int]:
    """The positions of the keys that the others do not determine; at least one."""
    known = 0
    for key in keys:
        if isinstance(key, Column) and key.type.kind in _EXACT:
            known |= 1 << key.index
    kept = [index for index, key in enumerate(keys) if key not in keys[:index] and not _is_implied(key, known)]
    return kept or [0]


def _is_implied(key: Expr, known: int) -> bool:
    """Whether the values of the columns in the mask `known` determine the key, which is none of them."""
    if key.__class__ is Column:
        return False
    read = column_mask(key)
    return key.__class__ is Literal or (read != 0 and read & ~known == 0)

"""Maps on columns: keys and values as lists, where they lie, and maps made of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.collected import lengths_of
from bireme.backends.reference.elements import Elements, codes_of
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import picked
from bireme.backends.reference.vectors import Bools, nulls_of
from bireme.data import arrays
from bireme.data.types import DataType, to_arrow
from bireme.errors import DomainFault
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def _of_child(maps: pa.Array, child: pa.Array, kind: DataType) -> pa.Array:
    """Lists as long as the maps, of what stands for each of their entries."""
    if pa.types.is_null(maps.type):
        return pa.nulls(len(maps), to_arrow(kind))
    return pa.Array.from_buffers(to_arrow(kind), len(maps), maps.buffers()[:2], offset=maps.offset, children=[child])


def _keys(call: Call, args: list[pa.Array]) -> pa.Array:
    return _of_child(args[0], args[0].keys, call.type)


def _values(call: Call, args: list[pa.Array]) -> pa.Array:
    return _of_child(args[0], args[0].items, call.type)


def _entries(call: Call, args: list[pa.Array]) -> pa.Array:
    kind = to_arrow(call.type).value_type
    entries = pa.StructArray.from_arrays([args[0].keys, args[0].items], fields=list(kind))
    return _of_child(args[0], entries, call.type)


def _made(call: Call, args: list[pa.Array]) -> pa.Array:
    keys, values = (Elements(array, arg.type) for array, arg in zip(args, call.args, strict=True))
    missing = keys.missing | values.missing
    if ((keys.lengths != values.lengths) & ~missing).any():
        raise DomainFault("a map takes as many values as keys")
    return _map(
        call.type,
        keys.values.filter(arrays.from_numpy(~missing[keys.rows])),
        values.values.filter(arrays.from_numpy(~missing[values.rows])),
        np.where(missing, 0, keys.lengths),
        missing,
    )


def _from_entries(call: Call, args: list[pa.Array]) -> pa.Array:
    entries = Elements(args[0], call.args[0].type)
    if not entries.there.all():
        raise DomainFault("a map takes no entry that is NULL")
    keys, values = entries.values.flatten()
    return _map(call.type, keys, values, entries.lengths, entries.missing)


def _map(kind: DataType, keys: pa.Array, values: pa.Array, lengths: Rows, missing: Bools) -> pa.Array:
    """Maps that take so many of the keys each, one after the other."""
    if nulls_of(keys).any():
        raise DomainFault("the keys of a map must not be NULL")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if _repeated(keys, kind, rows).any():
        raise DomainFault("the keys of a map must be different")
    return _whole(kind, keys, values, lengths, missing)


def _repeated(keys: pa.Array, kind: DataType, rows: Rows) -> Bools:
    """Which keys are there once more further on in the same map."""
    (codes,) = codes_of([keys], kind.children[0].type)
    order = np.lexsort((np.arange(len(rows)), codes, rows))
    same = np.zeros(len(rows), np.bool_)
    same[order[:-1]] = (np.diff(rows[order]) == 0) & (codes[order][1:] == codes[order][:-1])
    return same


def _whole(kind: DataType, keys: pa.Array, values: pa.Array, lengths: Rows, missing: Bools) -> pa.Array:
    offsets = arrays.from_numpy(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    mask = arrays.from_numpy(missing) if missing.any() else None
    return pa.MapArray.from_arrays(offsets, keys, values, type=to_arrow(kind), mask=mask)


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    """NULL is no map at all; where all are NULL, so is what they make."""
    rows: Rows = np.concatenate([np.repeat(np.arange(len(one)), lengths_of(one)) for one in args])
    order = np.argsort(rows, kind="stable")
    keys, values = (picked(pa.concat_arrays([_flat(one, place) for one in args]), order) for place in (0, 1))
    rows = rows[order]
    later = _repeated(keys, call.type, rows)
    # A key stays where it first was, with the value that it had last.
    keys, values, rows = _last_values(call.type, keys, values, rows, later)
    missing = np.all([nulls_of(one) for one in args], axis=0)
    return _whole(call.type, keys, values, np.bincount(rows, minlength=len(args[0])), missing)


def _flat(maps: pa.Array, place: int) -> pa.Array:
    offsets = arrays.to_numpy(maps.offsets)
    child = maps.items if place else maps.keys
    return child.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _last_values(
    kind: DataType, keys: pa.Array, values: pa.Array, rows: Rows, later: Bools
) -> tuple[pa.Array, pa.Array, Rows]:
    (codes,) = codes_of([keys], kind.children[0].type)
    order = np.lexsort((np.arange(len(rows)), codes, rows))
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = ~later[order[:-1]]
    first, last = order[starts], order[~later[order]]
    by_place = np.argsort(first, kind="stable")
    first, last = first[by_place], last[by_place]
    return picked(keys, first), picked(values, last), rows[first]


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "map": _made,
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "map_keys": _keys,
    "map_values": _values,
    "map_entries": _entries,
}

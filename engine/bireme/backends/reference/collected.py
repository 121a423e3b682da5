"""Aggregates whose result is a list: array_agg, and collect, which leaves out NULLs.

Their state is the list so far, and beside it the positions of its rows, by which parts that met in any order are
brought into the order of the rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import Groups
from bireme.backends.reference.vectors import Bools, Numbers, fixed, nulls_of
from bireme.data.types import to_arrow
from bireme.errors import OutOfRoom
from bireme.plan.physical import AggregateStep

# Offsets of lists are 32 bits wide.
_VALUES_MAX: Final = (1 << 31) - 1


def partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> list[pa.Array]:
    """The lists of a batch whose first row is number `position`."""
    chosen = ~nulls_of(arg) if step.function == "collect" else np.ones(len(arg), np.bool_)
    rows = np.flatnonzero(chosen)
    return _lists(step, arg, position + np.arange(len(arg), dtype=np.int64), groups.ids, rows, groups.count)


def merge(step: AggregateStep, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
    """The lists of parts as one for each group."""
    values, positions = states
    lengths = lengths_of(values)
    if int(lengths.sum()) > _VALUES_MAX:
        raise OutOfRoom(f"the lists of {step.function} have more than {_VALUES_MAX} values in all")
    ids = np.repeat(groups.ids, lengths)
    numbers: Numbers = fixed(positions.flatten(), np.int64)
    return _lists(step, values.flatten(), numbers, ids, np.arange(len(ids)), groups.count)


def lengths_of(lists: pa.Array) -> Rows:
    """How many values each list has; 0 for NULL."""
    offsets = np.asarray(lists.offsets, np.int64)
    lengths: Rows = np.where(nulls_of(lists), 0, np.diff(offsets))
    return lengths


def list_array(kind: pa.DataType, values: pa.Array, lengths: Rows, missing: Bools) -> pa.Array:
    """A column of lists that take so many of `values` each, one after the other."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    mask = pa.array(missing) if missing.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=kind, mask=mask)


def _lists(
    step: AggregateStep, values: pa.Array, positions: Numbers, ids: Rows, rows: Rows, count: int
) -> list[pa.Array]:
    """For each group its values at some rows, and their positions, in the order of these; NULL where it has none."""
    order = rows[np.lexsort((positions[rows], ids[rows]))]
    lengths = np.bincount(ids[order], minlength=count)
    taken = values.take(pa.array(order, pa.int64()))
    places = pa.array(positions[order], pa.int64())
    kind = to_arrow(step.type)
    if taken.type != kind.value_type:
        taken = taken.cast(kind.value_type)
    missing = lengths == 0
    return [
        list_array(kind, taken, lengths, missing),
        list_array(pa.list_(pa.field("item", pa.int64())), places, lengths, missing),
    ]

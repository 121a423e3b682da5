"""Aggregates whose result is a list: array_agg, and collect, which leaves out NULLs.

A state is the list of the values that one batch of rows has of a group, and the position of the first of these rows.
States are put together once, when all are there, in the order of their positions: at most twice what they hold is
then in memory.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import Groups
from bireme.backends.reference.vectors import Bools, check_elements, fixed, nulls_of
from bireme.data import arrays
from bireme.data.types import to_arrow
from bireme.errors import ValueTooLarge
from bireme.plan.physical import AggregateStep
from bireme.units import format_bytes


def partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> list[pa.Array]:
    """The lists of a batch whose first row is number `position`; NULL where a group has no value."""
    chosen = ~nulls_of(arg) if step.function == "collect" else np.ones(len(arg), np.bool_)
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(groups.ids[rows], kind="stable")]
    lengths = np.bincount(groups.ids[rows], minlength=groups.count)
    taken = arg.take(arrays.from_numpy(rows))
    kind = to_arrow(step.type)
    if taken.type != kind.value_type:
        taken = taken.cast(kind.value_type)
    places = np.full(groups.count, position, np.int64)
    return [list_array(kind, taken, lengths, lengths == 0), arrays.from_numpy(places)]


def merge(step: AggregateStep, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
    """The lists of parts as one for each group."""
    return [merged_lists(step, states[:1], states[1], groups), states[1]]


def merged_lists(step: AggregateStep, parts: list[pa.Array], positions: pa.Array, groups: Groups) -> pa.Array:
    """The lists of parts as one for each group. Takes them away from `parts`, so that they are in memory no longer than
    they must be.
    """
    order = np.lexsort((fixed(positions, np.int64), groups.ids))
    lists = joined(parts)
    if not np.array_equal(order, np.arange(len(order))):
        lists = lists.take(arrays.from_numpy(order))
    lengths = np.bincount(groups.ids[order], lengths_of(lists), minlength=groups.count).astype(np.int64)
    return list_array(to_arrow(step.type), _values(lists), lengths, lengths == 0)


def joined(parts: list[pa.Array]) -> pa.Array:
    """The parts as one; takes them away from `parts`."""
    nbytes = sum([part.nbytes for part in parts])
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:
        fault = ValueTooLarge(
            f"the values of a list, or of a text of string_agg(), take {format_bytes(nbytes)}, and Arrow has room for "
            "2 GiB of text, or 2,147,483,647 values, in one list; aggregate less: filter rows, or group by more keys"
        )
        fault.__cause__ = error
        raise fault from error
    finally:
        parts.clear()


def lengths_of(lists: pa.Array) -> Rows:
    """How many values each list has; 0 for NULL."""
    offsets = arrays.to_numpy(lists.offsets).astype(np.int64)
    lengths: Rows = np.where(nulls_of(lists), 0, np.diff(offsets))
    return lengths


def list_array(kind: pa.DataType, values: pa.Array, lengths: Rows, missing: Bools) -> pa.Array:
    """A column of lists that take so many of `values` each, one after the other."""
    ends = np.cumsum(lengths)
    check_elements(int(ends[-1]) if len(ends) else 0)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    mask = arrays.from_numpy(missing) if missing.any() else None
    return pa.ListArray.from_arrays(arrays.from_numpy(offsets), values, type=kind, mask=mask)


def _values(lists: pa.Array) -> pa.Array:
    """The values of lists of which those that are NULL have none, as `flatten` gives them, which would copy them."""
    offsets = arrays.to_numpy(lists.offsets)
    return lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))

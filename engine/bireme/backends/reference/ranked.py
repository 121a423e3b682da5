"""Aggregates that pick a value by its rank in its group: quantiles. Their state is the list of values, in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.keys import Rows, order_code
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import nulls_of
from bireme.data.record import plain
from bireme.data.types import list_of, to_arrow
from bireme.plan.physical import AggregateStep
from bireme.plan.quantile_places import quantile_places


def partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> list[pa.Array]:
    """The values of a batch by group."""
    return _lists(step, arg, groups.ids, np.flatnonzero(~nulls_of(arg)), groups.count)


def merge(step: AggregateStep, states: list[pa.Array], groups: Groups) -> list[pa.Array]:
    """The lists of parts as one for each group."""
    (values,) = states
    ids = np.repeat(groups.ids, lengths_of(values))
    return _lists(step, values.flatten(), ids, np.arange(len(ids)), groups.count)


def finish(step: AggregateStep, states: list[pa.Array]) -> pa.Array:
    """The value of each list that stands where the quantile is."""
    lists = plain(states[0])
    values, lengths = lists.flatten(), lengths_of(lists)
    ids = np.repeat(np.arange(len(lists)), lengths)
    order = np.lexsort((order_code(values), ids))
    begins = np.cumsum(lengths) - lengths
    rows = np.where(lengths > 0, begins + quantile_places(step, lengths), -1)
    found = np.full(len(lists), -1, np.int64)
    found[rows >= 0] = order[rows[rows >= 0]]
    return picked(values, found)


def _lists(step: AggregateStep, values: pa.Array, ids: Rows, rows: Rows, count: int) -> list[pa.Array]:
    order = rows[np.argsort(ids[rows], kind="stable")]
    lengths = np.bincount(ids[order], minlength=count)
    return [list_array(to_arrow(list_of(step.type)), values.take(pa.array(order)), lengths, lengths == 0)]

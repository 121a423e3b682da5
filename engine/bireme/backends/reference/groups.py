"""Grouping: partial states of a batch, their merge, and their results, each over whole columns.

A table keeps the states of the batches it was given, and merges them when they have become many. What state columns
there are is in `plan.states`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Settled
from bireme.backends.hash import hash_rows
from bireme.backends.reference.keys import Rows, group_rows, order_code
from bireme.backends.reference.rows import split, take_rows
from bireme.backends.reference.values import repeated
from bireme.backends.reference.vectors import (
    Bools,
    Numbers,
    floats,
    from_floats,
    from_integers,
    integers,
    magnitude,
    nulls_of,
    widened,
)
from bireme.data.key_range import KeyRange
from bireme.data.record import concat, plain, record_batch
from bireme.data.types import FLOAT64, TIMESTAMP, DataType
from bireme.errors import Unsupported
from bireme.plan.physical import AggregateStep, GroupSpec
from bireme.plan.states import avg_sum_type, state_schema, state_types

_PENDING_ROWS_MAX: Final = 1 << 16


class Groups:
    """Which group each row belongs to, and how many groups there are."""

    def __init__(self, ids: Rows, count: int) -> None:
        self.ids = ids
        self.count = count
        self._sequence: Rows | None = None

    def counts(self, chosen: Bools) -> Rows:
        """How many of the chosen rows each group has."""
        return np.bincount(self.ids[chosen], minlength=self.count).astype(np.int64)

    def fold(self, values: Numbers, chosen: Bools, combine: np.ufunc) -> tuple[Numbers, Bools]:
        """The values of the chosen rows of each group combined, in row order; and which groups have none."""
        order = self._by_group(chosen)
        sorted_ids = self.ids[order]
        starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
        folded = np.zeros(self.count, values.dtype)
        missing = np.ones(self.count, np.bool_)
        if len(order):
            folded[sorted_ids[starts]] = combine.reduceat(values[order], starts)
            missing[sorted_ids[starts]] = False
        return folded, missing

    def _by_group(self, chosen: Bools) -> Rows:
        """The chosen rows, those of each group together; known from the first call on where all are chosen."""
        if not chosen.all():
            rows = np.flatnonzero(chosen)
            return rows[np.argsort(self.ids[rows], kind="stable")]
        if self._sequence is None:
            self._sequence = np.argsort(self.ids, kind="stable")
        return self._sequence

    def first(self, order: Numbers, chosen: Bools) -> Rows:
        """The chosen row of each group that comes first by `order`, then by position; -1 where there is none."""
        rows = np.flatnonzero(chosen)
        sequence = rows[np.lexsort((order[rows], self.ids[rows]))]
        found = np.full(self.count, -1, np.int64)
        ids = self.ids[sequence]
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        found[ids[starts]] = sequence[starts]
        return found


States = list[pa.Array]


def picked(array: pa.Array, rows: Rows) -> pa.Array:
    """The values at some rows; NULL for -1."""
    return plain(array).take(pa.array(rows, pa.int64(), mask=rows < 0))


def _int64(values: Numbers, missing: Bools | None = None) -> pa.Array:
    return pa.array(np.asarray(values, np.int64), pa.int64(), mask=missing)


# ------------------------------------------------------------------------------------- sums of any numbers


def _sum(array: pa.Array, kind: DataType, groups: Groups, what: str) -> pa.Array:
    chosen = ~nulls_of(array)
    if kind.is_float:
        with np.errstate(all="ignore"):
            total, missing = groups.fold(floats(array), chosen, np.add)
        return from_floats(total, missing, kind)
    values = integers(array)
    total, missing = groups.fold(widened(values, magnitude(values) * max(1, len(values))), chosen, np.add)
    return from_integers(total, missing, kind, lambda row: f"{what} of {total[row]} (without its decimal point)")


def _sum_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    return [_sum(arg, step.type, groups, "sum")]


def _sum_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_sum(states[0], step.type, groups, "sum")]


def _avg_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    return [_sum(arg, avg_sum_type(step), groups, "sum"), _int64(groups.counts(~nulls_of(arg)))]


def _avg_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_sum(states[0], avg_sum_type(step), groups, "sum"), _added(states[1], groups)]


def _avg_final(step: AggregateStep, states: States) -> pa.Array:
    """The double of the sum, over the double of the count times the power of ten; time points round down."""
    counts = integers(states[1])
    missing = counts == 0
    divisor = np.where(missing, 1, counts)
    if step.type is TIMESTAMP:
        return from_integers(widened(integers(states[0]), 1 << 63) // divisor, missing, TIMESTAMP, lambda _: "avg")
    if states[0].type == pa.float64():
        with np.errstate(all="ignore"):
            return from_floats(floats(states[0]) / divisor, missing, FLOAT64)
    scale = avg_sum_type(step).scale
    return from_floats(integers(states[0]).astype(np.float64) / (divisor * float(10**scale)), missing, FLOAT64)


def _added(array: pa.Array, groups: Groups) -> pa.Array:
    total, _ = groups.fold(integers(array), np.ones(len(array), np.bool_), np.add)
    return _int64(total)


# -------------------------------------------------------------------------------------------------- counts


def _count_partial(step: AggregateStep, arg: pa.Array | None, groups: Groups, position: int) -> States:
    chosen = np.ones(len(groups.ids), np.bool_) if arg is None else ~nulls_of(arg)
    return [_int64(groups.counts(chosen))]


def _count_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_added(states[0], groups)]


# ---------------------------------------------------------------------------------------- one of the values


def _extreme(step: AggregateStep, values: pa.Array, groups: Groups) -> States:
    """min, max, bool_and (the least truth), bool_or (the greatest) and any_value (the first)."""
    code: Numbers = np.zeros(len(values), np.int64)
    if step.function != "any_value":
        code = order_code(values)
    if step.function in ("max", "bool_or"):
        _, dense = np.unique(code, return_inverse=True)
        code = -dense.reshape(-1)
    return [picked(values, groups.first(code, ~nulls_of(values)))]


def _extreme_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    return _extreme(step, arg, groups)


def _extreme_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return _extreme(step, states[0], groups)


def _ends(step: AggregateStep, values: pa.Array, positions: Numbers, chosen: Bools, groups: Groups) -> States:
    rows = groups.first(positions if step.function == "first" else -positions, chosen)
    gone = rows < 0
    return [picked(values, rows), _int64(np.where(gone, 0, positions[rows]), gone)]


def _ends_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    positions = position + np.arange(len(arg), dtype=np.int64)
    return _ends(step, arg, positions, np.ones(len(arg), np.bool_), groups)


def _ends_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return _ends(step, states[0], integers(states[1]), ~nulls_of(states[1]), groups)


# ------------------------------------------------------------------------------------------------ variance


def _moments(count: Numbers, mean: Numbers, deviations: Numbers, groups: Groups) -> States:
    """Parts with a count, a mean and a sum of squared deviations, as one (Chan, Golub and LeVeque 1983)."""
    chosen = count > 0
    with np.errstate(all="ignore"):
        total, _ = groups.fold(count, chosen, np.add)
        weighted, _ = groups.fold(np.where(chosen, mean * count, 0.0), chosen, np.add)
        common = np.divide(weighted, total, out=np.zeros(groups.count), where=total > 0)
        apart = mean - common[groups.ids]
        spread = deviations + np.where(count > 1, count, 1.0) * apart * apart
        squares, _ = groups.fold(np.where(chosen, spread, 0.0), chosen, np.add)
    present = np.zeros(groups.count, np.bool_)
    return [_int64(total), from_floats(common, present, FLOAT64), from_floats(squares, present, FLOAT64)]


def _variance_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    count = (~nulls_of(arg)).astype(np.int64)
    return _moments(count, floats(arg), np.zeros(len(arg)), groups)


def _variance_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return _moments(integers(states[0]), floats(states[1]), floats(states[2]), groups)


def _variance_final(step: AggregateStep, states: States) -> pa.Array:
    count, squares = integers(states[0]), floats(states[2])
    freedom = count - 1 if step.function.endswith("samp") else count
    missing = freedom <= 0
    with np.errstate(all="ignore"):
        values = squares / np.where(missing, 1, freedom)
        values = np.sqrt(values) if step.function.startswith("stddev") else values
    return from_floats(values, missing, FLOAT64)


def _first_state(step: AggregateStep, states: States) -> pa.Array:
    return states[0]


Partial = Callable[[AggregateStep, pa.Array, Groups, int], States]
Merge = Callable[[AggregateStep, States, Groups], States]
Finish = Callable[[AggregateStep, States], pa.Array]

_EXTREME: Final = (_extreme_partial, _extreme_merge, _first_state)
_VARIANCE: Final = (_variance_partial, _variance_merge, _variance_final)
_COUNT: Final = (_count_partial, _count_merge, _first_state)
_ENDS: Final = (_ends_partial, _ends_merge, _first_state)

AGGREGATES: Final[dict[str, tuple[Partial, Merge, Finish]]] = {
    "count": _COUNT,
    "count_star": _COUNT,
    "sum": (_sum_partial, _sum_merge, _first_state),
    "avg": (_avg_partial, _avg_merge, _avg_final),
    "min": _EXTREME,
    "max": _EXTREME,
    "any_value": _EXTREME,
    "bool_and": _EXTREME,
    "bool_or": _EXTREME,
    "first": _ENDS,
    "last": _ENDS,
    "var_samp": _VARIANCE,
    "var_pop": _VARIANCE,
    "stddev_samp": _VARIANCE,
    "stddev_pop": _VARIANCE,
}


def check_supported(function: str) -> None:
    """Raises Unsupported for an aggregate that is not implemented."""
    if function not in AGGREGATES:
        raise Unsupported(f"the aggregate {function} cannot be computed yet; use count, sum, avg, min, max or variance")


def over_groups(step: AggregateStep, arg: pa.Array | None, groups: Groups) -> pa.Array:
    """The results of one aggregate over the groups of some rows."""
    partial, _, final = AGGREGATES[step.function]
    return final(step, partial(step, arg, groups, 0))


# --------------------------------------------------------------------------------------------- the table


class ReferenceGroupTable:
    """Groups and their aggregates."""

    fallbacks: tuple[str, ...] = ()

    def __init__(self, spec: GroupSpec) -> None:
        for step in spec.aggregates:
            check_supported(step.function)
        self._spec = spec
        self._schema = state_schema(spec)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._merged_rows = 0

    @property
    def groups(self) -> int:
        return int(self._merged().num_rows)

    @property
    def nbytes(self) -> int:
        return sum(int(batch.get_total_buffer_size()) for batch in self._pending)

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        """Takes rows: keys first, then arguments."""
        keys = [plain(batch.column(index)) for index in range(len(self._spec.key_types))]
        ids, first = group_rows(keys, batch.num_rows)
        groups = Groups(ids, len(first))
        columns = [picked(key, first) for key in keys]
        for step in self._spec.aggregates:
            arg = None if step.arg is None else plain(batch.column(step.arg))
            columns += AGGREGATES[step.function][0](step, arg, groups, position)
        self._add(record_batch(columns, self._schema.names, len(first)))

    def merge(self, states: pa.RecordBatch) -> None:
        """Takes what `states` of any backend gave."""
        self._add(states)

    def _add(self, states: pa.RecordBatch) -> None:
        self._pending.append(states)
        self._pending_rows += states.num_rows
        if self._pending_rows > 2 * self._merged_rows + _PENDING_ROWS_MAX:
            self._merged()

    def _merged(self) -> pa.RecordBatch:
        """The states of all batches, one row a group."""
        together = concat(self._pending, self._schema)
        if len(self._pending) != 1 or self._pending_rows != self._merged_rows:
            together = self._merge(together)
        self._pending, self._pending_rows, self._merged_rows = [together], together.num_rows, together.num_rows
        return together

    def _merge(self, states: pa.RecordBatch) -> pa.RecordBatch:
        count = len(self._spec.key_types)
        keys = [plain(states.column(index)) for index in range(count)]
        ids, first = group_rows(keys, states.num_rows)
        groups = Groups(ids, len(first))
        columns = [picked(key, first) for key in keys]
        at = count
        for step in self._spec.aggregates:
            width = len(state_types(step))
            parts = [plain(states.column(index)) for index in range(at, at + width)]
            columns += AGGREGATES[step.function][1](step, parts, groups)
            at += width
        return record_batch(columns, self._schema.names, len(first))

    def _taken(self) -> pa.RecordBatch:
        """Everything, leaving the table empty."""
        states = self._merged()
        self._pending, self._pending_rows, self._merged_rows = [], 0, 0
        return states

    def states(self, partitions: int) -> list[pa.RecordBatch]:
        """Keys and states, split by the partition of the keys' hash."""
        states = self._taken()
        keys = [states.column(index) for index in range(len(self._spec.key_types))]
        return split(states, hash_rows(keys, states.num_rows), partitions)

    def settle(self, key: int, stated: KeyRange, final: KeyRange) -> Settled:
        """Results of the groups whose key lies in `final`, and states of the others."""
        states = self._taken()
        whole, values, known = (
            ReferenceGroupTable(self._spec),
            integers(states.column(key)),
            ~nulls_of(states.column(key)),
        )
        chosen, inside = (known & (values >= low) & (values <= high) for low, high in (final, stated))
        whole.merge(take_rows(states, np.flatnonzero(chosen)))
        return Settled(whole.finish(), take_rows(states, np.flatnonzero(~chosen)), int((known & ~inside).sum()))

    def finish(self) -> pa.RecordBatch:
        """Keys and results; one row without keys even if nothing came."""
        if not self._spec.key_types and not self._pending:
            self._pending, self._pending_rows = [self._nothing()], 1
        states = self._taken()
        at = len(self._spec.key_types)
        columns = [states.column(index) for index in range(at)]
        if at == 0 and states.num_rows == 0:
            states = self._nothing()
        for step in self._spec.aggregates:
            width = len(state_types(step))
            parts = [states.column(index) for index in range(at, at + width)]
            columns.append(AGGREGATES[step.function][2](step, parts))
            at += width
        names = [f"c{index}" for index in range(len(columns))]
        return record_batch(columns, names, states.num_rows)

    def _nothing(self) -> pa.RecordBatch:
        """The state of a single group without rows."""
        columns: list[pa.Array] = []
        for step in self._spec.aggregates:
            counted = step.function.startswith(("count", "var", "stddev"))
            for index, kind in enumerate(state_types(step)):
                zero = counted or (step.function == "avg" and index == 1)
                columns.append(repeated(0 if zero else None, kind, 1))
        return record_batch(columns, self._schema.names, 1)

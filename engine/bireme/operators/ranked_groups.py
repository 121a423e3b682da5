"""Groups of one partition whose quantiles are looked for in the order of the values, so that no group has to be held.

A first cut splits rows by argument, each in the order of keys and value, and adds up everything else, also how many
values each group has. Then it is known at which places of that order the wanted values stand. Parts without such a
place are never read again; in the others, which may be cut further, the values are picked.

Rule: places count the values of all arguments, one argument after the other, so that those who hold the parts need to
know no more than how many rows come before one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.hash_range import ALL_HASHES, HashRange
from bireme.data.record import record_batch, select
from bireme.data.schema import Schema
from bireme.data.types import BOOL, INT64, to_arrow
from bireme.operators.base import ordered_parts
from bireme.operators.filter_project import FilterProject
from bireme.operators.key_ranges import KeyOrder
from bireme.operators.order_parts import Noted, NotedOfPartitions, OrderParts
from bireme.operators.states import QueryStates
from bireme.plan.expr import Call, Column, SortKey
from bireme.plan.physical import AggregateStep, GroupSpec, MergeGroupsStep, ProgramStep
from bireme.plan.quantile_places import Places, quantile_places
from bireme.plan.states import HOLISTIC

# States of so many groups beside those that are summed up are summed up with them.
_LOOSE_GROUPS_MAX: Final = 65_536


class RankedGroups:
    """A `MergeGroupsStep` with quantiles over partitions of rows of `schema`, one after the other. Cuts and picks on
    any thread; what raises has changed nothing.
    """

    def __init__(self, step: MergeGroupsStep, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        assert step.sample is not None
        self._spec = step.spec
        self._kernels = kernels
        self._states = states
        self._width = len(step.spec.key_types)
        self._args = sorted({step.arg for step in step.spec.aggregates if _is_ranked(step) and step.arg is not None})
        self._sums = _Sums(_summed(step.spec, schema, self._args), kernels)
        self._noted = noted = NotedOfPartitions(states.sample(step.sample), [*range(self._width)], kernels)
        self._orders = [
            _ValueOrder(arg, self._width, lambda own: noted.of(self._partition_of(own)), schema, kernels, states)
            for arg in self._args
        ]
        self._within = ALL_HASHES
        self._found: _Found | None = None
        # By the place of the first row of a part: the places of what was picked there, and the values.
        self._picked: dict[int, tuple[Places, pa.Array]] = {}

    @property
    def nbytes(self) -> int:
        picked = sum([places.nbytes + values.nbytes for places, values in tuple(self._picked.values())])
        found = 0 if self._found is None else self._found.nbytes
        return int(self._sums.nbytes + picked + found)

    def groups_expected(self, within: HashRange, rows: int) -> float:
        """How many groups so many rows of a partition seem to have. Keys that were noted once stand for others that
        were not (Good 1953).
        """
        noted = self._noted.of(within)
        if not self._width or noted is None or not noted.num_rows:
            return rows if self._width else 1
        hashes = arrays.to_numpy(self._kernels.hash_rows(noted, [*range(self._width)]))
        counts = np.unique(hashes, return_counts=True)[1]
        return len(counts) + rows * float(np.count_nonzero(counts == 1)) / len(hashes)

    # --------------------------------------------------------------------------------------------- cutting

    def parts(self, into: int) -> int:
        """How many parts the first cut gives, with so many ranges of each order."""
        return len(self._orders) * ordered_parts(into)

    def cut_first(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, number: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The values of some batches of a partition, by part; `number` counts these calls."""
        self._within = within
        for place, order in enumerate(self._orders):
            own = within.part(place, len(self._orders))
            for part, rows in order.cut(batches, own, into):
                yield place * ordered_parts(into) + part, rows
        self._sums.add(batches, number)

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The values of some batches of a part, by part."""
        orders = len(self._orders)
        place = within.number * self._within.total * orders // within.total % orders
        return self._orders[place].cut_again(batches, within, into)

    def _partition_of(self, own: HashRange) -> HashRange:
        """The partition of which `own` is what belongs to one order."""
        orders = len(self._orders)
        return HashRange(own.number // orders, own.total // orders)

    # --------------------------------------------------------------------------------------------- picking

    def rank(self) -> None:
        """All rows were cut: finds the places of what is wanted."""
        groups = self._sums.groups(self._width)
        counts = [arrays.to_numpy(column) for column in groups.columns[groups.num_columns - len(self._args) :]]
        starts: dict[int, Places] = {}
        before = 0
        for arg, count in zip(self._args, counts, strict=True):
            starts[arg] = before + np.cumsum(count) - count
            before += int(count.sum())
        places: dict[int, Places] = {}
        for index, step in enumerate(self._spec.aggregates):
            if _is_ranked(step):
                assert step.arg is not None
                count = counts[self._args.index(step.arg)]
                places[index] = np.where(count > 0, starts[step.arg] + quantile_places(step, count), -1)
        wanted = np.unique(np.concatenate([some[some >= 0] for some in places.values()]))
        self._found = _Found(groups, places, wanted)

    def wants(self, first: int, rows: int) -> bool:
        """Whether a wanted value is among so many rows from place `first` on."""
        return bool(len(self._ranked().within(first, rows)))

    def pick(self, batches: Sequence[pa.RecordBatch], first: int, rows: int, *, are_alike: bool) -> None:
        """Picks the wanted values of a part; with `are_alike` all of its rows are equal, and some of them are here."""
        places = self._ranked().within(first, rows)
        batch = self._kernels.joined(batches)
        values = select(batch, [self._width], ["v"])
        if are_alike:
            chosen = arrays.from_numpy(np.zeros(len(places), np.int64))
        else:
            flags = [False] * batch.num_columns
            order = self._kernels.sort_rows(batch, descending=flags, nulls_first=flags, limit=None)
            chosen = order.take(arrays.from_numpy(places - first))
        self._picked[first] = places, self._kernels.take(values, chosen).column(0)

    def groups(self) -> pa.RecordBatch:
        """Keys and results, when all parts were looked at."""
        found = self._ranked()
        picked = [self._picked[first] for first in sorted(self._picked)]
        columns = list(found.groups.columns[: self._width])
        summed = iter(found.groups.columns[self._width :])
        for index, step in enumerate(self._spec.aggregates):
            columns.append(self._values_at(found.places[index], step, picked) if _is_ranked(step) else next(summed))
        return record_batch(columns, [f"c{index}" for index in range(len(columns))], found.groups.num_rows)

    def _values_at(self, places: Places, step: AggregateStep, picked: Sequence[tuple[Places, pa.Array]]) -> pa.Array:
        """The picked values at some places, NULL for places below 0."""
        there = places[places >= 0]
        if not len(there):
            return pa.nulls(len(places), to_arrow(step.type))
        low, high = there.min(), there.max()
        own = [(at, values) for at, values in picked if at[0] <= high and at[-1] >= low]
        some = [record_batch([values], ["v"], len(values)) for _, values in own]
        chosen = np.searchsorted(np.concatenate([at for at, _ in own]), places)
        rows = arrays.from_numpy(chosen.astype(np.int64, copy=False), missing=places < 0)
        return self._kernels.take(self._kernels.joined(some), rows).column(0)

    def clear(self) -> None:
        """Forgets the partition."""
        self._sums.clear()
        self._found = None
        self._picked.clear()
        for order in self._orders:
            order.clear()

    def _ranked(self) -> _Found:
        assert self._found is not None, "values are wanted of groups that were not counted"
        return self._found


class _Found(NamedTuple):
    """Groups in the order of their keys, the places of their values by aggregate (-1 for none), and all of these."""

    groups: pa.RecordBatch
    places: dict[int, Places]
    wanted: Places

    @property
    def nbytes(self) -> int:
        return measure(self.groups) + sum([some.nbytes for some in self.places.values()]) + self.wanted.nbytes

    def within(self, first: int, rows: int) -> Places:
        low, high = np.searchsorted(self.wanted, (first, first + rows))
        return self.wanted[low:high]


class _Sums:
    """What needs no order of a partition's groups, added up call by call."""

    def __init__(self, spec: GroupSpec, kernels: Kernels) -> None:
        self._spec = spec
        self._kernels = kernels
        self._lock = threading.Lock()
        self._states: list[pa.RecordBatch] = []
        self._loose = 0
        self._added: set[int] = set()

    @property
    def nbytes(self) -> int:
        return sum([measure(states) for states in self._states])

    def add(self, batches: Sequence[pa.RecordBatch], number: int) -> None:
        """Takes the batches of call `number`, once."""
        table = self._kernels.group_table(self._spec)
        for batch in batches:
            table.update(batch, 0)
        (states,) = table.states(1)
        with self._lock:
            if number in self._added:
                return
            self._added.add(number)
            self._states.append(states)
            self._loose += states.num_rows
            if self._loose > max(_LOOSE_GROUPS_MAX, 2 * self._states[0].num_rows):
                self._states, self._loose = self._merged(), 0

    def _merged(self) -> list[pa.RecordBatch]:
        table = self._kernels.group_table(self._spec)
        for states in self._states:
            table.merge(states)
        return table.states(1)

    def groups(self, keys: int) -> pa.RecordBatch:
        """Keys and results, in the order of the keys."""
        groups = self._kernels.joined(list(self._kernels.merge_groups(self._spec, self._states, [])))
        if not keys:
            return groups
        flags = [False] * keys
        own = select(groups, range(keys), groups.schema.names[:keys])
        order = self._kernels.sort_rows(own, descending=flags, nulls_first=flags, limit=None)
        return self._kernels.take(groups, order)

    def clear(self) -> None:
        self._states.clear()
        self._added.clear()
        self._loose = 0


class _ValueOrder:
    """The order of one argument's values: by the keys, then by the value. NULL is no value."""

    def __init__(
        self, arg: int, keys: int, noted: Noted, schema: Schema, kernels: Kernels, states: QueryStates
    ) -> None:
        chosen = [*range(keys), arg]
        fields = [schema.fields[column] for column in chosen]
        exprs = tuple([Column(column, schema[column].type) for column in chosen])
        names = tuple([field.name for field in fields])
        present = Call("is_not_null", (exprs[-1],), BOOL)
        self._values = FilterProject(ProgramStep(present, exprs, names), schema, kernels, states)
        self._noted = noted
        order = [SortKey(Column(place, field.type)) for place, field in enumerate(fields)]
        self._parts = OrderParts(
            KeyOrder(order, Schema(tuple(fields)), kernels, states), self._noted_values, kernels, states
        )
        self.clear = self._parts.clear
        # Of batches with values only, of a part.
        self.cut_again = self._parts.cut

    def cut(
        self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The values among some rows, by part."""
        return self._parts.cut(map(self._values.run, batches), within, into)

    def _noted_values(self, within: HashRange) -> pa.RecordBatch | None:
        noted = self._noted(within)
        return None if noted is None else self._values.run(noted)


def _is_ranked(step: AggregateStep) -> bool:
    return step.function in HOLISTIC


def _summed(spec: GroupSpec, schema: Schema, args: Sequence[int]) -> GroupSpec:
    """What is no quantile, and how many values each of `args` has."""
    counts = [AggregateStep("count", arg, schema[arg].type, INT64) for arg in args]
    return GroupSpec(spec.key_types, (*[step for step in spec.aggregates if not _is_ranked(step)], *counts))

"""Where a pipeline's rows go: onto an edge, into a top-n, into a scalar; more in `group` and `join_sinks`.

One class a sink of `plan.physical`. `absorb` is called on many compute threads at once, one per slot; state is per
slot, so nothing is locked. `finish` hands over what was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.batch import measure
from bireme.data.record import compact, record_batch, slices, with_own_dictionaries
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import CardinalityFault, TooMuchAtOnce
from bireme.operators.base import Emission, Relievable, Unrelieved
from bireme.operators.group import SEQUENCE_SHIFT
from bireme.operators.order import Order, TopRows
from bireme.operators.ranges import NotedRows
from bireme.operators.scalar_value import literal_of
from bireme.operators.states import QueryStates
from bireme.operators.top_bound import LiveBound
from bireme.operators.top_per_key import DropBeyondTop
from bireme.plan.expr import Literal
from bireme.plan.physical import EmitSink, ScalarSink, TopSink
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.units import GIB, format_bytes

# What a task may make whatever the limit of memory is: a task over a split cannot be made smaller.
_MADE_BYTES_MIN: Final = GIB


class LiveSink(Protocol):
    """A sink at work."""

    @property
    def nbytes(self) -> int:
        """Bytes that the sink's own state holds, in all slots."""
        ...

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What of its work another backend does, so far."""
        ...

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]: ...

    def relievable(self) -> Relievable:
        """What it could give up between two tasks; see `base.Stage`. Asked while calls run."""
        ...

    def relief_parts(self) -> int: ...

    def relieve(self, part: int) -> list[Emission]: ...

    def finish_parts(self) -> int: ...

    def finish(self, part: int) -> list[Emission]:
        """One that runs out of memory has lost nothing, and is made again."""
        ...


class Emit(Unrelieved):
    """Puts batches on an edge as they come, but for rows that `drop` leaves out. Keys of the others are `noted`."""

    def __init__(
        self,
        sink: EmitSink,
        partitions: int,
        kernels: Kernels,
        drop: DropBeyondTop | None = None,
        noted: NotedRows | None = None,
        memory_bytes: int = 0,
    ) -> None:
        self._made_bytes_max = max(memory_bytes, _MADE_BYTES_MIN)
        self._drop = drop
        self._noted = noted
        self._sink = sink
        self._partitions = partitions
        self._kernels = kernels

    @property
    def nbytes(self) -> int:
        return 0 if self._drop is None else self._drop.nbytes

    @property
    def fallbacks(self) -> tuple[str, ...]:
        return () if self._drop is None else self._drop.notes

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        if self._noted is not None:
            batches = self._noted.passing(batches, slot)
        if self._drop is None:
            return self._put(batches)
        try:
            return self._put([self._drop.run(batch, slot) for batch in batches])
        except BaseException:
            # The call may be made again, and its rows must not count twice.
            self._drop.forget(slot)
            raise

    def _put(self, batches: Iterable[pa.RecordBatch]) -> list[Emission]:
        pieces = self._bounded(piece for batch in batches for piece in slices(batch, BATCH_ROWS_MAX))
        if not self._sink.partition_keys or self._partitions == 1:
            return [Emission(self._sink.edge, 0, piece) for piece in pieces]
        by_partition: dict[int, list[pa.RecordBatch]] = {}
        for piece in map(with_own_dictionaries, pieces):
            for index, part in enumerate(self._kernels.partition(piece, self._sink.partition_keys, self._partitions)):
                if part.num_rows:
                    by_partition.setdefault(index, []).append(compact(part))
        return [each for index in sorted(by_partition) for each in self._joined(index, by_partition.pop(index))]

    def _bounded(self, pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All of them: they stay in memory until the task has ended. TooMuchAtOnce where they are more than that."""
        made = 0
        counted: set[int] = set()
        for place, piece in enumerate(pieces):
            # Most tasks make one, which is there already.
            if place:
                made += measure(piece, counted)
            if made > self._made_bytes_max:
                raise TooMuchAtOnce(f"what a task makes takes {format_bytes(made)} or more; it is kept until it ends")
            yield piece

    def _joined(self, partition: int, parts: list[pa.RecordBatch]) -> list[Emission]:
        """A batch of a partition for all of a call, which a spill store can write in one go; more where it is long."""
        return [
            Emission(self._sink.edge, partition, each) for each in slices(self._kernels.joined(parts), BATCH_ROWS_MAX)
        ]

    def finish_parts(self) -> int:
        return 0

    def finish(self, part: int) -> list[Emission]:
        return []


class Top(Unrelieved):
    """Keeps the first rows, per slot."""

    def __init__(
        self,
        sink: TopSink,
        schema: Schema,
        kernels: Kernels,
        states: QueryStates,
        slots: int,
        bound: LiveBound | None,
    ) -> None:
        self._sink = sink
        self._bound = bound
        self._names = (*schema.names, "position")
        ordered = Schema((*schema.fields, Field("position", INT64, False)))
        self._order = Order(sink.keys, ordered, kernels, states)
        self._slots: list[TopRows | None] = [None] * (slots + 1)
        self.fallbacks: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in self._slots if rows is not None)

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        rows = self._slots[slot]
        if rows is None:
            learnt = None if self._bound is None else partial(self._learnt, slot)
            rows = self._slots[slot] = TopRows(self._order, self._sink.limit, learnt)
        position = sequence << SEQUENCE_SHIFT
        for batch in batches:
            positions = arrays.from_numpy(np.arange(position, position + batch.num_rows, dtype=np.int64))
            rows.add(record_batch([*batch.columns, positions], self._names, batch.num_rows))
            position += batch.num_rows
        return []

    def _learnt(self, slot: int, last: Literal, position: int) -> None:
        if self._bound is not None:
            self._bound.learn(slot, last, position >> SEQUENCE_SHIFT)

    def finish_parts(self) -> int:
        self._slots = [rows for rows in self._slots if rows is not None]
        return len(self._slots)

    def finish(self, part: int) -> list[Emission]:
        kept = self._slots[part]
        assert kept is not None
        rows = kept.rows()
        self._slots[part] = None
        return [] if rows is None else [Emission(self._sink.edge, 0, rows)]


class KeepScalar(Unrelieved):
    """Keeps the one value of a scalar subquery."""

    nbytes = 0
    fallbacks: tuple[str, ...] = ()

    def __init__(self, sink: ScalarSink, schema: Schema, states: QueryStates) -> None:
        self._sink = sink
        self._type = schema[0].type
        self._states = states
        self._values: list[Literal] = []

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        for batch in batches:
            if batch.num_rows + len(self._values) > 1:
                raise CardinalityFault(
                    "a scalar subquery gave more than one row; add LIMIT 1 or an aggregate such as max()"
                )
            if batch.num_rows:
                self._values.append(literal_of(batch.column(0), 0, self._type))
        return []

    def finish_parts(self) -> int:
        return 1

    def finish(self, part: int) -> list[Emission]:
        self._states.scalars[self._sink.scalar] = self._values[0] if self._values else Literal(None, self._type)
        return []

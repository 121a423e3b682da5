"""Making join tables, and marking the rows of one that a stream matches.

A build keeps what comes, in any order and on many threads; the parts of `finish` put it together, and the one that ends
last makes the table known. A table's rows are in the order of the pipeline's inputs, whatever the threads did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from bireme.backends.base import JoinBuild, JoinTable, Kernels
from bireme.data.batch import measure
from bireme.data.record import concat, empty
from bireme.data.schema import Schema
from bireme.operators.base import Emission, Unrelieved
from bireme.operators.filter_project import KeyColumns
from bireme.operators.hash_join import Matcher
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Column
from bireme.plan.physical import BuildSink, MatchSink


class Match(Unrelieved):
    """Marks the build rows that what comes matches."""

    nbytes = 0
    fallbacks: tuple[str, ...] = ()

    def __init__(self, sink: MatchSink, schema: Schema, kernels: Kernels, states: QueryStates) -> None:
        self._matcher = Matcher(sink, schema, kernels, states)
        self.fan_out = self._matcher.fan_out

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        for batch in batches:
            self._matcher.run(batch)
        return []

    def finish_parts(self) -> int:
        return 0

    def finish(self, part: int) -> list[Emission]:
        return []


class Build(Unrelieved):
    """Makes a join table from all batches of the build side."""

    def __init__(self, sink: BuildSink, schema: Schema, kernels: Kernels, states: QueryStates, slots: int) -> None:
        self._sink = sink
        self._schema = schema
        self._states = states
        self._keys = KeyColumns(sink.keys, schema, kernels, states)
        types = [key.type for key in sink.keys]
        native = kernels.join_build(types, schema, null_equal_count=sink.null_equal_count)
        self._build: JoinBuild = native or _WholeBuild(self._keys, schema, kernels, sink.null_equal_count)
        self._slots = slots
        self._kept_bytes = [0] * (slots + 1)
        self._came = [False] * (slots + 1)
        self.fallbacks: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        built = self._states.tables.get(self._sink.table)
        return sum(self._kept_bytes) if built is None else built.nbytes

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        # All rows of a task are kept at once or not at all, so that a task may run again.
        columns = [batch for batch in batches if batch.num_rows]
        keys = [self._keys.run(batch) for batch in columns]
        if columns:
            self._build.add(sequence, keys, columns)
            self._came[slot] = True
            self._kept_bytes[slot] += sum([measure(batch) for batch in columns])
        return []

    def finish_parts(self) -> int:
        if not any(self._came):
            nothing = empty(self._schema)
            self._build.add(0, [self._keys.run(nothing)], [nothing])
        return self._build.start(self._slots)

    def finish(self, part: int) -> list[Emission]:
        finished = self._build.work()
        if finished is not None:
            self._publish(*finished)
        return []

    def _publish(self, table: JoinTable, batch: pa.RecordBatch) -> None:
        if self._sink.table in self._states.looked_up:
            table.key_filter()  # made here and not on the loop, where scans ask for it
        matched = np.zeros(batch.num_rows, dtype=np.bool_)
        keys = self._keys.run(batch) if self._sink.null_aware else None
        self._states.tables[self._sink.table] = BuiltTable(
            batch, self._schema, keys, table, matched,
            tuple([key.index if isinstance(key, Column) else None for key in self._sink.keys]),
        )  # fmt: skip
        self.fallbacks = (*table.fallbacks, f"{self._sink.table} is {table.form}")


class _WholeBuild:
    """A `JoinBuild` for backends that make a table from all keys at once."""

    def __init__(self, keys: KeyColumns, schema: Schema, kernels: Kernels, null_equal_count: int) -> None:
        self._keys = keys
        self._schema = schema
        self._kernels = kernels
        self._null_equal_count = null_equal_count
        self._chunks: list[tuple[int, pa.RecordBatch]] = []

    def add(self, sequence: int, keys: Sequence[pa.RecordBatch], columns: Sequence[pa.RecordBatch]) -> None:
        self._chunks += [(sequence, batch) for batch in columns]

    def start(self, threads: int) -> int:
        return 1

    def work(self) -> tuple[JoinTable, pa.RecordBatch]:
        chunks = sorted(self._chunks, key=lambda chunk: chunk[0])
        batch = concat([columns for _, columns in chunks], self._schema)
        table = self._kernels.join_table(self._keys.run(batch), null_equal_count=self._null_equal_count)
        self._chunks.clear()
        return table, batch

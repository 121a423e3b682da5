"""Putting a join table together from rows that are all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import JoinBuild, JoinTable, Kernels
from bireme.data.record import concat, empty
from bireme.data.schema import Schema
from bireme.data.types import Kind
from bireme.operators.filter_project import KeyColumns
from bireme.operators.join_keys import BuildKeys
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Column
from bireme.plan.physical import BuildSink
from bireme.plan.range_keys import saves_pairs
from bireme.units import MIB

if TYPE_CHECKING:
    from bireme.operators.away import Away

# What one call cuts: it needs as much again for the pieces.
STEP_BYTES: Final = 8 * MIB
# A row's part of a look-up of words: a slot or a link, and the mark of rows that matched.
_WORD_BYTES_PER_ROW: Final = 12
# Of an index: a slot, the key once more, and its number.
_INDEX_BYTES_PER_ROW: Final = 48
# Of ranges: what sorting one range key takes, beside what is kept of both.
_RANGE_BYTES_PER_ROW: Final = 72


def bytes_to_build(sink: BuildSink, nbytes: int, rows: int) -> int:
    """What a build of so many bytes will need at its end, when its rows are there twice beside the look-up."""
    is_index = any(key.type.kind in (Kind.STRING, Kind.BINARY) for key in sink.keys)
    ranges = 0 if sink.ranges is None else _RANGE_BYTES_PER_ROW
    return 2 * nbytes + rows * (ranges + (_INDEX_BYTES_PER_ROW if is_index else _WORD_BYTES_PER_ROW))


def new_build(sink: BuildSink, schema: Schema, keys: BuildKeys, kernels: Kernels) -> JoinBuild:
    """An empty build of the backend's own, or one that waits for all rows."""
    native = kernels.join_build([key.type for key in sink.keys], schema, null_equal_count=sink.null_equal_count)
    return native or _WholeBuild(keys, schema, kernels, sink.null_equal_count)


def table_of(
    sink: BuildSink, schema: Schema, keys: BuildKeys, kernels: Kernels, chunks: Sequence[tuple[int, pa.RecordBatch]]
) -> tuple[JoinTable, pa.RecordBatch]:
    """A table of some rows with their sequence numbers, made by this thread; and its rows in one batch."""
    build = new_build(sink, schema, keys, kernels)
    for sequence, batch in chunks or [(0, empty(schema))]:
        build.add(sequence, [keys.run(batch)], [batch])
    build.start(1)
    made = build.work()
    assert made is not None, "the one thread that works on a build did not end it"
    return made


def built_table(
    sink: BuildSink, schema: Schema, keys: BuildKeys, table: JoinTable, batch: pa.RecordBatch, away: Away | None,
    kernels: Kernels, states: QueryStates,
) -> BuiltTable:  # fmt: skip
    """What probes read of a finished table, in which rows are put in the order of the ranges that probes ask for."""
    if sink.ranges is not None and saves_pairs(batch.num_rows, is_unique=table.is_unique):
        ranges = KeyColumns(sink.ranges.exprs, schema, kernels, states).run(batch)
        table.index_ranges(keys.run(batch), ranges, is_bounded_above=sink.ranges.is_bounded_above)
    return BuiltTable(
        batch,
        schema,
        keys.run(batch) if sink.null_aware else None,
        table,
        np.zeros(batch.num_rows, dtype=np.bool_),
        tuple([key.index if isinstance(key, Column) else None for key in sink.keys]),
        away,
        keys.fault,
    )


class _WholeBuild:
    """A `JoinBuild` for backends that make a table from all keys at once."""

    def __init__(self, keys: BuildKeys, schema: Schema, kernels: Kernels, null_equal_count: int) -> None:
        self._keys = keys
        self._schema = schema
        self._kernels = kernels
        self._null_equal_count = null_equal_count
        self._chunks: list[tuple[int, pa.RecordBatch]] = []

    def add(self, sequence: int, keys: Sequence[pa.RecordBatch], columns: Sequence[pa.RecordBatch]) -> None:
        self._chunks += [(sequence, batch) for batch in columns]

    def give_back(self) -> list[tuple[int, pa.RecordBatch]]:
        chunks, self._chunks = self._chunks, []
        return chunks

    def start(self, threads: int) -> int:
        return 1

    def work(self) -> tuple[JoinTable, pa.RecordBatch]:
        chunks = sorted(self._chunks, key=lambda chunk: chunk[0])
        batch = concat([columns for _, columns in chunks], self._schema)
        table = self._kernels.join_table(self._keys.run(batch), null_equal_count=self._null_equal_count)
        self._chunks.clear()
        return table, batch

"""A table in memory, made from Arrow data of any origin.

Rule: data is brought into the engine's layout once, when it is registered; after that, splits are slices of it.
Layouts are in `data.layout`; pruning in `prune`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from bireme.data.key_range import KeyRange
from bireme.data.layout import check_codes, to_engine
from bireme.data.record import concat
from bireme.data.schema import Schema
from bireme.errors import ArgumentFault, ConversionFault, EngineBug, Unsupported
from bireme.plan.expr import Expr
from bireme.plan.source import TableStatistics
from bireme.storage.array_bounds import array_bounds, array_range, column_statistics
from bireme.storage.base import BATCH_ROWS_MAX, ByteRange, ChunkKey, Split
from bireme.storage.prune import Bounds, may_be_true

_SAMPLE_ROWS: Final = 2048
_SAMPLE_PARTS: Final = 3


def open_arrow(data: Any) -> ArrowSource:
    """A table of what `data` holds: pyarrow's Table, RecordBatch, a list of these, a RecordBatchReader, a
    pandas or Polars frame, or any object with the Arrow PyCapsule methods.

    Streams are read to their end. Raises ArgumentFault for anything else, Unsupported for types that are not carried.
    """
    try:
        schema, batches = _batches(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ArgumentFault(f"this {type(data).__name__} cannot be read as Arrow data: {error}") from error
    return ArrowSource(schema, batches)


class ArrowSource:
    """See `open_arrow`. Any thread."""

    def __init__(self, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
        self._schema = _schema(schema)
        self._batches = _joined([part for batch in batches for part in _engine_batches(batch, self._schema)])
        self._first_rows = tuple(accumulate([batch.num_rows for batch in self._batches], initial=0))
        self._rows = self._first_rows[-1]
        self._version = f"memory-{os.urandom(8).hex()}"
        self._lock = threading.Lock()
        self._statistics: TableStatistics | None = None
        self._bounds: dict[tuple[int, int], Bounds] = {}
        self._key_ranges: dict[tuple[int, int], KeyRange | None] = {}

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def version(self) -> str:
        return self._version

    def refresh(self) -> ArrowSource:
        """Arrow data does not change: this object."""
        return self

    def statistics(self) -> TableStatistics:
        """Bounds where finding them is cheap, read from the data at the first call; cached."""
        with self._lock:
            if self._statistics is None:
                columns = range(len(self._schema))
                self._statistics = TableStatistics(self._rows, tuple([self._column(column) for column in columns]))
            return self._statistics

    def sample(self, columns: Sequence[int]) -> pa.RecordBatch:
        """The first rows of a few batches spread over the table."""
        count = len(self._batches)
        parts = min(_SAMPLE_PARTS, count)
        chosen = [self._batches[(2 * part + 1) * count // (2 * parts)] for part in range(parts)]
        wanted = [batch.select(list(columns)).slice(0, _SAMPLE_ROWS // parts) for batch in chosen]
        return concat(wanted, self._schema.select(columns))

    def split_count(self) -> int:
        return len(self._batches)

    def are_splits_quick(self, columns: Sequence[int], bytes_max: int | None) -> bool:
        return True

    def splits(
        self,
        columns: Sequence[int],
        filters: Sequence[Expr],
        *,
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Sequence[ArrowSplit]:
        """One split per batch that may hold rows for which all `filters` are TRUE, in row order."""
        kept = list(columns)
        schema = self._schema.select(kept)
        return [
            ArrowSplit(batch.select(kept), schema, index, first)
            for index, (batch, first) in enumerate(zip(self._batches, self._first_rows, strict=False))
            if not filters or may_be_true(filters, self._bounds_of(index, kept))
        ]

    def key_ranges(self, column: int, splits: Sequence[Split]) -> list[KeyRange | None]:
        """The ranges of an integer, date or short decimal column, found by looking; cached."""
        found = []
        for split in splits:
            assert isinstance(split, ArrowSplit)
            at = (split.index, column)
            if at not in self._key_ranges:
                array = self._batches[split.index].column(column)
                self._key_ranges[at] = array_range(array, self._schema[column].type)
            found.append(self._key_ranges[at])
        return found

    def bounds(self, column: int, splits: Sequence[Split]) -> list[Bounds]:
        """What is known of a column in batches, where finding it is cheap."""
        found = []
        for split in splits:
            assert isinstance(split, ArrowSplit)
            found.append(self._batch_bounds(split.index, column))
        return found

    def _bounds_of(self, index: int, columns: Sequence[int]) -> list[Callable[[], Bounds]]:
        return [partial(self._batch_bounds, index, column) for column in columns]

    def _batch_bounds(self, index: int, column: int) -> Bounds:
        # Two threads may work out the same bounds; they are equal, so the later one does no harm.
        found = self._bounds.get((index, column))
        if found is None:
            found = array_bounds(self._batches[index].column(column), self._schema[column].type)
            self._bounds[index, column] = found
        return found

    def _column(self, column: int) -> Any:
        found = [self._batch_bounds(index, column) for index in range(len(self._batches))]
        return column_statistics(found, [batch.column(column) for batch in self._batches], self._schema[column].type)


class ArrowSplit:
    """Rows that are in memory already."""

    __slots__ = ("_batch", "first_row", "index", "schema")

    def __init__(self, batch: pa.RecordBatch, schema: Schema, index: int, first_row: int) -> None:
        self._batch = batch
        self.schema = schema
        self.index = index
        self.first_row = first_row

    @property
    def rows(self) -> int:
        return self._batch.num_rows  # type: ignore[no-any-return]

    @property
    def sharers(self) -> int:
        return 1

    @property
    def decoded_bytes(self) -> int:
        """Nothing new is allocated."""
        return 0

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        return ()

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        """There is nothing to keep."""
        return ()

    def part(self, columns: Sequence[int]) -> ArrowSplit:
        kept = list(columns)
        return ArrowSplit(self._batch.select(kept), self.schema.select(kept), self.index, self.first_row)

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        yield self._batch

    def encoded(self) -> str:
        return ""

    def damage(self, column: int, story: str) -> EngineBug:
        return EngineBug(f"column {column} of a table in memory was decoded: {story}")


def _batches(data: Any) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(part, pa.RecordBatch) for part in data):
        return _of_table(pa.Table.from_batches(data))
    if isinstance(data, pa.Table):
        return _of_table(data)
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, list(data)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        # Its own Arrow stream would add the index as a column.
        return _of_table(pa.Table.from_pandas(data, preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, list(reader)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return batch.schema, [batch]
    raise TypeError("it is neither a pyarrow Table or RecordBatch nor an object with __arrow_c_stream__")


def _of_table(table: pa.Table) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    return table.schema, table.to_batches()


def _schema(schema: pa.Schema) -> Schema:
    for field in schema:
        try:
            Schema.from_arrow(pa.schema([field]))
        except Unsupported as error:
            raise Unsupported(f"column {field.name!r}: {error.message}") from None
    return Schema.from_arrow(schema)


def _engine_batches(batch: pa.RecordBatch, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Cut first, then converted: 32-bit offsets hold the strings of a piece, not always those of the whole."""
    for start in range(0, batch.num_rows, BATCH_ROWS_MAX):
        piece = batch.slice(start, BATCH_ROWS_MAX)
        if not piece.num_columns:
            yield piece
            continue
        arrays = [
            _engine_array(array, field.name, field.type)
            for array, field in zip(piece.columns, schema.fields, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(schema.names))


def _engine_array(array: pa.Array, name: str, kind: Any) -> pa.Array:
    try:
        array.validate()
        if pa.types.is_dictionary(array.type):
            check_codes(array)
        return to_engine(array, kind)
    except pa.ArrowInvalid as error:
        raise ArgumentFault(f"column {name!r} is not valid Arrow data: {error}") from error
    except ConversionFault as error:
        raise ConversionFault(f"column {name!r}: {error}") from error
    except Unsupported as error:
        raise Unsupported(f"column {name!r}: {error.message}") from error


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Small neighbours as one batch: a task should have work for a millisecond."""
    joined: list[pa.RecordBatch] = []
    run: list[pa.RecordBatch] = []
    for batch in batches:
        if run and sum(part.num_rows for part in run) + batch.num_rows > BATCH_ROWS_MAX:
            joined.extend(_concatenated(run))
            run = []
        run.append(batch)
    return joined + _concatenated(run)


def _concatenated(run: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(run) < 2:
        return run
    try:
        return pa.Table.from_batches(_alike(run)).unify_dictionaries().combine_chunks().to_batches()  # type: ignore[no-any-return]
    except pa.ArrowInvalid:  # strings of more than 2 GiB in all: they stay as they are
        return run


def _alike(run: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches of one schema: a dictionary that held a NULL was decoded, others of its column may not be."""
    if all(batch.schema == run[0].schema for batch in run):
        return run
    return [
        pa.RecordBatch.from_arrays(
            [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in batch.columns],
            names=batch.schema.names,
        )
        for batch in run
    ]

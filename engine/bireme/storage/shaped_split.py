"""A row group of a file whose columns are not all those of its table: some are cast, or the same for all rows.

Rule: what the file has as it is wanted is read as ever, by kernels that decode themselves where they can; beside it lie
the columns that are made. Only what has to be cast is decoded whole before, since a condition may ask for any of it.
What comes from where is decided in `file_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from bireme.data.arrays import from_numpy
from bireme.data.encoded import EncodedRows, MadeColumn
from bireme.data.record import joined_column, record_batch
from bireme.data.schema import Schema
from bireme.data.types import STRING, DataType, Field, to_arrow
from bireme.errors import BiremeError, ConversionFault, DataError, SourceCorrupt, SourceMismatch
from bireme.plan.expr import Cast, Column, Expr, Value
from bireme.storage.base import ByteRange, ChunkKey
from bireme.storage.file_columns import Constant, Lacking, Origin, RowNumber, Stored
from bireme.storage.parquet_split import ParquetSplit

# The values of an expression over a batch of a schema, as queries mean it.
Evaluate = Callable[[Expr, pa.RecordBatch, Schema], pa.Array]


class ShapedSplit:
    """`schema` are columns of the table, with an origin each; `stored` has those of the file, in the same order."""

    __slots__ = ("_evaluate", "_origins", "_places", "_stored", "schema")

    def __init__(self, stored: ParquetSplit, origins: tuple[Origin, ...], schema: Schema, evaluate: Evaluate) -> None:
        self._stored = stored
        self._origins = origins
        self._evaluate = evaluate
        # Where the columns are in `stored`; counted on for the others, too, so that nothing has to be looked for.
        self._places: list[int] = []
        place = 0
        for origin in origins:
            self._places.append(place)
            place += isinstance(origin, Stored)
        self.schema = schema

    def in_parts(self, rows_max: int | None, bytes_max: int | None) -> list[ShapedSplit]:
        """As ParquetSplit.in_parts; what has to be cast is decoded as what pyarrow decodes, and what is made takes its
        part of `bytes_max`. Raises SourceMismatch where the file lacks one of the columns.
        """
        self._check()
        casts = any(self._is_cast(column) for column in range(len(self._origins)))
        if bytes_max is not None:
            stored = self._stored.bytes_needed
            bytes_max = max(1, bytes_max * stored // max(1, stored + self._made_bytes()))
        parts = self._stored.in_parts(rows_max, bytes_max, is_decoded_whole=casts)
        return [ShapedSplit(part, self._origins, self.schema, self._evaluate) for part in parts]

    def _is_cast(self, column: int) -> bool:
        origin = self._origins[column]
        return isinstance(origin, Stored) and origin.type is not self.schema[column].type

    @property
    def path(self) -> str:
        return self._stored.path

    @property
    def row_group(self) -> int:
        return self._stored.row_group

    @property
    def first_row(self) -> int:
        return self._stored.first_row

    @property
    def file_start(self) -> int:
        return self._stored.file_start

    @property
    def rows(self) -> int:
        return self._stored.rows

    @property
    def sharers(self) -> int:
        return self._stored.sharers

    @property
    def ranges(self) -> tuple[ByteRange, ...]:
        return self._stored.ranges

    @property
    def decoded_bytes(self) -> int:
        """With what is cast twice: both are there at once."""
        return self._stored.decoded_bytes + self._made_bytes()

    def _made_bytes(self) -> int:
        return self.rows * sum(map(self._made_width, range(len(self._origins))))

    def _made_width(self, column: int) -> int:
        kind = self.schema[column].type
        if isinstance(self._origins[column], Stored):
            return kind.width_bytes if self._is_cast(column) else 0
        return 4 if kind is STRING else kind.width_bytes

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]:
        file = self._stored.whole_key
        stored = self._stored.chunk_keys
        return tuple([self._key(column, file, stored) for column in range(len(self._origins))])

    def _key(self, column: int, file: ChunkKey, stored: Sequence[ChunkKey]) -> ChunkKey:
        origin, kind = self._origins[column], self.schema[column].type
        if isinstance(origin, Stored):
            own = stored[self._places[column]]
            return own._replace(made=f"as {kind}") if self._is_cast(column) else own
        made = f"{origin.value!r} as {kind}" if isinstance(origin, Constant) else "row numbers"
        return file._replace(made=made)

    def part(self, columns: Sequence[int]) -> ShapedSplit:
        """The same rows with only the columns at these positions."""
        stored = [self._places[column] for column in columns if isinstance(self._origins[column], Stored)]
        origins = tuple([self._origins[column] for column in columns])
        return ShapedSplit(self._stored.part(stored), origins, self.schema.select(columns), self._evaluate)

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns in engine layout, from the bytes of `ranges`. Raises DataError, too."""
        first = self._stored.first_row_of_file
        for batch in self._stored.decode(buffers):
            yield self._with_made(batch, first, self._made)
            first += batch.num_rows

    def _with_made(self, batch: pa.RecordBatch, first: int, made: Callable[..., pa.Array]) -> pa.RecordBatch:
        arrays = [
            made(column, first, batch.num_rows, batch.column(place) if isinstance(origin, Stored) else None)
            for column, (origin, place) in enumerate(zip(self._origins, self._places, strict=True))
        ]
        return record_batch(arrays, self.schema.names, batch.num_rows)

    def _made(self, column: int, first: int, rows: int, stored: pa.Array | None) -> pa.Array:
        """A column of `rows` rows, the first of which has the number `first` in the file."""
        origin, kind = self._origins[column], self.schema[column].type
        if isinstance(origin, Stored):
            assert stored is not None
            return self._casted(stored, origin.type, column) if self._is_cast(column) else stored
        if isinstance(origin, Constant):
            return constant(origin.value, kind, rows)
        if isinstance(origin, RowNumber):
            return from_numpy(np.arange(first, first + rows, dtype=np.int64))
        raise SourceMismatch(origin.story)

    def _casted(self, values: pa.Array, source: DataType, column: int) -> pa.Array:
        field = self.schema[column]
        try:
            batch = record_batch([values], [field.name], len(values))
            return self._evaluate(
                Cast(Column(0, source), field.type, False), batch, Schema((Field(field.name, source),))
            )
        except DataError as error:
            what = str(error).partition("; ")[0]
            raise ConversionFault(
                f"{self.path!r}: column {field.name!r} is {source} there, and not all of its values can be the table's "
                f"{field.type}: {what}; union_by_name = true gives columns types for the values of all files"
            ) from error

    def encoded(self) -> EncodedRows | str:
        """The stored columns as they lie in the bytes of `ranges`, the others as what makes them."""
        stored = self._stored.encoded()
        if isinstance(stored, str):
            return stored
        chunks = [
            stored.chunks[self._places[column]]
            if isinstance(origin, Stored) and not self._is_cast(column)
            else MadeColumn(self._stored.rows_counted[1], partial(self._made_of_bytes, column))
            for column, origin in enumerate(self._origins)
        ]
        return stored._replace(chunks=tuple(chunks))

    def _made_of_bytes(self, column: int, buffers: Sequence[pa.Buffer], first: int, rows: int) -> pa.Array:
        """`rows` values of a column, from row `first` of those that `encoded` counts."""
        origin = self._origins[column]
        if not isinstance(origin, Stored):
            return self._made(column, self._stored.rows_counted[0] + first, rows, None)
        pieces = self._stored.decoded_column(self._places[column], buffers)
        return joined_column([self._casted(piece, origin.type, column) for piece in pieces]).slice(first, rows)

    def damage(self, column: int, story: str) -> SourceCorrupt:
        """The error that names the place of a scanned column."""
        return self._stored.damage(self._places[column], story)

    def head(self, rows_max: int) -> pa.RecordBatch:
        """The first `rows_max` rows, for a sample: NULL where values cannot be what they have to."""
        stored = self._stored.head(rows_max)
        return self._with_made(stored, self._stored.first_row_of_file, self._sampled)

    def _sampled(self, column: int, first: int, rows: int, stored: pa.Array | None) -> pa.Array:
        try:
            return self._made(column, first, rows, stored)
        except BiremeError:
            return pa.nulls(rows, to_arrow(self.schema[column].type))

    def _check(self) -> None:
        """Raises SourceMismatch where the file lacks one of the columns."""
        for origin in self._origins:
            if isinstance(origin, Lacking):
                raise SourceMismatch(origin.story)


def constant(value: Value, kind: DataType, rows: int) -> pa.Array:
    """The value in all rows, in engine layout."""
    arrow = to_arrow(kind)
    if value is None:
        return pa.nulls(rows, arrow)
    if kind is STRING:
        codes = from_numpy(np.zeros(rows, dtype=np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([value], arrow))
    return pa.repeat(pa.scalar(value, arrow), rows)

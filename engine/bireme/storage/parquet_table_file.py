"""One file of a table of Parquet files: what is proved of the table's columns in it, and its row groups as splits.

Rule: columns are those of the table, by position; where the file has them is in their origins. A bound of a column
that is cast is given where the cast keeps the order of values and rounds none; what is the same in all rows is its own
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, pairwise

import pyarrow as pa

from bireme.data.key_range import EMPTY, KeyRange
from bireme.data.schema import Schema
from bireme.data.types import DataType, Kind
from bireme.errors import ConversionFault, EngineBug
from bireme.plan.expr import Expr, Value
from bireme.plan.functions.conversion import convert
from bireme.plan.tree import columns_used
from bireme.storage.array_bounds import array_range
from bireme.storage.file_columns import Constant, Origin, RowNumber, Stored
from bireme.storage.parquet_bloom import BloomFilter, bloom_filters
from bireme.storage.parquet_bounds import column_bounds, key_ranges
from bireme.storage.parquet_decode import ParquetDecoder
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_pages import PageFilter
from bireme.storage.parquet_split import ParquetSplit
from bireme.storage.prune import Bounds, keeps_order, undecided
from bireme.storage.shaped_split import Evaluate, ShapedSplit, constant

FileSplit = ParquetSplit | ShapedSplit


def no_kernels(expr: Expr, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
    """For tables whose reader has none."""
    raise EngineBug(f"{expr} was to be worked out, and nobody said how")


class TableFile:
    """`schema` is that of the table; `origins` are None where its columns are those of the file. Any thread."""

    def __init__(
        self,
        file: ParquetFile,
        first_row: int,
        schema: Schema,
        origins: tuple[Origin, ...] | None = None,
        evaluate: Evaluate = no_kernels,
    ) -> None:
        self.file = file
        self.decoder = ParquetDecoder(file, first_row)
        self._schema = schema
        self._origins = origins
        self._evaluate = evaluate
        # Two threads may work out the same; then the later one does no harm.
        self._bounds: dict[int, list[Bounds]] = {}
        self._key_ranges: dict[int, list[KeyRange | None]] = {}

    @property
    def row_groups(self) -> list[int]:
        """The rows of each."""
        return self.file.row_group_rows

    def stored(self, column: int) -> int | None:
        """The column of the file that is the table's as it is; None where it has to be made."""
        if self._origins is None:
            return column
        origin = self._origins[column]
        return origin.column if isinstance(origin, Stored) and origin.type is self._schema[column].type else None

    def constant(self, column: int) -> Constant | None:
        """The value that all rows have; None where they may differ."""
        origin = None if self._origins is None else self._origins[column]
        return origin if isinstance(origin, Constant) else None

    def are_constant(self, columns: Sequence[int]) -> bool:
        """Whether each of the columns is the same in all rows."""
        return self._origins is not None and all(self.constant(column) is not None for column in columns)

    # ---------------------------------------------------------------------------------------- what is proved

    def bounds(self, column: int) -> list[Bounds]:
        """What is proved of a column, by row group."""
        found = self._bounds.get(column)
        if found is None:
            stored = self.stored(column)
            proved = column_bounds(self.file, stored) if stored is not None else self._made_bounds(column)
            found = self._bounds[column] = proved
        return found

    def _made_bounds(self, column: int) -> list[Bounds]:
        origin, kind = self._made_from(column), self._schema[column].type
        if isinstance(origin, Stored):
            return [_cast_bounds(one, origin.type, kind) for one in column_bounds(self.file, origin.column)]
        if isinstance(origin, Constant):
            return [_constant_bounds(origin.value, kind, rows) for rows in self.row_groups]
        if isinstance(origin, RowNumber):
            return [Bounds(end - first, first, end - 1, 0) for first, end in self._row_numbers()]
        return [Bounds(rows) for rows in self.row_groups]

    def key_ranges(self, column: int) -> list[KeyRange | None]:
        """The ranges of an integer, date or short decimal column, as the integers of its type."""
        found = self._key_ranges.get(column)
        if found is None:
            stored = self.stored(column)
            stated = key_ranges(self.file, stored) if stored is not None else self._made_ranges(column)
            found = self._key_ranges[column] = stated
        return found

    def _made_ranges(self, column: int) -> list[KeyRange | None]:
        origin, kind = self._made_from(column), self._schema[column].type
        if isinstance(origin, Stored) and origin.type.is_integer and kind.is_integer:
            return key_ranges(self.file, origin.column)
        if isinstance(origin, Constant):
            return [array_range(constant(origin.value, kind, 1), kind)] * len(self.row_groups)
        if isinstance(origin, RowNumber):
            return [KeyRange(first, end - 1) if first < end else EMPTY for first, end in self._row_numbers()]
        return [None] * len(self.row_groups)

    def _made_from(self, column: int) -> Origin:
        assert self._origins is not None
        return self._origins[column]

    def _row_numbers(self) -> list[tuple[int, int]]:
        """Where the rows of each row group begin and end."""
        return list(pairwise(accumulate(self.row_groups, initial=0)))

    # ---------------------------------------------------------------------------------------------- filters

    def undecided(self, filters: Sequence[Expr], group: int, columns: tuple[int, ...]) -> tuple[Expr, ...] | None:
        """Those of `filters`, over `columns`, that rows of a row group may fail; None where none may pass one."""
        return undecided(filters, [partial(self._bound, group, column) for column in columns])

    def _bound(self, group: int, column: int) -> Bounds:
        return self.bounds(column)[group]

    def page_filters(self, filters: Sequence[PageFilter]) -> tuple[PageFilter, ...]:
        """Filters over columns of the table as those over the file's."""
        if self._origins is None:
            return tuple(filters)
        found = [(each, self.stored(each.column)) for each in filters]
        return tuple([each._replace(column=column) for each, column in found if column is not None])

    def blooms(self, filters: Sequence[Expr], columns: Sequence[int]) -> tuple[BloomFilter, ...]:
        """What Bloom filters of the file may be asked."""
        stored = [self.stored(column) for column in columns]
        asked = [each for each in filters if all(stored[position] is not None for position in columns_used(each))]
        return bloom_filters(self.file, asked, [-1 if column is None else column for column in stored])

    # ----------------------------------------------------------------------------------------------- splits

    def split(
        self,
        group: int,
        columns: tuple[int, ...],
        schema: Schema,
        filters: tuple[PageFilter, ...] = (),
        blooms: tuple[BloomFilter, ...] = (),
    ) -> FileSplit:
        """A row group with `columns`, whose schema is `schema`."""
        found = [self.stored(column) for column in columns]
        stored = tuple([column for column in found if column is not None])
        if len(stored) == len(columns):
            return ParquetSplit(self.decoder, group, stored, schema, filters, blooms)
        origins = tuple([self._made_from(column) for column in columns])
        stored = tuple([origin.column for origin in origins if isinstance(origin, Stored)])
        own = ParquetSplit(self.decoder, group, stored, self.file.schema.select(stored), filters, blooms)
        return ShapedSplit(own, origins, schema, self._evaluate)

    def bytes_needed(self, group: int, columns: Sequence[int]) -> int:
        """Stored and decoded, of what the file has of the columns."""
        if self._origins is None:
            kept = tuple(columns)
        else:
            kept = tuple([one.column for one in map(self._made_from, columns) if isinstance(one, Stored)])
        return self.decoder.extents.extent(group, kept).bytes_needed


def _cast_bounds(found: Bounds, source: DataType, target: DataType) -> Bounds:
    """Where the cast gives equal values, or fails. What bounds cannot be cast to are none: values nearer may be."""
    low = high = None
    if keeps_order(source, target) or _is_exact(source, target):
        with suppress(ConversionFault):
            low, high = (convert(value, source, target) for value in (found.low, found.high))
    return Bounds(found.rows, low, high, found.nulls)


def _is_exact(source: DataType, target: DataType) -> bool:
    """Whether a cast of numbers rounds none, though it may fail."""
    if source.is_integer:
        return target.is_integer or target.kind is Kind.DECIMAL
    return source.kind is target.kind is Kind.DECIMAL and target.scale >= source.scale


def _constant_bounds(value: Value, kind: DataType, rows: int) -> Bounds:
    if value is None:
        return Bounds(rows, nulls=rows)
    if kind.is_float:  # NaN has no order here, and what is below it is not known of floats
        return Bounds(rows, None if value != value else value, None, 0)
    return Bounds(rows, value, value, 0)

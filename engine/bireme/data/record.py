"""Making, joining and cutting record batches, also those without columns and with mixed string layouts.

Arrow's own constructors lose the row count of a batch without columns and refuse to join a plain column with a
dictionary-encoded one; these do neither. Values are never touched here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.units import MIB

# Batches of fewer rows cost their readers more than the copy that joins them.
SHORT_ROWS: Final = 4_096
JOINED_ROWS_MAX: Final = 32_768
# Texts and nested values of so many bytes are dearer to copy than to read in several batches.
_SHORT_BYTES_MAX: Final = MIB
_JOINED_BYTES_MAX: Final = 8 * MIB
# Dictionaries that are joined are this much shorter than what they stand for.
_ROWS_PER_ENTRY_MIN: Final = 4

_NO_COLUMNS = pa.struct([])


def record_batch(arrays: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.RecordBatch:
    """A batch of the given columns; `rows` counts where there are none."""
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(_NO_COLUMNS, rows, [None]))
    return pa.RecordBatch.from_arrays(list(arrays), list(names))


def select(batch: pa.RecordBatch, columns: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    """Some columns of a batch under new names; copies nothing."""
    return record_batch([batch.column(index) for index in columns], names, batch.num_rows)


def empty(schema: Schema) -> pa.RecordBatch:
    """A batch of no rows."""
    arrow = schema.to_arrow()
    return record_batch([pa.nulls(0, field.type) for field in arrow], schema.names, 0)


def concat(batches: Sequence[pa.RecordBatch], schema: Schema) -> pa.RecordBatch:
    """All rows of the batches, in order, in one batch; copies unless there is only one."""
    return joined(batches) if batches else empty(schema)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows of at least one batch, in order, in one batch; copies unless there is only one."""
    first = batches[0]
    if len(batches) == 1:
        return first
    rows = sum([batch.num_rows for batch in batches])
    arrays = [joined_column([batch.column(index) for batch in batches]) for index in range(first.num_columns)]
    return record_batch(arrays, first.schema.names, rows)


def halves(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The first rows of a batch, and the others; copies nothing."""
    middle = batch.num_rows // 2
    return batch.slice(0, middle), batch.slice(middle)


def longer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in order in fewer batches: short ones of the same columns that follow each other are joined, unless
    they hold much.
    """
    short: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for batch in batches:
        is_short = batch.num_rows < SHORT_ROWS
        more = _bytes_of_values(batch) if is_short else 0
        is_short = is_short and more <= _SHORT_BYTES_MAX
        fits = is_short and rows + batch.num_rows <= JOINED_ROWS_MAX and nbytes + more <= _JOINED_BYTES_MAX
        if short and not (fits and batch.schema.names == short[0].schema.names):
            yield joined(short)
            short, rows, nbytes = [], 0, 0
        if is_short:
            short.append(batch)
            rows += batch.num_rows
            nbytes += more
        else:
            yield batch
    if short:
        yield joined(short)


def _bytes_of_values(batch: pa.RecordBatch) -> int:
    """Of texts and nested values, which may be long; dictionaries are not copied."""
    return sum([column.nbytes for column in batch.columns if _may_be_long(column.type)])


def _may_be_long(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind))


def joined_column(chunks: list[pa.Array]) -> pa.Array:
    """All values of at least one array, in order, in one; copies unless there is only one."""
    if len(chunks) == 1:
        return chunks[0]
    encoded = [isinstance(chunk, pa.DictionaryArray) for chunk in chunks]
    if any(encoded) and not _one_dictionary(chunks, encoded):
        if all(encoded) and _are_short(chunks):
            chunks = pa.chunked_array(chunks).unify_dictionaries().chunks
        else:
            chunks = [plain(chunk) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _are_short(chunks: list[pa.Array]) -> bool:
    """Whether making one dictionary of all costs little next to writing the values out; none may hold NULL for that."""
    entries = sum([len(chunk.dictionary) for chunk in chunks])
    rows = sum([len(chunk) for chunk in chunks])
    return entries * _ROWS_PER_ENTRY_MIN <= rows and not any(chunk.dictionary.null_count for chunk in chunks)


def _one_dictionary(chunks: list[pa.Array], encoded: list[bool]) -> bool:
    return all(encoded) and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks[1:])


def plain(array: pa.Array) -> pa.Array:
    """The array without dictionary encoding."""
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def with_own_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with copies of its dictionaries: one that came through the C data interface keeps all columns alive
    that came with it, and rows that are taken from a batch share its dictionaries.
    """
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [
        pa.DictionaryArray.from_arrays(column.indices, _copied(column.dictionary), safe=False)
        if isinstance(column, pa.DictionaryArray)
        else column
        for column in batch.columns
    ]
    return record_batch(arrays, batch.schema.names, batch.num_rows)


def _copied(array: pa.Array) -> pa.Array:
    # Joining one array alone would give it as it is.
    return pa.concat_arrays([array, array.slice(0, 0)])


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without dictionaries that have more entries than it has rows: each piece of a cut batch would take the
    whole dictionary with it, wherever it goes.
    """
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [
        plain(column) if isinstance(column, pa.DictionaryArray) and len(column.dictionary) > batch.num_rows else column
        for column in batch.columns
    ]
    return record_batch(arrays, batch.schema.names, batch.num_rows)


def slices(batch: pa.RecordBatch, rows_max: int) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of at most `rows_max` rows; copies nothing. A batch without rows gives itself."""
    if batch.num_rows <= rows_max:
        yield batch
        return
    for start in range(0, batch.num_rows, rows_max):
        yield batch.slice(start, rows_max)


def to_result(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """The batch in the layout of results that leave the engine: no dictionaries, decimals of 128 bits."""
    arrow = schema.to_result_arrow()
    arrays = [
        column if column.type == field.type else plain(column).cast(field.type)
        for column, field in zip(batch.columns, arrow, strict=True)
    ]
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)

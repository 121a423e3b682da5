"""One Parquet file as its footer describes it: schema, row groups, and where the column chunks lie.

Rule: none of pyarrow's own errors leaves here, and no offset in a footer is believed before it was checked against
the file's size. What the statistics in a footer mean is in `parquet_bounds`; decoding, in `parquet_decode`.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.errors import SourceCorrupt, Unsupported
from bireme.storage.base import ByteRange
from bireme.storage.local import file_version, translate
from bireme.storage.parquet_footer import Chunk, Footer, read_footer
from bireme.storage.parquet_reader import open_reader

_MAGIC: Final = b"PAR1"
_MAGIC_ENCRYPTED: Final = b"PARE"
_TAIL_BYTES: Final = 64 * 1024
_END_BYTES: Final = 8  # length of the footer, magic
# Writers of Java before 1.2.9 leave the header of the dictionary page out of a chunk's length.
_SHORT_CHUNKS: Final = re.compile(r"parquet-mr(?:$| version (?:0\.|1\.[01]\.|1\.2\.[0-8]\b))")
_MISSED_BYTES_MAX: Final = 100
# A pipe that nobody writes to would be waited for.
_OPEN_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)

# What pyarrow raises for bytes that are not what they should be, across its releases and code paths.
FOREIGN_ERRORS: Final = (
    pa.ArrowException,
    OSError,
    ValueError,
    OverflowError,
    MemoryError,
    UnicodeDecodeError,
    KeyError,
)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Description:
    """What a footer says of columns, of whatever rows; in pyarrow's `metadata` there are none. `leaves` are, per column
    of `schema`, its leaf columns in the file.
    """

    metadata: Any
    schema: Schema
    leaves: tuple[tuple[int, ...], ...]


# By the bytes that say it: files of one table mostly say the same, and pyarrow takes hundreds of bytes a column for it.
_DESCRIPTIONS: Final[WeakValueDictionary[bytes, Description]] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A file and its parsed footer.

    `version` names the content that the footer belongs to; `footer_offset` is where column chunks must have ended.
    """

    path: str
    version: str
    footer: bytes
    description: Description
    footer_offset: int
    chunks: Footer

    @property
    def metadata(self) -> Any:
        return self.description.metadata

    @property
    def schema(self) -> Schema:
        return self.description.schema

    @property
    def leaves(self) -> tuple[tuple[int, ...], ...]:
        return self.description.leaves

    @property
    def row_group_rows(self) -> list[int]:
        return self.chunks.rows

    @property
    def rows(self) -> int:
        return sum(self.chunks.rows)

    def chunk_range(self, row_group: int, leaf: int) -> ByteRange:
        """Where the pages of a column chunk lie, its dictionary page included; SourceCorrupt where that cannot be."""
        chunk = self.chunk(row_group, leaf)
        offset, length = chunk.data_offset, chunk.length
        # Some old writers store 0 for "there is none"; 4 is the first offset that a page can have.
        if chunk.dictionary_offset is not None and 4 <= chunk.dictionary_offset < offset:
            offset = chunk.dictionary_offset
        if offset < 4 or length < 0 or offset + length > self.footer_offset:
            story = f"{length} bytes at {offset} are not within the file's {self.footer_offset} bytes of pages"
            raise self.corrupt(story, row_group, leaf)
        if _SHORT_CHUNKS.match(self.chunks.created_by):
            length = min(length + _MISSED_BYTES_MAX, self.footer_offset - offset)
        return ByteRange(self.path, offset, length, self.version)

    def stored_bytes(self, row_group: int, column: int) -> int:
        """Bytes of a column's pages after decompression; at least zero, whatever the footer says."""
        return sum(max(0, self.chunk(row_group, leaf).stored_bytes) for leaf in self.leaves[column])

    def chunk(self, row_group: int, leaf: int) -> Chunk:
        """A column chunk; SourceCorrupt where the footer does not describe one."""
        try:
            return self.chunks.chunk(row_group, leaf)
        except ValueError as error:
            raise self.corrupt(str(error), row_group, leaf) from error

    def corrupt(self, story: str, row_group: int | None = None, leaf: int | None = None) -> SourceCorrupt:
        """The error that names this file and the place in it."""
        place = "" if row_group is None else f", row group {row_group}"
        if leaf is not None:
            place += f", column {self.metadata.schema.column(leaf).path!r}"
        first_line = story.strip().partition("\n")[0]
        return SourceCorrupt(f"{self.path!r}{place} is damaged: {first_line}; write the file anew")


def read_file(path: str) -> ParquetFile:
    """Reads a file's footer. Raises SourceMissing, SourceCorrupt (not Parquet, truncated), Unsupported (encrypted)."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            status = os.fstat(descriptor)
            footer = _read_footer(descriptor, status.st_size, path)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise translate(error, path) from error
    return _parse(path, file_version(status), footer, status.st_size)


def _read_footer(descriptor: int, size: int, path: str) -> bytes:
    if size == 0:
        raise SourceCorrupt(f"{path!r} is empty: 0 bytes are not a Parquet file")
    tail = os.pread(descriptor, min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
    if tail[-4:] == _MAGIC_ENCRYPTED:
        raise _encrypted(path)
    if tail[-4:] != _MAGIC or size < _END_BYTES + 4:
        raise SourceCorrupt(
            f"{path!r} is not a Parquet file, or it was cut off: it does not end in {_MAGIC.decode()!r}"
        )
    (length,) = struct.unpack("<I", tail[-8:-4])
    if length + _END_BYTES + 4 > size:
        raise SourceCorrupt(f"{path!r} is damaged: a footer of {length} bytes in a file of {size} bytes")
    if length + _END_BYTES > len(tail):
        tail = os.pread(descriptor, length + _END_BYTES, size - length - _END_BYTES)
    return tail[-length - _END_BYTES : -_END_BYTES]


def _encrypted(path: str) -> Unsupported:
    return Unsupported(f"{path!r} is an encrypted Parquet file, which is not supported; decrypt it first")


def parse_metadata(footer: bytes) -> Any:
    """The metadata in the bytes of a footer; raises what pyarrow raises."""
    end = struct.pack("<I", len(footer)) + _MAGIC
    return open_reader(pa.BufferReader(b"".join((_MAGIC, footer, end)))).metadata


def _parse(path: str, version: str, footer: bytes, size: int) -> ParquetFile:
    try:
        chunks = read_footer(footer)
        description = _described(path, chunks.description)
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"{path!r} uses something of Parquet that is not supported: {error}") from error
    except FOREIGN_ERRORS as error:
        story = str(error).strip().partition("\n")[0]
        raise SourceCorrupt(f"{path!r} is damaged: its footer cannot be read: {story}; write the file anew") from error
    if chunks.is_encrypted:
        raise _encrypted(path)
    if chunks.rows_stated not in (sum(chunks.rows), 0):
        raise SourceCorrupt(f"{path!r} is damaged: {chunks.rows_stated} rows, but {sum(chunks.rows)} in its row groups")
    leaf_count = description.metadata.num_columns
    if any(chunks.chunk_count(group) != leaf_count for group in range(len(chunks.rows))):
        raise SourceCorrupt(f"{path!r} is damaged: a row group does not have a chunk for each of {leaf_count} columns")
    if sum(map(len, description.leaves)) != leaf_count:
        raise SourceCorrupt(f"{path!r} is damaged: its Arrow schema has other columns than its Parquet schema")
    pages_end = size - _END_BYTES - len(footer)
    return ParquetFile(path, version, footer, description, pages_end, chunks)


def _described(path: str, bare: bytes) -> Description:
    """What a footer without row groups says; raises what pyarrow raises, and Unsupported."""
    found = _DESCRIPTIONS.get(bare)
    if found is None:
        # What a footer says of row groups pyarrow would keep as objects of a kilobyte a chunk.
        metadata = parse_metadata(bare)
        arrow_schema = _with_microseconds(metadata.schema.to_arrow_schema(), metadata)
        found = _DESCRIPTIONS[bare] = Description(metadata, _schema(path, arrow_schema), _leaves(arrow_schema))
    return found


def _with_microseconds(schema: pa.Schema, metadata: Any) -> pa.Schema:
    """INT96, an old format of moments, as microseconds: nanoseconds in 64 bits do not hold all of its values."""
    if len(schema) != metadata.num_columns:
        return schema
    for index, field in enumerate(schema):
        if metadata.schema.column(index).physical_type == "INT96" and pa.types.is_timestamp(field.type):
            schema = schema.set(index, field.with_type(pa.timestamp("us", field.type.tz)))
    return schema


def _schema(path: str, arrow_schema: pa.Schema) -> Schema:
    fields: list[Field] = []
    for field in arrow_schema:
        if _has_empty_struct(field.type):
            raise Unsupported(f"{path!r}, column {field.name!r}: a struct without fields is not supported")
        try:
            fields.extend(Schema.from_arrow(pa.schema([field])))
        except Unsupported as error:
            raise Unsupported(f"{path!r}, column {field.name!r}: {error.message}") from None
    return Schema(tuple(fields))


def _has_empty_struct(kind: pa.DataType) -> bool:
    """Whether there is a struct that has no leaf, and so no place in the file."""
    if not pa.types.is_nested(kind):
        return False
    children = [kind.field(index).type for index in range(kind.num_fields)]
    return not children or any(map(_has_empty_struct, children))


def _leaves(schema: pa.Schema) -> tuple[tuple[int, ...], ...]:
    leaves: list[tuple[int, ...]] = []
    start = 0
    for field in schema:
        count = _leaf_count(field.type)
        leaves.append(tuple(range(start, start + count)))
        start += count
    return tuple(leaves)


def _leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _leaf_count(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _leaf_count(kind.value_type)
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    if pa.types.is_struct(kind):
        return sum(_leaf_count(child.type) for child in kind)
    if pa.types.is_nested(kind):
        return _leaf_count(kind.value_type)
    return 1

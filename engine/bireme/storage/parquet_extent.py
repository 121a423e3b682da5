"""What columns take in the row groups of one file: which bytes, how many these decode to, and how they lie there.

Every split of every scan asks, so it is worked out once for a row group and its columns, and kept for what was asked
for last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from bireme.data.encoded import EncodedChunk
from bireme.data.types import BINARY, STRING
from bireme.storage.base import ByteRange
from bireme.storage.byte_range import coalesce
from bireme.storage.parquet_encoding import Encoding
from bireme.storage.parquet_file import ParquetFile

T = TypeVar("T")
_Key = tuple[int, tuple[int, ...]]

# Of columns of row groups, some hundred bytes each.
_KEPT_MAX: Final = 16_384
# LZO, and the LZ4 of old writers, which frame it in various ways.
_PYARROW_CODECS: Final = (3, 5)


class Extent(NamedTuple):
    """The bytes to read, and how many they decode to; of strings the stored size, or that of their codes and words."""

    ranges: tuple[ByteRange, ...]
    decoded_bytes: int

    @property
    def bytes_needed(self) -> int:
        """Stored and decoded."""
        return sum([one.length for one in self.ranges]) + self.decoded_bytes


class Extents:
    """Those of one file. `encoding` says how a column is stored, `is_dictionary` whether a chunk is all codes."""

    def __init__(
        self, file: ParquetFile, encoding: Callable[[int], Encoding], is_dictionary: Callable[[int, int], bool]
    ) -> None:
        self._file = file
        self._encoding = encoding
        self._is_dictionary = is_dictionary
        self._lock = threading.Lock()
        self._extents: dict[_Key, Extent] = {}
        self._encoded: dict[_Key, tuple[EncodedChunk, ...] | str] = {}

    def extent(self, row_group: int, columns: tuple[int, ...]) -> Extent:
        """Of some columns of a row group."""
        key = row_group, columns
        found = self._extents.get(key)
        if found is None:
            leaves = [leaf for column in columns for leaf in self._file.leaves[column]]
            ranges = coalesce([self._file.chunk_range(row_group, leaf) for leaf in leaves])
            decoded_bytes = sum([self._decoded_bytes(row_group, column) for column in columns])
            found = self._kept(self._extents, key, Extent(ranges, decoded_bytes))
        return found

    def encoded(self, row_group: int, columns: tuple[int, ...]) -> tuple[EncodedChunk, ...] | str:
        """The chunks as they lie in the bytes of the extent; or why pyarrow must decode them."""
        key = row_group, columns
        found = self._encoded.get(key)
        if found is None:
            found = self._kept(self._encoded, key, self._chunks(row_group, columns))
        return found

    def _kept(self, into: dict[_Key, T], key: _Key, value: T) -> T:
        with self._lock:
            into[key] = value
            while len(into) > max(1, _KEPT_MAX // max(1, len(key[1]))):
                del into[next(iter(into))]
        return value

    def _decoded_bytes(self, row_group: int, column: int) -> int:
        kind, rows = self._file.schema[column].type, self._file.row_group_rows[row_group]
        stored = self._file.stored_bytes(row_group, column)
        if kind is STRING:
            return 4 * rows + (self._dictionary_bytes(row_group, column) or stored)
        usual = rows * kind.width_bytes
        return max(usual, stored) if kind is BINARY or kind.is_nested else usual

    def _dictionary_bytes(self, row_group: int, column: int) -> int:
        """About how many the dictionary of a chunk of codes has; 0 for other chunks."""
        if not self._is_dictionary(row_group, column):
            return 0
        chunk = self._file.chunk(row_group, self._file.leaves[column][0])
        stated = max(0, chunk.data_offset - (chunk.dictionary_offset or chunk.data_offset))
        return 1 + max(0, chunk.stored_bytes) * min(stated, chunk.length) // max(1, chunk.length)

    def _chunks(self, row_group: int, columns: tuple[int, ...]) -> tuple[EncodedChunk, ...] | str:
        ranges = self.extent(row_group, columns).ranges
        chunks: list[EncodedChunk] = []
        for column in columns:
            encoding = self._encoding(column)
            if encoding.reason:
                return encoding.reason
            chunk = self._chunk(row_group, column, encoding, ranges)
            if chunk.codec in _PYARROW_CODECS:
                return "pages in the LZ4 or LZO of old writers are decoded by pyarrow"
            chunks.append(chunk)
        return tuple(chunks)

    def _chunk(self, row_group: int, column: int, encoding: Encoding, ranges: tuple[ByteRange, ...]) -> EncodedChunk:
        file = self._file
        leaf = file.leaves[column][0]
        place = file.chunk_range(row_group, leaf)
        chunk, rows = file.chunk(row_group, leaf), file.row_group_rows[row_group]
        if chunk.values != rows:
            raise file.corrupt(f"{chunk.values} values in a row group of {rows} rows", row_group, leaf)
        buffer = next(index for index, fetched in enumerate(ranges) if place.end <= fetched.end)
        return EncodedChunk(
            encoding.physical,
            encoding.type_length,
            chunk.codec,
            encoding.is_optional,
            rows,
            buffer,
            place.offset - ranges[buffer].offset,
            place.length,
        )

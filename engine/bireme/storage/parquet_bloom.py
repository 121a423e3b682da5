"""Bloom filters of column chunks: whether a row group can hold a value at all.

Rule: a filter proves only that a value is not there. Asked for equality with constants, of columns whose order in the
file does not tell already; what cannot be read or believed proves nothing. The format is Parquet's split block filter
over XXH64 of the plain encoding. The parts of a row group, and queries that come again, ask the same: answers are kept.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from bireme.data.types import Kind
from bireme.errors import StorageError
from bireme.plan.expr import Call, Column, Expr, InList, Literal
from bireme.storage.base import ByteRange
from bireme.storage.local import LocalByteSource
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_footer import Place
from bireme.storage.thrift_compact import read_struct

_SALTS: Final = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip
_BLOCK_BYTES: Final = 32
_VALUES_MAX: Final = 64
# Some 300 bytes each, of one file; more where a question has several values.
_ANSWERS_KEPT_MAX: Final = 4_096
_MASK: Final = (1 << 64) - 1
_PRIMES: Final = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip


class BloomFilter(NamedTuple):
    """A filter that is TRUE only for rows whose `column` (of the file) has one of the values hashed to `hashes`."""

    column: int
    hashes: tuple[int, ...]


def bloom_filters(file: ParquetFile, filters: Sequence[Expr], columns: Sequence[int]) -> tuple[BloomFilter, ...]:
    """What Bloom filters of a file may be asked for `filters`, which are over `columns` of it."""
    found = []
    for each in filters:
        asked = _constants(each)
        if asked is None:
            continue
        position, literals = asked
        if not _has_filter(file, columns[position]):
            continue
        encoded = [_plain(file, columns[position], literal) for literal in literals if literal.value is not None]
        hashes = [xxh64(one) for one in encoded if one is not None]
        if len(hashes) == len(encoded):
            found.append(BloomFilter(columns[position], tuple(hashes)))
    return tuple(found)


class BloomAnswers:
    """What the Bloom filters of one file say, read where they are asked; recent answers are kept. Any thread."""

    def __init__(self, file: ParquetFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, BloomFilter], bool] = OrderedDict()

    def may_hold(self, row_group: int, filters: Sequence[BloomFilter]) -> bool:
        """Whether a row group may hold a row for each filter."""
        return all(self._answer(row_group, each) for each in filters)

    def _answer(self, row_group: int, asked: BloomFilter) -> bool:
        key = row_group, asked
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        place = self._file.chunk(row_group, self._file.leaves[asked.column][0]).bloom
        answer = place is None or _may_hold_any(self._file, place, asked.hashes)
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > _ANSWERS_KEPT_MAX:
                self._kept.popitem(last=False)
        return answer


def _may_hold_any(file: ParquetFile, place: Place, hashes: Sequence[int]) -> bool:
    try:
        with LocalByteSource() as source:
            content = source.read(ByteRange(file.path, *place, file.version)).to_pybytes()
        header, start = read_struct(content, 0)
        # One algorithm, one hash and no compression are known, each as field 1 of a union.
        if any(1 not in header[union] for union in (2, 3, 4)) or start + header[1] != len(content):
            return True
        blocks = header[1] // _BLOCK_BYTES
        return any(_holds(content, start, blocks, one) for one in hashes)
    except (ValueError, KeyError, TypeError, StorageError, struct.error):
        return True


def _holds(content: bytes, start: int, blocks: int, hashed: int) -> bool:
    block = ((hashed >> 32) * blocks) >> 32
    words = struct.unpack_from("<8I", content, start + block * _BLOCK_BYTES)
    low = hashed & 0xFFFFFFFF
    return all(word >> ((low * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, _SALTS, strict=True))


def _has_filter(file: ParquetFile, column: int) -> bool:
    """Whether the first row group has one; writers decide by column."""
    if len(file.leaves[column]) != 1 or not file.row_group_rows:
        return False
    return file.chunk(0, file.leaves[column][0]).bloom is not None


def _constants(expr: Expr) -> tuple[int, list[Literal]] | None:
    """The column that a filter compares for equality with constants, and these."""
    match expr:
        case Call("eq", (Column(index), Literal() as literal)) | Call("eq", (Literal() as literal, Column(index))):
            return index, [literal]
        case InList(Column(index), items) if len(items) <= _VALUES_MAX:
            literals = [item for item in items if isinstance(item, Literal)]
            return (index, literals) if len(literals) == len(items) else None
    return None


def _plain(file: ParquetFile, column: int, literal: Literal) -> bytes | None:
    """A constant in the plain encoding of a column; None where it is not stored as such."""
    if literal.type is not file.schema[column].type:
        return None
    physical = file.metadata.schema.column(file.leaves[column][0]).physical_type
    kind, value = literal.type, literal.value
    if kind.is_integer and physical in ("INT32", "INT64") and isinstance(value, int):
        return value.to_bytes(4 if physical == "INT32" else 8, "little", signed=value < 0)
    if kind.kind is Kind.STRING and physical == "BYTE_ARRAY" and isinstance(value, str):
        return value.encode()
    return None


def xxh64(data: bytes) -> int:
    """The hash XXH64 with seed 0."""
    first, second, third, fourth, fifth = _PRIMES
    length, position = len(data), 0
    if length >= 32:
        lanes = [(first + second) & _MASK, second, 0, -first & _MASK]
        while position + 32 <= length:
            lanes = [
                _round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, position), strict=True)
            ]
            position += 32
        total = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        total = fifth
    total = (total + length) & _MASK
    while position + 8 <= length:
        total ^= _round(0, int.from_bytes(data[position : position + 8], "little"))
        total = (_rotate(total, 27) * first + fourth) & _MASK
        position += 8
    if position + 4 <= length:
        total ^= int.from_bytes(data[position : position + 4], "little") * first & _MASK
        total = (_rotate(total, 23) * second + third) & _MASK
        position += 4
    for byte in data[position:]:
        total = _rotate(total ^ byte * fifth & _MASK, 11) * first & _MASK
    total = (total ^ total >> 33) * second & _MASK
    total = (total ^ total >> 29) * third & _MASK
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK

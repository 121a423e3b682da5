"""What a Parquet footer says of its column chunks: where they lie, how they are encoded, their statistics.

pyarrow reads all this too, but a damaged footer makes its accessors end the process; and it does not tell how pages are
encoded. So chunks are read here, from the bytes, and everything else about a file is left to pyarrow.

Rule: a footer that is not as it should be is a ValueError. Numbers are not believed here; `parquet_file` checks them
against the file.

Nearly all writers lay chunks out in the same way, and a footer may have a hundred thousand of them: two regular
expressions read what is usual, and `thrift_compact` reads the rest. What is kept is where they lie in the footer.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import Any, Final

from bireme.storage.thrift_compact import (
    BINARY,
    FALSE,
    INTEGERS,
    LISTS,
    STOP,
    STRUCT,
    TRUE,
    Struct,
    field_at,
    list_header,
    read_struct,
    read_value,
    unzigzag,
)
from bireme.storage.thrift_fields import integer, struct_list_header

# Encodings whose values are positions in the chunk's dictionary: PLAIN_DICTIONARY and RLE_DICTIONARY.
_CODES: Final = (2, 8)
_DATA_PAGES: Final = (0, 3)
# Some 600 bytes each.
_KNOWN_MAX: Final = 16_384

_VARINT: Final = rb"[\x80-\xff]*[\x00-\x7f]"
# A list of counts by level, of which flat columns have two.
_COUNTS: Final = rb"(?:\x06|\x16%(v)s|\x26%(v)s%(v)s)" % {b"v": _VARINT}
# ColumnChunk up to the statistics in its meta_data: file_offset (2), meta_data (3) with type (1), encodings (2), path
# (3), codec (4), num_values (5), total_uncompressed_size (6), total_compressed_size (7), data_page_offset (9), not
# always dictionary_page_offset (11), then statistics (12).
_HEAD: Final = re.compile(
    rb"\x26%(v)s\x1c"
    rb"\x15%(v)s"
    rb"\x19(?:\x15%(v)s|\x25(?:%(v)s){2}|\x35(?:%(v)s){3}|\x45(?:%(v)s){4})"
    rb"\x19\x18([\x00-\x7f])(.*?)"
    rb"\x15(%(v)s)"
    rb"\x16(%(v)s)\x16(%(v)s)\x16(%(v)s)"
    rb"\x26(%(v)s)"
    rb"(?:\x26(%(v)s)\x1c|\x3c)" % {b"v": _VARINT},
    re.DOTALL,
)
# The rest: encoding_stats (13), bloom filter (14, 15), size_statistics (16), then of the chunk the offsets and lengths
# of its indexes (4 to 7).
_TAIL: Final = re.compile(
    rb"(?:\x19[\x1c\x2c\x3c\x4c]((?:\x15%(v)s\x15%(v)s\x15%(v)s\x00)+))?"
    rb"(?:[\x16\x26](%(v)s)\x15(%(v)s))?"
    rb"(?:[\x1c\x3c\x4c](?:\x16%(v)s)?(?:[\x19\x29]%(l)s)?(?:[\x19\x29\x39]%(l)s)?\x00)?"
    rb"\x00"
    rb"(?:\x16(%(v)s)\x15(%(v)s)(?:\x16(%(v)s)\x15(%(v)s))?)?\x00" % {b"v": _VARINT, b"l": _COUNTS}
)
_PAGE_COUNT: Final = re.compile(rb"\x15(%(v)s)\x15(%(v)s)\x15(%(v)s)\x00" % {b"v": _VARINT})


Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column chunk. `low` and `high` are bounds as stored; `…_old` are in an order that is not always that of the
    type. `pages` are types, encodings and numbers of its pages, where the footer tells; `bloom`, `offset_index` and
    `column_index` are where these lie in the file (offset, length), where it has them.
    """

    codec: int
    values: int
    stored_bytes: int
    length: int
    data_offset: int
    dictionary_offset: int | None
    low: bytes | None
    high: bytes | None
    low_old: bytes | None
    high_old: bytes | None
    nulls: int | None
    pages: bytes | tuple[tuple[int, ...], ...] | None
    bloom: Place | None
    offset_index: Place | None
    column_index: Place | None

    @property
    def are_codes(self) -> bool | None:
        """Whether every data page holds positions in the dictionary; None where the footer does not tell."""
        if self.pages is None:
            return None
        pages = self.pages
        if isinstance(pages, bytes):
            pages = tuple([_integers(found) for found in _PAGE_COUNT.findall(pages)])
        encodings = [encoding for page, encoding, count in pages if page in _DATA_PAGES and count]
        return bool(encodings) and all(encoding in _CODES for encoding in encodings)


class Footer:
    """The chunks of a file, the rows of its row groups, and which leaves have a known order.

    Chunks are made out when they are asked for, which most never are, and those of late are remembered.
    """

    def __init__(self, data: bytes) -> None:
        self.rows: list[int] = []
        self.has_order: tuple[bool, ...] = ()
        self.created_by = ""
        self.is_encrypted = False
        # As the footer says of all row groups; some writers leave it at 0.
        self.rows_stated = 0
        self._rows_place = 0, 0
        self._data = data
        # Where each chunk starts; of each row group, how many come before its own; and where each row group starts.
        self._chunks = array("q")
        self._before = array("q", [0])
        self._groups = array("q")
        # Where the list of row groups starts and ends.
        self._list = len(data), len(data)
        self._known: dict[int, Chunk] = {}

    def chunk_count(self, row_group: int) -> int:
        return self._before[row_group + 1] - self._before[row_group]

    def chunk(self, row_group: int, leaf: int) -> Chunk:
        """ValueError where the chunk is not as it should be."""
        place = self._before[row_group] + leaf
        chunk = self._known.get(place)
        if chunk is None:
            found, _ = _read_chunk(self._data, self._chunks[place])
            chunk = _chunk_of_fields(found) if isinstance(found, dict) else _chunk_of_match(*found)
            if len(self._known) >= _KNOWN_MAX:
                self._known = {}
            self._known[place] = chunk
        return chunk

    def add_row_group(self, start: int, rows: int, chunks: array[int]) -> None:
        self.rows.append(rows)
        self._groups.append(start)
        self._chunks.extend(chunks)
        self._before.append(len(self._chunks))

    def state_rows(self, rows: int, start: int, end: int) -> None:
        """The number of all rows lies between."""
        self.rows_stated, self._rows_place = rows, (start, end)

    def end_row_groups(self, start: int, end: int) -> None:
        """The list of them lies between."""
        self._list = start, end

    def cut(self, groups: range) -> bytes:
        """The footer with only these row groups, which follow each other."""
        start, end = self._list
        if start == end:
            return self._data
        kept = b""
        if groups:
            last = self._groups[groups.stop] if groups.stop < len(self._groups) else end
            kept = self._data[self._groups[groups.start] : last]
        return b"".join((self._data[:start], struct_list_header(len(groups)), kept, self._data[end:]))

    @property
    def description(self) -> bytes:
        """The footer without row groups, and of no rows: alike in files of one schema and writer."""
        bare = self.cut(range(0))
        start, end = self._rows_place
        return b"".join((bare[:start], integer(0), bare[end:])) if start < end <= self._list[0] else bare


# The groups of _HEAD, the fields of the statistics, the groups of _TAIL; or all fields where a chunk is not as usual.
_Found = tuple[tuple[bytes, ...], list[Any], tuple[bytes | None, ...]] | Struct


def read_footer(data: bytes) -> Footer:
    """Reads a FileMetaData. ValueError where it is not one."""
    try:
        return _read_footer(data)
    except IndexError:
        raise ValueError("the bytes end too early") from None


def _read_footer(data: bytes) -> Footer:
    footer = Footer(data)
    position = number = 0
    while (header := data[position]) != STOP:
        number, kind, position = field_at(data, position, header, number)
        if number == 4 and kind in LISTS:
            position = _read_row_groups(data, position, footer)
            continue
        start = position
        value, position = read_value(data, position, kind)
        if number == 3 and kind in INTEGERS:
            footer.state_rows(value, start, position)
        elif number == 8:  # the algorithm that columns are encrypted with, under a footer that is not
            footer.is_encrypted = True
        elif number == 6 and kind == BINARY:
            footer.created_by = value.decode(errors="replace")
        elif number == 7 and kind in LISTS:
            # A ColumnOrder is a union; its only member so far, field 1, is "the order of the type".
            footer.has_order = tuple([isinstance(order, dict) and 1 in order for order in value])
    return footer


def _read_row_groups(data: bytes, position: int, footer: Footer) -> int:
    start = position
    count, kind, position = list_header(data, position)
    if count and kind != STRUCT:
        raise ValueError("row groups are not structs")
    for _ in range(count):
        number, rows, first = 0, -1, position
        chunks = array("q")
        while (header := data[position]) != STOP:
            number, kind, position = field_at(data, position, header, number)
            if number == 1 and kind in LISTS:
                chunks, position = _read_chunks(data, position)
                continue
            value, position = read_value(data, position, kind)
            if number == 3 and kind in INTEGERS:
                rows = value
        if rows < 0:
            raise ValueError("a row group has no number of rows")
        footer.add_row_group(first, rows, chunks)
        position += 1
    footer.end_row_groups(start, position)
    return position


def _read_chunks(data: bytes, position: int) -> tuple[array[int], int]:
    """Where the chunks of a row group start, and where the last one ends."""
    count, kind, position = list_header(data, position)
    if count and kind != STRUCT:
        raise ValueError("column chunks are not structs")
    chunks = array("q")
    for _ in range(count):
        chunks.append(position)
        _, position = _read_chunk(data, position)
    return chunks, position


def _read_chunk(data: bytes, position: int) -> tuple[_Found, int]:
    head = _HEAD.match(data, position)
    if head is not None and head[1][0] == len(head[2]):
        statistics, end = _read_statistics(data, head.end())
        tail = _TAIL.match(data, end)
        if tail is not None:
            return (head.groups(), statistics, tail.groups()), tail.end()
    return read_struct(data, position)


def _read_statistics(data: bytes, position: int) -> tuple[list[Any], int]:
    """The fields of a Statistics by id (1 and 2: old maximum and minimum, 3: NULLs, 5 and 6: maximum and minimum), and
    where it ends.
    """
    found: list[Any] = [None] * 16
    number = 0
    while (header := data[position]) != STOP:
        delta, kind = header >> 4, header & 0x0F
        if not delta or number + delta > 15:
            raise ValueError("statistics have other fields than they should")
        number += delta
        if kind == BINARY and (length := data[position + 1]) < 0x80:
            start = position + 2
            position = start + length
            found[number] = data[start:position]
        elif kind in (TRUE, FALSE):
            position += 1
        else:
            found[number], position = read_value(data, position + 1, kind)
    return found, position + 1


def _chunk_of_match(head: tuple[bytes, ...], statistics: list[Any], tail: tuple[bytes | None, ...]) -> Chunk:
    _, _, codec, values, stored, length, data_offset, dictionary_offset = head
    return Chunk(
        codec=_integer(codec),
        values=_integer(values),
        stored_bytes=_integer(stored),
        length=_integer(length),
        data_offset=_integer(data_offset),
        dictionary_offset=None if dictionary_offset is None else _integer(dictionary_offset),
        low=_as_text(statistics[6]),
        high=_as_text(statistics[5]),
        low_old=_as_text(statistics[2]),
        high_old=_as_text(statistics[1]),
        nulls=statistics[3] if isinstance(statistics[3], int) else None,
        pages=tail[0],
        bloom=_place(tail[1], tail[2]),
        offset_index=_place(tail[3], tail[4]),
        column_index=_place(tail[5], tail[6]),
    )


def _place(offset: bytes | None, length: bytes | None) -> Place | None:
    return None if offset is None or length is None else (_integer(offset), _integer(length))


def _integer(raw: bytes) -> int:
    """A signed integer whose bytes are known to be one: seven bits a byte, the lowest first."""
    value = 0
    for byte in reversed(raw):
        value = value << 7 | byte & 0x7F
    return unzigzag(value)


def _integers(raw: tuple[bytes, ...]) -> tuple[int, ...]:
    return tuple(map(_integer, raw))


def _chunk_of_fields(fields: Struct) -> Chunk:
    """A chunk that is laid out in another way."""
    if fields.get(1):
        raise ValueError("its pages are in another file, which is not supported")
    column = fields.get(3)
    if not isinstance(column, dict):
        raise ValueError("a column chunk has no metadata, or it is encrypted")
    statistics = column.get(12)
    known: Struct = statistics if isinstance(statistics, dict) else {}
    return Chunk(
        codec=_number(column, 4),
        values=_number(column, 5),
        stored_bytes=_number(column, 6),
        length=_number(column, 7),
        data_offset=_number(column, 9),
        dictionary_offset=_number(column, 11) if 11 in column else None,
        low=_as_text(known.get(6)),
        high=_as_text(known.get(5)),
        low_old=_as_text(known.get(2)),
        high_old=_as_text(known.get(1)),
        nulls=_number(known, 3) if 3 in known else None,
        pages=tuple(map(_page_count, column[13])) if isinstance(column.get(13), list) else None,
        bloom=_place_of(column, 14, 15),
        offset_index=_place_of(fields, 4, 5),
        column_index=_place_of(fields, 6, 7),
    )


def _place_of(fields: Struct, offset: int, length: int) -> Place | None:
    return (_number(fields, offset), _number(fields, length)) if offset in fields and length in fields else None


def _page_count(page: Any) -> tuple[int, ...]:
    if not isinstance(page, dict):
        raise ValueError("a count of pages is not a struct")
    return _number(page, 1), _number(page, 2), _number(page, 3)


def _number(fields: Struct, number: int) -> int:
    value = fields.get(number)
    if not isinstance(value, int):
        raise ValueError(f"field {number} of a column chunk is no number")
    return value


def _as_text(value: Any) -> bytes | None:
    return value if isinstance(value, bytes) else None

"""Some rows of a row group, read by the pages that hold them.

Rule: a part is cut where pages of its largest column begin, so that little is read and decompressed twice; where pages
are so large that this does not hold, there are no such parts. To whoever decodes, a part is a row group of its own: its
rows count from 0, and the first page of a column may begin before them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from bireme.data.encoded import EncodedChunk, EncodedPart
from bireme.storage.base import ByteRange
from bireme.storage.byte_range import coalesce
from bireme.storage.parquet_file import ParquetFile
from bireme.storage.parquet_footer import Place
from bireme.storage.parquet_page_places import PagePlaces, page_places
from bireme.units import KIB

# All parts together may read so many times what the row group has.
_READ_MAX: Final = 2.0
# Every byte between two places is room that another part may need.
_GAP_BYTES_MAX: Final = 4 * KIB


class PagesOfPart(NamedTuple):
    """Of one column: the place of the pages that hold the part's rows, the row of the row group they begin with, and
    the place of the dictionary page, where they need one.
    """

    pages: Place
    first_row: int
    dictionary: Place | None

    @property
    def nbytes(self) -> int:
        return self.pages[1] + (0 if self.dictionary is None else self.dictionary[1])


class Part(NamedTuple):
    """The rows from `first` to before `end` of a row group, and where the pages of each column lie."""

    first: int
    end: int
    columns: tuple[PagesOfPart, ...]

    def ranges(self, file: ParquetFile) -> tuple[ByteRange, ...]:
        """The bytes to read."""
        places = [found.pages for found in self.columns]
        places += [found.dictionary for found in self.columns if found.dictionary is not None]
        return coalesce([ByteRange(file.path, *place, file.version) for place in places], gap_bytes_max=_GAP_BYTES_MAX)

    def chunks(self, whole: Sequence[EncodedChunk], ranges: Sequence[ByteRange]) -> tuple[EncodedChunk, ...]:
        """The columns as they lie in the bytes of `ranges`, given what is said of their whole chunks."""
        return tuple([self._chunk(chunk, found, ranges) for chunk, found in zip(whole, self.columns, strict=True)])

    def _chunk(self, chunk: EncodedChunk, found: PagesOfPart, ranges: Sequence[ByteRange]) -> EncodedChunk:
        buffer, offset = _within(found.pages, ranges)
        dictionary = (
            (0, 0, 0) if found.dictionary is None else (*_within(found.dictionary, ranges), found.dictionary[1])
        )
        return chunk._replace(
            rows=self.end - self.first,
            buffer=buffer,
            offset=offset,
            length=found.pages[1],
            part=EncodedPart(found.first_row - self.first, *dictionary),
        )


def parts(file: ParquetFile, row_group: int, columns: Sequence[int], count: int) -> list[Part]:
    """At most `count` parts of a row group, all of whose rows they have; empty where that would gain nothing."""
    places: list[PagePlaces] = []
    for column in columns:
        found = page_places(file, row_group, file.leaves[column][0])
        if found is None:
            return []
        places.append(found)
    stored = sum([one.stored_bytes for one in places])
    # A part's own pages should be no less than the dictionaries that it needs.
    dictionaries = sum([one.dictionary[1] for one in places if one.dictionary is not None])
    needed = sum([one.dictionary[1] * one.dictionary_share for one in places if one.dictionary is not None])
    count = min(count, int(stored / max(1.0, needed)))
    while count > 1:
        bounds = _bounds(places, file.row_group_rows[row_group], count)
        made = [Part(first, end, tuple([_pages(one, first, end) for one in places])) for first, end in pairwise(bounds)]
        read = sum([found.nbytes for part in made for found in part.columns])
        if read <= _READ_MAX * (stored + dictionaries):
            return made if len(made) > 1 else []
        # Fewer and larger ones read less twice, and any are better than one with all bytes.
        count = count * 3 // 4
    return []


def _bounds(places: Sequence[PagePlaces], rows: int, count: int) -> list[int]:
    """Rows to cut at, both ends included: those nearest to equal parts with which pages of the largest column begin."""
    starts = max(places, key=lambda one: one.stored_bytes).first_rows
    bounds = [0]
    for part in range(1, count):
        wanted = part * rows // count
        place = bisect_left(starts, wanted)
        before, after = starts[max(0, place - 1)], starts[place]
        nearest = before if wanted - before < after - wanted else after
        if bounds[-1] < nearest < rows:
            bounds.append(nearest)
    return [*bounds, rows]


def _pages(places: PagePlaces, first: int, end: int) -> PagesOfPart:
    offset, nbytes, first_row = places.covering(first, end)
    return PagesOfPart((offset, nbytes), first_row, places.dictionary_for(first))


def _within(place: Place, ranges: Sequence[ByteRange]) -> tuple[int, int]:
    """The position of the range that has the place, and where in it that begins."""
    offset, length = place
    buffer = next(index for index, found in enumerate(ranges) if offset + length <= found.end)
    return buffer, offset - ranges[buffer].offset

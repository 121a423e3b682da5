"""A table in Parquet files.

Rule: a table is immutable. It is the files as they were when their footers were read, and every byte range it gives
names that version; `refresh` gives the table as it is now. Footers are read once and kept.

Which files a path names is in `source_path`, what a footer says in `parquet_file`, what its statistics prove in
`parquet_bounds`, skipping row groups in `prune`, splits in `parquet_split`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.errors import SourceMismatch
from bireme.plan.expr import Expr
from bireme.plan.source import TableStatistics
from bireme.storage.base import Split
from bireme.storage.local import file_version, translate
from bireme.storage.parquet_bloom import bloom_filters
from bireme.storage.parquet_bounds import column_bounds, key_ranges
from bireme.storage.parquet_decode import ParquetDecoder
from bireme.storage.parquet_file import ParquetFile, read_file
from bireme.storage.parquet_pages import page_filters
from bireme.storage.parquet_sample import ParquetSample
from bireme.storage.parquet_split import ParquetSplit
from bireme.storage.parquet_statistics import table_statistics
from bireme.storage.prune import Bounds, undecided
from bireme.storage.source_path import PathLike, expand

_FOOTER_THREADS_MAX: Final = 16
_PRUNED_MAX: Final = 64
# What statistics say of one chunk takes some microseconds to look at.
_QUICK_CHUNKS_MAX: Final = 512
# Of all of them, some 80 bytes each.
_SURVIVORS_MAX: Final = 65_536

# A row group that filters leave, and those of them that some of its rows may fail.
_Survivor = tuple[ParquetDecoder, int, tuple[Expr, ...]]


def open_parquet(paths: PathLike | Iterable[PathLike]) -> ParquetSource:
    """The table in the Parquet files that `paths` name: a file, a list, a glob (`**` too), or a folder.

    Raises SourceMissing, SourceCorrupt, SourceMismatch where the files' schemas differ, and Unsupported, each naming
    the file.
    """
    kept = paths if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    return _open(kept, {})


def _open(paths: PathLike | tuple[PathLike, ...], known: Mapping[str, ParquetFile]) -> ParquetSource:
    files = _read_files(expand(paths, suffix=".parquet"), known)
    return ParquetSource(paths, files, _common_schema(files))


class ParquetSource:
    """See `open_parquet`. Any thread."""

    def __init__(self, paths: PathLike | tuple[PathLike, ...], files: tuple[ParquetFile, ...], schema: Schema) -> None:
        self._paths = paths
        self._schema = schema
        self._lock = threading.Lock()
        self._statistics: TableStatistics | None = None
        first_rows = accumulate([file.rows for file in files], initial=0)
        self._decoders = tuple([ParquetDecoder(file, first) for file, first in zip(files, first_rows, strict=False)])
        self._sample = ParquetSample(self._decoders, schema, self.statistics)
        self._bounds: dict[tuple[str, int], list[Bounds]] = {}
        self._pruned: OrderedDict[Any, list[_Survivor]] = OrderedDict()
        self._survivors = 0
        self._key_ranges: dict[tuple[str, int], list[KeyRange | None]] = {}
        self.files = files
        self._version = _version(files)
        # The path is that of the file itself: there is nothing to look for as long as the file is the same.
        self._is_one_file = isinstance(paths, (str, os.PathLike)) and os.path.abspath(paths) == files[0].path

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def version(self) -> str:
        return self._version

    def refresh(self) -> ParquetSource:
        """The table as its files are now: this object where nothing changed. Unchanged files are not read again."""
        if self._is_one_file and _is_current(self.files[0]):
            return self
        paths = expand(self._paths, suffix=".parquet")
        if paths == tuple(file.path for file in self.files) and all(map(_is_current, self.files)):
            return self
        return _open(self._paths, {file.path: file for file in self.files})

    def statistics(self) -> TableStatistics:
        """Statistics from footers alone; cached."""
        with self._lock:
            if self._statistics is None:
                self._statistics = table_statistics(self.files)
            return self._statistics

    def sample(self, columns: Sequence[int]) -> pa.RecordBatch:
        """Up to some two thousand rows of the given columns, the same rows at each call; cached."""
        return self._sample.rows(columns)

    def split_count(self) -> int:
        return sum(len(file.row_group_rows) for file in self.files)

    def are_splits_quick(self, columns: Sequence[int], bytes_max: int | None) -> bool:
        """Whether `splits` looks at few row groups, and at the pages of none."""
        kept = tuple(columns)
        if self.split_count() * len(kept) > _QUICK_CHUNKS_MAX:
            return False
        return bytes_max is None or all(
            decoder.extents.extent(group, kept).bytes_needed <= bytes_max
            for decoder in self._decoders
            for group, rows in enumerate(decoder.file.row_group_rows)
            if rows
        )

    def splits(
        self,
        columns: Sequence[int],
        filters: Sequence[Expr],
        *,
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Sequence[ParquetSplit]:
        """One split per row group that may hold rows for which all `filters` are TRUE, in row order; several for one
        that has many more rows than `rows_max`, or takes more than `bytes_max`, and whose columns can be read in parts.
        """
        kept = tuple(columns)
        schema = self._schema.select(kept)
        by_page = page_filters(filters, kept, self._are_clustered(kept)) if filters else ()
        blooms = {file.path: bloom_filters(file, filters, kept) for file in self.files} if filters else {}
        splits = []
        for decoder, group, undecided_by in self._surviving(kept, tuple(filters)):
            asked = tuple([each for each in by_page if each.filter in undecided_by]) if undecided_by else ()
            whole = ParquetSplit(decoder, group, kept, schema, asked, blooms.get(decoder.file.path, ()))
            splits += whole.in_parts(rows_max, bytes_max)
        return splits

    def _are_clustered(self, columns: Sequence[int]) -> list[bool]:
        """Whether ranges of values tell much; of a single row group that is not known, and may well be so."""
        if self.split_count() == 1:
            return [True] * len(columns)
        found = self.statistics().columns
        return [found[column].clustered for column in columns]

    def _surviving(self, columns: tuple[int, ...], filters: tuple[Expr, ...]) -> list[_Survivor]:
        """The row groups that filters leave; kept for the filters asked last, as a query is often asked again."""
        key = columns, filters
        with self._lock:
            found = self._pruned.get(key)
            if found is not None:
                self._pruned.move_to_end(key)
                return found
        found = []
        for decoder in self._decoders:
            for group, rows in enumerate(decoder.file.row_group_rows):
                left = undecided(filters, self._bounds_of(decoder.file, group, columns)) if filters else ()
                if rows and left is not None:
                    found.append((decoder, group, left))
        with self._lock:
            self._survivors -= len(self._pruned.pop(key, ()))
            self._pruned[key] = found
            self._survivors += len(found)
            while len(self._pruned) > 1 and (len(self._pruned) > _PRUNED_MAX or self._survivors > _SURVIVORS_MAX):
                self._survivors -= len(self._pruned.popitem(last=False)[1])
        return found

    def key_ranges(self, column: int, splits: Sequence[Split]) -> list[KeyRange | None]:
        """The ranges that row groups state of an integer, date or short decimal column; cached."""
        found = []
        for split in splits:
            assert isinstance(split, ParquetSplit)
            ranges = self._key_ranges.get((split.path, column))
            if ranges is None:
                file = next(file for file in self.files if file.path == split.path)
                ranges = self._key_ranges[split.path, column] = key_ranges(file, column)
            found.append(ranges[split.row_group])
        return found

    def bounds(self, column: int, splits: Sequence[Split]) -> list[Bounds]:
        """What the row groups of the splits state of a column."""
        files = {file.path: file for file in self.files}
        found = []
        for split in splits:
            assert isinstance(split, ParquetSplit)
            found.append(self._row_group_bounds(files[split.path], split.row_group, column))
        return found

    def _bounds_of(self, file: ParquetFile, row_group: int, columns: tuple[int, ...]) -> list[Callable[[], Bounds]]:
        return [partial(self._row_group_bounds, file, row_group, column) for column in columns]

    def _row_group_bounds(self, file: ParquetFile, row_group: int, column: int) -> Bounds:
        # Two threads may work out the same bounds; they are equal, so the later one does no harm.
        found = self._bounds.get((file.path, column))
        if found is None:
            found = self._bounds[file.path, column] = column_bounds(file, column)
        return found[row_group]


def _read_files(paths: tuple[str, ...], known: Mapping[str, ParquetFile]) -> tuple[ParquetFile, ...]:
    def read(path: str) -> ParquetFile:
        file = known.get(path)
        return file if file is not None and _is_current(file) else read_file(path)

    if len(paths) == 1:
        return (read(paths[0]),)
    with ThreadPoolExecutor(min(_FOOTER_THREADS_MAX, len(paths)), "bireme-footers") as threads:
        return tuple(threads.map(read, paths))


def _is_current(file: ParquetFile) -> bool:
    try:
        return file_version(os.stat(file.path)) == file.version
    except OSError as error:
        raise translate(error, file.path) from error


def _version(files: Sequence[ParquetFile]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(f"{file.path}\0{file.version}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _common_schema(files: Sequence[ParquetFile]) -> Schema:
    """The schema of all files: equal names and types in equal order; a column is nullable where it is in any file."""
    first = files[0]
    nullable = [field.nullable for field in first.schema]
    for file in files[1:]:
        if file.schema is first.schema:
            continue
        _check_equal(first, file)
        nullable = [known or field.nullable for known, field in zip(nullable, file.schema, strict=True)]
    fields = zip(first.schema.fields, nullable, strict=True)
    return Schema(tuple([Field(field.name, field.type, may_be_null) for field, may_be_null in fields]))


def _check_equal(first: ParquetFile, file: ParquetFile) -> None:
    here, there = first.schema, file.schema
    for index, (mine, other) in enumerate(zip(here, there, strict=False)):
        if mine.name != other.name:
            story = f"column {index + 1} is called {other.name!r} there and {mine.name!r} here"
            raise _mismatch(first, file, story)
        if mine.type is not other.type:
            story = f"column {mine.name!r} is {other.type} there and {mine.type} here"
            raise _mismatch(first, file, story)
    if len(here) != len(there):
        longer, place = (there, "there") if len(there) > len(here) else (here, "here")
        story = f"column {longer[min(len(here), len(there))].name!r} is only {place}"
        raise _mismatch(first, file, story)


def _mismatch(first: ParquetFile, file: ParquetFile, story: str) -> SourceMismatch:
    return SourceMismatch(
        f"{file.path!r} does not have the schema of {first.path!r}: {story}; register them as two tables, or write the "
        "files with one schema"
    )

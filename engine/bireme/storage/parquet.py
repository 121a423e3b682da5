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
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.plan.expr import Expr
from bireme.plan.read_options import AS_THEY_ARE, ReadOptions
from bireme.plan.source import TableStatistics
from bireme.storage.base import Split
from bireme.storage.file_columns import FileSchema, Stored, TableColumns, table_columns
from bireme.storage.local import file_version, translate
from bireme.storage.parquet_file import ParquetFile, read_file
from bireme.storage.parquet_pages import page_filters
from bireme.storage.parquet_sample import ParquetSample
from bireme.storage.parquet_split import ParquetSplit
from bireme.storage.parquet_statistics import table_statistics
from bireme.storage.parquet_table_file import FileSplit, TableFile, no_kernels
from bireme.storage.prune import Bounds
from bireme.storage.shaped_split import Evaluate, ShapedSplit
from bireme.storage.skipped_files import skipped_files
from bireme.storage.source_path import FoundFile, PathLike, expand, working_folder

_FOOTER_THREADS_MAX: Final = 16
_PRUNED_MAX: Final = 64
# What statistics say of one chunk takes some microseconds to look at.
_QUICK_CHUNKS_MAX: Final = 512
# Of all of them, some 80 bytes each.
_SURVIVORS_MAX: Final = 65_536

# A row group that filters leave, and those of them that some of its rows may fail.
_Survivor = tuple[TableFile, int, tuple[Expr, ...]]


class _Request(NamedTuple):
    """What a table was opened with, and where its relative paths begin."""

    paths: PathLike | tuple[PathLike, ...]
    options: ReadOptions
    evaluate: Evaluate
    root: str


def open_parquet(
    paths: PathLike | Iterable[PathLike], options: ReadOptions = AS_THEY_ARE, evaluate: Evaluate = no_kernels
) -> ParquetSource:
    """The table in the Parquet files that `paths` name: a file, a list, a glob (`**` too), or a folder. `cast` is asked
    where files differ in the type of a column.

    Raises SourceMissing, SourceCorrupt, Unsupported, and SourceMismatch where the files do not go together, each naming
    the file.
    """
    kept = paths if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    return _open(_Request(kept, options, evaluate, working_folder()), {})


def _open(request: _Request, known: Mapping[str, ParquetFile]) -> ParquetSource:
    found = expand(request.paths, suffix=".parquet", root=request.root)
    files = _read_files(found, known)
    columns = _common_columns(files) if request.options == AS_THEY_ARE and _are_alike(found, files) else None
    if columns is None:
        shown = [FileSchema(each.shown, file.schema) for each, file in zip(found, files, strict=True)]
        columns = table_columns(shown, request.options)
    return ParquetSource(request, found, files, columns)


class ParquetSource:
    """See `open_parquet`. Any thread."""

    def __init__(
        self, request: _Request, found: tuple[FoundFile, ...], files: tuple[ParquetFile, ...], columns: TableColumns
    ) -> None:
        self._request = request
        self._schema = columns.schema
        self._lock = threading.Lock()
        self._statistics: TableStatistics | None = None
        self._files = _table_files(files, columns, request.evaluate)
        # By the row that each begins with: a file may be there twice, and one without rows has no splits.
        self._by_start = {each.decoder.first_row: each for each in self._files if each.file.rows}
        self._split_count = sum(len(file.row_group_rows) for file in files)
        self._sample = ParquetSample(self._files, columns.schema, self.statistics)
        self._pruned: OrderedDict[Any, list[_Survivor]] = OrderedDict()
        self._survivors = 0
        self.files = files
        self._version = _version(request.options, found, files)
        # The path is that of the file itself: there is nothing to look for as long as the file is the same.
        paths = request.paths
        self._is_one_file = isinstance(paths, (str, os.PathLike)) and str(Path(request.root, paths)) == files[0].path

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
        found = expand(self._request.paths, suffix=".parquet", root=self._request.root)
        if [each.path for each in found] == [file.path for file in self.files] and all(map(_is_current, self.files)):
            return self
        return _open(self._request, {file.path: file for file in self.files})

    def statistics(self) -> TableStatistics:
        """Statistics from footers alone; cached."""
        with self._lock:
            if self._statistics is None:
                self._statistics = table_statistics(self._files, self._schema)
            return self._statistics

    def sample(self, columns: Sequence[int]) -> pa.RecordBatch:
        """Up to some two thousand rows of the given columns, the same rows at each call; cached."""
        return self._sample.rows(columns)

    def split_count(self) -> int:
        return self._split_count

    def are_splits_quick(self, columns: Sequence[int], bytes_max: int | None) -> bool:
        """Whether `splits` looks at few row groups, and at the pages of none."""
        kept = tuple(columns)
        if self._split_count * max(1, len(kept)) > _QUICK_CHUNKS_MAX:
            return False
        return bytes_max is None or all(
            each.bytes_needed(group, kept) <= bytes_max
            for each in self._files
            for group, rows in enumerate(each.row_groups)
            if rows
        )

    def splits(
        self,
        columns: Sequence[int],
        filters: Sequence[Expr],
        *,
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Sequence[FileSplit]:
        """One split per row group that may hold rows for which all `filters` are TRUE, in row order; several for one
        that has many more rows than `rows_max`, or takes more than `bytes_max`, and whose columns can be read in parts.
        """
        kept = tuple(columns)
        schema = self._schema.select(kept)
        by_page = page_filters(filters, kept, self._are_clustered(kept)) if filters else ()
        survivors = self._surviving(kept, tuple(filters))
        left = dict.fromkeys([each for each, _, _ in survivors]) if filters else {}
        blooms = {each: each.blooms(filters, kept) for each in left}
        splits: list[FileSplit] = []
        for each, group, undecided_by in survivors:
            asked = tuple([one for one in by_page if one.filter in undecided_by]) if undecided_by else ()
            whole = each.split(group, kept, schema, each.page_filters(asked), blooms.get(each, ()))
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
        found = self._left_by(columns, filters)
        with self._lock:
            self._survivors -= len(self._pruned.pop(key, ()))
            self._pruned[key] = found
            self._survivors += len(found)
            while len(self._pruned) > 1 and (len(self._pruned) > _PRUNED_MAX or self._survivors > _SURVIVORS_MAX):
                self._survivors -= len(self._pruned.popitem(last=False)[1])
        return found

    def _left_by(self, columns: tuple[int, ...], filters: tuple[Expr, ...]) -> list[_Survivor]:
        found: list[_Survivor] = []
        for each in self._files:
            for group, rows in enumerate(each.row_groups):
                left = each.undecided(filters, group, columns) if filters else ()
                if rows and left is not None:
                    found.append((each, group, left))
        undecided = [(each, left) for each, _, left in found if left]
        skipped = skipped_files(undecided, columns, self._schema.select(columns), self._request.evaluate)
        return [one for one in found if one[0] not in skipped] if skipped else found

    def key_ranges(self, column: int, splits: Sequence[Split]) -> list[KeyRange | None]:
        """The ranges that row groups state of an integer, date or short decimal column; cached."""
        found = []
        for split in splits:
            assert isinstance(split, ParquetSplit | ShapedSplit)
            found.append(self._by_start[split.file_start].key_ranges(column)[split.row_group])
        return found

    def bounds(self, column: int, splits: Sequence[Split]) -> list[Bounds]:
        """What the row groups of the splits state of a column."""
        found = []
        for split in splits:
            assert isinstance(split, ParquetSplit | ShapedSplit)
            found.append(self._by_start[split.file_start].bounds(column)[split.row_group])
        return found


def _read_files(found: Sequence[FoundFile], known: Mapping[str, ParquetFile]) -> tuple[ParquetFile, ...]:
    def read(each: FoundFile) -> ParquetFile:
        file = known.get(each.path)
        return file if file is not None and _is_current(file) else read_file(each.path)

    if len(found) == 1:
        return (read(found[0]),)
    with ThreadPoolExecutor(min(_FOOTER_THREADS_MAX, len(found)), "bireme-footers") as threads:
        return tuple(threads.map(read, found))


def _is_current(file: ParquetFile) -> bool:
    try:
        return file_version(os.stat(file.path)) == file.version
    except OSError as error:
        raise translate(error, file.path) from error


def _version(options: ReadOptions, found: Sequence[FoundFile], files: Sequence[ParquetFile]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for each, file in zip(found, files, strict=True):
        # What a path says of its rows is in it as it was asked for.
        digest.update(f"{file.path}\0{each.shown}\0{file.version}\0".encode(errors="surrogateescape"))
    if options != AS_THEY_ARE:
        digest.update(repr(options).encode(errors="surrogateescape"))
    return digest.hexdigest()


def _table_files(files: Sequence[ParquetFile], columns: TableColumns, evaluate: Evaluate) -> tuple[TableFile, ...]:
    first_rows = accumulate([file.rows for file in files], initial=0)
    # What a file has where the table has nothing else.
    own: dict[Schema, tuple[Stored, ...]] = {}
    made = []
    for file, first_row, origins in zip(files, first_rows, columns.origins, strict=False):
        if file.schema not in own:
            own[file.schema] = tuple([Stored(place, field.type) for place, field in enumerate(file.schema)])
        as_it_is = origins is None or (origins == own[file.schema] and columns.schema.types == file.schema.types)
        made.append(TableFile(file, first_row, columns.schema, None if as_it_is else origins, evaluate))
    return tuple(made)


def _are_alike(found: Sequence[FoundFile], files: Sequence[ParquetFile]) -> bool:
    """Whether all files have the same columns, and their folders name none."""
    first = files[0].schema
    return not any("=" in each.shown for each in found) and all(
        file.schema is first or (file.schema.names == first.names and file.schema.types == first.types)
        for file in files
    )


def _common_columns(files: Sequence[ParquetFile]) -> TableColumns:
    """Those of files that are alike: a column is nullable where it is in any file."""
    schemas = {file.schema for file in files}
    nullable = [
        any(one.nullable for one in fields) for fields in zip(*[schema.fields for schema in schemas], strict=True)
    ]
    fields = zip(files[0].schema.fields, nullable, strict=True)
    schema = Schema(tuple([Field(field.name, field.type, may_be_null) for field, may_be_null in fields]))
    return TableColumns(schema, (None,) * len(files))

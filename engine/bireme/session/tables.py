"""The tables of a session: what names stand for, and the sources behind scans of plans already made.

A name stands for the newest data; a plan made earlier keeps the version it was made with, for as long as somebody
holds the source (frames do). Of one version of a table all plans share one source, whatever the name stands for by now.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bireme.errors import ArgumentFault, EngineBug, NameFault, SourceMismatch
from bireme.frontend.catalog import Table
from bireme.frontend.files import files_named
from bireme.frontend.series import series_named
from bireme.plan.functions import suggest
from bireme.plan.read_options import AS_THEY_ARE, ReadOptions, read_options
from bireme.plan.relation import Rel, Scan
from bireme.storage.base import ScannableSource
from bireme.storage.parquet import ParquetSource, open_parquet
from bireme.storage.parquet_table_file import no_kernels
from bireme.storage.shaped_split import Evaluate
from bireme.storage.source_path import working_folder

if TYPE_CHECKING:
    from bireme.storage.series import SeriesSource

# Files that queries name themselves, kept open for the next query: their footers, not their rows.
_PATHS_KEPT_MAX: Final = 64
# Of all of them, some kilobytes each; of one table, as many as it has.
_FILES_KEPT_MAX: Final = 4_096
_NO_OPTIONS: Final[Mapping[str, object]] = {}


class SessionTables:
    """The catalog of a session, and `source` for planner and scans. Any thread."""

    def __init__(self, evaluate: Evaluate = no_kernels) -> None:
        self._evaluate = evaluate
        self._named: dict[str, tuple[str, ScannableSource]] = {}
        self._sources: weakref.WeakValueDictionary[tuple[str, str], ScannableSource] = weakref.WeakValueDictionary()
        # By name, and where relative paths began.
        self._by_path: OrderedDict[tuple[str, str], ParquetSource] = OrderedDict()
        # Replaced, never changed: the loop looks at it without the lock.
        self._kept: frozenset[str] = frozenset()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def register(self, name: str, data: Any, options: Mapping[str, object] = _NO_OPTIONS) -> None:
        """Gives data (a path, paths, a glob, a folder, or Arrow data) a name, or a name new data."""
        if not isinstance(name, str) or not name:
            raise ArgumentFault(f"a table needs a name, not {name!r}")
        source = open_source(data, read_options(options), self._evaluate)
        with self._lock:
            self._named[name.lower()] = (name, source)

    def drop(self, name: str) -> None:
        with self._lock:
            if not isinstance(name, str) or self._named.pop(name.lower(), None) is None:
                raise ArgumentFault(f"no table is called {name!r}")

    def keep(self, table: str) -> None:
        """What is decoded of a table is to outlive queries."""
        with self._lock:
            self._kept |= {table.lower()}

    def unkeep(self, table: str) -> bool:
        """The opposite; says whether it was so."""
        with self._lock:
            was_kept = table.lower() in self._kept
            self._kept -= {table.lower()}
        return was_kept

    def is_kept(self, table: str) -> bool:
        return table.lower() in self._kept

    def kept(self) -> list[str]:
        """All tables of which that is so."""
        return sorted(self._kept)

    def anonymous(self, data: Any, options: Mapping[str, object] = _NO_OPTIONS) -> tuple[Table, ScannableSource]:
        """A table that only the frame that holds it knows."""
        return self._given(f"frame{next(self._numbers)}", open_source(data, read_options(options), self._evaluate))

    def find(self, name: str) -> tuple[Table, ScannableSource] | None:
        """The table, and what a plan over it has to hold."""
        found = self._named.get(name.lower())
        if found is None:
            return self._unregistered(name)
        canonical, source = found
        if isinstance(source, ParquetSource):
            source = self._current(canonical, source)
        return self._given(canonical, source)

    def _given(self, name: str, source: ScannableSource) -> tuple[Table, ScannableSource]:
        """What plans hold of a table: all of them the same source of a version."""
        key = name, source.version
        held = self._sources.get(key)
        if held is None:
            with self._lock:
                held = self._sources.setdefault(key, source)
        return Table(*key, held.schema), held

    def _unregistered(self, name: str) -> tuple[Table, ScannableSource] | None:
        """A table whose name says what is in it: numbers, or the paths of files."""
        files = files_named(name)
        if files is None:
            numbers = _series(name)
            return None if numbers is None else (Table(name, numbers.version, numbers.schema), numbers)
        key = name, working_folder()
        with self._lock:
            known = self._by_path.get(key)
        if known is None:
            source = open_parquet(files.paths, read_options(files.options), self._evaluate)
        else:
            source = known.refresh()
        with self._lock:
            self._by_path[key] = source
            self._by_path.move_to_end(key)
            while self._are_too_many():
                self._by_path.popitem(last=False)
        return self._given(name, source)

    def _are_too_many(self) -> bool:
        """Whether files that queries name themselves are kept open that should not; with the lock held."""
        tables = len(self._by_path)
        files = sum([len(source.files) for source in self._by_path.values()])
        return tables > _PATHS_KEPT_MAX or (tables > 1 and files > _FILES_KEPT_MAX)

    def _current(self, name: str, source: ParquetSource) -> ParquetSource:
        """The table as its files are now."""
        fresh = source.refresh()
        if fresh is not source:
            with self._lock:
                # By now the name may stand for other data, or for none.
                if self._named.get(name.lower()) == (name, source):
                    self._named[name.lower()] = (name, fresh)
        return fresh

    def names(self) -> Iterable[str]:
        with self._lock:
            return [name for name, _ in self._named.values()]

    def source(self, table: str, version: str) -> ScannableSource:
        """The data of a scan."""
        found = self._sources.get((table, version)) or _series(table)
        if found is None:
            raise EngineBug(f"the data of table {table!r} (version {version}) is gone")
        return found

    def clear(self) -> None:
        with self._lock:
            self._named.clear()
            self._by_path.clear()
            self._sources.clear()


def _series(name: str) -> SeriesSource | None:
    """A table that its name tells all of."""
    series = series_named(name)
    if series is None:
        return None
    from bireme.storage.series import SeriesSource

    return SeriesSource(series.column, series.numbers)


class HeldCatalog:
    """A session's catalog that keeps hold of the sources it gave out; `collect` runs a plan over them."""

    def __init__(self, tables: SessionTables, collect: Callable[[Rel], pa.Table]) -> None:
        self._tables = tables
        self._collect = collect
        self.sources: list[ScannableSource] = []

    def find(self, name: str) -> Table | None:
        table, source = self._tables.find(name) or (None, None)
        if source is not None:
            self.sources.append(source)
        return table

    def names(self) -> Sequence[str]:
        return list(self._tables.names())

    def values(self, plan: Rel) -> Sequence[object]:
        found: list[object] = self._collect(plan).column(0).to_pylist()
        return found

    def rebound(self, node: Any) -> Any:
        """A node of a saved plan, a scan as one of the table that has its name now."""
        if not isinstance(node, Scan):
            return node
        table = self.find(node.table)
        if table is None:
            raise NameFault(
                f"the plan reads the table {node.table!r}, which is not registered{suggest(node.table, self.names())}"
            )
        if table.schema is not node.table_schema:
            raise SourceMismatch(
                f"the plan was made for a table {node.table!r} with the columns {node.table_schema}; "
                f"the one registered has {table.schema}"
            )
        return Scan(table.name, table.version, table.schema, node.columns, node.filters)


def open_source(data: Any, options: ReadOptions = AS_THEY_ARE, evaluate: Evaluate = no_kernels) -> ScannableSource:
    """The table in what people hand over. Raises ArgumentFault for what is no table, and storage errors."""
    if isinstance(data, (str, os.PathLike)):
        return open_parquet(data, options, evaluate)
    from bireme.storage.arrow_table import open_arrow

    if isinstance(data, (list, tuple)) and data and all(isinstance(each, (str, os.PathLike)) for each in data):
        return open_parquet([Path(each) for each in data], options, evaluate)
    if options != AS_THEY_ARE:
        raise ArgumentFault(f"options say how files are to be read, and this is no path but {type(data).__name__}")
    if isinstance(data, (list, tuple)) and data and all(isinstance(each, pa.RecordBatch) for each in data):
        return open_arrow(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return open_arrow(data)
    raise ArgumentFault(
        f"a table is a path, a glob, a folder, or Arrow data (pyarrow, polars, pandas), not {type(data).__name__}"
    )

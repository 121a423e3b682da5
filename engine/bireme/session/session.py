"""The public entry: a session owns tables, a worker and a loop; queries come from any thread.

Everything a caller sees is synchronous, except `batches_async`. What a query is belongs to the front ends, how it runs
to the runtime; this only joins them.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from bireme.config import Config, Levers, config_from
from bireme.data.record import to_result
from bireme.errors import ArgumentFault, ConfigError, NameFault, SourceMisstated
from bireme.frontend.catalog import Table
from bireme.operators.stage_set import PipelineStages
from bireme.plan.functions import suggest
from bireme.plan.physical import Dag
from bireme.plan.relation import Rel, Scan
from bireme.plan.tree import relations
from bireme.runtime.holder.column_cache import CachedTable
from bireme.runtime.worker import ResultStream, Worker, WorkerStatistics
from bireme.session.house import House, abandoned, close, evaluator, kernels_of, range_reader_of
from bireme.session.loop_thread import LoopThread
from bireme.session.planning import Planner, scanned
from bireme.session.statements import Statements
from bireme.session.tables import HeldCatalog, SessionTables
from bireme.storage.base import ScannableSource
from bireme.storage.sink import ROW_GROUPS, write_file
from bireme.storage.split_run import RunLimits

if TYPE_CHECKING:
    from bireme.frontend.frame import Frame

T = TypeVar("T")
# Values of `?` in order, or of `$name` by name.
Parameters = Sequence[object] | Mapping[str, object] | None


def connect(
    *,
    memory_limit: str | int | None = None,
    threads: int | None = None,
    spill_folder: str | Path | Sequence[str | Path] | None = None,
    spill_limit: str | int | None = None,
    spill_compression: str | None = None,
    backend: str | None = None,
    levers: Levers | str | None = None,
) -> Session:
    """Starts a session.

    `memory_limit` (bytes, or a text such as "4GiB") is for all queries of the session together, `threads` is the number
    of compute threads; both default to what the machine has. What does not fit goes to `spill_folder`, or to several in
    turn, at most `spill_limit` of it, compressed where that pays, or always, or never (`spill_compression`: "auto",
    "lz4", "off"). `levers` switches techniques off (`"-clustering"`), to see what they bring. Settings not given come
    from `BIREME_…` variables. Raises ConfigError.
    """
    return Session(
        config_from(
            threads=threads,
            memory_limit=memory_limit,
            spill_folder=spill_folder,
            spill_limit=spill_limit,
            spill_compression=spill_compression,
            backend=backend,
            levers=levers,
        )
    )


class Session:
    """Tables, and queries over them. Any thread may use it; `close` it, or use it in a `with` block."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kernels = kernels_of(config.backend)
        self._tables = SessionTables(evaluator(self._kernels))
        self._statements = Statements()
        self._limits = RunLimits(config.threads, config.memory_bytes_max)
        self._planner = Planner(self._tables, self._kernels, config)
        self._loop = LoopThread("bireme-loop")
        self._house = House(config, range_reader_of(config.backend), self._kernels)
        try:
            self._worker = self._loop.wait(self._house.open())
        except BaseException:
            self._loop.close()
            raise
        self._closed = weakref.finalize(self, abandoned, self._loop, self._house)

    def __repr__(self) -> str:
        state = "open" if self._closed.alive else "closed"
        return f"<bireme session, {state}: {len(list(self._tables.names()))} tables, {self._config.threads} threads>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what still runs, and gives back threads, memory and spill files. Idempotent."""
        if self._closed.detach() is not None:
            close(self._loop, self._house)
        self._tables.clear()

    # ----------------------------------------------------------------------------------------------- tables

    def register(self, name: str, data: Any, **options: Any) -> None:
        """Names Parquet files (a path, a list, a glob, a folder; options as those of `scan_parquet`) or Arrow data
        (pyarrow, polars, pandas). What a name stood for before is no longer cached.
        """
        self._must_be_open()
        self._tables.register(name, data, options)
        if self._tables.unkeep(name):
            self.uncache(name)

    def drop(self, name: str) -> None:
        """Forgets a name; frames made with it still run."""
        self._tables.drop(name)
        if self._tables.unkeep(name):
            self.uncache(name)

    def tables(self) -> list[str]:
        """The names that are registered."""
        return sorted(self._tables.names())

    def table(self, name: str) -> Frame:
        """The frame of a registered table."""
        self._must_be_open()
        if not isinstance(name, str):
            raise ArgumentFault(f"a table is found by its name, not by {name!r}")
        found = self._tables.find(name)
        if found is None:
            raise NameFault(f"no table is called {name!r}{suggest(name, self.tables())}")
        return self._scan(*found)

    def scan_parquet(self, paths: Any, **options: Any) -> Frame:
        """The frame of Parquet files: a path, a list, a glob or a folder. The options are those of read_parquet in SQL:
        hive_partitioning, hive_types (as {"year": "integer"}), hive_types_autocast, union_by_name, filename (True, or
        the name of the column) and file_row_number.
        """
        self._must_be_open()
        return self._scan(*self._tables.anonymous(paths, options))

    def from_arrow(self, data: Any) -> Frame:
        """The frame of Arrow data: a pyarrow table or batch, or anything that speaks the Arrow PyCapsule protocol."""
        if isinstance(data, (str, Path)):
            raise ArgumentFault("from_arrow() takes Arrow data; for files use scan_parquet()")
        self._must_be_open()
        return self._scan(*self._tables.anonymous(data))

    def _scan(self, table: Table, source: ScannableSource) -> Frame:
        return self._frame(table.scan(), [source])

    def _frame(self, plan: Rel, sources: Iterable[object]) -> Frame:
        from bireme.frontend.frame import Frame  # with all its methods it loads much that a query as text does not need

        return Frame(self, plan, frozenset(sources))

    # ------------------------------------------------------------------------------------------------ cache

    def cache(self, plan: Rel) -> None:
        self._must_be_open()
        for relation in relations(plan):
            if isinstance(relation, Scan):
                self._tables.keep(relation.table)

    def uncache(self, name: str | None = None) -> None:
        """Gives up what is cached of a table, or of all, and caches it no more."""
        self._must_be_open()
        wanted = self._tables.kept() if name is None else [name.lower()]
        for table in wanted:
            self._tables.unkeep(table)
        self._loop.wait(_dropped(self._worker, frozenset(wanted)))

    def cached(self) -> list[CachedTable]:
        """What is cached now, by table."""
        self._must_be_open()
        return self._loop.wait(_cached(self._worker))

    # ---------------------------------------------------------------------------------------------- queries

    def sql(self, query: str, parameters: Parameters = None, *, dialect: str = "duckdb") -> Frame:
        """The frame of a SQL query over the registered tables; errors in the query come at once.

        `parameters` are the values of `?` (a sequence) or `$name` (a mapping).
        """
        plan, sources = self.bind(query, parameters, dialect=dialect)
        return self._frame(plan, sources)

    def bind(self, query: str, parameters: Parameters = None, *, dialect: str = "duckdb") -> tuple[Rel, list[object]]:
        """The plan of a SQL query, for this session's own methods to run, and the tables that must live until then."""
        self._must_be_open()
        if not isinstance(query, str):
            raise ArgumentFault(f"a query is a text, not {type(query).__name__}")
        if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Sequence, Mapping, type(None))):
            raise ArgumentFault("parameters are a list of values for ?, or a mapping for $name, not a single value")
        held = HeldCatalog(self._tables, self.collect)
        if parameters is None:
            plan = self._statements.plan(query, held, dialect=dialect)
        else:
            from bireme.frontend.sql import bind_sql

            plan = bind_sql(query, held, dialect=dialect, parameters=parameters)
        return plan, list(held.sources)

    def deserialize(self, text: str) -> Frame:
        """The frame whose plan `Frame.serialize` wrote, over the tables that this session has under the same names.

        Raises ArgumentFault for any other text, NameFault and SourceMismatch where a table is missing or different.
        """
        from bireme.plan.wire import from_json

        held = HeldCatalog(self._tables, self.collect)
        plan = from_json(text, held.rebound)
        if not isinstance(plan, Rel):
            raise ArgumentFault("this saved plan is a part of a plan, not a whole one")
        return self._frame(plan, held.sources)

    def collect(self, plan: Rel) -> pa.Table:
        dag, batches = self._answered(plan, lambda dag: (dag, self._loop.wait(self._all(dag))))
        return pa.Table.from_batches([to_result(batch, dag.schema) for batch in batches], dag.schema.to_result_arrow())

    def batches(self, plan: Rel) -> Iterator[pa.RecordBatch]:
        self._plan(plan)
        return self._pulled(plan, lambda dag: dag)

    def _pulled(self, plan: Rel, made: Callable[[Dag], Dag]) -> Iterator[pa.RecordBatch]:
        """The batches of what `made` makes of the Dag of a plan."""

        def begun(planned: Dag) -> tuple[Dag, ResultStream, pa.RecordBatch | None]:
            dag = made(planned)
            return dag, *self._loop.wait(self._first(dag))

        dag, stream, batch = self._answered(plan, begun)
        try:
            while batch is not None:
                yield to_result(batch, dag.schema)
                batch = None  # it is the caller's alone while the next one is waited for
                batch = self._loop.wait(_next(stream))
        finally:
            if self._closed.alive:  # else the query has ended with the session
                self._loop.wait(stream.aclose())

    async def batches_async(self, plan: Rel) -> AsyncIterator[pa.RecordBatch]:
        dag = await asyncio.to_thread(self._plan, plan)
        try:
            stream, batch = await asyncio.wrap_future(self._loop.start(self._first(dag)))
        except SourceMisstated:
            _, dag = await asyncio.to_thread(self._planner.replan, plan)
            stream, batch = await asyncio.wrap_future(self._loop.start(self._first(dag)))
        try:
            while batch is not None:
                yield to_result(batch, dag.schema)
                batch = None
                batch = await asyncio.wrap_future(self._loop.start(_next(stream)))
        finally:
            if self._closed.alive:
                await asyncio.shield(asyncio.wrap_future(self._loop.start(stream.aclose())))

    def sink_parquet(self, plan: Rel, path: Path) -> int:
        dag = self._plan(plan)
        groups = self._pulled(plan, self._planner.as_parquet)
        return write_file(groups, dag.schema.to_result_arrow(), path, ROW_GROUPS)

    def explain(self, plan: Rel, *, optimized: bool, physical: bool, analyze: bool) -> str:
        from bireme.plan.explain import explain
        from bireme.plan.explain_physical import explain_dag

        if not (physical or analyze):
            return explain(self._planner.optimize(plan) if optimized else plan)
        chosen, dag = self._planner.plan(plan)
        text = f"{explain(chosen)}\n\n{explain_dag(dag)}"
        kept = [table for table in self._tables.kept() if table in scanned(dag)]
        if kept:
            text += f"\n\ncached: {', '.join(kept)}"
        if self._config.levers.off:
            text += f"\n\nlevers off: {', '.join(self._config.levers.off)}"
        if not analyze:
            return text
        try:
            return f"{text}\n\n{self._loop.wait(self._profiled(dag))}"
        except SourceMisstated as error:
            _, dag = self._planner.replan(plan)
            again = f"{explain_dag(dag)}\n\n{self._loop.wait(self._profiled(dag))}"
            return f"{text}\n\ngiven up, and run again without what rests on statistics: {error}\n\n{again}"

    def statistics(self) -> WorkerStatistics:
        """What the session has done and holds: bytes per tier, tasks, spills."""
        return self._loop.wait(_statistics(self._worker))

    # ------------------------------------------------------------------------------------------- on the loop

    def _plan(self, plan: Rel) -> Dag:
        self._must_be_open()
        return self._planner.plan(plan)[1]

    def _answered(self, plan: Rel, run: Callable[[Dag], T]) -> T:
        """What `run` gives; once more, without what rests on statistics, where those have proved wrong.

        That shows before anything of the answer does (`plan.lower_group`).
        """
        try:
            return run(self._plan(plan))
        except SourceMisstated:
            return run(self._planner.replan(plan)[1])

    def _must_be_open(self) -> None:
        if not self._closed.alive:
            raise ConfigError("the session is closed; connect() a new one")

    async def _start(self, dag: Dag) -> ResultStream:
        return self._worker.run(dag, self._stages(dag))

    def _stages(self, dag: Dag) -> PipelineStages:
        return PipelineStages(
            dag, self._kernels, self._tables.source, self._config.levers, self._limits, is_kept=self._tables.is_kept
        )

    async def _first(self, dag: Dag) -> tuple[ResultStream, pa.RecordBatch | None]:
        """A stream and what it gives first."""
        stream = await self._start(dag)
        try:
            return stream, await _next(stream)
        except BaseException:
            await stream.aclose()
            raise

    async def _all(self, dag: Dag) -> list[pa.RecordBatch]:
        stream = await self._start(dag)
        try:
            return [batch async for batch in stream]
        finally:
            await stream.aclose()

    async def _profiled(self, dag: Dag) -> str:
        stream = await self._start(dag)
        try:
            async for _ in stream:
                pass
        finally:
            await stream.aclose()
        return str(stream.profile)


async def _next(stream: ResultStream) -> pa.RecordBatch | None:
    return await anext(stream, None)


async def _cached(worker: Worker) -> list[CachedTable]:
    return worker.cache.tables()


async def _dropped(worker: Worker, tables: frozenset[str]) -> None:
    worker.cache.drop(lambda table: table.lower() in tables)


async def _statistics(worker: Worker) -> WorkerStatistics:
    return worker.statistics()

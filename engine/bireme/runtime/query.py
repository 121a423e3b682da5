"""One query's life: a live graph in one task group, cancelled as a whole.

Whatever happens (done, failed, cancelled, closed by the caller), it ends the same way: the graph is closed at once,
calls that run are waited for, stages and batches are freed, every reservation comes back, and only then does the
caller hear the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import pyarrow as pa

from bireme.data.ids import QueryId
from bireme.data.schema import Schema
from bireme.data.tier import Tier
from bireme.errors import BiremeError, Cancelled, EngineBug
from bireme.observe.event import Noted, QueryEnded, QueryStarted
from bireme.observe.profile import Profile
from bireme.runtime.graph import Graph
from bireme.runtime.hints import unmet_hints
from bireme.runtime.holder.state import Access
from bireme.runtime.memory.bring_up import lease_up
from bireme.runtime.memory.mover import Mover
from bireme.runtime.memory.room import Room


class Query:
    """`run` lives in the worker's task group and never raises; `outcome` says how it went."""

    def __init__(self, graph: Graph, *, room: Room, mover: Mover, ended: Callable[[Query], None]) -> None:
        self.graph = graph
        self.id: QueryId = graph.query
        self.profile = Profile({pipeline.id: pipeline.name for pipeline in graph.dag.pipelines})
        self.error: BiremeError | None = None
        self.ended = asyncio.Event()
        self._room = room
        self._mover = mover
        self._on_end = ended
        self._closed_by_caller = False
        self._lost = False
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        graph.recorder.listen(self.id, self.profile.hear)

    def __repr__(self) -> str:
        state = "ended" if self.ended.is_set() else "running"
        return f"<Query {self.id}, {state}: {self.graph!r}>"

    def start_in(self, group: asyncio.TaskGroup) -> None:
        self._task = group.create_task(self.run(), name=f"query/{self.id}")

    async def run(self) -> None:
        graph = self.graph
        started = graph.clock.now()
        cause = graph.recorder.record(QueryStarted(self.id, len(graph.pipelines), len(graph.holders)))
        for pipeline, text in unmet_hints(graph.dag):
            graph.recorder.record(Noted(self.id, pipeline, text, cause))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._drive(), name=f"query/{self.id}/drive")
        except* BiremeError as errors:
            self.error = _first(errors)
        except* asyncio.CancelledError:
            self.error = self.graph.fault() or Cancelled("the query was cancelled")
        except* Exception as errors:
            bug = errors.exceptions[0]
            self.error = EngineBug(f"the query's own loop raised {type(bug).__name__}: {bug}")
            self.error.__cause__ = bug
        finally:
            await self._clean_up()
        seconds = graph.clock.now() - started
        graph.recorder.record(QueryEnded(self.id, self._outcome(), seconds))
        graph.recorder.forget(self.id)
        self._on_end(self)
        self.ended.set()

    async def _drive(self) -> None:
        self.graph.start()
        fault = await self.graph.outcome
        if fault is not None:
            raise fault

    async def _clean_up(self) -> None:
        """Runs to its end, however often the query is cancelled meanwhile."""
        graph = self.graph
        self.profile.edge_names |= {edge: holder.edge.name for edge, holder in graph.holders.items()}
        graph.close()
        while not self._lost:
            try:
                await graph.wait_quiet()
                await self._mover.drained()
                break
            except asyncio.CancelledError:
                continue
        try:
            graph.free(force=self._lost)
        except Exception as error:
            self.error = self.error or EngineBug(f"closing a stage raised {type(error).__name__}: {error}")

    def unread(self) -> None:
        """Nobody can read the result any more. Any thread may call this."""
        if not self.ended.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.graph.fail, Cancelled("nobody reads the result any more"))

    def lost(self, error: BaseException | None) -> None:
        """The worker itself broke: nothing that runs for this query will ever end, so it does not wait for it."""
        if not self.ended.is_set():
            self._lost = True
            self.graph.fail(EngineBug(f"the worker broke under the query: {error!r}"))
            if self._task is not None:
                self._task.cancel()

    def _outcome(self) -> str:
        if self._closed_by_caller:
            return "closed"
        return "done" if self.error is None else f"{type(self.error).__name__}: {self.error}"

    async def cancel(self, *, closed: bool = False) -> None:
        """Ends the query and waits until nothing of it is left."""
        if not self.ended.is_set():
            self._closed_by_caller = closed
            self.graph.fail(Cancelled("the query was cancelled"))
            await self.ended.wait()

    # ------------------------------------------------------------------------------------- reading

    async def next_batch(self) -> pa.RecordBatch | None:
        """The next batch of the result, or None at its end. Raises what the query failed with."""
        entry = None if self.graph.closed else await self.graph.result.take(self.graph.result_feed)
        if entry is None:
            await self.ended.wait()
            if self.error is not None:
                raise self.error
            return None
        holder = self.graph.result
        if entry.batch.tier is Tier.DEVICE and entry.access is not Access.EXCLUSIVE:
            # Nothing is awaited before it is consumed, so it need not be leased.
            content = entry.batch.content
        elif await lease_up(holder, entry, room=self._room, mover=self._mover):
            content = entry.batch.content
            holder.give_back(entry)
        else:
            await self.ended.wait()
            raise self.error or Cancelled("the query was cancelled")
        holder.consume(entry)
        self.graph.result_taken()
        return content


class ResultStream:
    """The batches of a result, in order: an async iterator. `aclose`, or leaving its block, ends the query early."""

    def __init__(self, query: Query, schema: Schema) -> None:
        self.schema = schema
        self._query = query

    def __repr__(self) -> str:
        return f"<ResultStream of {self._query!r}>"

    def __del__(self) -> None:
        # Forgotten rather than closed: it must not run, or wait for its reader, for ever.
        self._query.unread()

    def __aiter__(self) -> ResultStream:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        try:
            batch = await self._query.next_batch()
        except BiremeError:
            # Whoever sees the error finds nothing of the query left.
            await self._query.cancel()
            raise
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def __aenter__(self) -> ResultStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def profile(self) -> Profile:
        """What the query has done so far."""
        return self._query.profile

    async def aclose(self) -> None:
        """Ends the query, wherever it is, and waits until nothing of it is left. Idempotent."""
        await self._query.cancel(closed=True)


def _first(errors: BaseExceptionGroup[BiremeError]) -> BiremeError:
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, BiremeError)
    return first

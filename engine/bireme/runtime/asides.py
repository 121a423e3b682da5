"""The edges of a query that no plan has: made with the first batch for them, read by partition.

They are Batch Holders like all others, so their batches can be demoted and are freed when their readers are done. What
they are for is in `operators.base`. Changes only on the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from bireme.data.batch import Batch
from bireme.data.ids import EdgeId, PipelineId
from bireme.data.schema import Schema
from bireme.operators.base import Aside
from bireme.plan.hint import Hint
from bireme.plan.physical import Edge, Take
from bireme.runtime.holder.batch_holder import BatchHolder
from bireme.runtime.holder.feed import Feed
from bireme.runtime.holder.state import Entry

if TYPE_CHECKING:
    from bireme.runtime.graph import Graph

_UNKNOWN = Schema(())


class Reading(NamedTuple):
    """One reader's way into an aside."""

    holder: BatchHolder
    feed: Feed


class Asides:
    """The asides of one query; their holders are among those of the graph."""

    def __init__(self, graph: Graph, drop: Callable[[Batch], None]) -> None:
        self._graph = graph
        self._drop = drop
        self._places = {pipeline.id: place for place, pipeline in enumerate(graph.dag.pipelines)}
        self._ids = count(max([edge.id for edge in graph.dag.edges], default=0) + 1)
        self._holders: dict[Aside, BatchHolder] = {}
        self._edges: set[EdgeId] = set()
        self._by_reader: dict[PipelineId, list[Aside]] = {}

    def __contains__(self, holder: BatchHolder) -> bool:
        return holder.edge.id in self._edges

    def holder(self, aside: Aside, producer: PipelineId) -> BatchHolder:
        """The holder of an aside, which `producer` puts a batch on."""
        found = self._holders.get(aside)
        if found is None:
            found = self._holders[aside] = self._made(aside, producer)
            for reader in aside.readers:
                self._by_reader.setdefault(reader, []).append(aside)
        return found

    def _made(self, aside: Aside, producer: PipelineId) -> BatchHolder:
        uses = [self._places[reader] for reader in aside.readers]
        hint = Hint(next_use=min(uses, default=0), last_use=max(uses, default=0), partitions=aside.partitions)
        edge = Edge(
            EdgeId(next(self._ids)), aside.name, _UNKNOWN, (producer,), aside.readers, aside.partitions, False, hint
        )
        takes = [Take.PARTITION] * len(aside.readers)
        holder = BatchHolder(edge, query=self._graph.query, takes=takes, drop=self._drop)
        self._graph.holders[edge.id] = holder
        self._edges.add(edge.id)
        return holder

    def reading(self, aside: Aside, reader: PipelineId) -> Reading | None:
        """How a pipeline reads an aside; None where no batch was put on it."""
        holder = self._holders.get(aside)
        return None if holder is None else Reading(holder, holder.state.feeds[aside.readers.index(reader)])

    def ended(self, reader: PipelineId) -> None:
        """A pipeline reads no more, whatever is still there for it."""
        for aside in self._by_reader.pop(reader, ()):
            reading = self.reading(aside, reader)
            if reading is not None:
                reading.holder.close_feed(reading.feed)

    def soon(self, holder: BatchHolder, entry: Entry) -> bool:
        """Whether a round that has begun wants a batch of an aside."""
        rounds = [self._graph.pipelines[reader].rounds for reader in holder.edge.consumers]
        return any(each is not None and each.wants(entry) for each in rounds)

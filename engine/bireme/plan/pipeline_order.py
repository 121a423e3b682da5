"""Which pipelines of a Dag come after which, and the order they are numbered in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from operator import rshift

from bireme.data.ids import PipelineId
from bireme.data.node import columns_in, replaced
from bireme.plan.physical import Dag, EdgeSource


class PipelineOrder:
    """What each pipeline needs, and what it is made to wait for in addition; as bits, by number."""

    def __init__(self, dag: Dag) -> None:
        self._needs: list[int] = []
        for pipeline in dag.pipelines:
            needs = _bits(pipeline.after)
            if isinstance(pipeline.source, EdgeSource):
                needs |= _bits(dag.edges[pipeline.source.edge].producers)
            self._needs.append(needs)
        self.added: dict[int, set[PipelineId]] = {}
        self._all = [0] * len(self._needs)
        for number in self.sequence():
            self._all[number] = self._closed(self._needs[number])

    def _closed(self, needs: int) -> int:
        found = needs
        for number in columns_in(needs):
            found |= self._all[number]
        return found

    def waits(self, pipeline: int, other: int) -> bool:
        """Whether `pipeline` starts after `other` is done."""
        return bool(self._all[pipeline] >> other & 1)

    def let_wait(self, pipeline: int, other: PipelineId) -> bool:
        """Makes `pipeline` wait for `other`, unless that would go in a circle."""
        if pipeline == other or self.waits(other, pipeline):
            return False
        self._needs[pipeline] |= 1 << other
        self.added.setdefault(pipeline, set()).add(other)
        news = self._all[other] | 1 << other
        for later, needs in enumerate(self._all):
            if later == pipeline or needs >> pipeline & 1:
                self._all[later] |= news
        return True

    def sequence(self) -> list[int]:
        """The pipelines, each after those it needs, else in their order."""
        if not any(map(rshift, self._needs, count())):
            return list(range(len(self._needs)))  # none needs itself or a later one
        done, found = 0, []
        waiting = list(range(len(self._needs)))
        while waiting:
            ready = next(each for each in waiting if not self._needs[each] & ~done)
            waiting.remove(ready)
            found.append(ready)
            done |= 1 << ready
        return found


def in_order(dag: Dag) -> Dag:
    """The Dag with its pipelines numbered so that each comes after those it needs."""
    sequence = PipelineOrder(dag).sequence()
    if sequence == list(range(len(sequence))):
        return dag
    numbers = {old: PipelineId(new) for new, old in enumerate(sequence)}

    def renumbered(pipelines: tuple[PipelineId, ...]) -> tuple[PipelineId, ...]:
        return tuple([numbers[each] for each in pipelines])

    pipelines = [
        replaced(dag.pipelines[old], id=numbers[old], after=tuple(sorted(renumbered(dag.pipelines[old].after))))
        for old in sequence
    ]
    edges = [
        replaced(edge, producers=renumbered(edge.producers), consumers=renumbered(edge.consumers)) for edge in dag.edges
    ]
    return replaced(dag, pipelines=tuple(pipelines), edges=tuple(edges))


def _bits(numbers: Iterable[PipelineId]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found

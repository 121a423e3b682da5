"""Which scans ask which join tables before they decode whole rows, and so which pipelines wait for which builds.

`membership` finds what may be asked; this chooses what pays, by estimates handed in, and keeps the Dag without cycles.
A table that the scan's pipeline needs anyway is asked unless nearly every row should pass; for another one the pipeline
is made to wait, so that has to drop most rows and to be much smaller than the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from bireme.data.ids import PipelineId
from bireme.plan.membership import Member, Memberships, scans
from bireme.plan.physical import Dag, EdgeSource, Lookup, Pipeline, ScanSource

# A scan switches off what keeps more than this, so it need not start with it.
_KEPT_MAX: Final = 0.9
# A build that a pipeline would not have waited for drops at least half of the rows, and is this much smaller.
_KEPT_MAX_WAITING: Final = 0.5
_WAITING_FACTOR: Final = 4.0
_LOOKUPS_MAX: Final = 4
# Of smaller tables, asking costs as much as it saves.
_SCANNED_MIN: Final = 4_096


@dataclass(frozen=True, slots=True)
class MemberEstimates:
    """What the choice needs to know: rows of a scan's table and of a join table, and the share of the rows of a scan
    that are members of a table.
    """

    scanned: Callable[[ScanSource], float]
    built: Callable[[str], float]
    kept: Callable[[ScanSource, Member], float]


@dataclass(frozen=True, slots=True)
class _Choice:
    """A lookup that may pay, for the pipeline with this number."""

    pipeline: int
    member: Member
    kept: float


def with_lookups(dag: Dag, estimates: MemberEstimates) -> Dag:
    """The same Dag with lookups in its scans."""
    memberships = Memberships(dag)
    order = _Order(dag)
    chosen: dict[int, list[_Choice]] = {}
    readers = [(pipeline, source) for pipeline, source in scans(dag) if estimates.scanned(source) >= _SCANNED_MIN]
    # Large scans first: where two scans could each wait for the other's build, the large one gains most.
    for pipeline, source in sorted(readers, key=lambda reader: -estimates.scanned(reader[1])):
        found = _chosen(pipeline, source, memberships, estimates, order)
        if found:
            chosen[pipeline.id] = found
    return _applied(dag, chosen, order) if chosen else dag


def _chosen(
    pipeline: Pipeline, source: ScanSource, memberships: Memberships, estimates: MemberEstimates, order: _Order
) -> list[_Choice]:
    taken: list[_Choice] = []
    rows = estimates.scanned(source)
    for choice in _ranked(pipeline, source, memberships, estimates):
        build = memberships.built_by(choice.member.table).id
        if len(taken) == _LOOKUPS_MAX or _adds_nothing(choice, taken, memberships):
            continue
        if not order.waits(pipeline.id, build):
            pays = choice.kept <= _KEPT_MAX_WAITING and estimates.built(choice.member.table) * _WAITING_FACTOR <= rows
            if not pays or not order.let_wait(pipeline.id, build):
                continue
        taken.append(choice)
    return taken


def _ranked(
    pipeline: Pipeline, source: ScanSource, memberships: Memberships, estimates: MemberEstimates
) -> Iterator[_Choice]:
    """What is demanded of a scan and worth asking: first what drops most rows for the columns that must be decoded."""
    found = []
    for member in memberships.demands(pipeline):
        kept = estimates.kept(source, member)
        if kept <= _KEPT_MAX:
            # Of two that keep as many, one may follow from the other; a name makes the order total.
            rank = (len(member.columns) / (1 - kept), -len(memberships.implied(member)), member)
            found.append((rank, _Choice(pipeline.id, member, kept)))
    return iter([choice for _, choice in sorted(found, key=itemgetter(0))])


def _adds_nothing(choice: _Choice, taken: list[_Choice], memberships: Memberships) -> bool:
    """Whether what is taken drops about the same rows."""
    member = choice.member
    for other in taken:
        if member in memberships.implied(other.member) and len(member.columns) >= len(other.member.columns):
            return True
        if other.member in memberships.implied(member) and choice.kept > other.kept * _KEPT_MAX:
            return True
    return False


# ------------------------------------------------------------------------------------------------------ the order


class _Order:
    """Which pipelines come after which: what each needs, as bits, and what it waits for in addition."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self.direct: list[int] = []
        for pipeline in dag.pipelines:
            needs = _bits(pipeline.after)
            if isinstance(pipeline.source, EdgeSource):
                needs |= _bits(dag.edges[pipeline.source.edge].producers)
            self.direct.append(needs)
        self._all: list[int] = []
        for needs in self.direct:  # pipelines come after those they need
            self._all.append(self._closed(needs))
        self.added: dict[int, set[PipelineId]] = {}

    def _closed(self, needs: int) -> int:
        found = needs
        while needs:
            low = needs & -needs
            found |= self._all[low.bit_length() - 1]
            needs ^= low
        return found

    def waits(self, pipeline: int, other: int) -> bool:
        """Whether `pipeline` starts after `other` is done."""
        return bool(self._all[pipeline] >> other & 1)

    def let_wait(self, pipeline: int, other: PipelineId) -> bool:
        """Makes `pipeline` wait for `other`, unless that would go in a circle."""
        if pipeline == other or self.waits(other, pipeline):
            return False
        self.direct[pipeline] |= 1 << other
        self.added.setdefault(pipeline, set()).add(other)
        news = self._all[other] | 1 << other
        for later, needs in enumerate(self._all):
            if later == pipeline or needs >> pipeline & 1:
                self._all[later] |= news
        return True

    def sequence(self) -> list[int]:
        """The pipelines, each after those it needs, else in their order."""
        done, found = 0, []
        waiting = list(range(len(self.direct)))
        while waiting:
            ready = next(each for each in waiting if not self.direct[each] & ~done)
            waiting.remove(ready)
            found.append(ready)
            done |= 1 << ready
        return found


def _bits(numbers: tuple[PipelineId, ...]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _applied(dag: Dag, chosen: dict[int, list[_Choice]], order: _Order) -> Dag:
    """The Dag with the choices made, its pipelines in an order in which each comes after those it needs."""
    pipelines = list(dag.pipelines)
    for number, choices in chosen.items():
        pipeline, source = pipelines[number], pipelines[number].source
        assert isinstance(source, ScanSource)
        lookups = tuple([Lookup(each.member.table, each.member.columns, round(each.kept, 6)) for each in choices])
        asking = ScanSource(source.table, source.version, source.columns, source.filters, lookups)
        after = tuple(sorted({*pipeline.after, *order.added.get(number, ())}))
        pipelines[number] = replace(pipeline, source=asking, after=after)
    made = replace(dag, pipelines=tuple(pipelines))
    return _renumbered(made, order.sequence()) if order.added else made


def _renumbered(dag: Dag, sequence: list[int]) -> Dag:
    """The Dag with its pipelines in this sequence, numbered anew."""
    numbers = {old: PipelineId(new) for new, old in enumerate(sequence)}

    def renumbered(pipelines: tuple[PipelineId, ...]) -> tuple[PipelineId, ...]:
        return tuple([numbers[each] for each in pipelines])

    pipelines = [
        replace(dag.pipelines[old], id=numbers[old], after=tuple(sorted(renumbered(dag.pipelines[old].after))))
        for old in sequence
    ]
    edges = [
        replace(edge, producers=renumbered(edge.producers), consumers=renumbered(edge.consumers)) for edge in dag.edges
    ]
    return replace(dag, pipelines=tuple(pipelines), edges=tuple(edges))

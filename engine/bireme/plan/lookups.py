"""Which scans ask which join tables before they decode whole rows, and so which pipelines wait for which builds.

`membership` finds what may be asked; this chooses what pays, by estimates handed in, and keeps the Dag without cycles.
A table that the scan's pipeline needs anyway is asked unless nearly every row should pass; for another one the pipeline
is made to wait, so that has to drop most rows and to be much smaller than the scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from bireme.data.node import replaced
from bireme.plan.membership import Member, MemberEstimates, Memberships, scans
from bireme.plan.physical import Dag, Lookup, Pipeline, ScanSource
from bireme.plan.pipeline_order import PipelineOrder, in_order
from bireme.records import dataclass

# A scan switches off what keeps more than this, so it need not start with it.
_KEPT_MAX: Final = 0.9
# A build that a pipeline would not have waited for drops at least half of the rows, and is this much smaller.
_KEPT_MAX_WAITING: Final = 0.5
_WAITING_FACTOR: Final = 4.0
_LOOKUPS_MAX: Final = 4
# Of smaller tables, asking costs as much as it saves.
_SCANNED_MIN: Final = 4_096


@dataclass(frozen=True, slots=True)
class _Choice:
    """A lookup that may pay, for the pipeline with this number."""

    pipeline: int
    member: Member
    kept: float


def with_lookups(dag: Dag, memberships: Memberships, estimates: MemberEstimates) -> Dag:
    """The same Dag with lookups in its scans."""
    chosen: dict[int, list[_Choice]] = {}
    asking = [(pipeline, source) for pipeline, source in scans(dag) if memberships.demands(pipeline)]
    readers = [(pipeline, source) for pipeline, source in asking if estimates.scanned(source) >= _SCANNED_MIN]
    if not readers:
        return dag
    order = PipelineOrder(dag)
    # Large scans first: where two scans could each wait for the other's build, the large one gains most.
    for pipeline, source in sorted(readers, key=lambda reader: -estimates.scanned(reader[1])):
        found = _chosen(pipeline, source, memberships, estimates, order)
        if found:
            chosen[pipeline.id] = found
    return _applied(dag, chosen, order) if chosen else dag


def _chosen(
    pipeline: Pipeline, source: ScanSource, memberships: Memberships, estimates: MemberEstimates, order: PipelineOrder
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
            rank = (len(member.columns) / (1 - kept), -len(memberships.implied(member)), member.rank)
            found.append((rank, _Choice(pipeline.id, member, kept)))
    if len(found) > 1:
        found.sort(key=itemgetter(0))
    return iter([choice for _, choice in found])


def _adds_nothing(choice: _Choice, taken: list[_Choice], memberships: Memberships) -> bool:
    """Whether what is taken drops about the same rows."""
    member = choice.member
    for other in taken:
        if member in memberships.implied(other.member) and len(member.columns) >= len(other.member.columns):
            return True
        if other.member in memberships.implied(member) and choice.kept > other.kept * _KEPT_MAX:
            return True
    return False


def _applied(dag: Dag, chosen: dict[int, list[_Choice]], order: PipelineOrder) -> Dag:
    """The Dag with the choices made."""
    pipelines = list(dag.pipelines)
    for number, choices in chosen.items():
        pipeline, source = pipelines[number], pipelines[number].source
        assert isinstance(source, ScanSource)
        lookups = tuple([Lookup(each.member.table, each.member.columns, round(each.kept, 6)) for each in choices])
        after = tuple(sorted({*pipeline.after, *order.added.get(number, ())}))
        pipelines[number] = replaced(pipeline, source=replaced(source, lookups=lookups), after=after)
    made = replaced(dag, pipelines=tuple(pipelines))
    return in_order(made) if order.added else made

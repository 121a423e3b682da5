"""What is known and what is wanted of columns in a Dag: that their values occur among the keys of a join table.

A `Member` (columns, table) is said of the rows at one point of a pipeline. As a **fact**: every row has, in `columns`,
the keys of some build row of `table`. As a **demand**: a row that has not is not wanted, as nothing it leads to can
reach the result. Facts run forward from the probes that establish them, demands backward from the probes that make
them; both pass edges, groupings and join tables. A scan may drop what is not demanded of it.

Rule: a demand is only what every reader of a row agrees on. Rows that cut something off (a limit), that are looked at
together (a window), or of which a join remembers that it saw them, are not demanded less of.

Keys are compared as `=` does: a NULL is a member of nothing. Which demands are worth asking is in `lookups`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bireme.data.ids import EdgeId
from bireme.data.node import Node, column_positions, node
from bireme.plan.expr import Expr
from bireme.plan.physical import (
    AssumeStep,
    BuildSink,
    Dag,
    EdgeSource,
    EmitSink,
    EncodeStep,
    GroupSink,
    LimitStep,
    MatchSink,
    MergeGroupsStep,
    Pipeline,
    ProbeStep,
    ProgramStep,
    RangeSink,
    SampleSink,
    ScanSource,
    SortStep,
    Step,
    TopSink,
    UnmatchedSource,
    UnnestStep,
    WindowStep,
)
from bireme.plan.relation import JoinKind
from bireme.records import dataclass

# Kinds of probe that drop a row of the stream that has no match.
_DROPPING: Final = frozenset({JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT})
# Kinds whose output rows with columns of the build side have a partner there, or NULL in them.
_PAIRING: Final = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE})


@node
class Member(Node):
    """Columns of rows, and the join table in whose keys they occur."""

    columns: tuple[int, ...]
    table: str

    @property
    def rank(self) -> tuple[tuple[int, ...], str]:
        """A total order."""
        return self.columns, self.table


Members = frozenset[Member]
_NONE: Final[Members] = frozenset()


@dataclass(frozen=True, slots=True)
class MemberEstimates:
    """What the choice needs to know: rows of a scan's table and of a join table, and the share of the rows of a scan
    that are members of a table, or fulfil a condition.
    """

    scanned: Callable[[ScanSource], float]
    built: Callable[[str], float]
    kept: Callable[[ScanSource, Member], float]
    fulfilling: Callable[[ScanSource, Expr], float]


@dataclass(frozen=True, slots=True)
class _Table:
    """A join table: where it is built, and which build columns its keys are (None for an expression)."""

    pipeline: Pipeline
    keys: tuple[int | None, ...]


class Memberships:
    """Facts and demands of one Dag."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._tables = {
            pipeline.sink.table: _Table(pipeline, column_positions(pipeline.sink.keys))
            for pipeline in dag.pipelines
            if isinstance(pipeline.sink, BuildSink)
        }
        self._edge_facts: dict[EdgeId, Members] = {}
        self._build_facts: dict[str, Members] = {}
        # By pipeline and step: facts of the rows that come to it, demands on those that leave it.
        self._facts: dict[tuple[int, int], Members] = {}
        self._wanted: dict[tuple[int, int], Members] = {}
        self._source_demands: dict[int, Members] = {}
        self._uses: dict[str, list[tuple[Pipeline, int]]] = {}
        self._equal_columns: dict[ProbeStep, list[tuple[int, int]]] = {}
        self._matching: dict[tuple[str, tuple[Expr, ...], int], Members] = {}
        for pipeline in dag.pipelines:
            self._run_forward(pipeline)
        for pipeline in reversed(dag.pipelines):
            self._run_backward(pipeline)

    def demands(self, pipeline: Pipeline) -> Members:
        """What is demanded of the rows of a pipeline's source."""
        return self._source_demands[pipeline.id]

    def built_by(self, table: str) -> Pipeline:
        """The pipeline that makes a join table."""
        return self._tables[table].pipeline

    def implied(self, member: Member) -> Members:
        """`member` and what follows from it, by what is known of the table's build rows."""
        return self._members(member.table, member.columns)

    # ----------------------------------------------------------------------------------------------- tables

    def _members(self, table: str, columns: tuple[int | None, ...]) -> Members:
        """What rows are members of that match in `table` by `columns` (None for a key that is no column)."""
        if not columns:
            return _NONE
        found = _NONE if None in columns else frozenset([Member(columns, table)])  # type: ignore[arg-type]
        facts = self._build_facts[table]
        if facts:
            places = {build: place for place, build in enumerate(self._tables[table].keys) if build is not None}
            found |= _of_known(_moved(facts, places), columns)
        return found

    def _matched(self, table: str, keys: tuple[Expr, ...], null_equal_count: int) -> Members:
        """What rows are members of that match in `table` by `keys`."""
        known = self._matching.get((table, keys, null_equal_count))
        if known is None:
            known = self._members(table, column_positions(keys))
            if null_equal_count:
                # NULLs that equal each other are members of the table, but not as a lookup sees it.
                known = frozenset([each for each in known if each.table != table])
            self._matching[table, keys, null_equal_count] = known
        return known

    # ---------------------------------------------------------------------------------------------- forward

    def _run_forward(self, pipeline: Pipeline) -> None:
        facts = self._source_facts(pipeline)
        for index, step in enumerate(pipeline.steps):
            self._facts[pipeline.id, index] = facts
            if isinstance(step, ProbeStep):
                self._uses.setdefault(step.table, []).append((pipeline, index))
            facts = self._facts_after(step, facts)
        sink = pipeline.sink
        if isinstance(sink, BuildSink):
            self._build_facts[sink.table] = facts
        elif isinstance(sink, GroupSink):
            self._put_facts(sink.edge, _within(facts, len(sink.spec.key_types)))
        elif isinstance(sink, (EmitSink, RangeSink, TopSink, SampleSink)) and sink.edge is not None:
            self._put_facts(sink.edge, facts)

    def _put_facts(self, edge: EdgeId, facts: Members) -> None:
        known = self._edge_facts.get(edge)
        self._edge_facts[edge] = facts if known is None else known & facts

    def _source_facts(self, pipeline: Pipeline) -> Members:
        source = pipeline.source
        if isinstance(source, EdgeSource):
            return self._edge_facts.get(source.edge, _NONE)
        if isinstance(source, UnmatchedSource):
            self._uses.setdefault(source.table, []).append((pipeline, -1))
            return self._build_facts[source.table]
        return _NONE

    def _facts_after(self, step: Step, facts: Members) -> Members:
        if isinstance(step, ProbeStep):
            return self._facts_after_probe(step, facts)
        if not facts:
            return facts
        match step:
            case ProgramStep():
                return _moved(facts, {old: new for new, old in reversed(_copies(step.exprs))})
            case MergeGroupsStep(spec):
                return _within(facts, len(spec.key_types))
            case UnnestStep(kept):
                return _moved(facts, {old: new for new, old in enumerate(kept)})
            case _:
                return facts

    def _facts_after_probe(self, step: ProbeStep, facts: Members) -> Members:
        if step.kind in _DROPPING:
            facts |= self._matched(step.table, step.keys, step.null_equal_count)
        known = self._build_facts[step.table] if step.kind in (JoinKind.INNER, JoinKind.RIGHT) else _NONE
        if not facts and not known:
            return facts
        stream = {old: new for new, old in enumerate(step.left_output)}
        found = _moved(facts, stream)
        if step.kind in (JoinKind.INNER, JoinKind.RIGHT):
            build = {old: len(stream) + new for new, old in enumerate(step.right_output)}
            found |= _moved(known, build)
            equal = {old: build[new] for old, new in self._equal(step) if new in build}
            if equal:
                found |= _moved(facts, stream | equal)
        return found

    def _equal(self, step: ProbeStep) -> list[tuple[int, int]]:
        """Columns of the stream and of the build side that are equal in every pair of rows."""
        known = self._equal_columns.get(step)
        if known is None:
            pairs = zip(column_positions(step.keys), self._tables[step.table].keys, strict=True)
            known = [(stream, build) for stream, build in pairs if stream is not None and build is not None]
            self._equal_columns[step] = known
        return known

    # --------------------------------------------------------------------------------------------- backward

    def _run_backward(self, pipeline: Pipeline) -> None:
        demands = self._sink_demands(pipeline)
        for index in reversed(range(len(pipeline.steps))):
            self._wanted[pipeline.id, index] = demands
            demands = self._demands_before(pipeline.steps[index], demands)
        self._source_demands[pipeline.id] = demands

    def _sink_demands(self, pipeline: Pipeline) -> Members:
        sink = pipeline.sink
        if isinstance(sink, BuildSink):
            users = self._uses.get(sink.table, [])
            return _common([self._build_demands(sink.table, user, index) for user, index in users])
        if isinstance(sink, GroupSink):
            return _within(self._edge_demands(sink.edge), len(sink.spec.key_types))
        if isinstance(sink, MatchSink):
            return self._matched(sink.table, sink.keys, sink.null_equal_count)
        if isinstance(sink, (EmitSink, RangeSink, SampleSink)) and sink.edge is not None:
            return self._edge_demands(sink.edge)
        return _NONE

    def _edge_demands(self, edge: EdgeId) -> Members:
        return _common([self._source_demands[consumer] for consumer in self._dag.edges[edge].consumers])

    def _build_demands(self, table: str, user: Pipeline, index: int) -> Members:
        """What one use of a join table (a probe, or -1: its rows as a source) demands of its build rows."""
        if index < 0:
            width = len(self._tables[table].pipeline.schemas[-1])
            return frozenset([each for each in self._source_demands[user.id] if max(each.columns) < width])
        step = user.steps[index]
        assert isinstance(step, ProbeStep)
        if step.null_aware or step.kind is JoinKind.SINGLE:
            # NOT IN looks at all build rows, and a second match is an error.
            return _NONE
        wanted, facts, stream = self._wanted[user.id, index], self._facts[user.id, index], len(step.left_output)
        if not wanted and not facts:
            return _NONE
        build = (
            {stream + new: old for new, old in enumerate(step.right_output)} if step.kind is not JoinKind.MARK else {}
        )
        if step.track_matches:
            return _moved(wanted, build)
        # A build row counts only through rows of the stream with its keys.
        equal = dict(self._equal(step))
        outputs = {new: equal[old] for new, old in enumerate(step.left_output) if old in equal}
        return _moved(wanted, build | outputs) | _moved(facts, equal)

    def _demands_before(self, step: Step, demands: Members) -> Members:
        if isinstance(step, ProbeStep):
            return self._demands_before_probe(step, demands)
        if not demands:
            return demands
        match step:
            case ProgramStep():
                return _moved(demands, dict(_copies(step.exprs)))
            case MergeGroupsStep(spec):
                return _within(demands, len(spec.key_types))
            case UnnestStep(kept):
                return _moved(demands, dict(enumerate(kept)))
            case SortStep(_, None, 0) | AssumeStep():
                return demands
            case SortStep() | LimitStep() | WindowStep() | EncodeStep():
                return _NONE

    def _demands_before_probe(self, step: ProbeStep, demands: Members) -> Members:
        found = self._matched(step.table, step.keys, step.null_equal_count) if step.kind in _DROPPING else _NONE
        if step.track_matches or not demands:
            return found
        places = dict(enumerate(step.left_output))
        if step.kind in _PAIRING:
            equal = {build: stream for stream, build in self._equal(step)}
            offset = len(step.left_output)
            places |= {offset + new: equal[old] for new, old in enumerate(step.right_output) if old in equal}
        return found | _moved(demands, places)


def scans(dag: Dag) -> list[tuple[Pipeline, ScanSource]]:
    """The pipelines that read tables, and what they read."""
    return [(pipeline, pipeline.source) for pipeline in dag.pipelines if isinstance(pipeline.source, ScanSource)]


def _copies(exprs: tuple[Expr, ...]) -> list[tuple[int, int]]:
    """The outputs that are columns of the input: positions after and before."""
    return [(new, old) for new, old in enumerate(column_positions(exprs)) if old is not None]


def _moved(members: Members, places: Mapping[int, int]) -> Members:
    """The members whose columns all have a place, at their places."""
    if not members or not places:
        return _NONE
    found = []
    for member in members:
        columns = member.columns
        if len(columns) == 1:
            place = places.get(columns[0])
            if place is not None:
                found.append(Member((place,), member.table))
        elif places.keys() >= set(columns):
            found.append(Member(tuple([places[column] for column in columns]), member.table))
    return frozenset(found)


def _of_known(members: Members, columns: tuple[int | None, ...]) -> Members:
    """The members by the columns at the places that they name; those that name a key that is no column fall away."""
    return _moved(members, {place: column for place, column in enumerate(columns) if column is not None})


def _within(members: Members, width: int) -> Members:
    """The members that read only the first `width` columns."""
    return frozenset([member for member in members if max(member.columns) < width])


def _common(found: Sequence[Members]) -> Members:
    return frozenset.intersection(*found) if found else _NONE

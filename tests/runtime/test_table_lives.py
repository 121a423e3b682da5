"""When join tables may go: with their last reader, or when rounds are past the steps that read them."""

from __future__ import annotations

from support.fake_stages import ROW_SCHEMA
from support.small_dags import SCAN, dag, edge, emit, pipeline

from bireme.data.ids import PipelineId
from bireme.plan.hint import Hint
from bireme.plan.physical import BuildSink, Lookup, MatchSink, Pipeline, ProbeStep, ScanSource
from bireme.plan.relation import JoinKind
from bireme.runtime.table_lives import Spent, TableLives

BUILDS = (PipelineId(1), PipelineId(2))
READER = PipelineId(3)


def probe(table: str) -> ProbeStep:
    return ProbeStep(table, JoinKind.INNER, (), None, 0, False, False, (0,), ())


def lives(*tables: str, match: str | None = None, others: tuple[str, ...] = ()) -> TableLives:
    """Tables s and t; a pipeline looks both up and probes some in turn, another one probes `others`."""
    source = ScanSource("rows", "1", (0,), (), tuple([Lookup(table, (0,)) for table in ("s", "t")]))
    sink = emit(1) if match is None else MatchSink(match, (), None, 0)
    steps = tuple(map(probe, tables))
    reader = Pipeline(READER, "p3", source, steps, sink, BUILDS, (ROW_SCHEMA,) * (len(steps) + 1), Hint())
    steps = tuple(map(probe, others))
    other = Pipeline(PipelineId(4), "p4", SCAN, steps, emit(1), BUILDS, (ROW_SCHEMA,) * (len(steps) + 1), Hint())
    builds = [pipeline(place, SCAN, BuildSink(table, (), 0, False)) for place, table in ((1, "s"), (2, "t"))]
    whole = dag((*builds, reader, other), (edge(1, (3, 4)),))
    found = TableLives(whole)
    for build in BUILDS:
        assert not found.ended(build)
    return found


def test_a_table_goes_when_rounds_are_past_the_last_step_that_reads_it() -> None:
    found = lives("s", "t", "s")
    assert found.passed(READER, 0) == []
    assert found.passed(READER, 1) == [Spent("t", BUILDS[1])]
    assert found.passed(READER, 2) == [Spent("s", BUILDS[0])]
    assert found.ended(READER) == []


def test_what_is_only_looked_up_goes_with_the_inputs() -> None:
    assert lives("s").passed(READER, 0) == [Spent("s", BUILDS[0]), Spent("t", BUILDS[1])]


def test_a_table_stays_for_its_other_readers() -> None:
    found = lives("s", others=("s",))
    assert found.passed(READER, 0) == [Spent("t", BUILDS[1])]
    assert found.ended(READER) == []
    assert found.ended(PipelineId(4)) == [Spent("s", BUILDS[0])]


def test_a_table_whose_rows_are_marked_stays_to_the_end() -> None:
    found = lives("s", match="t")
    assert found.passed(READER, 1) == [Spent("s", BUILDS[0])]
    assert found.ended(READER) == [Spent("t", BUILDS[1])]

"""Joins with real stages on the simulated loop, whose build sides are asked for memory at drawn moments.

Whatever was in memory and whatever was not, the rows are DuckDB's, nothing is left behind, and no query is refused.
`BIREME_SIM_SEEDS` sets how many seeds are run (a twentieth of them here), `BIREME_SIM_START` the first.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from support.disk import DiskFaults, MemorySource, MemorySpill
from support.join_cases import QUERIES, drawn_tables, expected, rows_of
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate

import bireme
from bireme.config import Config
from bireme.data.record import to_result
from bireme.observe import event as events
from bireme.observe.event import NO_CAUSE
from bireme.operators.away import Router
from bireme.operators.join_rounds import JoinRounds
from bireme.operators.stage_set import PipelineStages
from bireme.plan.physical import BuildSink, Dag
from bireme.runtime import pipeline, rounds
from bireme.runtime.pipeline import LivePipeline
from bireme.runtime.preload import executor as preload
from bireme.runtime.relief import tell_relievable
from bireme.runtime.worker import Worker

_SEEDS = int(os.environ.get("BIREME_SIM_SEEDS", "2000")) // 20
_START = int(os.environ.get("BIREME_SIM_START", "0"))
_PARTS = 5


class Run:
    """One query, with everything that its seed draws; `rounds` counts how rounds were done, and what was moved.

    With `ahead` every batch that waits is demoted, and Pre-Load brings back at once what a task will take next.
    """

    def __init__(self, seed: int, *, ahead: bool = False) -> None:
        rng = self.rng = random.Random(seed)
        self.seed = seed
        self.tables = drawn_tables(rng)
        self.query = rng.choice(QUERIES)
        self.eager = 1.0 if ahead else rng.choice((0.0, 0.3, 0.8))
        self.round_bytes_max = rng.choice((100, 1_500, 1 << 20))
        self.rounds: Counter[str] = Counter()
        low = rng.random() < 0.5
        low = low or ahead
        self.ahead = ahead
        self.config = Config(
            threads=rng.choice((1, 2, 3)),
            memory_bytes_max=1 << 28,
            # Where these are low, every batch that waits is demoted.
            watermark_start=2e-7 if low else 0.85,
            watermark_stop=1e-7 if low else 0.65,
            spill_folders=(Path("simulated"),),
            spill_bytes_max=1 << 30,
            edge_bytes_max=rng.choice((1, 500, 1 << 20)),
        )

    def check(self) -> None:
        """Runs it and compares its rows with DuckDB's."""
        session = bireme.connect(threads=2, backend=self.rng.choice(("native", "native", "reference")))
        try:
            for name, table in self.tables.items():
                session.register(name, table)
            dag = session._planner.plan(session.sql(self.query)._plan)[1]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rounds, "round_bytes_max", lambda limit: self.round_bytes_max)
                patch.setattr(pipeline, "tell_relievable", self._press)
                if self.ahead:
                    patch.setattr(preload, "promotion_room", lambda *_, **__: 1 << 28)
                batches = simulate(lambda loop: self._run(loop, dag, session._stages(dag)), self.seed)
        finally:
            session.close()
        plain = [to_result(batch, dag.schema) for batch in batches]
        got = rows_of(pa.Table.from_batches(plain, dag.schema.to_result_arrow()))
        want = expected(self.tables, self.query)
        assert got == want, f"{self.query}: {got - want} too many, {want - got} too few"

    async def _run(self, loop: SimLoop, dag: Dag, stages: PipelineStages) -> list[pa.RecordBatch]:
        source = MemorySource(random.Random(self.seed + 1), DiskFaults())
        spill = MemorySpill(random.Random(self.seed + 2), DiskFaults())
        worker = Worker(self.config, source=source, spill=spill, clock=SimClock(loop), threads=SimThreads)
        async with worker:
            async with worker.run(dag, stages) as stream:
                batches = [batch async for batch in stream]
            assert worker.ledger.live == 0, worker.ledger
            assert spill.bytes_used == 0
            found = [event.how for _, event in worker.recorder.events() if isinstance(event, events.RoundBegun)]
            self.rounds.update(found)
            self.rounds["demoted"] += spill.writes
            self.rounds["ahead"] += sum(
                move.ahead for _, move in worker.recorder.events() if isinstance(move, events.Promoted)
            )
        return batches

    def _press(self, live: LivePipeline, *, is_open: bool) -> None:
        """Tells what a pipeline could give up, and often asks a build side for it at once."""
        tell_relievable(live, is_open=is_open)
        is_build = isinstance(live.pipeline.sink, BuildSink) and live.costs.relievable.nbytes > 0
        if is_build and live.relief is None and self.rng.random() < self.eager:
            live.relieve(NO_CAUSE)


def run_seed(seed: int, *, ahead: bool = False) -> Counter[str]:
    run = Run(seed, ahead=ahead)
    run.check()
    return run.rounds


def run_all(seeds: range, *, ahead: bool = False) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in seeds:
        try:
            total += run_seed(seed, ahead=ahead)
        except BaseException as error:
            error.add_note(f"found by seed {seed}")
            raise
    return total


@pytest.mark.parametrize("part", range(_PARTS))
def test_joins_that_change_over_are_right(part: int) -> None:
    run_all(range(_START + part, _START + _SEEDS, _PARTS))


def test_the_seeds_go_where_they_claim() -> None:
    went = run_all(range(60))
    assert all(went[where] for where in ("skipped", "joined", "cut", "joined block by block", "demoted")), went


def test_what_waits_for_its_round_may_be_brought_back_ahead_of_it() -> None:
    assert run_all(range(60), ahead=True)["ahead"]


def forget_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build rows of later rounds are not told apart by their marks."""
    monkeypatch.setattr(JoinRounds, "unload", lambda rounds, part: [])


def let_all_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row waits for what is not in memory."""
    monkeypatch.setattr(Router, "route", lambda router, batch, keys, aside: batch)


@pytest.mark.parametrize("plant", [forget_the_rest, let_all_pass])
def test_a_planted_fault_is_found(plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_all(range(200))

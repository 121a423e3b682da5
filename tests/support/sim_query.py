"""A query with real stages on the simulated loop, whose sinks are asked for memory as often as a seed draws.

Its rows are compared with DuckDB's, and nothing may be left behind. What is drawn, changed and counted beside that is
told by those who derive from `QueryRun`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import bireme
from bireme.config import Config
from bireme.data.record import to_result
from bireme.observe.event import NO_CAUSE, Event
from bireme.operators.stage_set import PipelineStages
from bireme.plan.physical import Dag
from bireme.runtime import next_inputs, pipeline
from bireme.runtime.memory import executor
from bireme.runtime.pipeline import LivePipeline
from bireme.runtime.relief import tell_relievable
from bireme.runtime.worker import Worker
from bireme.storage import arrow_table
from support.disk import DiskFaults, MemorySource, MemorySpill
from support.join_cases import expected, rows_of
from support.sim_loop import SimClock, SimLoop, SimThreads, simulate

# Start and stop of low watermarks. With the second pair some batches of a partition wait, and are demoted as one.
_LOW: Final = ((2e-7, 1e-7), (2e-5, 1e-7))


class QueryRun:
    """One query; `ways` counts what became of it. Sinks of the classes `presses` are asked for memory at once, as often
    as `eager` says; with `low` watermarks every batch that waits is demoted, or all but a few of them.
    """

    presses: type | tuple[type, ...]

    def __init__(
        self, seed: int, rng: random.Random, *, tables: dict[str, pa.Table], query: str, eager: float, low: bool
    ) -> None:
        self.seed = seed
        self.rng = rng
        self.tables = tables
        self.query = query
        self.eager = eager
        self.ways: Counter[str] = Counter()
        start, stop = _LOW[seed % 2] if low else (0.85, 0.65)
        self.config = Config(
            threads=rng.choice((1, 2, 3)),
            memory_bytes_max=1 << 28,
            watermark_start=start,
            watermark_stop=stop,
            spill_folders=(Path("simulated"),),
            spill_bytes_max=1 << 30,
            edge_bytes_max=rng.choice((1, 500, 1 << 20)),
        )

    def change(self, patch: pytest.MonkeyPatch) -> None:
        """Sets limits of the engine for this run."""
        raise NotImplementedError

    def count(self, events: Iterable[Event], spill: MemorySpill) -> None:
        """Notes in `ways` what happened."""
        raise NotImplementedError

    def check(self) -> None:
        """Runs it and compares its rows with DuckDB's."""
        session = bireme.connect(threads=2, backend=self.rng.choice(("native", "native", "reference")))
        try:
            with pytest.MonkeyPatch.context() as patch:
                # Short chunks are splits of their own, so that there are several tasks.
                patch.setattr(arrow_table, "_joined", list)
                for name, table in self.tables.items():
                    session.register(name, table)
                dag = session._planner.plan(session.sql(self.query)._plan)[1]
                patch.setattr(pipeline, "tell_relievable", self._press)
                # Else low watermarks count no more once they were passed when nothing could be demoted.
                patch.setattr(executor, "_TRIES_IN_MEMORY", 1 << 60)
                if self.seed % 5 < 4:
                    # What is ended by its last input is not asked for memory any more.
                    patch.setattr(next_inputs, "_END_BYTES_MAX", 0)
                self.change(patch)
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
            self.count([event for _, event in worker.recorder.events()], spill)
        return batches

    def _press(self, live: LivePipeline, *, is_open: bool) -> None:
        tell_relievable(live, is_open=is_open)
        has_state = isinstance(live.pipeline.sink, self.presses) and live.costs.relievable.nbytes > 0
        if has_state and live.relief is None and self.rng.random() < self.eager:
            live.relieve(NO_CAUSE)


def run_all(seeds: range, make: Callable[[int], QueryRun]) -> Counter[str]:
    """Checks what `make` makes of each seed; says what became of all."""
    total: Counter[str] = Counter()
    for seed in seeds:
        try:
            run = make(seed)
            run.check()
        except BaseException as error:
            error.add_note(f"found by seed {seed}")
            raise
        total += run.ways
    return total

"""What a task costs besides its kernels: loop time per task, hand-over included, and a whole one-task query.

    PYTHONPATH=engine python bench/micro/task_overhead.py [tasks]

Prints the best of several rounds, since anything else that runs on the machine only ever adds. `loop` are brief tasks,
which stay on the loop, so that it shows the runtime's own cost alone; the others are handed to threads. `hand-over` is
a bare round trip through a thread.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvloop

from bireme.config import Config
from bireme.data.ids import EdgeId, PipelineId
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.operators.base import NOTHING, Emission, Output, Relievable
from bireme.plan.physical import Dag, Edge, EmitSink, Pipeline, ScanSource
from bireme.runtime.threads import LoopThreads
from bireme.runtime.worker import Worker
from bireme.storage.base import ByteRange, Split

_SCHEMA = Schema((Field("v", INT64),))
_BATCH = pa.RecordBatch.from_arrays([pa.array([1, 2, 3])], ["v"])
_ROUNDS = 5


class Nothing:
    """Neither a byte source nor a spill store is used here."""

    bytes_used = 0

    def read_all(self, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        raise NotImplementedError

    def is_resident(self, ranges: Sequence[ByteRange]) -> bool:
        raise NotImplementedError


class MemorySplit:
    """A split that is in memory."""

    rows, decoded_bytes, ranges = 3, 24, ()


class Stage:
    """Does nothing, or emits one small batch per split, in tasks that may stay on the loop or not."""

    def __init__(self, pipeline: Pipeline, emits: bool, is_brief: bool) -> None:
        self.pipeline = pipeline
        self._emits = emits
        self._is_brief = is_brief

    def open(self, slots: int) -> None:
        """No state."""

    def rows_out_max(self, rows: int) -> int | None:
        return rows if self._is_brief else None

    def run_split(self, split: Split, buffers: Sequence[pa.Buffer], sequence: int, slot: int) -> Output:
        return Output([Emission(EdgeId(1), 0, _BATCH)]) if self._emits else Output()

    def enough(self) -> bool:
        return False

    def relievable(self) -> Relievable:
        return NOTHING

    def relief_parts(self) -> int:
        return 0

    def relieve(self, part: int, slot: int) -> Output:
        return Output()

    def postponed(self) -> Sequence[Any]:
        return ()

    def finish_parts(self) -> int:
        return 0

    def end(self, bytes_max: int, slot: int) -> Output | None:
        return Output()

    def close(self) -> None:
        """No state."""


class Stages:
    """One scan of `count` splits."""

    def __init__(self, count: int, emits: bool, is_brief: bool) -> None:
        self._splits = [MemorySplit()] * count
        self._emits = emits
        self._is_brief = is_brief

    def stage(self, pipeline: Pipeline) -> Stage:
        return Stage(pipeline, self._emits, self._is_brief)

    def are_splits_quick(self, pipeline: Pipeline) -> bool:
        return True

    def splits(self, pipeline: Pipeline) -> Sequence[Any]:
        return self._splits

    def is_kept(self, table: str) -> bool:
        return False

    def stop(self) -> None:
        """Its calls are short."""

    def close(self) -> None:
        """No state."""


def scan_dag() -> Dag:
    scan = Pipeline(PipelineId(1), "scan", ScanSource("t", "1", (0,), ()), (), EmitSink(EdgeId(1)), (), (_SCHEMA,))
    result = Edge(EdgeId(1), "result", _SCHEMA, (PipelineId(1),), (), ordered=True)
    return Dag((scan,), (result,), EdgeId(1), _SCHEMA)


async def per_task(slots: int, count: int, *, emits: bool, is_brief: bool) -> tuple[float, float]:
    """Microseconds of loop time and of wall time per task, the best of several rounds."""
    config = Config(
        threads=slots, memory_bytes_max=1 << 30, spill_folders=(Path(tempfile.gettempdir()),), spill_bytes_max=1 << 30
    )
    best_loop = best_wall = float("inf")
    async with Worker(config, source=Nothing(), spill=Nothing()) as worker:  # type: ignore[arg-type]
        for _ in range(_ROUNDS):
            loop, wall = time.thread_time(), time.perf_counter()
            async for _ in worker.run(scan_dag(), Stages(count, emits, is_brief)):  # type: ignore[arg-type]
                pass
            best_loop = min(best_loop, time.thread_time() - loop)
            best_wall = min(best_wall, time.perf_counter() - wall)
    return best_loop / count * 1e6, best_wall / count * 1e6


async def hand_over(count: int) -> float:
    """Microseconds of loop time of a bare round trip through a thread."""
    threads = LoopThreads("bench", 1)
    best = float("inf")
    for _ in range(_ROUNDS):
        started = time.thread_time()
        for _ in range(count):
            await threads.submit(int)
        best = min(best, time.thread_time() - started)
    threads.close()
    return best / count * 1e6


async def main(count: int) -> None:
    print(f"hand-over                  {await hand_over(count):6.1f} µs of loop time")
    for label, slots, is_brief in (("loop", 1, True), ("1 thread", 1, False), ("2 threads", 2, False)):
        for emits in (False, True):
            loop, wall = await per_task(slots, count, emits=emits, is_brief=is_brief)
            what = "with a batch" if emits else "no output"
            print(f"{label:<10}{what:<13}{loop:10.1f} µs of loop time,{wall:7.1f} µs in all")
    for what, is_brief in (("query of one task", False), ("the same, brief", True)):
        loop, wall = await per_task(2, 1, emits=True, is_brief=is_brief)
        print(f"{what:<23}{loop:10.1f} µs of loop time,{wall:7.1f} µs in all")


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000))

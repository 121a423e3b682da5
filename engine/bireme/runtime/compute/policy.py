"""Which ready task runs next, and what becomes of one that ran out of memory. Decides only.

Rule: the oldest query first, since draining it bounds what is held; within a query closest to the result first, since
that frees; then the planner's order. Tasks of one pipeline go in the order of their inputs. Before all others go tasks
that give memory back.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from enum import Enum
from typing import Final

from bireme.data.ids import PipelineId
from bireme.data.record import JOINED_ROWS_MAX
from bireme.plan.physical import Dag
from bireme.runtime.compute.task import Supplier
from bireme.units import KIB

# A task costs its loop some tens of microseconds and its thread a wake-up (`bench/micro/task_overhead.py`): a few
# milliseconds of work make that small.
_TASK_SECONDS: Final = 0.004
# Short batches of so many rows share a task whatever they take.
_SHORT_ROWS_MIN: Final = 8_192

# A task that takes no longer than this is not worth a thread: the hand-over and the fight for the interpreter cost as
# much, and the loop is held up for less than a thread may hold it up.
_HERE_SECONDS_MAX: Final = 0.001
_HERE_BYTES_MAX: Final = 512 * KIB
_HERE_ROWS_OUT_MAX: Final = 131_072
# Scans of so few rows read nothing but the rows (`storage.parquet_split`).
_HERE_ROWS_MAX: Final = 16_383
# Until a task of the pipeline has ended: decoding some columns and one or two steps.
_SECONDS_PER_ROW_GUESS: Final = 1e-7
# What a call costs whatever its rows hides what a row costs in calls over fewer.
_ROWS_TOLD_MIN: Final = 1_024

# More parts than this are better cut in two steps: their pieces of a batch become too short.
_PARTS_MAX: Final = 64

# What a row takes while it is brought into order, whatever its bytes: its code and its place, twice.
_ORDERED_ROW_BYTES: Final = 40
_RANGES_MIN: Final = 8

RETRIES_BEFORE_SPLIT: Final = 1
RETRIES_MAX: Final = 3


def rank(*, query: int, distance: int, position: int) -> tuple[int, ...]:
    """The rank of a pipeline: `distance` counts pipelines to the result, `position` is its place in the plan."""
    return query, distance, position


def rows_per_task(row_seconds: float) -> int:
    """Up to how many rows of short batches one task takes, if a row took so long in a task before (0: not known)."""
    fitting = _TASK_SECONDS / row_seconds if row_seconds > 0 else _SHORT_ROWS_MIN
    return int(max(_SHORT_ROWS_MIN, min(fitting, JOINED_ROWS_MAX)))


def seconds_per_row(seconds: float, rows: int) -> float:
    """What a task that took `seconds` for `rows` tells of others."""
    return seconds / max(rows, _ROWS_TOLD_MIN)


def is_brief(*, rows: int, nbytes: int, rows_out_max: int | None, row_seconds: float) -> bool:
    """Whether a task is so short that it may run on the loop, by its input, what may become of it at worst (None for
    anything) and what a row took in a task before (0 where there was none).
    """
    if rows > _HERE_ROWS_MAX or nbytes > _HERE_BYTES_MAX:
        return False
    if rows_out_max is None or rows_out_max > _HERE_ROWS_OUT_MAX:
        return False
    return rows * (row_seconds or _SECONDS_PER_ROW_GUESS) <= _HERE_SECONDS_MAX


def partition_share(limit: int, *, slots: int) -> int:
    """Bytes that a task over a whole partition may need, of a tier of `limit`: all slots together leave half of it."""
    return limit // (2 * slots)


def range_share(limit: int, *, slots: int) -> int:
    """As `partition_share`, for a task that sorts a range: up to half of the limit, since another can wait meanwhile,
    and fewer ranges make longer pieces of what is cut into them.
    """
    return limit // max(2, slots)


def parts_of(need: int, share: int, *, rows: int) -> int:
    """Into how many parts a partition is cut whose task would need `need` bytes; 1 where it is taken as it is. Each
    part is to need half of the share, since parts are hardly ever equal.
    """
    if need <= share or rows < 2:
        return 1
    return min(_PARTS_MAX, max(2, -(-2 * need // max(1, share))))


def arranged_bytes(nbytes: int, *, rows: int) -> int:
    """What bringing rows into order takes beside them: they are there in the new order, and their keys with places."""
    return 2 * nbytes + _ORDERED_ROW_BYTES * rows


def ordered_ranges_of(nbytes: int, share: int, *, rows: int) -> int:
    """Into how many ranges of its order a part of so many bytes is cut, so that each can be brought into order in its
    share of memory; 1 where it is not cut.
    """
    need = nbytes + arranged_bytes(nbytes, rows=rows)
    if need <= share or rows < 2:
        return 1
    # Samples make ranges of nearly equal size; of too few a key that most rows have could hide in one.
    return max(_RANGES_MIN, min(_PARTS_MAX, -(-5 * need // (4 * share))))


def first_ranges_of(nbytes: int, share: int, *, rows: int) -> int:
    """The same for a partition of which only few places are wanted: never 1, since most of the ranges go unread."""
    return max(_RANGES_MIN, ordered_ranges_of(nbytes, share, rows=rows))


def distances_to_result(dag: Dag) -> dict[PipelineId, int]:
    """How many pipelines lie between each pipeline and the result; states count like edges."""
    edges = {edge.id: edge for edge in dag.edges}
    readers: dict[PipelineId, list[PipelineId]] = {pipeline.id: [] for pipeline in dag.pipelines}
    distances: dict[PipelineId, int] = {}
    for edge in edges.values():
        for producer in edge.producers:
            readers[producer] += edge.consumers
            if edge.id == dag.result:
                distances[producer] = 0
    for pipeline in dag.pipelines:
        for earlier in pipeline.after:
            readers[earlier].append(pipeline.id)
    for pipeline in reversed(dag.pipelines):
        known = [distances[reader] + 1 for reader in readers[pipeline.id] if reader in distances]
        distances[pipeline.id] = min([*known, distances.get(pipeline.id, len(dag.pipelines))])
    return distances


class ReadyList:
    """Suppliers that may have work, in the order in which Compute serves them."""

    def __init__(self) -> None:
        self._suppliers: list[Supplier] = []
        self._relieving: deque[Supplier] = deque()

    def __len__(self) -> int:
        return len(self._suppliers)

    def offer(self, supplier: Supplier) -> None:
        if supplier.relief_due() and supplier not in self._relieving:
            self._relieving.append(supplier)
        if not supplier.listed:
            supplier.listed = True
            insort(self._suppliers, supplier, key=lambda one: one.rank)

    def best(self) -> Supplier | None:
        """The first supplier that really has work; those found without are taken off the list."""
        while self._relieving:
            if self._relieving[0].relief_due():
                return self._relieving[0]
            self._relieving.popleft()
        while self._suppliers:
            supplier = self._suppliers[0]
            if supplier.has_work():
                return supplier
            supplier.listed = False
            del self._suppliers[0]
        return None

    def first(self, count: int) -> list[Supplier]:
        return self._suppliers[:count]


class Remedy(Enum):
    """What to do with a task that ran out of memory."""

    AGAIN = "run it again, alone"
    SPLIT = "run it again, alone, in smaller pieces"
    GIVE_UP = "fail"


def remedy(*, attempt: int, repeatable: bool, splittable: bool) -> Remedy:
    """What to do after the `attempt`-th failure of a task for want of memory."""
    if not repeatable:
        return Remedy.GIVE_UP
    if attempt <= RETRIES_BEFORE_SPLIT:
        return Remedy.AGAIN
    if splittable:
        return Remedy.SPLIT
    return Remedy.AGAIN if attempt < RETRIES_MAX else Remedy.GIVE_UP

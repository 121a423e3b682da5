"""Tasks that find no memory once, each at a chosen place of its work, and do it again.

Places are counted within a task: buffers that kernels make, or calls of what makes arrays in Python. `Point.taking`
counts only what comes after the task's call, where its output is taken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import bireme
from bireme.backends.native import _kernels
from bireme.clock import Clock
from bireme.operators.base import Output
from bireme.runtime.compute.task import Result, Task

_ROOT = Path(bireme.__file__).parent
_MAKERS = (str(_ROOT / "backends"), str(_ROOT / "data" / "record.py"), str(_ROOT / "data" / "arrays.py"))
# Questions and names, which make nothing; neither does what comprehensions are made of.
_ASKING = (
    "nbytes", "groups", "keys", "bytes_to_add", "fallbacks", "form", "is_unique", "has_null_key", "has_ranges",
    "_named", "with_entries", "record_batch", "select",
)  # fmt: skip


class Point(NamedTuple):
    """Which place of a task's work finds no memory."""

    number: int
    in_kernels: bool
    taking: bool = False


class Shortage:
    """Has tasks of the engine fail at `point`; `failed` counts them, by what they did."""

    def __init__(self, point: Point, patch: pytest.MonkeyPatch) -> None:
        self.failed: Counter[str] = Counter()
        self._point = point
        self._left = 0
        self._run, self._add = Task.run, Result.add
        patch.setattr(Task, "run", self._running())
        if point.taking:
            patch.setattr(Result, "add", self._taking())

    def _running(self) -> Any:
        def run(task: Task, slot: int, contents: Sequence[pa.RecordBatch], clock: Clock) -> Result:
            if task.attempt or not (self._point.taking or _is_repeatable(task)):
                return self._run(task, slot, contents, clock)
            self._left = self._point.number
            if self._point.taking:
                result = self._run(task, slot, contents, clock)
            else:
                with self._failing():
                    result = self._run(task, slot, contents, clock)
            if result.shortage is not None:
                self.failed[described(task)] += 1
            self._left = 0
            return result

        return run

    def _taking(self) -> Any:
        def add(result: Result, output: Output) -> None:
            if not self._left:
                return self._add(result, output)
            with self._failing():
                return self._add(result, output)

        return add

    @contextmanager
    def _failing(self) -> Iterator[None]:
        if self._point.in_kernels:
            _kernels.fail_allocation(self._left)
        else:
            sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            _kernels.fail_allocation(0)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(_MAKERS) or code.co_name.startswith("<"):
            return
        if code.co_name in _ASKING:
            return
        self._left -= 1
        if self._left == 0:
            sys.setprofile(None)
            raise MemoryError("simulated")


def _is_repeatable(task: Task) -> bool:
    return task.changes_nothing or (task.supplier.repeatable and task.is_repeatable)


def described(task: Task) -> str:
    """What a task does, for counts."""
    pipeline = task.supplier.pipeline
    steps = [type(step).__name__ for step in pipeline.steps]
    call = f" {task.round.call.name}" if task.round is not None else ""
    return " ".join([task.kind.value + call, *steps[:1], "->", type(pipeline.sink).__name__])

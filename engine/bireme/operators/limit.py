"""The first rows of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bireme.plan.physical import LimitStep


class Limit:
    """A `LimitStep` at work; its pipeline runs one task at a time, so the counts need no lock."""

    def __init__(self, step: LimitStep) -> None:
        self._skip = step.offset
        self._left = step.limit

    @property
    def reached(self) -> bool:
        return self._left == 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            skipped = min(self._skip, batch.num_rows)
            self._skip -= skipped
            kept = batch.slice(skipped)
            if self._left is not None:
                kept = kept.slice(0, self._left)
                self._left -= kept.num_rows
            yield kept

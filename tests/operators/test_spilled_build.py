"""What a build side keeps once it has changed over: few pieces, with all rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bireme.backends.native import NativeKernels
from bireme.operators.spilled_build import Kept


def piece(start: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(start, start + rows))], names=["v"])


def test_short_pieces_become_long_ones_and_long_ones_stay() -> None:
    kept, start = Kept(), 0
    long = piece(10**6, 10_000)
    kept.add((0, long), NativeKernels())
    for sequence in range(1, 2000):
        kept.add((sequence, piece(start, 100)), NativeKernels())
        start += 100
    assert len(kept.chunks()) < 700
    assert kept.chunks()[0][1] is long
    values = [number for _, batch in kept.chunks()[1:] for number in batch.column(0).to_pylist()]
    assert sorted(values) == list(range(start))


def test_pieces_stay_as_they_are_where_there_is_no_memory_to_join_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: NativeKernels, batches: object) -> pa.RecordBatch:
        raise MemoryError

    monkeypatch.setattr(NativeKernels, "joined", refused)
    kept = Kept()
    for sequence in range(100):
        kept.add((sequence, piece(sequence * 1000, 1000)), NativeKernels())
    assert sum(batch.num_rows for _, batch in kept.chunks()) == 100_000

"""Joining short batches: the same rows in the same order, in fewer batches."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bireme.data.record import JOINED_ROWS_MAX, SHORT_ROWS, longer


@given(st.lists(st.integers(0, 2 * SHORT_ROWS), max_size=40))
def test_rows_stay_and_neighbours_are_not_both_short_for_nothing(sizes: list[int]) -> None:
    values = pa.array(range(sum(sizes)), pa.int64())
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    batches = [
        pa.record_batch([values.slice(end - size, size)], names=["v"]) for size, end in zip(sizes, ends, strict=True)
    ]
    joined = list(longer(batches))
    assert pa.chunked_array([batch.column(0) for batch in joined], pa.int64()).to_pylist() == values.to_pylist()
    assert all(batch in batches or batch.num_rows <= JOINED_ROWS_MAX for batch in joined)
    short = [batch.num_rows < SHORT_ROWS for batch in joined]
    assert not any(one and other for one, other in pairwise(short))


def test_long_batches_are_not_copied() -> None:
    batch = pa.record_batch([pa.array(range(SHORT_ROWS))], names=["v"])
    assert list(longer([batch, batch])) == [batch, batch]
    assert next(iter(longer([batch]))) is batch

"""Joining short batches: the same rows in the same order, in fewer batches."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bireme.data.record import JOINED_ROWS_MAX, SHORT_ROWS, joined, longer


@given(st.lists(st.integers(0, 2 * SHORT_ROWS), max_size=40))
def test_rows_stay_and_neighbours_are_not_both_short_for_nothing(sizes: list[int]) -> None:
    values = pa.array(range(sum(sizes)), pa.int64())
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    batches = [
        pa.record_batch([values.slice(end - size, size)], names=["v"]) for size, end in zip(sizes, ends, strict=True)
    ]
    made = list(longer(batches))
    assert pa.chunked_array([batch.column(0) for batch in made], pa.int64()).to_pylist() == values.to_pylist()
    assert all(batch in batches or batch.num_rows <= JOINED_ROWS_MAX for batch in made)
    short = [batch.num_rows < SHORT_ROWS for batch in made]
    assert not any(one and other for one, other in pairwise(short))


def test_long_batches_are_not_copied() -> None:
    batch = pa.record_batch([pa.array(range(SHORT_ROWS))], names=["v"])
    assert list(longer([batch, batch])) == [batch, batch]
    assert next(iter(longer([batch]))) is batch


@pytest.mark.parametrize("kind", ["alike", "different", "with NULL entries", "long", "mixed"])
def test_joined_columns_of_codes_keep_their_values(kind: str) -> None:
    texts = [["a", "b", None, "a"] * 20, ["c", "a", None, "c"] * 20]
    chunks = [pa.array(part, pa.string()).dictionary_encode() for part in texts]
    if kind == "alike":
        chunks[1] = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1] * 20, pa.int32()), chunks[0].dictionary)
    elif kind == "with NULL entries":
        chunks[1] = pa.DictionaryArray.from_arrays(pa.array([1, 0] * 40, pa.int32()), pa.array(["c", None]))
    elif kind == "long":
        chunks = [chunk.slice(0, 4) for chunk in chunks]
    elif kind == "mixed":
        chunks[1] = chunks[1].dictionary_decode()
    whole = joined([pa.record_batch([chunk], ["text"]) for chunk in chunks])
    assert whole.column(0).to_pylist() == [value for chunk in chunks for value in chunk.to_pylist()]
    assert pa.types.is_dictionary(whole.column(0).type) == (kind in ("alike", "different"))

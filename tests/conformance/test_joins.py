"""Join tables of every backend against comparing every pair of rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import KEY_TYPES, batches, corner_batch
from support.drawn import drawn
from support.duck import rows_of

from bireme.backends.base import Kernels, KeyFilter
from bireme.backends.native import _kernels
from bireme.data import types as t
from bireme.data.record import plain
from bireme.data.types import DataType


def _key(value: Any) -> Any:
    """A value such that equal keys are equal in python: NaN is one value, both zeros are one."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def pairs(probe: pa.RecordBatch, build: pa.RecordBatch, null_equal_count: int) -> list[tuple[int, int]]:
    """All equal pairs, by definition."""
    left, right = (rows_of([plain(column) for column in batch.columns]) for batch in (probe, build))
    found = []
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            alike = [
                _key(a) == _key(b) and (a is not None or index < null_equal_count)
                for index, (a, b) in enumerate(zip(one, other, strict=True))
            ]
            if all(alike):
                found.append((i, j))
    return found


def check(backend: Kernels, probe: pa.RecordBatch, build: pa.RecordBatch, null_equal_count: int) -> None:
    table = backend.join_table(build, null_equal_count=null_equal_count)
    wanted = pairs(probe, build, null_equal_count)
    rows, matches = table.match(probe)
    assert rows.type == matches.type == pa.int64()
    assert list(zip(rows.to_pylist(), matches.to_pylist(), strict=True)) == wanted
    found = {i for i, _ in wanted}
    assert table.contains(probe).to_pylist() == [row in found for row in range(probe.num_rows)]
    assert table.rows == build.num_rows
    nulls = [
        any(value is None for value in row[null_equal_count:]) for row in rows_of([plain(c) for c in build.columns])
    ]
    assert table.has_null_key == any(nulls)
    assert table.nbytes >= 0
    if table.is_unique:
        assert all(one == other for one, other in pairs(build, build, null_equal_count))
    check_filter(table.key_filter(), probe, build, found if null_equal_count == 0 else None)


def check_filter(
    filter: KeyFilter | None, probe: pa.RecordBatch, build: pa.RecordBatch, found: set[int] | None
) -> None:
    """`found` are the probe rows that match; None where NULL equals NULL, and no filter may be."""
    if filter is None:
        return
    assert found is not None
    assert isinstance(filter, _kernels.KeyFilter)
    kept = set(pa.array(filter.select(probe)).to_pylist())
    assert found <= kept
    assert not any(column[row].as_py() is None for row in kept for column in probe.columns)
    if filter.is_exact:
        assert kept == found
    assert filter.nbytes >= 0


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=str(kind)) for kind in (*KEY_TYPES, t.INT16, t.FLOAT32, t.BINARY)]
)
@pytest.mark.parametrize("null_equal_count", [0, 1])
def test_join_of_corner_values(backend: Kernels, kind: DataType, null_equal_count: int) -> None:
    batch = corner_batch([kind])
    twice = pa.RecordBatch.from_arrays([pa.concat_arrays([batch.column(0), batch.column(0)])], names=["k"])
    check(backend, batch, twice, null_equal_count)


@drawn(40)
@given(data=st.data())
def test_join_of_drawn_keys(backend: Kernels, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=3))
    few = data.draw(batches(types, rows_min=1, rows_max=20, few=True))
    probe = data.draw(st.permutations(range(few.num_rows)))
    # Both sides hold the same few values, so that most rows match something.
    shuffled = few.take(pa.array(list(probe)[: data.draw(st.integers(0, few.num_rows))], pa.int64()))
    check(backend, shuffled, few, data.draw(st.integers(0, len(types))))


@drawn(40)
@given(data=st.data())
def test_join_of_unrelated_batches(backend: Kernels, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from((t.INT32, t.STRING, t.decimal(15, 2), t.DATE)), min_size=1, max_size=2))
    check(backend, data.draw(batches(types)), data.draw(batches(types)), data.draw(st.integers(0, len(types))))


@pytest.mark.parametrize("values", [[], [7], [3, None, 5], [*range(100)], [*range(100), 5, 5]])
def test_a_table_knows_whether_keys_repeat(backend: Kernels, values: list[int | None]) -> None:
    build = pa.record_batch([pa.array(values, pa.int64())], names=["k"])
    table = backend.join_table(build, null_equal_count=0)
    assert table.is_unique is (len(set(values)) == len(values))


@pytest.mark.parametrize("rows", [0, 3])
def test_join_with_an_empty_build_side(backend: Kernels, rows: int) -> None:
    build = pa.record_batch([pa.array([], pa.int64())], names=["k"])
    probe = pa.record_batch([pa.array([1, None, 3][:rows], pa.int64())], names=["k"])
    check(backend, probe, build, 0)


def test_join_of_many_equal_rows(backend: Kernels) -> None:
    build = pa.record_batch([pa.array([7] * 50 + [8] * 3, pa.int32())], names=["k"])
    probe = pa.record_batch([pa.array([8, 7, 9], pa.int32())], names=["k"])
    check(backend, probe, build, 0)


def test_join_of_dictionary_encoded_and_plain_text(backend: Kernels) -> None:
    plain_text = pa.record_batch([pa.array(["a", "b", None, "ä" * 30])], names=["k"])
    encoded = pa.record_batch([pa.array(["ä" * 30, None, "b", "c"]).dictionary_encode()], names=["k"])
    check(backend, plain_text, encoded, 1)
    check(backend, encoded, plain_text, 0)

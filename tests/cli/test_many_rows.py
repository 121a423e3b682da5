"""Answers of many rows compare as multisets, at once or in parts, whatever their types and order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bireme.cli.harness import many_rows
from bireme.cli.harness.answers import difference


@pytest.fixture(autouse=True, params=[1 << 24, 7_000])
def _part_rows_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows are compared at once."""
    monkeypatch.setattr(many_rows, "_PART_ROWS_MAX", request.param)


def _many(rows: int = 30_000) -> pa.Table:
    random = np.random.default_rng(7)
    key = random.permutation(rows)
    return pa.table(
        {
            "k": pa.array(key, mask=key == 5),
            "text": pa.array([f"t{value % 1000}" for value in key]),
            "x": pa.array(key / 3, mask=key == 9),
        }
    )


def test_many_rows_compare_as_multisets_within_the_tolerance() -> None:
    right = _many()
    moved = right.take(pa.array(np.random.default_rng(8).permutation(right.num_rows)))
    assert difference(moved, right, []) is None
    assert difference(moved, right, [0]) is not None
    near = moved.set_column(2, "x", pa.compute.multiply(moved["x"], 1 + 1e-9))
    assert difference(near, right, []) is None
    assert difference(moved.set_column(1, "text", moved["text"].cast(pa.large_string())), right, []) is None


def test_many_rows_compare_by_value_whatever_their_types() -> None:
    rows = 30_000
    key = np.random.default_rng(9).integers(-50, 50, rows)
    wide = pa.table(
        [pa.array(key), pa.array([[int(value), None] for value in key]), pa.nulls(rows)], names=["a", "a", "n"]
    )
    narrow = pa.table([pa.array(key, pa.int8()), wide[1], pa.nulls(rows, pa.int32())], names=["a", "b", "n"])
    assert difference(narrow.take(pa.array(np.argsort(key))), wide, []) is None
    exact = wide.set_column(0, "a", wide[0].cast(pa.decimal128(20, 1)))
    assert difference(exact, narrow, []) is None
    lists = pa.chunked_array([pa.array([[int(value), None] for value in [*key[:-1], 51]])])
    story = str(difference(narrow.set_column(1, "b", lists), wide, []))
    # Of the row that is there and the one that is not, either is a right answer.
    assert "[51, None]" in story or f"[{key[-1]}, None]" in story


def test_rows_alike_in_their_exact_columns_compare_by_their_floats() -> None:
    random = np.random.default_rng(10)
    floats = random.random(30_000)
    right = pa.table({"k": np.arange(30_000) % 10, "x": floats})
    moved = right.take(pa.array(random.permutation(30_000)))
    assert difference(moved, right, []) is None
    floats[123] += 0.001
    assert difference(moved, pa.table({"k": right["k"], "x": floats}), []) is not None


@pytest.mark.parametrize("column", ["k", "text", "x"])
def test_one_wrong_value_among_many_rows_is_seen(column: str) -> None:
    right = _many()
    values = right[column].to_pylist()
    values[17] = None
    wrong = right.set_column(right.schema.get_field_index(column), column, pa.array(values, right[column].type))
    assert difference(wrong, right, []) is not None


def test_rows_fall_into_the_same_part_on_both_sides() -> None:
    rows = 40_000
    key = np.random.default_rng(11).integers(0, 1 << 40, rows)
    dates = pa.array((key % 20_000).astype(np.int32), pa.int32()).cast(pa.date32())
    texts = [f"text {value % 4_000}" for value in key]
    ours = pa.table({"k": pa.array(key, pa.uint64()), "d": dates, "t": pa.array(texts).dictionary_encode()})
    theirs = pa.table({"k": pa.array(key, pa.int64()), "d": dates, "t": pa.array(texts, pa.string_view())})
    order = pa.array(np.random.default_rng(12).permutation(rows))
    assert difference(ours.take(order), theirs, []) is None
    twice = pa.concat_tables([theirs.slice(1), theirs.slice(1, 1)])
    assert difference(ours, twice, []) is not None

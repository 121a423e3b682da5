"""Grouping early: given up where rows hardly become fewer, kept where they do; the answer is the same."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bireme as bm
from bireme.operators.group import Gain, share_of_groups

ROWS = 500_000
GIVEN_UP = "most rows have a key of their own"


@pytest.mark.parametrize(("keys", "gives_up"), [(10 * ROWS, True), (ROWS // 50, False)])
def test_the_slots_notice_what_the_data_is_like(keys: int, gives_up: bool) -> None:
    rng = np.random.default_rng(keys)
    table = pa.table({"k": rng.integers(0, keys, ROWS) * 1_000_003, "v": rng.integers(-9, 9, ROWS)})
    query = "select count(*) as c, sum(s) as s, max(n) as n, sum(m) as m from (select k, sum(v) as s, count(*) as n, "
    query += "min(v) as m from t group by k)"
    with bm.connect(threads=2) as session:
        session.register("t", table)
        frame = session.sql(query)
        (row,) = frame.collect().to_pylist()
        assert (GIVEN_UP in frame.explain(analyze=True)) is gives_up
    grouped = table.group_by("k").aggregate([("v", "sum"), ("v", "count"), ("v", "min")])
    assert row["c"] == grouped.num_rows
    assert row["s"] == sum(table.column("v").to_pylist())
    assert row["n"] == max(grouped.column("v_count").to_pylist())
    assert row["m"] == sum(grouped.column("v_min").to_pylist())


def test_first_and_last_need_their_places() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, 10 * ROWS, ROWS), "v": rng.integers(-9, 9, ROWS)})
    with bm.connect(threads=2) as session:
        session.register("t", table)
        frame = session.sql("select sum(f) as f from (select k, first(v) as f from t group by k)")
        assert GIVEN_UP not in frame.explain(analyze=True)
        grouped = table.group_by("k", use_threads=False).aggregate([("v", "first")])
        assert frame.collect().to_pylist() == [{"f": sum(grouped.column("v_first").to_pylist())}]


@given(st.integers(1000, 10**7), st.integers(1000, 10**6), st.integers(1, 200))
def test_the_share_of_groups_foretold(keys: int, rows: int, factor: int) -> None:
    groups = keys * -math.expm1(-rows / keys)
    if not 1 <= groups < 0.999 * rows:
        return
    later = keys * -math.expm1(-rows * factor / keys) / (rows * factor)
    assert share_of_groups(round(groups), rows, rows * factor) == pytest.approx(later, rel=0.3, abs=0.01)


def test_clustered_rows_do_gain() -> None:
    """Their groups keep coming, but each has several rows."""
    gain = Gain(10**6)
    assert not any(gain.lose(rows // 4, 100_000) for rows in range(100_000, 10**6, 100_000))
    assert not gain.is_lost


def test_few_groups_are_given_up_only_beyond_doubt() -> None:
    assert Gain(1).lose(20_000, 20_000)
    drawn = Gain(1)  # from 100,000 keys, of which there may be many more rows than anybody expected
    assert not drawn.lose(18_127, 20_000)
    assert drawn.lose(69_881, 100_000)

"""Grouping sets that are made of the groups of the finest one, and those that are not, as in DuckDB."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bireme as bm

ROWS = 5_000
AGAIN = (
    "sum(v), count(v), count(*), min(s), max(x), avg(v), avg(x), bool_and(v > 0), sum(i), avg(i), "
    "count(*) filter (where v > 1), sum(v) filter (where g = 2), max(v) filter (where false)"
)
APART = f"{AGAIN}, count(distinct v), median(v), string_agg(s, ',' order by s), stddev(v)"
SETS = [
    "rollup(g, h, k)", "cube(g, h)", "grouping sets ((g, h), (g), (h), ())", "grouping sets ((g), (h))",
    "rollup(g, h), k", "grouping sets ((g, h), (h, g), ())", "grouping sets ((), ())", "rollup((g, h), k)",
    "grouping sets ((g), (g), (g, k))",
]  # fmt: skip


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(3)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[place] for place in random.integers(0, len(values), rows)], kind)

    return pa.table(
        {
            "g": some([1, 2, 3, None], pa.int32()),
            "h": some(["a", "b", None], pa.string()),
            "k": some(list(range(50)), pa.int64()),
            "v": some([None, -100, 0, 150, 275], pa.decimal128(12, 2)),
            "x": some([None, 0.5, -2.25, 8.0], pa.float64()),
            "i": some([None, 1, -7, 1 << 40], pa.int64()),
            "s": some([None, "p", "q", ""], pa.string()),
        }
    )


def rounded(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in row.values())
        for row in rows.rename_columns([f"c{index}" for index in range(rows.num_columns)]).to_pylist()
    )


@pytest.mark.parametrize("rows", [0, ROWS])
@pytest.mark.parametrize("calls", [AGAIN, APART], ids=["again", "apart"])
@pytest.mark.parametrize("sets", SETS)
def test_grouping_sets_as_in_duckdb(sets: str, calls: str, rows: int) -> None:
    data = table(rows)
    query = f"select g, h, grouping(g, h), {calls} from t group by {sets}"
    if "k" in sets:
        query = f"select g, {'h, ' if 'h' in sets else ''}k, grouping(g, k), {calls} from t group by {sets}"
    if "h" not in sets and "k" not in sets:
        query = f"select {calls} from t group by {sets}"
    with bm.connect(threads=2) as session, duckdb.connect() as oracle:
        session.register("t", data)
        oracle.register("t", data)
        assert rounded(session.sql(query).collect()) == rounded(oracle.sql(query).to_arrow_table())


def test_rows_are_grouped_once_where_that_is_enough() -> None:
    with bm.connect() as session:
        session.register("t", table(10))
        once = session.sql("select g, h, sum(v), avg(x) from t group by rollup(g, h)").explain()
        each = session.sql("select g, h, median(v) from t group by rollup(g, h)").explain()
        apart = session.sql("select g, h, sum(v) from t group by grouping sets ((g), (h))").explain()
    for plan, groupings in ((once, 1), (each, 3), (apart, 2)):
        assert len(re.findall(r"Aggregate [^\n]*\n *(?:Project [^\n]*\n *)?Scan t ", plan)) == groupings, plan

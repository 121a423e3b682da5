"""Windows whose frames are long: aggregates of them are those of DuckDB, and take time in proportion to rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import bireme as bm

ROWS = 4_000
# Going through every row of every frame would take half a billion steps a call.
MANY_ROWS = 32_000

COLUMNS = """
    i, hash(i, 'g') % 3 as g,
    case when hash(i, 'n') % 10 > 0 then (hash(i, 'k') % 2000)::int end as k,
    case when hash(i, 'm') % 10 > 0 then (hash(i, 'v') % 200)::int - 100 end as v,
    case hash(i, 'e') % 5000 when 0 then 'nan'::double when 1 then 'inf' else (hash(i, 'd') % 1000) / 8 end as d,
    (hash(i, 'c') % 19999 / 100 - 99)::decimal(9, 2) as c,
    's' || hash(i, 's') % 3000 as s
"""
FRAMES = {
    "rows between unbounded preceding and current row": "k nulls last, i",
    "rows between 200 preceding and 70 following": "k desc nulls first, i",
    "rows between current row and unbounded following": "i",
    "rows between 1500 following and 1600 following": "i desc",
    "rows between 1600 preceding and 1500 preceding": "i",
    "range between unbounded preceding and current row": "k nulls first",
    "range between 100 preceding and 30 following": "k desc nulls last",
    "groups between 50 preceding and 7 following": "k nulls last",
}
CALLS = [
    "sum(v)", "min(s)", "max(v)", "count(v)", "count(*)", "sum(v) filter (where v > 0)", "sum(c)", "min(d)",
    "count(*) filter (where v > 50)", "bool_or(v > 98)", "bit_xor(v)", "avg(c)", "avg(v)", "sum(d)",
    "var_samp(v)", "stddev_pop(v)",
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    with duckdb.connect() as made:
        return made.sql(f"select {COLUMNS} from range({MANY_ROWS}) as r(i) order by i").to_arrow_table()


@pytest.fixture(scope="module")
def session(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="1GiB", spill_folder=tmp_path_factory.mktemp("frames")) as session:
        session.register("t", rows.slice(0, ROWS))
        session.register("many", rows)
        yield session


def sorted_rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*[column.to_pylist() for column in table.columns], strict=True))


def alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (left != left and right != right)
    return bool(left == right)


@pytest.mark.parametrize("frame", FRAMES)
def test_aggregates_over_long_frames(session: bm.Session, rows: pa.Table, frame: str) -> None:
    window = f"over (partition by g order by {FRAMES[frame]} {frame})"
    # Both give double sums of what may be infinite; what differs there is the order of adding.
    text = f"select i, {', '.join(f'{call} {window}' for call in CALLS)} from t"
    t = rows.slice(0, ROWS)
    with duckdb.connect() as oracle:
        oracle.register("t", t)
        wanted = sorted_rows(oracle.sql(text).to_arrow_table())
    found = sorted_rows(session.sql(text).collect())
    assert len(found) == len(wanted) == ROWS
    for got, expected in zip(found, wanted, strict=True):
        assert all(map(alike, got, expected)), (got, expected)


def test_frames_of_one_window_of_many_rows(session: bm.Session, rows: pa.Table) -> None:
    text = """select i, sum(v) over (order by i), max(s) over (order by i rows between 20000 preceding and current row),
        count(v) over (order by k nulls last range between 500 preceding and 500 following) from many"""
    with duckdb.connect() as oracle:
        oracle.register("many", rows)
        assert sorted_rows(session.sql(text).collect()) == sorted_rows(oracle.sql(text).to_arrow_table())


def test_no_rows_and_frames_without_rows(session: bm.Session) -> None:
    none = session.sql("select sum(v) over (order by i) as a from t where i < 0").collect()
    assert none.num_rows == 0
    text = """select sum(v) filter (where false) over (order by i) as a,
        count(v) filter (where false) over (order by i) as b from t"""
    found = session.sql(text).collect()
    assert set(found.column("a").to_pylist()) == {None}
    assert set(found.column("b").to_pylist()) == {0}

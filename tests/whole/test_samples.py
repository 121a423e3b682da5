"""LIMIT n% against DuckDB; samples by their own promises: how many rows, in which order, the same for the same seed."""

from __future__ import annotations

import duckdb
import pytest
from support import null_tables
from support.two_engines import check, session_over

import bireme as bm

ROWS = 20_000
QUERIES = [
    *[f"select a from t order by a limit {share}" for share in ("50%", "50 percent", "10%", "100%", "0%", "33.4%")],
    *[f"select a from t order by a limit 99% offset {count}" for count in (0, 1, 3, 99)],
    *[
        f"select i from range({count}) r(i) order by i limit {share}%"
        for count in (7, 1000)
        for share in (14.2, 14.3, 57)
    ],
    "select a from e order by a limit 50%",
    "select a from t order by a limit null%",
    "select a from t order by a limit '50'%",
    "select a from (select a from t order by b limit 60%) order by a desc nulls last limit 50%",
    "(select a from t) union all (select a from u) order by 1 limit 30%",
    "select s, count(*) from t group by s order by 2 desc, 1 limit 50%",
    "select distinct a from t order by a limit 50%",
    "select count(*) from (select a from t limit 50%)",
    "select count(*), sum(i) from (select i from range(7) r(i) tablesample 100%)",
    "select count(*) from t tablesample 0%",
    "select count(*) from t tablesample 3 rows",
    "select count(*) from t tablesample 300 rows",
    "select count(*) from t using sample reservoir(3 rows) repeatable (1)",
    "select count(*) from t tablesample reservoir(50%)",
    "select count(*) from e using sample 3",
    "select count(*) from t where a > 100 using sample 3",
    "select count(*) from (t join u using (a)) tablesample 2 rows",
    "select count(*) from t x tablesample 3 rows, u y tablesample 2 rows",
    "select count(*) from (select 1 as a union all select 2) q tablesample 1 rows",
    "select s, count(*) from t x tablesample bernoulli(100%) group by s",
    "select count(*) from t using sample 3 rows (reservoir)",
    "select count(*) from t using sample 3 (system)",
    "select count(*) from t tablesample system(3 rows)",
    "select count(*) from t using sample 100% (bernoulli)",
    "select count(*) from t using sample 50.0% (reservoir)",
    "select count(*) from t using sample 100 percent (bernoulli, 42)",
]


TABLES = (
    *(f"create table {name} {text}" for name, text in null_tables.TABLES.items()),
    "create table e (a int)",
    f"create table n as select range as i from range({ROWS})",
)


def taken(session: bm.Session, text: str) -> list[int]:
    column: list[int] = session.sql(text).collect().column(0).to_pylist()
    return column


@pytest.mark.parametrize("query", QUERIES)
def test_query(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize("sample", ["10%", "bernoulli(10%)", "reservoir(10%)", "reservoir(2000 rows)"])
def test_a_sample_is_one_of_rows_in_their_order(session: bm.Session, sample: str) -> None:
    rows = taken(session, f"select i from n tablesample {sample} repeatable (5)")
    assert rows == sorted(set(rows))
    if "reservoir" in sample:
        assert len(rows) == ROWS // 10
    assert abs(len(rows) - ROWS / 10) < 200  # more than four standard deviations
    halves = sum(row < ROWS / 2 for row in rows)
    assert abs(halves - len(rows) / 2) < 150


@pytest.mark.parametrize("sample", ["10%", "reservoir(10%)", "100 rows"])
def test_a_seed_decides(session: bm.Session, sample: str) -> None:
    first, again, other, none = [
        taken(session, f"select i from n tablesample {sample} {seed}")
        for seed in ("repeatable (1)", "repeatable (1)", "repeatable (2)", "")
    ]
    assert first == again
    assert first != other
    assert none == taken(session, f"select i from n tablesample {sample} repeatable (0)")
    shared = len(set(first) & set(other)) / len(first)
    assert shared < 0.2


def test_every_backend_takes_the_same_rows(oracle: duckdb.DuckDBPyConnection) -> None:
    found = []
    for backend in ("native", "reference"):
        with session_over(oracle, backend) as session:
            found.append(taken(session, "select i from n using sample 1% (bernoulli, 3)"))
    assert found[0] == found[1]

"""IN and EXISTS whose subqueries select rows by keys that many rows share, with NULLs on both sides.

Every selection by a key that 500 values share leaves millions of pairs, of which hardly any has to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.two_engines import check, connect, session_over

import bireme as bm

LEFT = """create table a as select i, case when hash(i, 'n') % {nulls} > 0 then (hash(i, 'x') % 900)::int end as x,
    (hash(i, 'v') % 100000)::int as v, (hash(i, 'w') % 1000)::int as w from range({rows}) as r(i)"""
RIGHT = """create table b as select case when hash(i, 'm') % {nulls} > 0 then (hash(i, 'y') % 900)::int end as y,
    (hash(i, 'u') % 100000)::int as v, (hash(i, 'z') % 1000)::int as w from range({rows}) as r(i)"""

CONDITIONS = [
    "b.v % 50 = a.v % 50",
    "b.v % 50 = a.v % 50 and b.w < a.w",
    "b.v % 50 = a.v % 50 and b.w * 2 < a.w - 900",
    "b.w < a.w - 990",
    "b.v % 50 is not distinct from nullif(a.v % 50, 7)",
]


@pytest.fixture(params=[3, 400], ids=["many NULLs", "few NULLs"], scope="module")
def oracle(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    nulls = request.param
    connection = connect(LEFT.format(nulls=nulls, rows=1_500), RIGHT.format(nulls=nulls, rows=2_500))
    yield connection
    connection.close()


@pytest.fixture(params=["native", "reference"])
def session(request: pytest.FixtureRequest, oracle: duckdb.DuckDBPyConnection) -> Iterator[bm.Session]:
    with session_over(oracle, str(request.param)) as opened:
        yield opened


@pytest.mark.parametrize("condition", CONDITIONS)
def test_in_and_exists(session: bm.Session, oracle: duckdb.DuckDBPyConnection, condition: str) -> None:
    rows = f"from b where {condition}"
    check(f"select i from a where x in (select y {rows})", session, oracle)
    check(f"select i from a where x not in (select y {rows})", session, oracle)
    check(f"select i, x in (select y {rows}) as marked from a", session, oracle)
    check(f"select i from a where not exists (select 1 {rows})", session, oracle)


def test_rows_of_several_values(session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check("select i, (x, w % 9) in (select y, w % 9 from b where v < 50000) as marked from a", session, oracle)


def test_an_equality_that_may_fail_is_looked_up(oracle: duckdb.DuckDBPyConnection) -> None:
    with session_over(oracle, "native") as session:
        text = "select i from a where exists (select 1 from b where b.v + 1 = a.v and b.w < a.w)"
        assert "semi on v#" in session.sql(text).explain().replace("Join ", "")
        check(text, session, oracle)
        guarded = "select i from a where exists (select 1 from b where b.w < a.w - 995 and b.v // (a.w % 2) = a.v)"
        assert "semi where" in session.sql(guarded).explain()

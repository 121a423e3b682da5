"""Columns by number, ORDER BY and GROUP BY of everything, limits that are not constant, rows beside rows; by DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support import null_tables
from support.two_engines import check

import bireme as bm
from bireme.errors import BiremeError, ClauseFault

TABLES = tuple(f"create table {name} {text}" for name, text in null_tables.TABLES.items())

POSITIONS = [
    "select #1, #2 + 1 from t order by all",
    "select #3 from t, u where #1 = #7 order by all",
    "select t.a, #8 from t join u using (a) order by all",
    "select #1, count(*) from t group by #1 order by #1 nulls first",
    "select a, b from t order by #2, #1",
    "select b as x, a from t order by #1 desc, 2",
    "select a from t union select c from u order by #1",
    "select x.a, y.a from t x left join u y on #1 = #7 and #8 > 100 order by all",
    "select max(#2) from t where #1 > 1",
    "select (select max(#1) from u) from t",
    "select * from t order by *",
    "select * from t order by * desc",
    "select * from t order by * desc nulls first",
    "select a, s from t union all select a, s from u order by *",
    "select a, count(*) from t group by * order by *",
    "select a, s, sum(b) from t group by all order by all",
    "select a + 1, sum(b), 7 from t group by all order by all",
    "select range, count(*) from range(4) group by range order by range desc",
    "select sum(range) over (order by range rows 1 preceding) from range(4) order by all",
    "select 7, sum(b) from t group by all",
    "select a as x, alias.x + 1 as y from t where alias.x > 1 order by alias.y desc",
    "select a % 2 as x, count(*) as n from t group by alias.x having alias.n > 1 order by alias.x",
    "select alias.a from (select 1 as a) alias",
    "select alias.a as b, alias.b + 1 from (select 1 as a) alias",
    "select a_1, a from (select 1 as a, 2 as A)",
    "with q as (select * from t join u on t.a = u.a) select a, a_1, s, s_1 from q order by all",
    "select * from (select a, a, a as a_1 from t) order by all",
    "select q.x, q.a_1 from (select a, a, a from t) q(x) order by all",
]
LIMITS = [
    "select a, b from t order by a, b limit (select 2)",
    "select a, b from t order by a, b limit (select count(*) from v) offset (select 1)",
    "select a, b from t order by a, b offset (select 3)",
    "select a, b from t order by a, b limit 2 offset (select 1)",
    "select a, b from t order by a, b limit (select 2) offset 1",
    "select a, b from t order by a, b limit (select null)",
    "select a, b from t order by a, b limit (select null) offset (select null)",
    "select a, b from t order by a, b limit (select '3')",
    "select a, b from t order by a, b limit (select max(n) from w where n > 100)",
    "select a, b from t order by a, b limit mod(10, 4)",
    "select a, b from t order by a, b limit abs(-3) offset length('x')",
    "select * from (select a from t union all select a from u) order by 1 limit (select 4) offset (select 2)",
    "select a, b from t order by a, b limit 50% offset (select 1)",
    "with q as (select 3 as n) select a, b from t order by a, b limit (select n from q)",
    "select (select sum(x) from (select a as x from u order by c limit (select 2))) from v",
    "select distinct a from t order by a limit (select 2)",
    "select count(*) from (select * from t limit (select 1) offset (select 1))",
    "values (1), (2), (3) order by 1 limit (select 2)",
    "select a, b from t order by a, b limit (select 2.5) offset (select 1.5::double)",
    "select a, b from t order by a, b limit (select count(*) from t) // 2",
    "select a, b from t order by a, b limit (select count(*) * 6 from t) %",
    "select a, b from t order by a, b limit (select 30.5) % offset (select 1)",
]
ROWS = [
    *[
        f"select a, b, (a, b) {test} {each}(select a, c from u) from t order by all"
        for test in ("<", "<=", ">", ">=")
        for each in ("any", "all")
    ],
    "select (0, 0) < any(select 1, 0), (0, null) < any(select 1, null), (2, 0) > all(select 1, 0)",
    "select a from t where (a, b) >= all(select a, b from v where a < 3) order by all",
    "select a, row(a, b) in (select a, b from v), row(a, b) not in (select a, b from v) from t order by all",
    "select (a, b) is distinct from (b, a), (a, null) is not distinct from (a, null) from t order by all",
    "select a, b from t where (a, b) < (2, 15) order by all",
    "select row(1, 2) = row(1, 2), (1, 2) <> (1, 3), (1, null) = (1, null), (1, 2) < (1, 3) and (2, 1) > (1, 9)",
]


@pytest.mark.parametrize("query", POSITIONS + LIMITS + ROWS)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    "query",
    [
        "select #1, t.a, #2 from t",
        "select #7 from t, u",
        "select * from (select a, A, a as a_1 from t)",
        "select * from (select * from t join u using (a))",
        "select * from (select 1 a, 2 a, 3 a) q(b)",
    ],
)
def test_numbers_have_the_names_of_columns(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    assert session.sql(query).schema.names == oracle.sql(query).columns


def test_what_duckdb_does_not_offer(session: bm.Session) -> None:
    union = "select a from t union all select a from u order by 1 limit (select 2) offset (select 1)"
    assert session.sql(union).collect().to_pydict() == {"a": [1, 1]}
    rows = "select a from t where (a, b) < any(select u.a, u.c from u where u.s = t.s) order by all"
    assert session.sql(rows).collect().to_pydict() == {"a": [1, 1, 2]}


@pytest.mark.parametrize("clause", ["limit (select -1)", "limit 1 offset (select -1)"])
def test_a_negative_limit_is_refused(clause: str, session: bm.Session) -> None:
    with pytest.raises(ClauseFault, match="negative"):
        session.sql(f"select a from t {clause}")


@pytest.mark.parametrize(
    "query",
    [
        "select #0 from t",
        "select #9 from t",
        "select #1",
        "select (select #1) from t",
        "select a from t limit (select 'x')",
        "select alias.nope from t",
        "select a from t limit (select a from t)",
    ],
)
def test_what_is_refused(query: str, session: bm.Session) -> None:
    with pytest.raises(BiremeError):
        session.sql(query).collect()

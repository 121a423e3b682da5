"""Subqueries in ON of joins that keep rows without a match, against DuckDB."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest
from support import null_tables
from support.two_engines import check

import bireme as bm

TABLES = tuple(f"create table {name} {text}" for name, text in null_tables.TABLES.items())

CONDITIONS = (
    "t.a = u.a and exists (select 1 from v where v.a = t.a)",
    "t.a = u.a and u.c > (select min(c) from u)",
    "exists (select 1 from v where v.a = t.a and v.b < u.c)",
    "t.a in (select a from v) and t.a = u.a",
    "t.a = (select max(v.a) from v where v.a <= u.a)",
    "t.a = u.a and t.b not in (select b from v where b is not null)",
    "exists (select 1 where t.a = 1 and u.c = 100)",
    "(select t.a = u.a)",
    "t.s = u.s or exists (select 1 from w where w.n = t.a + u.a)",
)
KINDS = ("left", "right", "full")
QUERIES = [
    *[f"select t.a, t.b, u.a, u.c from t {kind} join u on {on}" for kind, on in product(KINDS, CONDITIONS)],
    *[f"select t.a, t.b from t {kind} join u on {on}" for kind, on in product(("semi", "anti"), CONDITIONS)],
    "select x.a, y.a, z.a from t x full join u y on x.a = y.a and exists (select 1 from v where v.a = x.a) "
    "full join v z on z.a = y.a and z.b > (select min(b) from v)",
    "select count(*), count(t.a), count(q.a) from t full join (select distinct a from u) q "
    "on t.a = q.a and t.b in (select b from v)",
    "select t.a, (select count(*) from u full join v on u.a = v.a and exists (select 1 from w where w.n = u.a)) from t",
    "select l.a, l.b, r.b from t l full join t r on l.a = r.a and exists (select 1 from u where u.a = l.b / 10)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)

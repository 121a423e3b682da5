"""Subqueries in places of their own: ARRAY(query), arguments and keys of windows, conditions of as-of joins."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ClauseFault

TABLES = (
    "create table t as select i as i, case when i % 4 = 3 then null else 'x' || i % 3 end as s from range(9) r(i)",
)

ARRAYS = [
    "select array(select 1 where false), array(select 1), array((select 2)), [(select 3)]",
    "select array(select i from t order by i desc), array(select s from t order by s nulls first, i limit 4)",
    "select i, array(select u.i from t u where u.i > t.i and u.s = t.s order by u.i desc) from t",
    "select i, array(select upper(u.s) || t.i from t u where u.i <> t.i order by u.i * t.i desc, u.i limit 2) from t",
    "select i, array(select distinct u.s from t u where u.i >= t.i order by 1) from t",
    "select i, array(select u.i from t u where u.i > t.i + 5 union all select 100 order by 1 desc) from t",
    "select len(array(select i from t where s is null)), array(select s from t where i = 3)",
]
WINDOWS = [
    "select sum((select 1)) over () from t",
    "select i, lag(i, (select 2)) over (order by i), ntile((select 3)) over (order by i) from t",
    "select i, sum(i + (select max(i) from t)) over (partition by (select 2) order by (select 1)) from t",
    "select i, sum((select max(u.i) from t u where u.i < t.i)) over (order by i) as n from t",
    "select i, rank() over (order by (select -i)) from t",
    "select i, (select sum((select u.i + t.i)) over (order by u.i desc) from t u order by u.i limit 1) from t",
    "select i, count(*) over (partition by exists (select 1 from t u where u.i = t.i + 7)) from t",
    "select t.i, u.i from t asof join t u on t.i >= u.i + (select 1)",
]


@pytest.mark.parametrize("query", ARRAYS + WINDOWS)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


def test_array_takes_one_column(session: bm.Session) -> None:
    with pytest.raises(ClauseFault, match="one column"):
        session.sql("select array(select i, s from t)")

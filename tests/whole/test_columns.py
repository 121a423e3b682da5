"""COLUMNS, stars like a pattern, with EXCLUDE, REPLACE and RENAME, and SUMMARIZE: values and names, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support import null_tables
from support.two_engines import check

import bireme as bm
from bireme.errors import BiremeError, ClauseFault, NameFault, Unsupported

TABLES = (
    *[f"create table {name} {text}" for name, text in null_tables.TABLES.items()],
    'create table q as select 1 as "A b", 2 as a_1, 3 as B, null::int as "x(y)", \'z\' as "ab%"',
    "create table e (a int, s varchar, l int[])",
    """create table m as select * from (values (true, 1::tinyint, 1.5::decimal(9,2), 'a', date '2020-01-01',
    timestamp '2020-01-01 01:02:03', interval 1 day, [1, 2], {'a': 1}, 1::hugeint, 1.5::float), (false, 2, 2.5, 'b',
    date '2021-01-01', timestamp '2021-01-01', interval 2 day, [3], {'a': null}, 3, null),
    (null, null, null, null, null, null, null, null, null, null, null))
    v(bo, ti, de, va, da, ts, iv, li, st, hu, fl)""",
)
# Whose names of columns are DuckDB's, too.
QUERIES = [
    "select columns('a|b') from t",
    "select columns('B') from q",
    "select columns(*) from t join u using (a)",
    "select columns(t.*), columns(u.* exclude (c)) from t, u",
    "select columns(* exclude (a, s)) from t",
    "select columns(* rename (a as z)) from t",
    "select columns(* replace (a + 1 as a)) from t",
    "select min(columns(*)) from t",
    "select min(columns(*)), columns('^s$') from t group by all",
    "select sum(columns('^[ab]$')), s from t group by s",
    "select sum(columns('^[ab]$')) as total, s from t group by s",
    "select count(distinct columns('^[abs]$')) filter (where columns('^[abs]$') is not null) from t",
    "select sum(columns('^[ab]$')) over (partition by s) from t",
    "select columns(lambda c: c like 'a%') from q",
    "select columns(lambda c: c in ('a_1', 'B') or starts_with(c, 'x') and not c like 'y%') from q",
    "select columns(lambda c: lower(c) = 'b' or c ilike 'A%' or length(c) > 3 or c similar to 'x.*') from q",
    "select columns(['b', 'A']) from t",
    "select columns('a') + columns('a') from t, u",
    "select columns('a') + 1 from t, u",
    "select upper(columns(lambda c: c like 's%')) || '!' as up from t",
    "select columns(*)::varchar from u",
    "select columns('(a|b)') as 'c_\\1' from t",
    "select columns('^(.)( b)?$') as '\\1_\\2' from q",
    "select * like 'a%' from t",
    "select * not like 'a%', b from t",
    "select * ilike 'A%', * not ilike 'A%' from q",
    "select * similar to 'a|b', * glob 'a*', * not similar to '[abs]' from t",
    "select t.* like 'a%' from t, u",
    "select * exclude (b) like '%' from t",
    "select * like 'ab%' from q",
    "select * exclude (t.a) from t join u on t.a = u.a",
    "select * exclude (u.a, t.a) from t join u on t.a = u.a",
    "select * exclude (t.a) from t join u using (a)",
    "select * exclude (u.a) from t join u using (a)",
    "select * rename (u.a as z) from t, u",
    "select t.* rename (t.a as z) from t, u",
    "select * replace (t.a + 1 as b) from t join u using (a)",
    "select * exclude (a) rename (b as a) from t",
]
VALUES = [
    "select a from t where columns('^[ab]$') > 1",
    "select a from t where columns(*) is not null",
    "select * from t order by columns('^[ab]$') desc, s",
    "select coalesce(*columns(['a', 'b']), 3), [*columns('^[ab]$')], concat(*columns('^[as]$'), '!') from t",
    "select a in (*columns('^[ab]$')), greatest(*columns('^[ab]$')) from t",
    "select (select max(columns('^a$')) from u) from t",
    "select * from (select columns('^[ab]$') from t) q",
    "select 'columns(*)' as columns, a from t",
    "select columns from (select 1 as columns)",
    "select columns(*) from e",
    "select count(columns(*)) from e",
    "describe summarize t",
    "select column_name, max from (summarize t) where column_type <> 'INTEGER'",
    "with q as (summarize v) select count(*) from q",
]


@pytest.mark.parametrize("query", QUERIES)
def test_columns_and_their_names(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)
    assert session.sql(query).schema.names == oracle.sql(query).columns


@pytest.mark.parametrize("query", VALUES)
def test_values(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize("what", ["t", "main.u", "table v", "m", "e", "select b, s from t where a > 0", "values (1)"])
def test_summarize(what: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    """Its quantiles and counts of different values are exact here, and estimates there."""
    estimates = "approx_unique, q25, q50, q75"
    check(f"select * exclude ({estimates}) from (summarize {what})", session, oracle)
    table = session.sql(f"summarize {what}").collect()
    assert table.column_names == oracle.sql(f"summarize {what}").columns


def test_summarize_counts_and_takes_quantiles_exactly(session: bm.Session) -> None:
    frame = session.sql("select i, case when i % 3 > 0 then i end as j from range(1000) t(i)")
    session.register("numbers", frame.collect())
    table = session.sql("select approx_unique, q25, q50, q75, null_percentage from (summarize numbers)").collect()
    rows = [tuple(map(str, row.values())) for row in table.to_pylist()]
    assert rows == [("1000", "250", "500", "749", "0.00"), ("666", "250", "500", "749", "33.40")]


@pytest.mark.parametrize(
    ("query", "kind", "words", "marked"),
    [
        ("select columns('zz') from t", NameFault, "no column matches", "columns('zz')"),
        ("select columns('(') from t", ClauseFault, "regular expression", "columns('(')"),
        ("select columns(['a', 'zz']) from t", NameFault, "zz", "columns(['a', 'zz'])"),
        ("select columns(1) from t", ClauseFault, "takes a star", "columns(1)"),
        ("select columns(a) from t", ClauseFault, "takes a star", "columns(a)"),
        (
            "select columns(lambda c: c || 'x' = 'ax') from t",
            Unsupported,
            "concat",
            "columns(lambda c: c || 'x' = 'ax')",
        ),
        ("select columns('a') + columns('b') from t", ClauseFault, "must be the same", "columns('a') + columns('b')"),
        ("select a from t group by columns('a')", ClauseFault, "GROUP BY", "columns('a')"),
        ("select sum(a) from t having columns('a') > 1", ClauseFault, "HAVING", "columns('a')"),
        ("select columns('(a)') as '\\2' from t", ClauseFault, "group", "columns('(a)') as '\\2'"),
        ("select columns('a|b') + 1 as k, k from t", NameFault, "ambiguous", "k from"),
        ("select * like 'zz' from t", NameFault, "no column", "* like 'zz'"),
        ("select * like s from t", Unsupported, "constant", "* like s"),
        ("select * exclude (zz.a) from t", NameFault, "zz.a", "* exclude (zz.a)"),
        ("select * exclude (t.zz) from t", NameFault, "t.zz", "* exclude (t.zz)"),
        ("select * rename (a + 1 as z) from t", ClauseFault, "names of columns", "* rename (a + 1 as z)"),
        ("summarize zz", NameFault, "zz", "zz"),
    ],
)
def test_what_is_refused(session: bm.Session, query: str, kind: type[BiremeError], words: str, marked: str) -> None:
    with pytest.raises(kind) as raised:
        session.sql(query)
    assert words in raised.value.message
    place, start = raised.value.position, query.index(marked)
    assert start <= place.start < place.end <= start + len(marked)

"""Structs: literals, rows, fields, casts and whole rows, against DuckDB; in frames, against Polars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from support.two_engines import check, rows

import bireme as bm
from bireme.errors import ArgumentFault, NameFault, SyntaxFault, TypeFault, Unsupported

TABLES = (
    """create table n as select i, case when i = 2 then null else {'a': case when i = 3 then null else i end,
    'b': ['é', 'x', 'y', null][i % 4 + 1], 'c': case when i % 2 = 0 then [i, null] end, 'd': {'e': i * 1.5}} end as s
    from range(6) r(i)""",
)

QUERIES = [
    "select (select [1, 2]) as a, (select {'a': 3})['a'] as c, (select [{'a': 1, 'b': [2]}]) as e",
    "select (select s from n where s.a = 0) as k, i from n order by i",
    "select i from n where s = (select s from n where i = 4)",
    "select typeof(row(1, 'a')), typeof([(1, 'a')]), typeof(struct_values({'a': 1}))",
    "select min(s), max(s), count(distinct s) from (select {'i': null, 'j': i} as s from range(3) t(i))",
    "select (select {'t': timestamp '2020-01-01 10:00:00', 'd': 1.5, 'x': null}) as q",
    "select {'a': 1, 'b': 'x'} as s, {'a': {'b': 2}}.a.b as d, ({'a': 1}).a as e, {'a': 1}['a'] as f, "
    "struct_extract({'a': 1}, 'a') as g, struct_extract({'A': 1}, 'a') as h",
    "select row(1, 'x') as a, struct_pack(a := 1, b := 'x') as b, row(1,2)[1] as c, struct_extract(row(1,2), "
    "2) as d, (1, 'x') as e",
    "select s, s.a, s.b.c, t.s.a, t.s.b.c from (select {'a': 1, 'b': {'c': [1,2]}} as s) t",
    "select s.* from (select {'a': 1, 'b': 'x'} as s)",
    "select {'a': 1, 'b': 2}::struct(b int, a int), {'a': 1}::struct(a varchar), row(1,2)::struct(x int, y "
    "bigint), {'a': 1, 'c': 2}::struct(a int, b int)",
    "select {'a': 1}::varchar, {'a': 'it''s', 'b': null, 'c': [1,2], 'd d': {'e': 1.5}}::varchar, row(1,'x')::varchar",
    "select struct_insert({'a': 1}, b := 2), struct_keys({'a': 1, 'b': 2}), struct_values({'a': 1, 'b': 'x'}), "
    "struct_concat({'a': 1}, {'b': 2})",
    "select [{'a': 1}, {'a': 2.5}], case when true then {'a': 1} else {'a': 2.5} end, coalesce(null, {'a': 1})",
    "select [{'a': 1}, {'b': 2}], [{'a': 1}, {'b': 2, 'a': 3}]",
    "select [row(1,2), row(3,4.5)]",
    "select list_transform([{'a': 1}, null], lambda x: x.a), [x.a for x in [{'a': 1}]], [x['a'] for x in [{'a': 1}]]",
    "select struct_update({'a': 1, 'b': 2}, a := 'z', c := 4)",
    "select s.x from (select null::struct(x int) as s)",
    "select struct_pack(i, j) from (values (1,2)) t(i,j)",
    "select t from (values (1,2)) t(i,j)",
    "select list(t order by i) from (values (1,2), (2, null)) t(i,j)",
    "select struct_extract_at({'a': 1, 'b': 2}, 2)",
    "select struct_insert(null::struct(a int), b := 1), struct_update(null::struct(a int), a := 1), "
    "struct_concat(null::struct(a int), {'b': 1})",
    "select struct_keys(null::struct(a int)), struct_values(null::struct(a int))",
    "select {'a': 'x y', 'b': 'x:y', 'c': 'a,b', 'd': '', 'e': ' x', 'f': 'null', 'g': '{', 'h': '(z)', 'i': "
    "'\"', 'j': 'a''b', 'k':'=', 'l': 'a\\b', 'm': date '2020-01-01', 'n': timestamp '2020-01-01 10:00:00', 'o': "
    "'x=y', 'p': 'a;b', 'q': '[1]'}::varchar",
    "select {'it''s': 1, 'b\"c': 2, 'x y':3}::varchar, [{'a': 'x,y'}]::varchar, {'a': ['x,y']}::varchar, [null, "
    "{'a': null}]::varchar",
    "select s.a, s['b'], (s).c, n.s.a from n where s.a > 1 or s is null order by i",
    "select sum(s.a), max(s.b), count(s) from n",
    "select s.c[1], s.d.e, s.d, n.s.d.e from n order by i",
    "select a.s, b.s.a from n a join n b on a.s.a = b.i order by a.i, b.i",
    "select s.b as k, sum(s.a) from n group by s.b order by 1",
    "select {'k': s.b, 'v': i} as o, i from n order by i",
    "select i, (select max(n.s.a + m.i) from n m where m.s.a = n.s.a) from n order by i",
    "select struct_pack(a := i, b := s.b).b, row_number() over (partition by s.b order by s.a, i) from n order by i",
    "select first(s order by i), last(s order by i), list(s order by i) from n",
    "select s from n union all select {'a': 5, 'b': 'q', 'c': [1], 'd': {'e': 2.5}}",
    "select unnest(s.c) as u, i from n order by i, u",
    "select x.s.a from (select s from n) x where x.s.b like 'é%'",
    "select typeof(s), typeof({'a': 1}) from n limit 1",
    "select coalesce(s.a, 0) + 1, case when s.a > 1 then s else null end from n order by i",
    "select s::struct(a varchar, z int) from n order by i",
    "select i from n where s.a in (1, 3) order by i",
    "select any_value(s), count(*) from n group by s.b order by 2, s.b",
    "select (select st.x from (select {'x': 1} as st) u) from (values (10)) st(x)",
    "select (select st.q from (select {'q': 1} as st) u) from (values (10)) st(x)",
    "select (select st.q.r from (select {'q': {'r': 1}} as st) u) from (values ({'r': 10})) st(q)",
    "select (select s.x from (select 1 as x) s) from (select {'x': 3} as s) v",
    "select (select s.y from (select 1 as x) s) from (select {'y': 3} as s) v",
    "select (select y from (select {'x': 5} as st, st.x as y) u) from (values (10)) st(x)",
    "select t.x, t.t.x from (select {'x': 1} as t, 7 as x) t",
    "select t.x, t.t.x from (select {'x': 1} as t) t",
    "select (select q.* from (select 3 as x) z) from (select {'x': 1} as q) b",
    "select (select q.* from (select 3 as x) z) from (select 1 as y) q",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select {'a': 1}.b", NameFault),
        ("select {'a': 1}['b']", NameFault),
        ("select {'a': 1}[1]", TypeFault),
        ("select row(1, 2)[3]", TypeFault),
        ("select struct_pack(1)", SyntaxFault),
        ("select {'a': 1, 'A': 2}", NameFault),
        ("select s.a.b from n", NameFault),
        ("select q.a from n", NameFault),
        ("select {'a': 1}::struct(b int)", TypeFault),
        ("select [{'a': 1}, row(1, 2)]", TypeFault),
        ("select lower(a := 'X')", Unsupported),
        ("select i.* from n", TypeFault),
        ("select (select st.y from (select 1 as st) u) from (select 2 as st) v", NameFault),
        ("select (select st.y from (select {'x': 1} as st) u) from (select 2 as y) st", NameFault),
    ],
)
def test_what_is_refused(query: str, error: type[Exception], session: bm.Session) -> None:
    with pytest.raises(error):
        session.sql(query).collect()


TABLE = pa.table({"k": [1, 1, 2, 3], "s": [{"a": 1, "b": "x"}, {"a": 2, "b": None}, None, {"a": None, "b": "é"}]})


@pytest.mark.parametrize(
    "chain",
    [
        lambda m, f: f.select(m.col("s").struct.field("a")),
        lambda m, f: f.select(m.struct("k", m.col("s").struct.field("b")).alias("q")),
        lambda m, f: f.select(m.struct("k", z=m.col("k") + 1)),
        lambda m, f: f.select(m.struct(z="k", y=m.col("k") + 1)),
        lambda m, f: f.select(m.struct(m.all())),
        lambda m, f: f.select(m.struct(m.col("k") * 2, m.col("s")).alias("u"), q=m.struct(m.all(), n="k")),
        lambda m, f: f.with_columns(m.struct(m.all()).alias("a")).select(m.col("a").struct.field("k")),
        lambda m, f: f.select(m.struct(m.col("k", "s"), z=m.lit("v"))),
        lambda m, f: f.unnest("s"),
        lambda m, f: f.with_columns(n=m.col("s").struct.field("a").fill_null(0)).filter(m.col("n") > 0),
    ],
)
def test_frames_as_in_polars(chain: Callable[[Any, Any], Any]) -> None:
    with bm.connect(threads=1) as session:
        session.register("t", TABLE)
        found = chain(bm, session.table("t")).collect()
    expected = chain(pl, pl.DataFrame(TABLE).lazy()).collect().to_arrow()
    assert found.column_names == expected.column_names
    assert rows(found) == rows(expected)


def test_unnest_refuses_names_that_come_twice() -> None:
    with bm.connect(threads=1) as session:
        session.register("t", pa.table({"a": [1], "s": [{"a": 2}]}))
        with pytest.raises(ArgumentFault, match="two columns called 'a'"):
            session.table("t").unnest("s")
        with pytest.raises(TypeFault, match="structs"):
            session.table("t").unnest("a")

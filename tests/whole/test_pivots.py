"""PIVOT and UNPIVOT in both their forms, against DuckDB: values and names."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from support import null_tables
from support.two_engines import check

import bireme as bm
from bireme.errors import BiremeError, ClauseFault, NameFault, SyntaxFault, TypeFault, Unsupported

QUERIES = [
    "pivot w on h in ('x', 'y') using sum(n) group by g",
    "pivot w on h in ('x', 'y') using sum(n)",
    "pivot w on h in ('x', 'y') using sum(n), max(n) group by g",
    "pivot w on h in ('x', 'y') using sum(n) as s, max(n) as m group by g",
    "pivot w on h in ('x', 'y') using sum(n) as s group by g",
    "pivot w on h in ('x', 'y', null) using count(*) group by g",
    "pivot w on h in ('x')",
    "pivot main.w on h in ('x'), g in ('a', 'b') using sum(n)",
    "pivot w on h in ('x'), g in ('a', 'zz') using count(*)",
    "pivot w on n in (1, 2, 99) using first(h) group by g",
    "pivot w on h in ('x') using sum(n) filter (where n > 2) group by g",
    "pivot w on upper(h) in ('X', 'Y') using sum(n) group by g",
    "pivot (select g, h from w where n > 1) on h in ('x', 'y') using count(*)",
    "pivot e on s in ('x') using count(*) group by a",
    "pivot e on s in ('x') using count(a), sum(a)",
    "with q as (select a, s from t) pivot q on a in (1, 2) using count(s) as c, max(s) as m",
    "select * from (pivot w on h in ('x', 'y') using sum(n)) order by g",
    "select * from w pivot (sum(n) for h in ('x', 'y'))",
    "select * from w pivot (sum(n) as total for h in ('x' as ex, 'y') group by g)",
    "select * from w pivot (sum(n), max(n) for h in ('x') g in ('a', 'b'))",
    "select p.g, p.x + 1 as k from w pivot (sum(n) for h in ('x', 'y')) p",
    "select * from w q pivot (sum(n) for h in ('x', 'y')) p join u on p.x = u.a",
    "select * from (select g, h, n from w) pivot (count(*) for h in ('x'))",
    "unpivot t on A, B",
    "unpivot (select a as Jan, b as FEB from t) on jan, feb",
    "unpivot (select a as Jan, b as FEB from t) on (jan, feb), (feb, jan) into name k value v, w",
    "unpivot t on a, b",
    "unpivot t on a, b into name k value v",
    "unpivot t on columns('^[ab]$') into name k value v",
    "unpivot (select a, b, s from t) on * exclude (s)",
    "unpivot (select a, x, f, s from t) on a, x, f",
    "unpivot t on (a, b) as ab, (b, a) as ba into name k value v1, v2",
    "unpivot t on (a, b), (b, a) into name k value v1, v2",
    "unpivot t on a::varchar, s",
    "unpivot (select a, b, s from t) on columns(*)::varchar",
    "unpivot t on (A + 100)::varchar, s as text into name k value v",
    "select * from t unpivot (v for k in (a::varchar, s))",
    "unpivot t on a as first, b into name k value v",
    "unpivot e on a into name k value v",
    "select * from t unpivot (v for k in (a, b as bb))",
    "select * from t unpivot include nulls (v for k in (a, b))",
    "select * from t unpivot ((v, z) for k in ((a, b), (b, a) as z2))",
    "select * from t unpivot include nulls ((v, z) for k in ((a, b), (b, a) as z2))",
    "select k, sum(v) as total from (unpivot t on a, b into name k value v) group by k",
    "select q.k, q.v from t unpivot (v for k in (a, b)) q where q.v > 2",
    "select * from (select * from w pivot (sum(n) for h in ('x', 'y'))) unpivot (v for k in (x, y))",
    "select * from w pivot (sum(n) for h in ('x', 'y')) as p unpivot (v for k in (x, y))",
    "select * from w pivot (sum(n) for h in ('x', 'y')) unpivot include nulls (v for k in (x, y)) q where q.k = 'x'",
    "pivot w on h in (x, y) using sum(n) group by g",
    "pivot w on n in (1 + 1, (case when true then 3 end)) using count(*) group by g",
    "select * from (select a, [b] as l, s from t) pivot (count(*) for (a, l) in ((1, [10]), (null, [null])))",
    "pivot t on x in (1.5, 2.25, '-3.00') using count(*) group by s",
    "pivot t on f in (1, 2.5, 'nan') using count(*) group by s",
    "pivot t on a in ('1', '02') using count(*)",
    "pivot t on s in (1, one) using count(*)",
    "pivot t on d in ('2020-1-1', date '2020-02-29') using count(*) group by a",
    "select * from t pivot (count(*) for (a, s) in ((1, 'one'), (2, two), (null, null)) group by b)",
    "pivot t on a in (b, 1) using count(*)",
    "pivot w on h in ('x') using coalesce(sum(n), 0) group by g",
    "pivot w on h in ('x', 'y') using sum(n)::varchar as s, round(avg(n)) as r group by g",
    "pivot w on h in ('x') using first(n order by n desc) group by g",
    "pivot w using sum(n)",
    "pivot w using sum(n), count(*) as c group by g",
    "pivot w group by g",
]


LOOKED_UP = [
    "pivot w on h using sum(n)",
    "pivot w on h using sum(n) group by g",
    "pivot w on h, g using sum(n), max(n) as m",
    "pivot w on n",
    "pivot w on h",
    "pivot (select *, 1 as k from e) on s using sum(a)",
    "pivot (select *, 1 as k from e) on s, a using count(*)",
    "pivot t on d using count(*) group by a",
    "pivot t on x using count(*) group by a",
    "pivot t on f using count(*) group by a",
    "pivot v on e using count(*)",
    "pivot w on (h = 'x') using count(*) group by g",
    "pivot w on h || '_' || g using sum(n) group by g",
    "pivot w on case when h = 'x' then null else h end using count(*) group by g",
    "pivot w on [h] using count(*) group by g",
    "pivot (select g, h from w where n > 1) on h using count(*)",
    "pivot (pivot w on h using sum(n)) on g using max(x)",
    "with q as (select a, s from t) pivot q on a using count(s) as c",
    "with q as (select a, s from t), p as (pivot q on a using count(s)) select * from p",
    "pivot w on h in (select h from w order by h desc) using sum(n)",
    "pivot w on n in (select n from w where n > 2 order by n desc limit 2) using count(*)",
    "pivot w on h in (select 'y' union all select 'x' union all select 'zz') using sum(n) group by g",
    "pivot w on h in (with q as (select 'y') from q) using sum(n) group by g",
    "pivot (select range as r from range(30)) on r using sum(r), sum(r)",
    "pivot (from range(12)) on range using count(*)",
    "describe pivot w on h using sum(n)",
    "pivot w on h using sum(n) filter (where n > 2) group by g",
]
ORDERED = [
    "pivot w on h in ('x', 'y') using sum(n) group by g order by g",
    "pivot w on h using sum(n) group by g order by g nulls first limit 2",
    "pivot w on h using sum(n) order by all",
    "pivot w on h using sum(n) group by g order by x desc nulls last limit 1 offset 1",
    "pivot w using sum(n) as s group by g order by s",
    "with q as (select * from w) pivot q on h using sum(n) group by g order by g",
    "with q as (select * from w) pivot (select * from q) on h using sum(n) group by g order by g",
    "with p as (pivot w on h using sum(n) group by g order by g limit 1) select * from p",
    "select * from (pivot w on h using sum(n) group by g order by g limit 1) order by 1",
    "unpivot t on a, b order by all limit 5",
    "with q as (select a, b from t) unpivot q on a, b into name k value v order by k, v desc",
    "pivot w on h using first(n order by n) group by g order by g",
    "select (select count(*) from (pivot w on h using sum(n) group by g limit 2)) as k order by k",
]


TABLES = (
    *(f"create table {name} {text}" for name, text in null_tables.TABLES.items()),
    "create table e (a int, s varchar)",
)


@pytest.mark.parametrize("query", QUERIES + LOOKED_UP)
def test_values_and_names(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = f"from ({query})" if query.startswith(("pivot", "unpivot", "with")) else query
    check(text, session, oracle)
    assert session.sql(query).schema.names == oracle.sql(text).columns


@pytest.mark.parametrize(
    ("query", "kind", "words", "marked"),
    [
        ("pivot w on zz in ('x') using sum(n)", NameFault, "zz", "zz"),
        ("pivot w on h in ('x') using sum(zz)", NameFault, "zz", "zz"),
        ("pivot w on h in (n + 1) using sum(n)", BiremeError, "", "n + 1"),
        ("pivot w on h || '_' in ('x_') using sum(n)", Unsupported, "operator", "h || '_' in"),
        ("pivot zz on h in ('x') using sum(n)", NameFault, "zz", "zz"),
        ("pivot w on h in ('x') using upper(g)", ClauseFault, "aggregates", "h in ('x') using upper(g)"),
        ("unpivot t on a, s", TypeFault, "UNPIVOT mixes", "a, s"),
        ("unpivot t on a, zz", NameFault, "zz", "zz"),
        ("unpivot t on (a, b) as ab into name k value v", ClauseFault, "value columns", "(a, b) as ab"),
        ("unpivot (select a from t) on columns(* exclude (a))", ClauseFault, "at least one column", "(select a"),
        ("select * from t unpivot (v for k in ())", ClauseFault, "at least one column", "t unpivot"),
        ("unpivot t on a + b, b", ClauseFault, "one column each", "a + b"),
        ("unpivot t on a + (select 1), b", Unsupported, "no subqueries", "a + (select"),
        ("pivot w on h in ('x') using round(sum(n) + max(n))", ClauseFault, "one of", "round(sum"),
        ("pivot w on h in ('x') using sum(n) over ()", Unsupported, "window", "sum(n) over"),
        ("pivot w on h in (select h, g from w) using sum(n)", ClauseFault, "one column", "select h, g"),
        ("pivot w on h in (select zz from w) using sum(n)", NameFault, "zz", "zz"),
        ("pivot w on h in ('x', 'y', 'x') using sum(n)", ClauseFault, "twice", "'x') using"),
        ("pivot w on 'k' using sum(n)", ClauseFault, "constant", "'k'"),
        ("pivot w on (select h) using sum(n)", Unsupported, "subquery", "(select h)"),
        ("pivot w on zz using sum(n)", NameFault, "zz", "zz"),
        ("pivot w on h using sum(n) order by zz", NameFault, "zz", "zz"),
        ("pivot (from range(5000)) on range", ClauseFault, "4096", "range"),
        (
            "select (select x from (pivot (select h, t.a from w) on h using sum(a))) from t",
            Unsupported,
            "around it",
            "select h, t.a",
        ),
        ("select * from t unpivot (v for (k, l) in (a, b))", SyntaxFault, "one name FOR", "t unpivot"),
    ],
)
def test_what_is_refused(session: bm.Session, query: str, kind: type[BiremeError], words: str, marked: str) -> None:
    with pytest.raises(kind) as raised:
        session.sql(query)
    assert words in raised.value.message
    place = raised.value.position
    assert place is not None
    assert query.index(marked) <= place.start, query[place.start : place.end]


@pytest.mark.parametrize("query", ORDERED)
def test_order_behind_statements(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)
    assert session.sql(query).schema.names == oracle.sql(query).columns


def test_values_are_those_of_the_table_as_it_is(session: bm.Session) -> None:
    query = "pivot changing on k using count(*)"
    for values in (["a", "b"], ["a", "b"], ["c"]):
        session.register("changing", pa.table({"k": values}))
        assert list(session.sql(query).schema.names) == sorted(set(values))
    session.drop("changing")


def test_parameters_beside_values_that_are_looked_up(session: bm.Session) -> None:
    frame = session.sql("pivot (select * from w where n > ?) on h using sum(n + ?) group by g order by g", [2, 10])
    assert frame.collect().to_pydict() == {"g": ["a", "b", None], "x": [16, 13, 15]}

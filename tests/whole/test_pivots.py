"""PIVOT and UNPIVOT in both their forms, against DuckDB: values and names."""

from __future__ import annotations

import duckdb
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
    "unpivot t on a as first, b into name k value v",
    "unpivot e on a into name k value v",
    "select * from t unpivot (v for k in (a, b as bb))",
    "select * from t unpivot include nulls (v for k in (a, b))",
    "select * from t unpivot ((v, z) for k in ((a, b), (b, a) as z2))",
    "select * from t unpivot include nulls ((v, z) for k in ((a, b), (b, a) as z2))",
    "select k, sum(v) as total from (unpivot t on a, b into name k value v) group by k",
    "select q.k, q.v from t unpivot (v for k in (a, b)) q where q.v > 2",
    "select * from (select * from w pivot (sum(n) for h in ('x', 'y'))) unpivot (v for k in (x, y))",
]


TABLES = (
    *(f"create table {name} {text}" for name, text in null_tables.TABLES.items()),
    "create table e (a int, s varchar)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_values_and_names(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = f"from ({query})" if query.startswith(("pivot", "unpivot")) else query
    check(text, session, oracle)
    assert session.sql(query).schema.names == oracle.sql(text).columns


@pytest.mark.parametrize(
    ("query", "kind", "words", "marked"),
    [
        ("pivot w on h using sum(n)", Unsupported, "write ON h IN", "h"),
        ("select * from w pivot (sum(n) for h in (select h from w))", Unsupported, "write ON h IN", "h in (select"),
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
        ("unpivot t on a + 1", Unsupported, "takes columns", "a + 1"),
        ("pivot w on h in ('x') using sum(n) order by g", SyntaxFault, "order by", "order by"),
    ],
)
def test_what_is_refused(session: bm.Session, query: str, kind: type[BiremeError], words: str, marked: str) -> None:
    with pytest.raises(kind) as raised:
        session.sql(query)
    assert words in raised.value.message
    place = raised.value.position
    assert place is not None
    assert query.index(marked) <= place.start, query[place.start : place.end]

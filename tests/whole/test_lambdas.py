"""Lambdas given to functions of lists, and list comprehensions, against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ArgumentFault, ClauseFault, DomainFault, NameFault, Overflow, TypeFault, Unsupported

TABLES = (
    """create table t as select i as i, case i when 0 then null when 1 then []::bigint[]
    else [i, 2 - i, null, i * i] end as l, case when i < 2 then null else ['a,b', 's' || i, null] end as s,
    [(i / 4)::double, 'nan'::double, null] as x from range(8) r(i)""",
)

QUERIES = [
    "select list_reduce([0], lambda acc, x: acc or x > 1, false), list_reduce([1, 2], lambda x, y: x + y, "
    "3.5), list_reduce(['b'], lambda x, y: x || y, 'a'), list_reduce([2], lambda x, y: x || y, 'a')",
    "select list_reduce([1,2,3], lambda x,y,i: x*100+y*10+i, 7)",
    "select list_reduce([1,2,3], lambda x,y,i: x*100+y*10+i)",
    "select list_reduce([1,2,3], lambda x,y: x+y*0.5)",
    "select list_reduce([1.5,2.25], lambda x,y: x+y)",
    "select list_reduce([1,2]::tinyint[], lambda x,y: x+y)",
    "select list_reduce([]::int[], lambda x,y: x+y, 3)",
    "select list_reduce(NULL::int[], lambda x,y: x+y, 3), list_reduce([1,null,2], lambda x,y: "
    "coalesce(x,9)+coalesce(y,5))",
    "select list_reduce([1,2], lambda x,y: x+y, 3.5)",
    "select list_reduce([1,2], lambda x,y: x+y, null)",
    "select list_transform([1,2,null], lambda x: x+1), list_transform([], lambda x: x + 1)",
    "select list_transform([1,2,null], lambda x, i: x+i), list_filter([1,2,null], lambda x: x > 1), "
    "list_filter([5,6,7], lambda x, i: i <> 2)",
    "select list_filter([1,2], lambda x: x), list_filter([1,2], lambda x: null)",
    "select list_transform([1,2], lambda x: sum(y)) from (values (1),(2)) t(y)",
    "select list_transform([1,2], lambda x: row_number() over ()) from (values (1),(2)) t(y)",
    "select list_transform([1,2], lambda x: x + y) from (values (1),(2)) t(y) group by y",
    "select list_transform([[1,2],[3]], lambda x: list_transform(x, lambda y: y + len(x)))",
    "select list_transform([[1,2],[3]], lambda x: list_transform(x, lambda x: x + 1))",
    "select list_transform([1,2], lambda x: x), x from (values (10)) t(x)",
    "select [x + 1 for x in [1,2,3] if x > 1], [x + i for x, i in [5,6]], [x for x in [[1]]]",
    "select [x + i for x, i in [5,6,7] if i > 1 and x < 7]",
    "select list_transform(a, lambda x: x), b as a from (values ([1], 2)) t(a, b)",
    "select list_transform(l, lambda x: x + i), list_transform(l, lambda x, j: x * j + i), list_transform(s, "
    "lambda x: x || i) from t",
    "select list_filter(l, lambda x: x > i), list_filter(s, lambda x: x like '%' || i), list_transform(l, "
    "lambda x: case when x > 2 then 10 / (x - 2) end) from t",
    "select list_reduce(l, lambda a, b: coalesce(a, 0) + coalesce(b, i), 0::bigint) from t",
    "select list_transform(l, lambda x: list_transform(l, lambda y: x * y + i)) from t",
    "select i, list_sum(list_transform(l, lambda x: x + i)) as q from t where list_sum(list_filter(l, lambda "
    "x: x > 1)) > 3 order by q desc nulls last, i",
    "select sum(list_sum(list_transform(l, lambda x: x + i))) from t",
    "select max(list_max(list_transform(l, lambda x: x + i))) over (order by i) from t",
    "select list_transform(list_filter(l, lambda x: x is not null), lambda x: x::varchar || 'é') from t",
    "select a.i, list_filter(a.l, lambda x: x <> b.i) from t a join t b on a.i = b.i + 1",
    "select t.i, (select list_transform(t.l, lambda x: x + u.i)) from t, (select 3 as i) u",
    "select (select max(list_sum(list_transform(t.l, lambda x: x + u.i))) from t u where u.i = t.i) from t",
    "select i + 1 as z, list_transform(l, lambda y: y + z) from t",
    "select list_filter(s, lambda x: regexp_matches(x, '^s[0-3]')), list_transform(s, lambda x: upper(x)) from t",
    "select list_transform(s, lambda x: string_split(x, ',')) from t",
    "select list_transform(x, lambda v: v + 1), list_filter(x, lambda v: v = 'nan') from t",
    "select list_transform([l, [i]], lambda q: q[1]), list_transform(range(i), lambda q: date '2020-01-01' + "
    "q::int) from t",
    "select list_transform(l, lambda i: i + 1) from t",
    "select list_transform([100], lambda i: i + sum(t.i)), list_transform([1], lambda x: sum(i) + x) from t",
    "select i as y, list_transform([1], lambda i: sum(y) + i) from t group by all",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select list_reduce([]::int[], lambda x, y: x + y)", DomainFault),
        ("select list_reduce([100, 100]::tinyint[], lambda x, y: x + y)", Overflow),
        ("select list_reduce([1], lambda x, y: x || y)", TypeFault),
        ("select list_reduce([1], lambda x: x)", TypeFault),
        ("select list_transform([1], lambda x, y, z: x)", TypeFault),
        ("select list_transform(1, lambda x: x)", TypeFault),
        ("select list_transform([1], 2)", TypeFault),
        ("select list_sum([1], lambda x: x)", Unsupported),
        ("select list_transform([1], lambda x: (select x))", Unsupported),
        ("select sum(1) EXPORT_STATE", Unsupported),
        ("select list_transform([1], lambda x: sum(x))", ClauseFault),
        ("select list_transform([1], lambda i: sum(i)) from t", ClauseFault),
        ("select list_transform([1], lambda i: sum(t.i) filter (where i > 1)) from t", ClauseFault),
        ("select list_transform([1], lambda i: list(t.i order by i)) from t", ClauseFault),
        ("select list_transform([1], lambda i: sum(i) over ()) from t", ClauseFault),
        ("select list_transform([1], lambda i: sum(t.i) over (order by i)) from t", ClauseFault),
        (
            "select list_transform([1], lambda x: sum(list_sum(list_transform([2], lambda y: y + x)))) from t",
            ClauseFault,
        ),
        ("select list_transform([{'i': 1}], lambda s: max(s.i)) from t", ClauseFault),
        ("select [sum(i) for i in [1, 2]] from t", ClauseFault),
        ("select list_transform([1], lambda x: y)", NameFault),
        ("select x, list_transform([1], lambda x: x)", NameFault),
    ],
)
def test_what_is_refused(query: str, error: type[Exception], session: bm.Session) -> None:
    with pytest.raises(error):
        session.sql(query).collect()


def test_a_lambda_inside_an_aggregate_inside_a_lambda_has_parameters_of_its_own(session: bm.Session) -> None:
    inner = "sum(list_sum(list_transform([1], lambda {0}: {0} + v)))"
    for name in ("x", "y"):
        query = f"select list_transform([100], lambda x: x + {inner.format(name)}) as r from (values (1), (2)) q(v)"
        assert session.sql(query).collect()["r"].to_pylist() == [[105]]


def test_a_lambda_fails_for_no_element_that_is_not_asked(session: bm.Session) -> None:
    query = "select list_transform(list_filter([2, 0, 1], lambda x: x > 0), lambda x: 4 // x) as v"
    assert session.sql(query).collect()["v"].to_pylist() == [[2, 4]]


def test_elements_in_frames() -> None:
    table = pa.table({"k": [1, 1, 2], "i": [1, 2, 3], "l": [[1, 2, None], [], None]})
    element = bm.element()
    with bm.connect(threads=1) as session:
        session.register("t", table)
        frame = session.table("t")
        lists = bm.col("l").list
        found = frame.select(lists.eval(element * 2 + bm.col("i")), big=lists.filter(element > 1)).collect()
        assert found.to_pydict() == {"l": [[3, 5, None], [], None], "big": [[2], [], None]}
        grouped = frame.group_by("k").agg(lists.eval(element + 1).list.max().max().alias("m")).sort("k").collect()
        assert grouped.to_pydict() == {"k": [1, 2], "m": [3, None]}
        with pytest.raises(ArgumentFault, match="element"):
            frame.select(element)
        with pytest.raises(Unsupported, match="alone"):
            frame.select(lists.eval(element.sum()))

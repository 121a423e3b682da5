"""Lists that become rows: unnest in FROM, in select lists and in correlated subqueries, against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ClauseFault, Unsupported

TABLES = (
    """create table t as select i as id, i % 3 as g, [i::varchar, 'x'] as s,
    case i % 4 when 0 then null when 1 then []::bigint[] when 2 then [0, i, null, i * i] else [i] end as l
    from range(12) r(i)""",
)

QUERIES = [
    "select count(*), sum(x) from unnest((select list(id) from t)) u(x)",
    "select (select list(id order by id) from t where g=1), (select [[1], null]), (select list(s) from t where g < 0)",
    "select unnest([1,2,3])",
    "select unnest([1,2,3]) + 1 as x, unnest([10,20]) y",
    "from unnest([1,2,3])",
    "from unnest(['a',null]) u(x)",
    "select id, unnest(l) from t",
    "select id, unnest(l), unnest(s) from t order by all",
    "select * from t, unnest(l) u(x)",
    "select id, x from t left join unnest(l) u(x) on true order by all",
    "select id, x from t cross join lateral (select unnest(l) as x) order by all",
    "select g, sum(x) from (select g, unnest(l) x from t) group by g order by g",
    "select id, (select sum(x) from unnest(l) u(x)) from t order by id",
    "select id, (select count(*) from unnest(l) u(x) where x > id) from t order by id",
    "select id from t where exists (select 1 from unnest(l) u(x) where x = 4) order by id",
    "select id from t where 6 in (select unnest(l)) order by id",
    "select max(g), unnest(list(id)) from t group by g order by all",
    "select id, x from t, unnest(l) u(x) where x > 3 and id < 9 order by all",
    "select a.id, x, b.id from t a, unnest(a.l) u(x) join t b on b.id = x order by all",
    "select id, r from t, range(id) x(r) order by all",
    "select id, r from t, generate_series(1, g) x(r) order by all",
    "select count(*) from t, unnest(l)",
    "select count(*) from (select unnest(l) from t)",
    "select id, unnest(l) from t order by id desc, 2 limit 5",
    "select distinct unnest(s) from t order by 1",
    "select * from unnest([3,4]) with ordinality u(x,o)",
    "select id, x, o from t, unnest(s) with ordinality u(x,o) order by all",
    "select unnest([]::int[])",
    "select unnest([[1,2],[3]])",
    "select row_number() over (order by id), unnest(s) from t order by all",
    "select unnest(list(x)) from (select id x from t) order by 1",
    "select id, (select list(x) from unnest(l) u(x) where x is not null) from t order by id",
    "select id, (select x from unnest(l) u(x) order by x desc limit 1) from t order by id",
    "select id, y from t, lateral (select x+id as y from unnest(l) u(x) where x > 2) order by all",
    "select id, y from t left join lateral (select x+id as y from unnest(l) u(x) where x > 2) on true order by all",
    "select id, y, z from t, lateral (select sum(x) y from unnest(l) u(x)), lateral (select y + 1 as z) order by all",
    "select id, c from t, lateral (select count(*) c from unnest(l) u(x) join unnest(s) v(y) on y = "
    "x::varchar) order by all",
    "select g, (select sum(x) from t b, unnest(b.l) u(x) where b.g = a.g) from t a order by all",
    "select id, len(l) = (select count(*) from unnest(l)) from t order by all",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    ("query", "fault", "message"),
    [
        ("select sum(unnest(l)) from t", ClauseFault, "unnest in aggregate"),
        ("select row_number() over () from t qualify unnest(l) = 1", ClauseFault, "unnest in QUALIFY"),
        ("select id from t where unnest(l) = 1", ClauseFault, "unnest in WHERE"),
        ("select unnest(unnest([[1]]))", Unsupported, "another unnest"),
    ],
)
def test_refusals(query: str, fault: type[Exception], message: str, session: bm.Session) -> None:
    with pytest.raises(fault, match=message):
        session.sql(query)


def test_lists_longer_than_a_batch(session: bm.Session) -> None:
    lengths = [0, 200_000, 3, 0, 70_000]
    offsets = pa.array([0, *[sum(lengths[: end + 1]) for end in range(len(lengths))]], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(range(sum(lengths)), pa.int64()))
    session.register("long", pa.table({"id": list(range(len(lengths))), "l": lists}))
    query = "select id, count(*), sum(x), max(o) from long, unnest(l) with ordinality u(x, o) group by id order by id"
    found = session.sql(query).collect().to_pydict()
    assert list(found.values())[:2] == [[1, 2, 4], [200_000, 3, 70_000]]
    assert [int(value) for value in found["sum(x)"]] == [
        sum(range(200_000)), sum(range(200_000, 200_003)), sum(range(200_003, 270_003)),
    ]  # fmt: skip
    assert found["max(o)"] == [200_000, 3, 70_000]


def test_elements_under_a_null_and_of_a_slice(session: bm.Session) -> None:
    nulls = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()), pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    session.register("cut", pa.table({"l": nulls}).slice(1))
    assert session.sql("select unnest(l) as x from cut").collect().to_pydict() == {"x": [5]}

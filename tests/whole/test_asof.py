"""As-of and positional joins, rows in order, and WITHIN GROUP, against DuckDB."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ClauseFault, Unsupported

TABLES = (
    """create table l as select i as id, case when i % 11 = 0 then null else i % 3 end as k,
    case when i % 7 = 0 then null else (i * 37) % 23 end as t from range(40) x(i)""",
    """create table r as select case when i % 13 = 0 then null else i % 3 end as k,
    case when i % 9 = 0 then null else i end as t, i * 2 as v from range(26) x(i)""",
)

QUERIES = [
    "select l.id, l.t, r.t, r.v from l asof join r on l.k = r.k and l.t >= r.t order by all",
    "select l.id, r.v from l asof left join r on l.k = r.k and l.t >= r.t order by all",
    "select l.id, r.v from l asof left join r on l.k = r.k and l.t > r.t order by all",
    "select l.id, r.v from l asof left join r on l.k = r.k and l.t <= r.t order by all",
    "select l.id, r.v from l asof join r on l.k = r.k and r.t < l.t order by all",
    "select l.id, r.v from l asof left join r on l.k = r.k and r.t > l.t order by all",
    "select * from l asof join r using (k, t) order by all",
    "select * from l asof left join r using (k, t) order by all",
    "select l.id, r.v from l asof left join r on l.t >= r.t order by all",
    "select count(*), sum(r.v) from l asof join r on l.k = r.k and l.t + 1 >= r.t",
    *[
        f"select l.id, r.v from l asof {kind} join r on l.k = r.k and l.t {test} r.t order by all"
        for kind in ("right", "full")
        for test in (">=", ">", "<=", "<")
    ],
    *[
        f"select l.id from l asof {kind} join r on l.k = r.k and l.t {test} r.t order by all"
        for kind in ("semi", "anti")
        for test in (">=", "<")
    ],
    "select r.v, l.id from l asof right join r on l.t >= r.t order by all",
    *[
        f"select l.id, r.v from l asof {kind} join r on l.k {test} r.k and l.t {near} r.t and {more} order by all"
        for kind in ("inner", "left")
        for test in ("=", "is not distinct from")
        for near, more in product((">=", "<"), ("(l.id % 3 = r.v % 3 or l.id = 4)", "r.v % 5 <> l.id % 5 and r.v > 3"))
    ],
    "select l.id, r.v from l asof left join r on l.k is not distinct from r.k and l.t >= r.t order by all",
    "select l.id, r.v from l asof right join r on l.k is not distinct from r.k and l.t < r.t order by all",
    "select l.id from l asof anti join r on l.k is not distinct from r.k and l.t < r.t order by all",
    "select l.id from l asof semi join r on l.k = r.k and l.t < r.t and l.id % 3 = r.v % 3 order by all",
    "select l.id from l asof anti join r on l.t >= r.t and l.id % 3 = r.v % 3 and l.id > 7 and r.v < 30 order by all",
    "select * from l asof right join r using (k, t) order by all",
    "select id from l asof semi join r using (k, t) order by all",
    "select id from l asof anti join r using (k, t) order by all",
    *[
        f"select l.id, r.v from l asof {kind} join r on l.k = r.k and l.t >= r.t and {more} order by all"
        for kind in ("inner", "left")
        for more in (
            "r.v % 4 = 0",
            "l.id % 2 = 0",
            "l.id + r.v > 20",
            "true",
            "r.v > 10 and l.id > 3",
            "1 = 1",
            "false",
        )
    ],
    *[
        f"select l.id from l asof {kind} join r on l.k = r.k and l.t >= r.t and {more} order by all"
        for kind in ("semi", "anti")
        for more in ("r.v % 4 = 0", "l.id % 2 = 0", "l.id + r.v > 20")
    ],
    "select l.id, x.v from l asof left join (select k, t, v from r where v > 20) x on l.k = x.k and l.t "
    ">= x.t order by all",
    "select l.id, r.v, s.v from l asof left join r on l.k = r.k and l.t >= r.t asof left join r s on l.k "
    "= s.k and l.t < s.t order by all",
    "select a.id, b.v from (select id from l where id < 5) a positional join (select v from r where v < 30) b",
    "select l.id, l.t, r.v from l positional join r",
    "select r.v, x.other from r positional join (select id + 1 as other from l) x where x.other > 3 or r.v is null",
    "select count(*), sum(a.id - b.id), count(r.k) from l a positional join l b positional join r",
    "select (1,2) < (1,3), (1,null) < (1,2), (null,1) > (1,2), (2,1) <= (2,1), (1,2) > (1,1), (null, 1) < "
    "(null, 2), (1,2) >= (1,3)",
    "select id from l where (k, t) < (1, 5) order by id",
    "select id from l where (k, t) >= (1, 5) order by id",
    "select mode() within group (order by k is null), percentile_cont(0.5) within group (order by t), "
    "percentile_disc(0.25) within group (order by t) from l",
    "select k, percentile_cont(0.5) within group (order by t) from l group by k order by k",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


def test_an_ordered_aggregate_takes_its_order_behind_it(session: bm.Session) -> None:
    query = "select string_agg(id::varchar, ',') within group (order by id desc) as s from l where id < 4"
    assert session.sql(query).collect().to_pydict() == {"s": ["3,2,1,0"]}


@pytest.mark.parametrize(
    ("query", "fault", "message"),
    [
        ("select 1 from l asof join r on l.k = r.k", ClauseFault, "one inequality"),
        ("select 1 from l asof join r on l.t >= r.t and l.id >= r.v", ClauseFault, "has 2"),
        ("select 1 from l asof join r on l.t >= r.t and exists (select 1 where l.id = r.v)", Unsupported, "subquery"),
        ("select 1 from l asof join r on l.t >= r.t + (select l.id)", Unsupported, "correlated"),
        ("select 1 from l asof full join r on l.t >= r.t and l.id + r.v = 3", Unsupported, "one side each"),
        ("select 1 from l asof join (select l.id) x on l.t >= x.id", Unsupported, "cannot read the left side"),
        ("select mode() within group (order by t desc) from l", Unsupported, "DESC"),
    ],
)
def test_refusals(query: str, fault: type[Exception], message: str, session: bm.Session) -> None:
    with pytest.raises(fault, match=message):
        session.sql(query)

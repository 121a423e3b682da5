"""Keys of joins that may fail: they do where there is a row to compare them with, and nowhere else, as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check, connect, rows, session_over

import bireme as bm
from bireme.errors import ConversionFault

# Texts `t.s` that are no numbers, and a few or many others beside them, of which a query may see none.
TABLES = (
    "create table t as select 'x' || i as s, i as x from range(4) r(i)",
    "create table long as select 'x' || i as s, i as x from range(3000) r(i)",
    "create table none as select i as y from range(0) r(i)",
    "create table few as select i as y from range(5) r(i)",
    "create table many as select i as y from range(2000) r(i)",
)
KEY = "cast(t.s as bigint)"
QUERIES = (
    "select x from {t} t join {u} u on {key} = u.y",
    "select x from {u} u join {t} t on {key} = u.y",
    "select x, y from {t} t left join {u} u on {key} = u.y",
    "select x, y from {u} u left join {t} t on {key} = u.y",
    "select x, y from {t} t right join {u} u on {key} = u.y",
    "select x, y from {t} t full join {u} u on {key} = u.y",
    "select x, y from {t} t full join {u} u on {key} = u.y and u.y < t.x",
    "select x from {t} t, {u} u where {key} = u.y",
    "select x from {t} t, {u} u where {key} = u.y and u.y < t.x",
    "select x from {t} t where exists (select 1 from {u} u where {key} = u.y)",
    "select x from {t} t where not exists (select 1 from {u} u where {key} = u.y)",
    "select x from {t} t where exists (select 1 from {u} u where {key} = u.y and u.y < t.x)",
    "select x from {t} t where exists (select 1 from {u} u where {key} = u.y) or t.x = 1",
    "select y from {u} u where exists (select 1 from {t} t where u.y = {key})",
    "select y from {u} u where not exists (select 1 from {t} t where u.y = {key} and t.x > u.y)",
    "select x from {t} t where {key} in (select y from {u} u)",
    "select x from {t} t where {key} not in (select y from {u} u)",
    "select x, {key} in (select y from {u} u) as q from {t} t",
    "select x, (select max(y) from {u} u where u.y = {key}) as q from {t} t",
    "select x, (select y from {u} u where u.y = {key}) as q from {t} t",
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_key_fails_for_a_row_to_compare_it_with_only(
    query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection
) -> None:
    for t in ("t", "long"):
        expected = rows(oracle.sql(query.format(t=t, u="none", key=KEY)).to_arrow_table())
        for nothing in ("none", "(select y from few where y > 9)", "(select y from many where y % 7 = 8)"):
            found = rows(session.sql(query.format(t=t, u=nothing, key=KEY)).collect())
            assert sorted(found, key=repr) == sorted(expected, key=repr), nothing
        with pytest.raises(ConversionFault):
            session.sql(query.format(t=t, u="few", key=KEY)).collect()
        with pytest.raises(ConversionFault):
            session.sql(query.format(t=t, u="many", key=KEY)).collect()
    check(query.format(t="t", u="many", key="cast(substr(t.s, 2) as bigint)"), session, oracle)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(y) from (select y from l) u full join r on r.k + 1 = u.y",
        "select count(*), sum(u.y) from l u, r where r.k + 1 = u.y",
        "select count(*), sum(u.y) from l u, r, r q where r.k + 1 = u.y and q.k = r.k",
        "select count(*), sum(u.y) from l u, r where u.y > 5 and r.k + 1 = u.y and r.v < u.v",
        "select count(*) from l u where exists (select 1 from r where r.k + 1 = u.y and r.v <> u.v)",
        "select count(*) from l u where exists (select 1 from r where r.k = u.y + 1) or u.y < 9",
        "select count(*), sum(q) from (select (select k from r where r.k + 1 = u.y) as q from l u)",
    ],
)
def test_an_equality_that_may_fail_is_no_product(query: str) -> None:
    count = 60_000
    with (
        connect(
            f"create table l as select i as y, i % 7 as v from range({count}) r(i)",
            f"create table r as select i as k, i % 5 as v from range({count}) r(i)",
        ) as oracle,
        session_over(oracle, "native") as session,
    ):
        check(query, session, oracle)


@pytest.mark.parametrize("stream", ["none", "few"])
def test_the_fault_of_a_key_outlives_little_memory(stream: str) -> None:
    query = f"select count(*), count(b.k), sum(length(b.w)) from {stream} s full join b on cast(b.k as bigint) = s.y"
    setup = (
        "create table b as select case when i = 7777 then 'x' else i::varchar end as k, repeat('w', 50) || i as w "
        "from range(40000) r(i)"
    )
    with connect(*TABLES, setup) as oracle, bm.connect(backend="native", threads=2, memory_limit="8MiB") as session:
        for name in ("none", "few", "b"):
            session.register(name, oracle.sql(f"from {name}").to_arrow_table())
        if stream == "none":
            check(query, session, oracle)
            assert "changed over" in session.sql(query).explain(analyze=True)
            return
        with pytest.raises(ConversionFault):
            session.sql(query).collect()

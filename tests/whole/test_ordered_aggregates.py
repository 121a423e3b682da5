"""Aggregates that depend on the order of rows, or that are lists, moments or counts of values, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import Unsupported

TABLES = (
    """create table t as select i % 4 as k, i as a, (i * 7) % 13 as y, i % 3 = 0 as b, (i * 1.5)::double as x,
    case when i % 5 = 0 then null else 's' || (i % 6) end as s, date '2000-01-01' + i::int as d,
    (i % 7)::decimal(9,2) as m, case when i % 4 = 1 then null else (i % 5)::double end as z from range(100) r(i)""",
    "create table e as select * from t where false",
)

QUERIES = [
    "select first(a order by y desc, a), last(a order by y desc, a) from t",
    "select k, first(a order by y, a), last(a order by y, a), any_value(s order by a desc) from t group by k",
    "select k, first(a order by y, a) filter (where b), first(s order by a) from t group by k",
    "select k, last(s order by y, a) filter (where b) from t group by k",
    "select any_value(a order by y desc, a) filter (where a > 50) from t",
    "select first(distinct a order by a desc) from t",
    # Several orders in one query, beside aggregates that have none.
    "select first(a order by y, a), first(a order by y desc, a desc), sum(a), count(*) from t",
    "select k, list(a order by a), list(s order by a desc), count(distinct y) from t group by k",
    "select k, first(a) = min(a), first(a order by a desc) from t group by k",
    "select k, arg_max(a, y * 100 + a), arg_min(a, y * 100 + a), max_by(s, a), min_by(s, a) from t group by k",
    "select arg_max_null(s, a), arg_min_null(s, a), arg_max(s, a), arg_min(s, z * 1000 + a) from t",
    "select arg_max(a, x) filter (where b), arg_max(a, x) filter (where false) from t",
    "select string_agg(s, ',' order by a), string_agg(s, '' order by a desc) from t",
    "select k, string_agg(s, '-' order by a desc) filter (where b) as f, max(s) from t group by k having count(*) > 3",
    "select k, string_agg(distinct s, ',' order by s) from t group by k",
    "select string_agg(a, ';' order by a), group_concat(d, ' ' order by a) from t where a < 5",
    "select string_agg(s), list(a), arg_max(a, x), mode(a), bit_or(a), product(x), skewness(x), entropy(x) from e",
    "select k, string_agg(s) from e group by k",
    "select array_agg(a order by a) filter (where b), array_agg(s order by a) filter (where b) from t",
    "select list(distinct k order by k), list(distinct s order by s) from t",
    "select k, list(m order by a), list(d order by a), list([a, y] order by a) from t where a < 9 group by k",
    "select count(distinct s), string_agg(s, ',' order by a) from t",
    "select approx_count_distinct(y), approx_count_distinct(s) from t",
    "select k, mode(s), mode(m), mode(b) from (from t union all (from t where a in (1, 2, 3, 4))) u group by k",
    "select bit_and(a), bit_or(a), bit_xor(a), bit_or(y::ubigint), bit_and(y::smallint) from t",
    "select k, product(z), product(z) filter (where b) from t where a < 20 group by k",
    "select skewness(x), kurtosis(x), kurtosis_pop(x), skewness(y), kurtosis(y), sem(x) from t",
    "select k, skewness(z), kurtosis(z), kurtosis_pop(z), sem(z), entropy(s), entropy(z) from t group by k",
    "select a, skewness(x), kurtosis(x), kurtosis_pop(x), sem(x) from t group by a",
    "select regr_slope(x, y), regr_intercept(x, y), regr_r2(x, y), regr_count(x, y) from t",
    "select k, regr_avgx(z, y), regr_avgy(z, y), regr_sxx(z, y), regr_syy(z, y), regr_sxy(z, y) from t group by k",
    "select k, regr_slope(z, y), regr_intercept(z, y), regr_r2(z, y), regr_count(z, y) from t group by k",
    "select regr_slope(x, 1), regr_r2(x, 1), regr_r2(1, x), regr_slope(x, null::double), regr_intercept(x, 1) from t",
    "select skewness(1), kurtosis(1), skewness(null::double) from t",
    "select mode(b order by a), mode(a order by y desc, a), mode(s order by a desc) from t where a < 12",
    "select quantile_cont(m, 0.15), quantile_cont(-m, 0.15), quantile_cont(m::decimal(12,1), 0.77) from t",
    "select median(a::hugeint), quantile_cont(a::hugeint, 0.3) from t",
    "select median(d), quantile_cont(d, 0.3), median(m), quantile_cont(m, 0.37), median(d::timestamp) from t",
    "select k, median(m), median(d), quantile_disc(d, 0.4), median(s), quantile_disc(s, 0.5) from t group by k",
    "select k, median(x), string_agg(s, ',' order by a), first(a order by y, a), sum(m) from t group by rollup (k)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


def test_the_mode_is_the_first_of_several(session: bm.Session) -> None:
    assert session.sql("select mode(a) m from t where a > 10").collect()["m"].to_pylist() == [11]


def test_lists_of_many_batches_keep_the_order_of_rows() -> None:
    with bm.connect(threads=2) as session:
        count = 300_000
        table = duckdb.sql(f"select i, i % 3 as k from range({count}) t(i)").to_arrow_table()
        session.register("t", table)
        found = session.sql("select k, list(i) l from t group by k order by k").collect().to_pydict()
        assert found["l"] == [list(range(k, count, 3)) for k in range(3)]


def test_what_is_not_offered_says_so(session: bm.Session) -> None:
    with pytest.raises(Unsupported, match="DISTINCT"):
        session.sql("select array_agg(distinct a) filter (where b) from t").collect()

"""Aggregates over frames, also those that no states merge for, against DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import BiremeError, Unsupported

TABLES = (
    """create table t as select i, case when i % 5 = 0 then null else i % 3 end as g,
    case when i % 7 = 3 then null else (i * 37) % 11 end as v, ((i * 13) % 17) / 4.0 as f,
    ((i * 29) % 23)::decimal(9, 2) / 4 as d, case when i % 6 = 1 then null else 'w' || (i * 5) % 4 end as s,
    date '2024-01-01' + ((i * 11) % 40)::int as day, i % 4 <> 1 as b from range(40) r(i)""",
    "create table e (i int, g int, v int, f double, d decimal(9, 2), s varchar, day date, b boolean)",
)
FRAMES = (
    "()",
    "(partition by g)",
    "(order by i)",
    "(partition by g order by i rows between 3 preceding and 1 following)",
    "(order by i rows between 2 following and 5 following)",
    "(order by v, i rows between unbounded preceding and 1 preceding)",
    "(order by i range between 4 preceding and current row)",
    "(order by g, i groups between 1 preceding and current row)",
    "(order by i rows between 4 preceding and 4 following exclude current row)",
    "(order by g, i groups between 1 preceding and 1 following exclude ties)",
    "(partition by g order by i rows between unbounded preceding and unbounded following exclude group)",
)
AGGREGATES = (
    "median(v)", "median(f)", "median(day)", "quantile_cont(v, 0.3)", "quantile_cont(d, 0.7)",
    "quantile_disc(v, 0.25)", "quantile_disc(s, 0.5)", "quantile_cont(f, [0.1, 0.5, 0.9])",
    "quantile_disc(day, [0.25, 0.75])", "median(v) filter (where b)", "mad(v)", "mad(f) filter (where b)",
    "covar_pop(v, f)", "covar_samp(f, v)", "corr(v, f)", "regr_slope(f, v)", "regr_count(f, v)", "regr_r2(f, v)",
    "skewness(v)", "kurtosis(v)", "sem(v)", "bool_and(b)", "bool_or(b) filter (where v > 3)",
    "arg_min(i, v)", "arg_max(s, i)", "arg_max(i, f) filter (where b)", "min_by(s, f)",
    "list(v)", "list(v) filter (where b)", "array_agg(s)", "string_agg(s, '-')", "string_agg(s, ',') filter (where b)",
    "count(v)", "product(v)", "bit_xor(i)", "stddev(f)", "any_value(s)",
)  # fmt: skip
ORDERED = (
    "list(v order by f desc, i)", "list(s order by v desc nulls last, i)", "string_agg(s, '' order by i desc)",
    "first_value(s order by f, i)", "last_value(i order by f, i)", "nth_value(i, 2 order by f desc, i)",
    "first(i order by f, i)",
    "any_value(s order by f desc, i)", "sum(v order by i)", "list(distinct v order by v)",
    "string_agg(distinct s, ',' order by s desc)", "list(distinct v order by i desc)",
    "first_value(s order by f, i ignore nulls)",
)  # fmt: skip


def some(calls: Sequence[str], step: int) -> list[str]:
    """Each call over some of the frames, other ones than the call before it."""
    pairs = [(call, (number + part * step) % len(FRAMES)) for number, call in enumerate(calls) for part in range(4)]
    return [f"select i, {call} over {FRAMES[frame]} from t order by i" for call, frame in pairs]


QUERIES = [
    *some(AGGREGATES, 3),
    *some(ORDERED, 4),
    "select i, approx_count_distinct(v) over (order by i rows 4 preceding) as n from t order by i",
    *[f"select {call} over (partition by g order by i) from e" for call in AGGREGATES + ORDERED],
    "select i, median(v) over w - min(v) over w as m, corr(v, f) over w, mode(g) over (partition by g) from t "
    "window w as (partition by g order by i rows 5 preceding) order by i",
    "select g, median(sum(v)) over (), sum(median(v)) over () from t group by g order by g",
    "select i from t qualify median(v) over (partition by g) < v order by i",
    "select i, (select median(u.v) over () from t u where u.i < t.i limit 1) from t order by i",
    "select i, quantile_cont([v, 1][1], 0.5) over (order by i rows 3 preceding) from t order by i",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


def test_of_several_modes_the_first_row_decides(session: bm.Session) -> None:
    rows = "(values (1, 'b'), (2, 'a'), (3, null), (4, 'a'), (5, 'b'), (6, 'c')) r(i, s)"
    frame = "order by i rows between 2 preceding and current row"
    found = session.sql(
        f"select mode(s) over ({frame}) as up, mode(s order by i desc) over ({frame}) as down from {rows}"
    ).collect()
    assert found.to_pydict() == {"up": ["b", "b", "b", "a", "a", "a"], "down": ["b", "a", "a", "a", "b", "c"]}


def test_modes_of_values_that_are_most(session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    frame = "order by i rows between unbounded preceding and current row"
    check(f"select i, mode(g + 0 * i) filter (where i % 4 < 2) over ({frame}) is null from t", session, oracle)
    check("select i, mode(g) over (partition by g), mode(s) over (partition by s) from t", session, oracle)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("median(distinct v) over ()", "DISTINCT"),
        ("entropy(v) over ()", "entropy"),
        ("lead(v order by f) over ()", "order the window"),
        ("rank(order by f) over ()", "argument is missing"),
        ("quantile_cont(v, f) over ()", "constant"),
    ],
)
def test_what_is_refused(call: str, message: str, session: bm.Session) -> None:
    with pytest.raises(BiremeError, match=message):
        session.sql(f"select {call} from t").collect()


def test_a_fraction_out_of_range_is_named(session: bm.Session) -> None:
    with pytest.raises(BiremeError, match="from 0 to 1"):
        session.sql("select quantile_cont(v, 1.5) over () from t").collect()


def test_frames_without_distinct_exclude(session: bm.Session) -> None:
    with pytest.raises(Unsupported, match="EXCLUDE"):
        session.sql("select list(distinct v) over (order by i rows 3 preceding exclude ties) from t")

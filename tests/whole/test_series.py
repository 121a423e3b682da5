"""Functions that are relations: range, generate_series and unnest, against DuckDB; and series as tables."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ClauseFault, QueryError, TypeFault, Unsupported
from bireme.frontend.series import series_name, series_named
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.storage.series import SeriesSource

TABLES = ("create table t as select i as a, i * 2 as b from range(10) r(i)",)

QUERIES = [
    "select * from range(5)",
    "from range(3)",
    "select i, i * 2 as j from range(2, 10, 3) t(i) order by i desc",
    "select * from generate_series(1, 5) order by 1",
    "select g from generate_series(5, 1, -2) g",
    "select * from range(-3, 0), generate_series(-1, -2)",
    "select * from range(0) a, range(5, 1) b, generate_series(2, 1) c",
    "select * from range(null)",
    "select count(*), sum(i), min(i), max(i) from range(1000000) r(i)",
    "select i % 7 as k, count(*), sum(i) from range(300000) r(i) where i > 131071 group by k order by k",
    "select r.i, s.j from range(3) r(i), range(2) s(j) order by all",
    "select * from t left join range(3) r(i) on t.a = r.i order by a",
    "select (select count(*) from range(10)) as c, a from t order by a limit 3 offset 2",
    "with r as (from range(4) q(x)) select x, (select sum(y) from range(3) s(y) where y < x) as s from r order by x",
    "select * from range(10) order by 1 limit 3 offset 2",
    "select * from unnest([1, 2, 3]) u(x)",
    "select * from unnest(['a', null])",
    "select * from unnest(range(3)) u(n)",
    "select t.a, u.x from t, unnest([t.a, t.b, null]) u(x) where t.a < 3",
    "select t.a, r.x from t, range(t.a) r(x) where t.a < 4",
    "select * from unnest(string_split('a,b', ','))",
    "select d from generate_series(date '2020-01-30', date '2020-05-01', interval 1 month) r(d)",
    "select * from range(timestamp '2020-01-01', timestamp '2020-01-02', interval 6 hours)",
    "select * from generate_series(timestamp '2020-01-02', timestamp '2020-01-01', interval '-8 hours') r(m)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)
    check(query, session, oracle)  # the plan is kept, the numbers are not


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("select * from nothing(3)", Unsupported, "range, generate_series, unnest"),
        ("select * from range(1.5)", ClauseFault, "whole number"),
        ("select * from unnest(1)", TypeFault, "takes a list"),
        ("select * from range(date '2020-01-01', date '2021-01-01', interval '0 days')", ClauseFault, "forward"),
    ],
)
def test_what_is_refused(query: str, error: type[QueryError], words: str, session: bm.Session) -> None:
    with pytest.raises(error, match=words):
        session.sql(query)


@pytest.mark.parametrize("numbers", [range(0), range(5), range(7, -20, -3), range(3 * BATCH_ROWS_MAX + 1)])
def test_a_series_is_a_table_in_splits(numbers: range) -> None:
    source = SeriesSource("i", numbers)
    splits = source.splits([0], [])
    found = [value for split in splits for batch in split.decode([]) for value in batch.column(0).to_pylist()]
    assert found == list(numbers)
    assert len(splits) == source.split_count()
    assert [split.first_row for split in splits] == [sum(s.rows for s in splits[:n]) for n in range(len(splits))]
    statistics = source.statistics()
    assert statistics.rows == len(numbers)
    assert statistics.columns[0].minimum == min(numbers, default=None)
    assert statistics.columns[0].maximum == max(numbers, default=None)
    assert set(source.sample([0]).column(0).to_pylist()) <= set(numbers)


def test_names_of_series() -> None:
    series = series_named(series_name("generate_series", 1, 5, 2))
    assert series is not None
    assert list(series.numbers) == [1, 3, 5]
    assert series_named("lineitem") is None

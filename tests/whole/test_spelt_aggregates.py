"""Quantiles and moments of two variables, which run as other aggregates, against DuckDB's answers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import bireme as bm
from bireme.errors import DomainFault, Unsupported

ROWS = 3_000


def _table() -> pa.Table:
    draw = random.Random(5)

    def double() -> float | None:
        kind = draw.random()
        if kind < 0.2:
            return None
        return draw.choice([1.5, math.nan, math.inf]) if kind < 0.22 else draw.uniform(-1e3, 1e3)

    return pa.table(
        {
            "k": [draw.choice([None, 1, 2, 3, 4]) for _ in range(ROWS)],
            "b": [draw.random() < 0.5 for _ in range(ROWS)],
            "x": pa.array([double() for _ in range(ROWS)], pa.float64()),
            "y": pa.array([None if draw.random() < 0.1 else draw.gauss(1e4, 2) for _ in range(ROWS)], pa.float64()),
            "f": pa.array([draw.uniform(0, 9) for _ in range(ROWS)], pa.float32()),
            "i": pa.array([draw.randint(0, 50) for _ in range(ROWS)], pa.int32()),
            "s": [draw.choice("abcdef") for _ in range(ROWS)],
            "d": pa.array([draw.choice([None, 1, 2, 3]) for _ in range(ROWS)], pa.decimal128(9, 2)),
            "none": pa.nulls(ROWS, pa.float64()),
            "same": [0.1] * ROWS,
        }
    )


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", _table())
        yield connection


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[bm.Session]:
    with bm.connect(backend=request.param, threads=2) as session:
        session.register("t", _table())
        yield session


QUERIES = [
    "select k, median(x), median(i), median(f) from t group by k",
    "select median(x), count(*), median(none) from t",
    "select median(x), corr(x, i), quantile_disc(s, 0.5) from t where false",
    "select k, quantile_cont(i, 0.25), quantile_cont(x, 0), quantile_cont(f, 1) from t group by k",
    "select k, quantile_disc(s, 0.3), quantile_disc(i, 0), quantile_disc(d, 1) from t group by k",
    "select k, median(x) filter (where b), sum(i), count(distinct i) from t group by k",
    "select k, median(x), first(i order by i, f), quantile_disc(i, 0.9) from t group by k",
    "select k, list(i order by i), median(f) from t group by k",
    "select s, median(d), median(b), quantile_disc(b, 0.4), stddev(f) from t group by s",
    "select k, b, median(i), corr(i, f) from t group by grouping sets ((k), (b), ())",
    "select k, b, corr(i, f), median(f) from t group by rollup(k, b)",
    "select k, corr(i, y), covar_pop(i, y), covar_samp(f, i), sum(i) from t group by k",
    "select k, corr(y, i) filter (where b), covar_samp(y, f) filter (where i > 48) from t group by k",
    "select corr(same, i), corr(i, same), corr(same, same), corr(i, i) from t",
    "select corr(i, f), covar_samp(i, f), covar_pop(i, f), median(i) from (from t where k = 1 limit 1)",
    "select corr(i, d), power(corr(i, f), 2) from t",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = query.replace("(from t where k = 1 limit 1)", "(select * from t where k = 1 order by i, f limit 1)")
    found = sorted(_rows(session.sql(text).collect()), key=repr)
    expected = sorted(_rows(oracle.sql(text).to_arrow_table()), key=repr)
    assert len(found) == len(expected)
    for row, right in zip(found, expected, strict=True):
        for value, wanted in zip(row, right, strict=True):
            # Values of a magnitude of 1e4 lose eight digits in squares of their differences.
            assert value == wanted or value == pytest.approx(wanted, rel=1e-7, abs=1e-8, nan_ok=True), text


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Keys come first and are exact, so that sorting pairs the rows."""
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


def test_large_means_cancel() -> None:
    values = [float(value) for value in range(1_000)]
    shifted = pa.table({"x": [1e9 + value for value in values], "y": [5e8 - 2 * value for value in values]})
    with bm.connect(threads=1) as session:
        session.register("t", shifted)
        ((correlation, covariance),) = _rows(session.sql("select corr(x, y), covar_pop(x, y) from t").collect())
    assert correlation == pytest.approx(-1, abs=1e-6)
    assert covariance == pytest.approx(-2 * (1_000**2 - 1) / 12, rel=1e-6)


def test_what_is_refused(session: bm.Session) -> None:
    with pytest.raises(DomainFault, match="from 0 to 1"):
        session.sql("select quantile_cont(x, 1.5) from t").collect()
    with pytest.raises(Unsupported, match="distinct rows in a subquery"):
        session.sql("select median(distinct x) from t").collect()

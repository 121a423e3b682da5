"""What queries mean when they run: hundreds of small ones, and every form of subquery, against DuckDB's answers.

The same texts are tested as plans in `tests/sql`; here they go through rules, pipelines, kernels and the runtime.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one
from support import null_tables
from support.rows import difference
from support.subquery_cases import FORMS, INNERS, PLACES, text_of

import bireme as bm


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with null_tables.connect() as connection:
        yield connection


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest, oracle: duckdb.DuckDBPyConnection) -> Iterator[bm.Session]:
    with bm.connect(backend=request.param, threads=2, memory_limit="256MiB") as session:
        for name in null_tables.TABLES:
            session.register(name, oracle.sql(f"from {name}").to_arrow_table())
        yield session


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[_span(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _span(value: Any) -> Any:
    """An interval as DuckDB's Python client shows it: a month is thirty days."""
    if isinstance(value, pa.MonthDayNano):
        return datetime.timedelta(days=30 * value.months + value.days, microseconds=value.nanoseconds // 1000)
    return value


@pytest.mark.parametrize("text", null_tables.small_queries())
def test_small_query(text: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    ordered = isinstance(parse_one(text, dialect="duckdb").args.get("order"), exp.Order)
    frame = session.sql(text)
    table = frame.collect()
    assert table.schema.equals(frame.schema)
    assert difference(oracle.execute(text).fetchall(), rows(table), ordered=ordered) is None


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("form", FORMS)
def test_subquery(form: str, inner: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    for place in PLACES:
        text = text_of(form, inner, place)
        found = rows(session.sql(text).collect())
        assert difference(oracle.execute(text).fetchall(), found) is None, text


@pytest.mark.parametrize("sets", ["(o.a), (), (o.a), (o.a, o.a)", "(), (o.a)", "(o.a), (o.a, u.c), (u.c)"])
def test_groups_of_a_null_outer_key(sets: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    """A semi-join put below such groups must find NULL equal to NULL, as the join above them does."""
    text = f"select a, (select count(*) from (select o.a from u group by grouping sets ({sets})) x) as n from t o"
    assert difference(oracle.execute(text).fetchall(), rows(session.sql(text).collect())) is None


@pytest.mark.parametrize(
    "text",
    [
        "select g, grouping(g) as k, (select k + 1) from w group by rollup(g)",
        "select (select sum(t.a order by u.a) from u) from t",
        "select (select list_sum(list_transform([1], lambda x: x + sum(t.a)))) from t",
    ],
)
def test_what_no_plan_can_be_printed_for(text: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    assert difference(oracle.execute(text).fetchall(), rows(session.sql(text).collect())) is None


def test_every_form_is_here() -> None:
    assert len(list(product(FORMS, INNERS, PLACES))) == 448

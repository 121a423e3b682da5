"""Nothing is lost between SQL text and plan: the plan, printed as SQL again, gives what the text gives, in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp, parse_one
from support.ir_to_sql import to_sql
from support.rows import difference
from support.tpc_data import catalog, query_texts, tables, tpcds_folder, tpch_folder

from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql

Suite = tuple[duckdb.DuckDBPyConnection, TableCatalog]


def _suite(folder) -> Iterator[Suite]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        for name, path in tables(folder).items():
            connection.execute(f"CREATE TABLE {name} AS FROM '{path}'")
        yield connection, catalog(folder)


@pytest.fixture(scope="module")
def tpch() -> Iterator[Suite]:
    yield from _suite(tpch_folder())


@pytest.fixture(scope="module")
def tpcds() -> Iterator[Suite]:
    yield from _suite(tpcds_folder())


def check(suite: Suite, text: str) -> None:
    connection, tables_known = suite
    expected = connection.execute(text).fetchall()
    names = [column[0] for column in connection.description]
    plan = bind_sql(text, tables_known)
    assert len(plan.schema.names) == len(names)
    actual = connection.execute(to_sql(plan)).fetchall()
    assert difference(expected, actual) is None
    keys = _order_columns(text, names)
    if keys:
        ranks = [[row[key] for key in keys] for row in expected], [[row[key] for key in keys] for row in actual]
        assert difference([tuple(row) for row in ranks[0]], [tuple(row) for row in ranks[1]], ordered=True) is None


def _order_columns(text: str, names: list[str]) -> list[int]:
    """The output columns that the query orders by, up to the first key that is not one."""
    order = parse_one(text, dialect="duckdb").args.get("order")
    lowered = [name.lower() for name in names]
    positions = []
    for key in order.expressions if order is not None else []:
        if not isinstance(key.this, exp.Column) or lowered.count(key.this.name.lower()) != 1:
            break
        positions.append(lowered.index(key.this.name.lower()))
    return positions


@pytest.mark.parametrize("name", query_texts("tpch"))
def test_tpch(tpch: Suite, name: str) -> None:
    check(tpch, query_texts("tpch")[name])


@pytest.mark.parametrize("name", query_texts("tpcds"))
def test_tpcds(tpcds: Suite, name: str) -> None:
    check(tpcds, query_texts("tpcds")[name])

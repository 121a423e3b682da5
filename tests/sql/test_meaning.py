"""What a query means: hundreds of small ones, each against DuckDB's own answer, through the plan printed as SQL."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp, parse_one
from support import null_tables
from support.ir_to_sql import to_sql
from support.rows import difference

from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql

Tables = tuple[duckdb.DuckDBPyConnection, TableCatalog]


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with null_tables.connect() as connection:
        yield connection, null_tables.catalog(connection)


@pytest.mark.parametrize("text", null_tables.small_queries())
def test_query(tables: Tables, text: str) -> None:
    connection, catalog = tables
    expected = connection.execute(text).fetchall()
    plan = bind_sql(text, catalog)
    actual = connection.execute(to_sql(plan)).fetchall()
    assert len(plan.schema.names) == len(connection.description)
    ordered = isinstance(parse_one(text, dialect="duckdb").args.get("order"), exp.Order)
    assert difference(expected, actual, ordered=ordered) is None

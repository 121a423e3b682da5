"""One query in bireme and in DuckDB, over the same tables, with rows that can be compared."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

import bireme as bm

# Sums of doubles in another order leave about as much of what should be nothing.
ZERO_MAX = 1e-14


def connect(*statements: str) -> duckdb.DuckDBPyConnection:
    """DuckDB with tables that these statements make."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set timezone = 'UTC'")
    for statement in statements:
        connection.execute(statement)
    return connection


def session_over(connection: duckdb.DuckDBPyConnection, backend: str) -> bm.Session:
    """A session with the same tables."""
    session = bm.connect(backend=backend, threads=2, memory_limit="256MiB")
    for (name,) in connection.execute("select table_name from information_schema.tables").fetchall():
        session.register(name, connection.sql(f'from "{name}"').to_arrow_table())
    return session


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of values whose equality is that of SQL, whatever their types are called."""
    columns = [[_value(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _value(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float():
            return 0.0 if abs(value) < ZERO_MAX else float(f"{value:.10g}")
        case Decimal():
            return float(f"{float(value):.10g}")
        case bool():
            return value
        case int():
            return float(f"{value:.10g}")
        case list():
            return tuple(map(_value, value))
        case dict():
            return tuple([(name, _value(each)) for name, each in value.items()])
        case pa.MonthDayNano():
            return tuple(value)
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def check(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    """Asserts that both give the same rows, in the order of the query where its end gives one."""
    found, expected = rows(session.sql(query).collect()), rows(oracle.sql(query).to_arrow_table())
    ordered = "order by" in query.rpartition(")")[2]
    assert _in_order(found, ordered) == _in_order(expected, ordered), query


def _in_order(found: Sequence[tuple[Any, ...]], ordered: bool) -> Sequence[tuple[Any, ...]]:
    return found if ordered else sorted(found, key=repr)

"""Four small tables with NULLs, repeated rows and odd values, in DuckDB and as a catalog, and queries over them."""

from __future__ import annotations

from pathlib import Path

import duckdb

from bireme.data.schema import Schema
from bireme.frontend.catalog import TableCatalog

TABLES = {
    "t": """(a INTEGER, b INTEGER, s VARCHAR, d DATE, x DECIMAL(10, 2), f DOUBLE);
        INSERT INTO t VALUES (1, 10, 'one', '2020-01-01', 1.50, 1.5), (2, 20, 'two', '2020-02-29', 2.25, 2.5),
        (2, NULL, 'two', NULL, -3.00, 'nan'), (3, 30, NULL, '1969-12-31', NULL, NULL),
        (NULL, 40, 'four', '2021-12-31', 4.75, -0.5), (NULL, NULL, NULL, NULL, NULL, NULL),
        (1, 10, 'one', '2020-01-01', 1.50, 1.5)""",
    "u": """(a INTEGER, c INTEGER, s VARCHAR);
        INSERT INTO u VALUES (1, 100, 'one'), (2, 200, 'zwei'), (2, 201, 'two'), (4, 400, NULL), (NULL, 500, 'null'),
        (NULL, NULL, NULL)""",
    "v": """(a BIGINT, b INTEGER, e TIMESTAMP);
        INSERT INTO v VALUES (1, 10, '2020-01-01 10:00:00'), (3, 31, '2020-01-02 11:30:15.5'), (5, NULL, NULL)""",
    "w": """(g VARCHAR, h VARCHAR, n INTEGER);
        INSERT INTO w VALUES ('a', 'x', 1), ('a', 'y', 2), ('b', 'x', 3), ('b', NULL, 4), (NULL, 'x', 5), ('a', 'x',
        6)""",
}


def connect() -> duckdb.DuckDBPyConnection:
    """A DuckDB with the tables."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")  # starting threads takes longer than these queries
    for name, text in TABLES.items():
        connection.execute(f"CREATE TABLE {name} {text}")
    return connection


def catalog(connection: duckdb.DuckDBPyConnection) -> TableCatalog:
    """The schemas of the tables."""
    schemas = {name: connection.sql(f"FROM {name}").to_arrow_table().schema for name in TABLES}
    return TableCatalog({name: ("1", Schema.from_arrow(schema)) for name, schema in schemas.items()})


def small_queries() -> list[str]:
    """The queries of `tests/sql/meaning.sql`, one line each."""
    lines = (Path(__file__).parents[1] / "sql" / "meaning.sql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [" ".join(query.split()) for query in text.split(";") if query.strip()]

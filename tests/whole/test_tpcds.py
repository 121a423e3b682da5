"""The 99 queries of TPC-DS, run, give DuckDB's rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.rows import difference
from support.tpc_data import query_texts, tables, tpcds_folder

import bireme as bm

TEXTS = query_texts("tpcds")
SHORT = frozenset(list(TEXTS)[::9])


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[bm.Session, duckdb.DuckDBPyConnection]]:
    with duckdb.connect() as connection, bm.connect(threads=2, memory_limit="512MiB") as session:
        connection.execute("set threads = 2")
        for name, path in tables(tpcds_folder()).items():
            connection.execute(f"create view {name} as from '{path}'")
            session.register(name, str(path))
        yield session, connection


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SHORT else pytest.mark.slow) for n in TEXTS])
def test_rows(name: str, engines: tuple[bm.Session, duckdb.DuckDBPyConnection]) -> None:
    session, connection = engines
    expected = connection.execute(TEXTS[name]).fetchall()
    found = session.sql(TEXTS[name]).collect()
    assert difference(expected, list(zip(*[column.to_pylist() for column in found.columns], strict=True))) is None

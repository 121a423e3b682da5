"""Subqueries of every form, end to end: the engine's answers are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.nested_queries import TABLES, nested_queries
from support.rows import difference

import bireme as bm

# Primes, so that every form, place and source is met.
PARTS, STRIDE = 7, 59
QUERIES = list(nested_queries())

Engines = tuple[duckdb.DuckDBPyConnection, "bm.Session"]


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with duckdb.connect(config={"threads": 1}) as connection, bm.connect(threads=2) as session:
        for name, table in TABLES.items():
            connection.register(name, table)
            session.register(name, table)
        yield connection, session


def check(engines: Engines, queries: list[tuple[str, str]]) -> None:
    connection, session = engines
    asked = 0
    for name, text in queries:
        try:
            expected = connection.execute(text).fetchall()
        except duckdb.Error:
            continue  # some products mean nothing to DuckDB either
        answer = session.sql(text).collect()
        actual = list(zip(*[column.to_pylist() for column in answer.columns], strict=True))
        found = difference(expected, actual)
        assert found is None, f"{name}: {found}\n{text}"
        asked += 1
    assert asked > len(queries) * 0.8


@pytest.mark.parametrize("part", range(2))
def test_some_nested_queries(engines: Engines, part: int) -> None:
    check(engines, QUERIES[part :: 2 * STRIDE])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_nested_queries(engines: Engines, part: int) -> None:
    check(engines, QUERIES[part::STRIDE])


def test_a_null_key_among_unique_ones_meets_its_own_row(engines: Engines) -> None:
    text = (
        "SELECT o.id, r.w FROM o LEFT JOIN (VALUES (10, 1), (NULL, 2), (5, 3), (30, 4), (20, 5)) r(b, w) "
        "ON o.b IS NOT DISTINCT FROM r.b"
    )
    check(engines, [("null key", text)])

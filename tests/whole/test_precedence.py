"""Which operator binds tighter: every pair of them, and each with prefixes and suffixes, as DuckDB reads it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.two_engines import rows

import bireme as bm
from bireme.errors import QueryError

OPERATORS = (
    "+", "-", "*", "/", "//", "%", "**", "^", "<<", ">>", "&", "|", "||", "=", "<", "<>", "and", "or",
    "is distinct from", "like", "in",
)  # fmt: skip
PREFIXES = ("-", "not", "~", "+")
SUFFIXES = ("is null", "is not true", "between 1 and 9", "::varchar", "::double", "not in (1)", "not like 'a'")


def _right(operator: str, number: int) -> str:
    return {"in": "(2, 3)", "like": "'%3%'"}.get(operator, str(number))


def _pairs(operator: str) -> Iterator[str]:
    right = _right(operator, 3)
    for other in OPERATORS:
        yield f"7 {operator} {right} {other} {_right(other, 2)}"
    for prefix in PREFIXES:
        yield f"{prefix} 7 {operator} {right}"
        yield f"7 {operator} {prefix} {right}"
    for suffix in SUFFIXES:
        yield f"7 {operator} {right} {suffix}"
        yield f"7 {suffix} {operator} {right}"


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=1) as session:
        yield session


@pytest.mark.parametrize("operator", OPERATORS)
def test_pairs_of_operators(operator: str, session: bm.Session) -> None:
    compared = 0
    with duckdb.connect() as oracle:
        for text in _pairs(operator):
            try:
                expected = rows(oracle.sql(f"select {text}").to_arrow_table())
                found = rows(session.sql(f"select {text}").collect())
            except (duckdb.Error, QueryError):
                continue
            assert found == expected, text
            compared += 1
    assert compared > 0 if operator == "like" else compared > 5


@pytest.mark.parametrize(
    "literal",
    ["date '1992-01-01'", "timestamp '2000-01-01 10:00:00'", "timestamp with time zone '2000-01-01 00:00:00+02'"],
)
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ms", "date", "varchar"])
def test_a_cast_is_of_the_literal_with_its_type(literal: str, kind: str, session: bm.Session) -> None:
    with duckdb.connect() as oracle:
        oracle.execute("set timezone = 'UTC'")
        expected = oracle.sql(f"select {literal}::{kind} as x").to_arrow_table()
    found = session.sql(f"select {literal}::{kind} as x").collect()
    assert rows(found) == rows(expected)
    assert found.schema.types == expected.schema.types

"""Two engines over the same tables: those that a test module's `TABLES` make in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.two_engines import connect, session_over

import bireme as bm


@pytest.fixture(scope="module")
def oracle(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(*request.module.TABLES) as connection:
        yield connection


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest, oracle: duckdb.DuckDBPyConnection) -> Iterator[bm.Session]:
    with session_over(oracle, request.param) as session:
        yield session

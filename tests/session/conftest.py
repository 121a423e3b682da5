"""What several modules here share: the oracle of a module with one table `t`, its `rows`."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest


@pytest.fixture(scope="module")
def oracle(rows: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("t", rows)
        yield connection

"""Sums of a value and constants share one sum where nothing can overflow, with DuckDB's answers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import bireme as bm
from bireme.errors import Overflow

TABLE = pa.table(
    {
        "k": [1, 1, 2, None, 2],
        "x": pa.array([1, None, 32_000, -5, 7], pa.int16()),
        "d": pa.array([Decimal("1.50"), None, Decimal("2.25"), Decimal("9999999.99"), Decimal(0)], pa.decimal128(9, 2)),
        "u": pa.array([0, 1, 2, 3, 4], pa.uint8()),
        "none": pa.nulls(5, pa.int32()),
    }
)


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=1) as session:
        session.register("t", TABLE)
        yield session


@pytest.mark.parametrize(
    ("query", "shared"),
    [
        ("select sum(x), sum(x + 1), sum(x + 2), sum(x - 3), sum(3 + x), sum(x + 700) from t", True),
        ("select k, sum(x + 1), sum(x + 2), sum(x + 3), count(*), min(x) from t group by k order by k", True),
        ("select sum(d + 1), sum(d + 1.255), sum(d - 2), sum(d + 3), sum(4 - d) from t", True),
        ("select sum(none + 1), sum(none + 2), sum(none + 3), sum(u + 1), sum(u + 2), sum(u + 3) from t", True),
        ("select sum(x + 1), sum(x + 2), sum(x + 3) from t where false", True),
        ("select sum(x + 1), sum(x + 2) from t", False),
        ("select sum(x + 1), sum(d + 2), sum(u + 2) from t", False),
        ("select sum(k / 2 + 1), sum(k / 2 + 2), sum(k / 2 + 3) from t", False),
        ("select sum(distinct x + 1), sum(distinct x + 2), sum(distinct x + 3) from t", False),
    ],
)
def test_as_in_duckdb(query: str, shared: bool, session: bm.Session) -> None:
    with duckdb.connect() as oracle:
        oracle.register("t", TABLE)
        expected = [tuple(row.values()) for row in oracle.sql(query).to_arrow_table().to_pylist()]
    frame = session.sql(query)
    assert [tuple(row.values()) for row in frame.collect().to_pylist()] == expected
    assert ("as part0" in frame.explain()) is shared


def test_what_overflows_still_does(session: bm.Session) -> None:
    with pytest.raises(Overflow):
        session.sql("select sum(x + 30000), sum(x + 30001), sum(x + 30002) from t").collect()

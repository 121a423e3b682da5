"""The first rows of each key, which are looked for before the rows of a window are sorted: as in DuckDB, and told."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import bireme as bm
from bireme.operators.top_per_key import share_that_stays

ROWS = 60_000
FUNCTIONS = ("row_number", "rank", "dense_rank")
KEYS = ("few", "many", "few, text", "many % 7", "own", "")
# Orders that decide between all rows, so that every engine numbers them alike.
ORDERS = ("number", "wide", "money desc", "day", "moment desc", "coarse", "truth", "ratio desc", "small desc")
CONDITIONS = ("<= 2", "< 2", "= 1", "= 3", "<= 40", "between 2 and 3", "<= 100", "< 1", "<= 3 and few > 2")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(11)
    missing = random.random(ROWS) < 0.02
    number = random.integers(-(10**12), 10**12, ROWS)
    ratio = np.where(random.random(ROWS) < 0.01, np.nan, random.normal(0, 1, ROWS))
    ratio[random.random(ROWS) < 0.01] = -np.inf
    return pa.table(
        {
            "few": pa.array(random.integers(0, 9, ROWS), pa.int32(), mask=missing),
            "many": random.integers(0, 3_000, ROWS),
            "own": np.arange(ROWS),
            "text": pa.array([f"a text of some length {key}" for key in random.integers(0, 50, ROWS)]),
            "number": pa.array(number, mask=random.random(ROWS) < 0.01),
            "wide": pa.array(number.astype(np.uint64) * np.uint64(3)),
            "money": pa.array([Decimal(int(each)) / 100 for each in number], pa.decimal128(15, 2)),
            "day": pa.array([datetime.date(2000, 1, 1) + datetime.timedelta(int(each) % 4000) for each in number]),
            "moment": pa.array(number * 1000, pa.timestamp("us")),
            "coarse": pa.array(random.integers(0, 4, ROWS), pa.int8(), mask=missing),
            "truth": random.random(ROWS) < 0.5,
            "ratio": pa.array(ratio, mask=random.random(ROWS) < 0.01),
            "small": pa.array(random.integers(0, 250, ROWS), pa.uint8()),
            "place": random.permutation(ROWS),
        }
    )


@pytest.fixture(scope="module")
def oracle(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", table)
        yield connection


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest, table: pa.Table) -> Iterator[bm.Session]:
    with bm.connect(backend=request.param, threads=2) as session:
        session.register("t", table)
        yield session


def rows_of(answer: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*[column.to_pylist() for column in answer.columns], strict=True))


def digest(query: str) -> str:
    return f"select count(*), sum(place), sum(place * rank % 1009), max(rank) from ({query})"


@settings(max_examples=15, deadline=None)
@given(
    function=st.sampled_from(FUNCTIONS),
    keys=st.sampled_from(KEYS),
    order=st.sampled_from(ORDERS),
    nulls=st.sampled_from(["first", "last"]),
    condition=st.sampled_from(
        ["<= 2", "< 2", "= 1", "= 3", "<= 40", "between 2 and 3", "<= 100", "< 1", "<= 3 and few > 2"]
    ),
    second=st.sampled_from(["", ", dense_rank() over w as other", ", count(*) over (partition by few) as other"]),
)
def test_as_in_duckdb(
    function: str,
    keys: str,
    order: str,
    nulls: str,
    condition: str,
    second: str,
    session: bm.Session,
    oracle: duckdb.DuckDBPyConnection,
) -> None:
    # What has equal values in the order is told apart by another key, but for ranks, which are shared.
    behind = ", place" if function == "row_number" else ""
    window = f"({f'partition by {keys} ' if keys else ''}order by {order} nulls {nulls}{behind})"
    ranked = f"select *, {function}() over w as rank{second} from t window w as {window}"
    query = digest(f"select * from ({ranked}) as ranked where rank {condition}")
    assert rows_of(session.sql(query).collect()) == [
        tuple([None if value is None else int(value) for value in row]) for row in oracle.sql(query).fetchall()
    ]


def explained(session: bm.Session, query: str) -> str:
    return session.sql(query).explain(analyze=True)


FIRST_TWO = "select few, number from t qualify row_number() over (partition by few order by number) <= 2"
OF_EACH_OWN = "select own, number from t qualify row_number() over (partition by own order by number) <= 2"
SAME = "(select *, 7 * (place % 1) as same from t)"
OF_EQUAL = f"select few from {SAME} qualify rank() over (partition by few order by same) = 1"


def test_rows_are_dropped_before_the_window(table: pa.Table) -> None:
    with bm.connect(threads=2) as session:
        session.register("t", table)
        text = explained(session, FIRST_TWO)
        assert "of each (few#0) what may be among the first 2 by number" in text
        window = next(line for line in text.splitlines() if line.startswith("window: "))
        assert " 60 k →" not in window


def test_where_it_brings_nothing_it_ends(table: pa.Table) -> None:
    with bm.connect(threads=1) as session:
        session.register("t", table)
        for query in (OF_EACH_OWN, OF_EQUAL):
            assert "they were left to the window" in explained(session, query)
        assert "they were left to the window" not in explained(session, FIRST_TWO)


def test_in_little_memory_the_answer_is_the_same(table: pa.Table, oracle: duckdb.DuckDBPyConnection) -> None:
    query = digest("select *, rank() over (partition by many order by number) as rank from t qualify rank <= 3")
    with bm.connect(threads=2, memory_limit="6MiB") as session:
        session.register("t", table)
        expected = [tuple([int(value) for value in row]) for row in oracle.sql(query).fetchall()]
        assert rows_of(session.sql(query).collect()) == expected


RANKED = "rank() over (partition by few order by number)"
SUMMED = "sum(place) over (partition by few order by number)"


@pytest.mark.parametrize(
    "calls",
    [
        f"{SUMMED} as s, {RANKED} as r",
        f"{RANKED.replace('number', 'number desc')} as s, {RANKED} as r",
        f"1 as s, {RANKED.replace('number', 'text')} as r",
        "1 as s, ntile(3) over (partition by few order by number) as r",
    ],
)
def test_other_windows_get_all_rows(calls: str, table: pa.Table) -> None:
    with bm.connect(threads=1) as session:
        session.register("t", table)
        query = f"select s from (select {calls} from t) as w where r <= 2"
        assert "what may be among" not in session.sql(query).explain()


def test_the_share_of_rows_that_stays() -> None:
    random = np.random.default_rng(3)
    for limit, rows in ((1, 50), (3, 200), (5, 5), (5, 2)):
        kept = [
            sum((values[:place] < values[place]).sum() < limit for place in range(rows))
            for values in random.random((200, rows))
        ]
        assert abs(np.mean(kept) / rows - share_that_stays(limit, rows)) < 0.05

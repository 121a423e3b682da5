"""Rows, and whole splits, that a scan drops because a top-n has enough others: never one that is wanted."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bireme as bm
from bireme.data.types import INT64
from bireme.operators.top_bound import LiveBound, precedes, reading_order
from bireme.plan.expr import Column, Literal, SortKey
from bireme.plan.physical import TopBound
from bireme.storage.prune import Bounds

GROUP_ROWS = 12_000
ROWS = 7 * GROUP_ROWS


def columns(rng: random.Random) -> dict[str, pa.Array]:
    nan, null = math.nan, None
    day = datetime.date(2000, 1, 1)
    return {
        "row": pa.array(range(ROWS), pa.int64()),
        "rising": pa.array([row // 7 for row in range(ROWS)], pa.int32()),
        "falling": pa.array([(ROWS - row) // 3 for row in range(ROWS)], pa.int64()),
        "drawn": pa.array([rng.randint(-(10**9), 10**9) for _ in range(ROWS)], pa.int64()),
        "few": pa.array([rng.choice([0, 1, 2, 3, null]) for _ in range(ROWS)], pa.int8()),
        "real": pa.array([rng.choice([nan, -0.0, 0.0, rng.uniform(-1, 1)]) for _ in range(ROWS)], pa.float64()),
        "text": pa.array([f"{rng.randint(0, 10**6):x}" for _ in range(ROWS)], pa.string()),
        "word": pa.array([rng.choice(["ab", "abc", "b", "ünder", null]) for _ in range(ROWS)], pa.string()),
        "day": pa.array([day + datetime.timedelta(row // 5_000) for row in range(ROWS)], pa.date32()),
        "late_null": pa.array([null if row > ROWS - 40 else row % 50 for row in range(ROWS)], pa.int16()),
        "wide": pa.array([f"payload {row} {'x' * (row % 90)}" for row in range(ROWS)], pa.string()),
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bounds") / "t.parquet"
    pq.write_table(pa.table(columns(random.Random(5))), path, row_group_size=GROUP_ROWS)
    return path


@pytest.fixture(scope="module")
def session(file: Path) -> Iterator[bm.Session]:
    with bm.connect(threads=2) as session:
        session.register("t", str(file))
        yield session


@pytest.fixture(scope="module")
def oracle(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as oracle:
        oracle.execute(f"create table t as select * from '{file}'")
        yield oracle


KEYS = ("rising", "falling", "drawn", "few", "real", "text", "word", "day", "late_null", "drawn + few")


@settings(max_examples=40)
@given(
    key=st.sampled_from(KEYS),
    second=st.sampled_from([None, "drawn", "text desc"]),
    descending=st.booleans(),
    nulls_first=st.booleans(),
    limit=st.sampled_from([1, 10, 300, 9_000]),
    offset=st.sampled_from([0, 5]),
    where=st.sampled_from(["true", "drawn > 0", "word = 'b'", "few is not null and row % 3 = 1"]),
)
def test_the_first_rows_are_those_of_the_whole_sort(
    oracle: duckdb.DuckDBPyConnection,
    session: bm.Session,
    key: str,
    second: str | None,
    descending: bool,
    nulls_first: bool,
    limit: int,
    offset: int,
    where: str,
) -> None:
    order = f"{key} {'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
    order += "" if second is None else f", {second}"
    text = f"select row, wide from t where {where} order by {order} limit {limit} offset {offset}"
    got = session.sql(text).collect()
    # Rows with equal keys keep their order here, of which DuckDB must be told; with a LIMIT it loses NaNs.
    place = f"row_number() over (order by {order}, row)"
    chosen = f"select row, wide, {place} as place from t where {where} qualify place > {offset} and place <= "
    wanted = oracle.sql(f"select row, wide from ({chosen} {offset + limit}) order by place").fetchall()
    assert list(zip(*(column.to_pylist() for column in got.columns), strict=True)) == wanted


def scan_line(explained: str) -> str:
    return next(line for line in explained.splitlines() if line.startswith("scan t: "))


def test_rows_come_to_the_top_only_while_they_are_of_use(session: bm.Session) -> None:
    explained = session.sql("select wide from t order by drawn limit 10").explain(analyze=True)
    assert "drop what comes after the top-n by drawn#" in explained
    assert "the top-n's bound dropped" in scan_line(explained)


def test_splits_with_the_first_rows_are_read_first_and_the_others_are_passed_over(session: bm.Session) -> None:
    for key in ("falling", "rising desc", "day desc"):
        text = f"select row from t order by {key} limit 10"
        explained = session.sql(text).explain(analyze=True)
        dropped = scan_line(explained)
        # Two slots start before anything is known, and may take a second split before the other one has learnt it.
        thousands = float(dropped.split("bound dropped ")[1].split(" k rows")[0])
        assert 1_000 * thousands >= ROWS - 4 * GROUP_ROWS, dropped


def test_ties_with_the_last_row_are_passed_over_where_nothing_else_decides(session: bm.Session) -> None:
    explained = session.sql("select row, wide from t where few = 2 order by few limit 10").explain(analyze=True)
    assert "the top-n's bound dropped" in scan_line(explained)


def test_the_lever_turns_it_off(file: Path) -> None:
    with bm.connect(threads=2, levers="-top_bounds") as session:
        session.register("t", str(file))
        explained = session.sql("select wide from t order by drawn limit 10").explain(analyze=True)
    assert "top-n" not in explained


@pytest.mark.parametrize(
    "text",
    [
        "select a.row from t a join t b on a.row = b.row order by a.drawn limit 5",
        "select a.row from t a left join (select row from t where few = 1) b on a.row = b.row order by a.text limit 5",
        "select a.row from t a where a.row in (select falling from t) order by a.drawn desc limit 5",
        "select b.row from (select * from t where drawn < 0) a right join t b on a.row = b.row "
        "order by b.drawn, b.row limit 5",
        "select row, x from (select row, drawn * 2 as x from t) order by x limit 5",
    ],
)
def test_joins_between_the_scan_and_the_top(oracle: duckdb.DuckDBPyConnection, session: bm.Session, text: str) -> None:
    got = session.sql(text).collect()
    wanted = oracle.sql(text).fetchall()
    assert list(zip(*(column.to_pylist() for column in got.columns), strict=True)) == wanted


def test_a_query_that_fails_for_a_row_fails_whether_or_not_the_row_is_wanted(session: bm.Session) -> None:
    explained = session.sql("select row, 9223372036854775807 - falling + 1 as x from t order by drawn limit 3")
    assert "drop what comes after" not in explained.explain(physical=True)


# ------------------------------------------------------------------------------------------------ the bound itself

COLUMN = Column(0, INT64)


def literal(value: Any) -> Literal:
    return Literal(value, INT64)


@given(
    values=st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=1, max_size=9),
    descending=st.booleans(),
    nulls_first=st.booleans(),
)
def test_a_bound_only_tightens(values: list[int | None], descending: bool, nulls_first: bool) -> None:
    key = SortKey(COLUMN, descending, nulls_first)
    bound = LiveBound(TopBound(key, True), key, slots=2)
    best: int | None = values[0]
    for number, value in enumerate(values):
        bound.learn(number % 2, literal(value), number)
        best = value if precedes(key, value, best) else best
        # Of an input before those of all bounds, rows with the same key are wanted still.
        condition = bound.condition(-1)
        for row in (None, *range(-5, 6)):
            if condition is not None and not precedes(key, best, row):
                assert is_true(condition, row)


def is_true(condition: Any, value: int | None) -> bool:
    from bireme.backends.reference import ReferenceKernels
    from bireme.data.schema import Schema
    from bireme.data.types import Field

    schema = Schema((Field("v", INT64, True),))
    program = ReferenceKernels().program(schema, predicate=condition, exprs=[COLUMN], names=["v"])
    return bool(program.run(pa.record_batch([pa.array([value], pa.int64())], names=["v"])).num_rows)


@given(
    lows=st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=12),
    descending=st.booleans(),
)
def test_inputs_are_read_in_the_order_of_what_they_may_hold(lows: list[int | None], descending: bool) -> None:
    key = SortKey(COLUMN, descending, False)
    bounds = [(Bounds(5, low, None if low is None else low, 0),) for low in lows]
    order = reading_order(key, bounds)
    assert sorted(order) == list(range(len(lows)))
    stated = [lows[index] for index in order if lows[index] is not None]
    assert stated == sorted(stated, reverse=descending)
    assert all(lows[index] is None for index in order[len(stated) :])


def test_a_split_that_may_hold_a_wanted_row_is_not_passed_over() -> None:
    key = SortKey(COLUMN, False, True)
    bound = LiveBound(TopBound(key, False), key, slots=1)
    bound.expect([0, 1, 2], [(Bounds(9, 0, 4, 0),), (Bounds(9, 5, 9, 0), Bounds(9, 2, 2, 0)), (Bounds(9, 5, 9, 1),)])
    assert not any(bound.passes_over(number) for number in range(3))
    bound.learn(0, literal(3), 0)
    assert not bound.passes_over(0)
    assert not bound.passes_over(1)
    assert bound.passes_over(1, 0)
    assert not bound.passes_over(1, 1)
    assert not bound.passes_over(2)  # its NULL comes first
    bound.learn(0, literal(None), 0)
    assert [bound.passes_over(number) for number in range(3)] == [True, True, False]

"""What ends, refuses or interrupts a query: little memory, no room to spill, depth, closing and cancelling."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bireme as bm
from bireme import col
from bireme.errors import ArgumentFault, ConfigError, OutOfRoom, SpillFailed, Unsupported

ROWS = 200_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    values = np.random.default_rng(7).permutation(ROWS)
    return pa.table({"k": values, "v": values % 1000, "s": [f"text number {value}" for value in values]})


@pytest.fixture
def session(table: pa.Table) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        session.register("t", table)
        yield session


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select k, s from t order by s", ROWS),
        ("select v, count(*), min(s) from t group by v", 1000),
        ("select count(*) from t a join t b on a.k = b.k", 1),
        ("select k, rank() over (partition by v order by k) from t", ROWS),
    ],
)
@pytest.mark.parametrize("limit", ["1MiB", "8MiB"])
def test_little_memory_gives_the_answer_or_says_so(
    query: str, rows: int, limit: str, table: pa.Table, tmp_path: Path
) -> None:
    with bm.connect(threads=2, memory_limit=limit, spill_folder=tmp_path) as session:
        session.register("t", table)
        with contextlib.suppress(OutOfRoom):
            assert session.sql(query).collect().num_rows == rows
        assert session.sql("select sum(k) from t").collect()[0].to_pylist() == [ROWS * (ROWS - 1) // 2]
    assert list(tmp_path.iterdir()) == []


def test_a_spill_folder_that_is_a_file(table: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with bm.connect(threads=2, memory_limit="1MiB", spill_folder=tmp_path / "file") as session:
        session.register("t", table)
        with pytest.raises((OutOfRoom, SpillFailed)):
            session.sql("select k, s from t order by s").collect()


def test_rows_that_nobody_takes_any_more(table: pa.Table) -> None:
    session = bm.connect(threads=2)
    session.register("t", table)
    left, kept = session.sql("select * from t").to_batches(), session.sql("select * from t").to_batches()
    next(left), next(kept)
    del left
    session.close()
    with pytest.raises(ConfigError, match="closed"):
        next(kept)
    del kept
    gc.collect()


def test_a_closed_session_says_so(session: bm.Session, table: pa.Table) -> None:
    session.close()
    calls: list[Callable[[], Any]] = [
        lambda: session.table("t"),
        lambda: session.sql("select 1"),
        lambda: session.register("u", table),
        lambda: session.from_arrow(table),
        session.statistics,
    ]
    for call in calls:
        with pytest.raises(ConfigError, match="closed"):
            call()
    session.close()


def test_a_session_that_is_forgotten_on_any_thread_leaves_nothing() -> None:
    def forget() -> None:
        session = bm.connect(threads=2)
        session.from_arrow(pa.table({"a": [1]})).collect()
        cycle: list[Any] = [session]
        cycle.append(cycle)
        del session, cycle
        gc.collect()

    before = set(threading.enumerate())
    thread = threading.Thread(target=forget)
    thread.start()
    thread.join()
    for other in set(threading.enumerate()) - before:
        other.join(10)
        assert not other.is_alive()


def test_many_matches_a_row_stay_bounded(session: bm.Session) -> None:
    # 20 million pairs of keys; a piece of the stream that is not cut would hold them all.
    text = "select count(*), max(b.k) from t a join t b on a.v % 2 = b.v % 2 where a.k < 200"
    assert session.sql(text).collect().to_pylist() == [{"count(*)": 200 * ROWS // 2, "max(b.k)": ROWS - 1}]


def test_depth_is_refused_by_name(session: bm.Session) -> None:
    for depth in (240, 400, 3000):
        sum_ = col("v")
        for index in range(depth):
            sum_ = sum_ + index
        with pytest.raises(Unsupported, match="nested"):
            session.table("t").select(sum_).collect()
    frame = session.table("t")
    for _ in range(400):
        frame = frame.with_columns(v=col("v") + 1)
    with pytest.raises(Unsupported, match="nested"):
        frame.collect()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.head(1.5),
        lambda t: t.head(True),
        lambda t: t.slice("1"),
        lambda t: t.drop(1),
        lambda t: t.rename("v"),
        lambda t: t.rename({"v": 1}),
        lambda t: t.unique(1),
        lambda t: t.sort(1),
        lambda t: t.sort("v", nulls_last="yes"),
        lambda t: t.select(col(1)),
        lambda t: t.select(col("v").alias(1)),
        lambda t: t.filter(col("v").is_in(5)),
        lambda t: t.filter(col("v").is_in(t)),
        lambda t: t.group_by("v").len(1),
        lambda t: t.sink_parquet(1),
        lambda t: bm.concat(t),
        lambda t: bm.concat([t, 1]),
    ],
)
def test_arguments_are_checked_at_the_call(call: Callable[[bm.Frame], Any], session: bm.Session) -> None:
    with pytest.raises(ArgumentFault):
        call(session.table("t"))


def test_arguments_of_queries_and_sessions(session: bm.Session) -> None:
    for parameters in (1, "1", [1, 2], []):
        with pytest.raises(ArgumentFault):
            session.sql("select ?::int", parameters)  # type: ignore[arg-type]
    assert session.sql("select ?::int", ["7"]).collect()[0].to_pylist() == [7]
    assert session.sql(f"select k from t limit {10**30}").collect().num_rows == ROWS
    with pytest.raises(ArgumentFault):
        session.sql(1)  # type: ignore[arg-type]
    for setting in ({"threads": "2"}, {"threads": 1.5}, {"spill_folder": 5}):
        with pytest.raises(ConfigError):
            bm.connect(**setting)  # type: ignore[arg-type]

"""Windows over more rows than fit in memory: the same answers as DuckDB, whatever is in the window."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from support.duck import difference, values_of

import bireme as bm
from bireme.backends.reference.window_stream import Stream
from bireme.operators import order
from bireme.runtime.compute.task import Result

ROWS = 24_000
LITTLE = "4MiB"

COLUMNS = """
    i, (hash(i, 'x') % 1000000)::bigint as x, (i // 3)::int as rising,
    case when hash(i, 'g') % 10 > 0 then -1 else (hash(i, 'h') % 500)::int end as giant,
    (hash(i, 'f') % 3)::int as few, 1 as one,
    case when hash(i, 'n') % 4 > 0 then (hash(i, 'k') % 2000)::int end as k,
    case when hash(i, 'm') % 10 > 0 then (hash(i, 'v') % 200)::int - 100 end as v,
    't' || hash(i, 's') % 3000 as s
"""

# Over rows in an order that no two share.
TOTAL = {
    "row_number()": "",
    "ntile(7)": "",
    "lag(v, 3, 0)": "",
    "lead(s)": "",
    "lag(v, 2 ignore nulls)": "",
    "first_value(s)": "rows between 50 preceding and 3 preceding",
    "last_value(v ignore nulls)": "rows between unbounded preceding and 5 preceding",
    "nth_value(v, 3)": "rows between unbounded preceding and current row",
    "nth_value(s, 2)": "rows between current row and unbounded following",
    "sum(v)": "rows between unbounded preceding and current row",
    "min(s)": "rows between 30 preceding and 20 following",
    "max(v)": "rows between 2 following and unbounded following",
    "avg(v)": "groups between 10 preceding and 1 preceding",
    "count(*)": "rows between unbounded preceding and 3 following",
    "count(distinct v)": "rows between 9 preceding and current row",
    "sum(v) filter (where v > 0)": "range between unbounded preceding and current row",
}
# Peers see the same.
PEERS = {
    "rank()": "",
    "dense_rank()": "",
    "percent_rank()": "",
    "cume_dist()": "",
    "sum(v)": "",
    "count(v)": "range between current row and unbounded following",
    "min(s)": "groups between current row and current row",
    "max(k)": "rows between unbounded preceding and unbounded following",
    "stddev_pop(v)": "groups between unbounded preceding and 2 following",
    "bool_or(v > 98)": "groups between 3 preceding and 2 preceding",
}
ORDERS = ["x", "k nulls first", "k desc nulls last", "s desc", "few", "one", "rising desc"]
PARTITIONS = ["", "partition by giant", "partition by one", "partition by few, giant"]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    with duckdb.connect() as made:
        return made.sql(f"select {COLUMNS} from range({ROWS}) as r(i) order by i").to_arrow_table()


@pytest.fixture(scope="module")
def cramped(rows: pa.Table, spill_folder: Path) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit=LITTLE, spill_folder=spill_folder) as session:
        session.register("t", rows)
        yield session


class NoMemory:
    """Has a method raise once, when some batches of windows in order have been added."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._added = 0
        self.has_failed = False

    def once(self, owner: type, name: str, *, after: int) -> None:
        add, method = Stream.add, getattr(owner, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            made = add(*arguments, **named)
            self._added += 1
            return made

        def failing(*arguments: Any, **named: Any) -> Any:
            if self._added >= after and not self.has_failed:
                self.has_failed = True
                raise MemoryError("no memory, once")
            return (counted if owner is Stream else method)(*arguments, **named)

        self._monkeypatch.setattr(Stream, "add", counted)
        self._monkeypatch.setattr(owner, name, failing)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> NoMemory:
    return NoMemory(monkeypatch)


def check(session: bm.Session, oracle: duckdb.DuckDBPyConnection, windows: list[str], rows: int = ROWS) -> None:
    text = f"select i, {', '.join(f'{window} as w{place}' for place, window in enumerate(windows))} from t"
    found = session.sql(text).collect().sort_by("i")
    wanted = oracle.sql(text).to_arrow_table().sort_by("i")
    assert found.num_rows == rows
    for place, window in enumerate(["i", *windows]):
        differs = difference(values_of(found.column(place)), values_of(wanted.column(place)), 1e-9)
        assert not differs, f"{window}: {differs}"


@pytest.mark.parametrize("order", ["x, i", "one, i"])
@pytest.mark.parametrize("partition", PARTITIONS[:2], ids=["alone", "giant"])
def test_functions_of_places(
    cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, partition: str, order: str
) -> None:
    check(cramped, oracle, [f"{call} over ({partition} order by {order} {frame})" for call, frame in TOTAL.items()])


@pytest.mark.parametrize("order", ["k nulls first", "few"])
@pytest.mark.parametrize("partition", PARTITIONS[:2], ids=["alone", "giant"])
def test_functions_of_peers(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, partition: str, order: str) -> None:
    check(cramped, oracle, [f"{call} over ({partition} order by {order} {frame})" for call, frame in PEERS.items()])


@settings(max_examples=8, deadline=None)
@given(data=st.data(), mebibytes=st.sampled_from([3, 4, 6]), threads=st.integers(1, 3))
def test_windows_of_any_kind(
    data: st.DataObject,
    mebibytes: int,
    threads: int,
    rows: pa.Table,
    oracle: duckdb.DuckDBPyConnection,
    spill_folder: Path,
) -> None:
    """Up to three windows, of several orders sometimes."""
    windows = []
    for _ in range(data.draw(st.integers(1, 3))):
        calls = data.draw(st.sampled_from([TOTAL, PEERS]))
        call, frame = data.draw(st.sampled_from(list(calls.items())))
        order = data.draw(st.sampled_from(ORDERS)) + (", i" if calls is TOTAL else "")
        windows.append(f"{call} over ({data.draw(st.sampled_from(PARTITIONS))} order by {order} {frame})")
    with bm.connect(threads=threads, memory_limit=f"{mebibytes}MiB", spill_folder=spill_folder) as session:
        session.register("t", rows)
        check(session, oracle, windows)


def explained(rows: pa.Table, spill_folder: Path, window: str, memory_limit: str) -> str:
    with bm.connect(threads=2, memory_limit=memory_limit, spill_folder=spill_folder) as session:
        session.register("t", rows)
        return session.sql(f"select *, {window} from t").explain(analyze=True)


@pytest.mark.parametrize("window", ["sum(v) over (order by x)", "rank() over (partition by giant order by x)"])
def test_a_window_larger_than_memory_is_told(window: str, rows: pa.Table, spill_folder: Path) -> None:
    little = explained(rows, spill_folder, window, LITTLE)
    assert "were too large and cut into" in little
    assert "1 partitions (" in little.partition("were taken bit by bit")[0][-40:]
    roomy = explained(rows, spill_folder, window, "512MiB")
    assert "too large" not in roomy
    assert "bit by bit" not in roomy


def test_rows_without_an_order(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(cramped, oracle, ["count(*) over ()", "sum(v) over ()", "max(s) over ()"])
    numbered = cramped.sql("select row_number() over () as n from t").collect().column("n").to_pylist()
    assert sorted(numbered) == list(range(1, ROWS + 1))


def test_wide_rows_and_short_batches(spill_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks join short batches that they give; what a window knows of batches to come is of those."""
    monkeypatch.setattr(order, "_PIECE_BYTES", 1 << 17)
    with duckdb.connect() as made, bm.connect(threads=2, memory_limit="6MiB", spill_folder=spill_folder) as session:
        text = (
            "select i, i % 7 as v, hash(i) % 5 as k, repeat('w', (2000 + i % 3)::int) as wide from range(6000) as r(i)"
        )
        made.execute(f"create table t as {text}")
        whole = made.sql("from t").to_arrow_table().combine_chunks()
        session.register("t", pa.Table.from_batches(whole.to_batches(max_chunksize=90)))
        check(session, made, [f"{call} over (order by k)" for call in ("cume_dist()", "sum(v)", "max(wide)")], 6000)
        check(session, made, [f"{call} over (order by i) + length(wide)" for call in ("ntile(9)", "sum(v)")], 6000)
        check(session, made, ["sum(v) over ()", "count(*) over () + length(wide)"], 6000)


@pytest.mark.parametrize("calls", [1, 2, 5], ids=["first batch", "second batch", "fifth batch"])
@pytest.mark.parametrize("place", [(Stream, "add"), (Result, "add")], ids=["within a task", "as it ends"])
def test_a_task_in_order_that_finds_no_memory_once(
    cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, place: tuple[type, str], calls: int, failing: NoMemory
) -> None:
    failing.once(*place, after=calls)
    windows = ["sum(v) over (order by x, i)", "ntile(9) over (order by x, i)", "lead(s, 2) over (order by x, i)"]
    check(cramped, oracle, windows)
    assert failing.has_failed


def test_windows_of_windows_and_groups(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = """select few, count(*), sum(n), max(d) from (
        select *, row_number() over (order by d desc, i) as n from (
            select *, x - lag(x, 1, 0) over (partition by giant order by i) as d from t)) group by few order by few"""
    assert values_of_all(cramped.sql(text).collect()) == values_of_all(oracle.sql(text).to_arrow_table())


def values_of_all(table: pa.Table) -> list[list[object]]:
    return [values_of(column) for column in table.columns]


def test_windows_in_order_do_without_pandas() -> None:
    """pyarrow imports it to make arrays of Python's values: 30 MiB that no limit knows of."""
    program = """
import sys
import numpy as np
import pyarrow as pa
import bireme as bm
from bireme.data import arrays
i = np.arange(40_000)
columns = {"i": i, "x": i * 7919 % 10007, "d": i * 0.5}
table = pa.table({**{name: arrays.from_numpy(column) for name, column in columns.items()},
                  "m": arrays.from_numpy(i, missing=i % 3 == 0)})
calls = ["row_number()", "rank()", "percent_rank()", "cume_dist()", "ntile(4)", "sum(m)", "avg(d)", "stddev(d)",
         "lag(m)", "first_value(x)", "last_value(m ignore nulls)", "nth_value(m, 2)", "bool_or(m > 3)"]
with bm.connect(threads=2, memory_limit="4MiB") as session:
    session.register("t", table)
    windows = ", ".join(f"{call} over (order by x, i) as w{place}" for place, call in enumerate(calls))
    framed = "min(m) over (order by x, i rows between 3 preceding and 2 following)"
    session.sql(f"select {windows}, {framed} as f from t").collect()
    session.sql("select median(x), quantile_disc(d, 0.3) from t").collect()
    session.sql("select entropy(x) from t").collect()
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

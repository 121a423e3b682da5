"""Quantiles of groups that are larger than memory: the same answers as DuckDB, whatever the keys and values are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from support.duck import difference, values_of

import bireme as bm
from bireme.operators import ranked_groups
from bireme.operators.base import Output
from bireme.operators.ranked_groups import RankedGroups
from bireme.operators.stage import PipelineStage
from bireme.runtime import partition_by_rank
from bireme.runtime.compute.task import Task, TaskKind
from bireme.runtime.partition_by_rank import PartitionByRank
from bireme.runtime.pipeline import LivePipeline

ROWS = 60_000
LITTLE = "2MiB"

COLUMNS = """
    (hash(i, 'x') % 1000000)::bigint as x, i as rising, (hash(i, 'd') / 7.3e17 - 9)::double as d,
    case when hash(i, 'n') % 3 > 0 then (hash(i, 'm') % 100000)::decimal(15, 2) / 100 end as money,
    (hash(i, 'w')::decimal(38, 4) - 9000000000000000000) as wide, null::int as nothing,
    case when hash(i, 'g') % 10 > 0 then 7 else (hash(i, 'h') % 20)::int end as alike, 'same' as one,
    date '1992-01-01' + (hash(i, 't') % 2500)::int as day, hash(i, 'b') % 3 = 0 as flag,
    case hash(i, 'f') % 4 when 0 then 'A' when 1 then 'N' when 2 then 'R' end as few,
    case when hash(i, 'j') % 10 > 0 then -1 else (hash(i, 'k') % 5000)::int end as giant,
    (hash(i, 'e') % 4500)::int as even,
    case when hash(i, 'o') % 100 > 0 then 'nan'::double else hash(i, 'p') / 1e18 end as nan
"""
VALUES = ["x", "rising", "d", "money", "wide", "nothing", "alike", "day", "flag", "nan"]
FRACTIONS = [0, 0.25, 0.9, 1]
KEYS = ["", "one", "few", "giant", "few, giant", "even"]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    with duckdb.connect() as made:
        whole = made.sql(f"select {COLUMNS} from range({ROWS}) as r(i)").to_arrow_table().combine_chunks()
        return pa.Table.from_batches(whole.to_batches(max_chunksize=ROWS // 4))


@pytest.fixture(scope="module")
def cramped(rows: pa.Table, spill_folder: Path) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit=LITTLE, spill_folder=spill_folder) as session:
        session.register("t", rows)
        # The first spill opens files that the session then keeps.
        session.sql("select * from t order by x").collect()
        yield session


def query(keys: str, calls: list[str]) -> str:
    listed = ", ".join([*([keys] if keys else []), *[f"{call} as w{place}" for place, call in enumerate(calls)]])
    return f"select {listed} from t" + (f" group by {keys} order by {keys}" if keys else "")


def check(session: bm.Session, oracle: duckdb.DuckDBPyConnection, keys: str, calls: list[str]) -> None:
    text = query(keys, calls)
    found, wanted = session.sql(text).collect(), oracle.sql(text).to_arrow_table()
    assert found.num_rows == wanted.num_rows
    for name in wanted.column_names:
        differs = difference(values_of(found[name]), values_of(wanted[name]), 1e-9)
        assert not differs, f"{name} of {text}: {differs}"


def quantiles(value: str) -> list[str]:
    # Between two of them DuckDB has no boolean, and wide decimals go through doubles, in another order.
    names = ["quantile_disc"] if value in ("flag", "wide") else ["quantile_disc", "quantile_cont"]
    return [f"{name}({value}, {fraction})" for name in names for fraction in FRACTIONS]


@pytest.mark.parametrize("value", VALUES)
def test_of_all_rows(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, value: str) -> None:
    check(cramped, oracle, "", quantiles(value))


@pytest.mark.parametrize("keys", KEYS[1:])
def test_of_groups(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, keys: str) -> None:
    calls = ["median(x)", "quantile_disc(money, 0.9)", "median(alike)", "sum(x)", "count(*)", "max(d)", "avg(money)"]
    check(cramped, oracle, keys, [*calls, "min(few)", "quantile_cont(d, 0.01)", "median(nothing)"])


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.sampled_from(KEYS),
    values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    mebibytes=st.sampled_from([2, 3, 4]),
    threads=st.integers(1, 3),
    data=st.data(),
)
def test_of_any_kind(
    keys: str,
    values: list[str],
    mebibytes: int,
    threads: int,
    data: st.DataObject,
    rows: pa.Table,
    oracle: duckdb.DuckDBPyConnection,
    spill_folder: Path,
) -> None:
    calls = [data.draw(st.sampled_from(quantiles(value))) for value in values]
    with bm.connect(threads=threads, memory_limit=f"{mebibytes}MiB", spill_folder=spill_folder) as session:
        session.register("t", rows)
        check(session, oracle, keys, calls)


def explained(rows: pa.Table, spill_folder: Path, memory_limit: str, keys: str) -> str:
    with bm.connect(threads=2, memory_limit=memory_limit, spill_folder=spill_folder) as session:
        session.register("t", rows)
        return session.sql(query(keys, ["median(x)", "sum(x)"])).explain(analyze=True)


@pytest.mark.parametrize("keys", ["", "one"])
def test_a_group_larger_than_memory_is_told(keys: str, rows: pa.Table, spill_folder: Path) -> None:
    assert "that were cut by the order of values" in explained(rows, spill_folder, LITTLE, keys)
    assert "cut by the order" not in explained(rows, spill_folder, "512MiB", keys)


def test_groups_that_a_cut_by_hashes_makes_fit_are_cut_so(rows: pa.Table, spill_folder: Path) -> None:
    little = explained(rows, spill_folder, "2MiB", "even")
    assert "were too large and cut into" in little
    assert "cut by the order" not in little


@pytest.fixture
def cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """First cuts that leave parts too large."""
    monkeypatch.setattr(partition_by_rank, "first_ranges_of", lambda nbytes, share, rows: 2)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.usefixtures("cut_again")
def test_parts_that_are_cut_again(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, value: str) -> None:
    check(cramped, oracle, "giant", [*quantiles(value), "median(x)", "median(rising)"])


def test_states_of_many_groups_are_summed_up(
    cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranked_groups, "_LOOSE_GROUPS_MAX", 3)
    check(cramped, oracle, "giant", ["median(x)", "count(*)", "sum(x)", "median(d)"])
    check(cramped, oracle, "few", ["median(x)", "count(*)", "sum(x)", "median(d)"])


@pytest.mark.parametrize("method", ["cut_first", "cut", "rank", "pick", "groups"])
@pytest.mark.usefixtures("cut_again")
def test_a_call_that_finds_no_memory_once(
    cramped: bm.Session, oracle: duckdb.DuckDBPyConnection, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a call has done before it fails, it is made again and nothing counts twice."""
    called = getattr(RankedGroups, method)
    calls = 0

    def failing(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        made = called(*arguments, **named)
        if calls == 1:
            if method.startswith("cut"):
                list(made)
            raise MemoryError("no memory, once")
        return made

    monkeypatch.setattr(RankedGroups, method, failing)
    check(cramped, oracle, "", ["median(x)", "quantile_disc(x, 0.2)", "sum(x)", "count(money)", "median(money)"])
    assert calls > 1


def test_a_partition_that_ends_while_the_next_one_is_ranked(
    rows: pa.Table, oracle: duckdb.DuckDBPyConnection, spill_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task is none of those that rank, whenever it ends."""
    ranks, has_ended = threading.Event(), threading.Event()
    run, rank, take_back = PipelineStage.run_batches, RankedGroups.rank, PartitionByRank.take_back

    def slow(stage: PipelineStage, *given: Any) -> Output:
        if "merge groups" in stage._pipeline.name and not waits.locked():
            waits.acquire()
            ranks.wait(5)
        return run(stage, *given)

    def ranked(groups: RankedGroups) -> None:
        ranks.set()
        has_ended.wait(5)
        rank(groups)

    def taken(partition: PartitionByRank, task: Task, *given: Any) -> None:
        take_back(partition, task, *given)
        if task.kind is TaskKind.BATCHES and ranks.is_set():
            has_ended.set()

    waits = threading.Lock()
    monkeypatch.setattr(PipelineStage, "run_batches", slow)
    monkeypatch.setattr(RankedGroups, "rank", ranked)
    monkeypatch.setattr(PartitionByRank, "take_back", taken)
    monkeypatch.setattr(LivePipeline, "is_brief", lambda pipeline, task: False)
    with bm.connect(threads=2, memory_limit=LITTLE, spill_folder=spill_folder) as session:
        session.register("t", rows)
        check(session, oracle, "few, giant", ["quantile_cont(day, 0)"])
    assert has_ended.is_set()


def test_below_other_operators(cramped: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    text = """select count(*), sum(m), max(q) from (
        select few, median(x) as m, quantile_disc(d, 0.3) as q from t where rising % 7 > 0 group by few) where m > 10"""
    found, wanted = cramped.sql(text).collect(), oracle.sql(text).to_arrow_table()
    for place in range(3):
        assert not difference(values_of(found.column(place)), values_of(wanted.column(place)), 1e-9)

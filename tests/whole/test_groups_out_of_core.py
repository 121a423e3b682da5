"""Groups that do not fit in memory: the same answers as with room, by partitions that are cut, or taken bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from support.duck import difference, rows_of

import bireme as bm

ROWS = 400_000
# What a slot looks at before it leaves rows to the merge.
DISTINCT_ROWS = 150_000

KEYS = ("sparse", "dense", "few", "text", "giant", "sometimes", "ratio")
AGGREGATES = (
    "count(*)", "sum(v)", "min(text)", "max(sparse)", "avg(v)", "count(sometimes)", "sum(money)",
    "count(distinct dense % 100)", "bool_or(v > 10)", "median(v)", "quantile_disc(money, 0.3)", "stddev(v)",
)  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Each key column has many groups in its first rows; `giant` then has one only."""
    random = np.random.default_rng(5)
    sparse = random.permutation(ROWS) * 1_000_003_000_017
    giant = np.where(np.arange(ROWS) < DISTINCT_ROWS, sparse, -1)
    dense = random.integers(0, 60_000, ROWS)
    return pa.table(
        {
            "sparse": sparse,
            "dense": dense,
            "few": random.integers(0, 3, ROWS),
            "text": [f"a text that is longer than twelve bytes: {key}" for key in dense],
            "giant": giant,
            "sometimes": pa.array(dense, mask=dense % 5 == 0),
            "ratio": dense / 7,
            "v": random.integers(-1000, 1000, ROWS),
            "money": pa.array(random.integers(0, 10**9, ROWS)).cast(pa.decimal128(20, 0)),
        }
    )


@pytest.fixture(scope="module")
def roomy(table: pa.Table) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="1GiB") as session:
        session.register("t", table)
        yield session


def check(session: bm.Session, roomy: bm.Session, query: str) -> None:
    """Of one row. Floats may differ by a rounding: memory changes the order in which states are merged."""
    found, wanted = (rows_of(each.sql(query).collect().columns) for each in (session, roomy))
    assert difference(found, wanted) == ""


@settings(max_examples=20, deadline=None)
@given(
    keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
    aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=0, max_size=3, unique=True),
    mebibytes=st.sampled_from([4, 8, 16]),
    threads=st.integers(1, 3),
)
def test_little_memory_changes_no_answer(
    keys: list[str],
    aggregates: list[str],
    mebibytes: int,
    threads: int,
    table: pa.Table,
    roomy: bm.Session,
    spill_folder: Path,
) -> None:
    names = [f"{aggregate} as a{place}" for place, aggregate in enumerate(aggregates)]
    groups = f"select {', '.join([*keys, *names])} from t group by {', '.join(keys)}"
    totals = [f"count({key}), min({key}), max({key})" for key in keys]
    totals += [f"count(a{place}), min(a{place}), max(a{place})" for place in range(len(names))]
    query = f"select count(*), {', '.join(totals)} from ({groups})"
    with bm.connect(threads=threads, memory_limit=f"{mebibytes}MiB", spill_folder=spill_folder) as session:
        session.register("t", table)
        check(session, roomy, query)


def explained(table: pa.Table, spill_folder: Path, query: str, memory_limit: str, threads: int = 2) -> str:
    with bm.connect(threads=threads, memory_limit=memory_limit, spill_folder=spill_folder) as session:
        session.register("t", table)
        return session.sql(query).explain(analyze=True)


MANY = "select count(*), sum(s), max(n) from (select sparse, dense, sum(v) as s, count(*) as n from t group by 1, 2)"
GIANT = "select count(*), sum(s), max(n) from (select giant, sum(v) as s, count(*) as n from t group by 1)"


MEDIANS = "select count(*), sum(m), max(m) from (select sparse, median(v) as m from t group by 1)"
GIANT_MEDIAN = "select count(*), sum(m), max(m) from (select giant, median(v) as m from t group by 1)"


@pytest.mark.parametrize("query", [MANY, GIANT, MEDIANS, GIANT_MEDIAN])
def test_groups_of_one_key_and_of_many(query: str, table: pa.Table, roomy: bm.Session, spill_folder: Path) -> None:
    for threads, limit in ((1, "6MiB"), (2, "4MiB")):
        with bm.connect(threads=threads, memory_limit=limit, spill_folder=spill_folder) as session:
            session.register("t", table)
            check(session, roomy, query)


def test_a_partition_that_is_cut_is_told(table: pa.Table, spill_folder: Path) -> None:
    text = explained(table, spill_folder, MANY, "8MiB")
    assert "were too large and cut into" in text
    assert "spilled" in text
    assert "bit by bit" not in text


def test_a_partition_of_one_key_is_taken_bit_by_bit(table: pa.Table, spill_folder: Path) -> None:
    # One slot, which leaves all but its first rows to the merge.
    text = explained(table, spill_folder, GIANT, "6MiB", threads=1)
    assert "1 partitions (" in text.partition("were taken bit by bit")[0][-40:]


def test_with_room_nothing_is_cut(table: pa.Table, spill_folder: Path) -> None:
    for query in (MANY, GIANT):
        text = explained(table, spill_folder, query, "512MiB")
        assert "too large" not in text
        assert "bit by bit" not in text
        assert "gave up" not in text

"""Groups that leave with their split: the lever finds them, its checks hold, and answers do not depend on it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bireme as bm
from bireme.data.key_range import INT64_MAX, INT64_MIN, KeyRange, exclusive
from bireme.storage.parquet_file import ParquetFile

GROUPS = 60_000
ROWS_PER_GROUP = 3
SUMS = "select k, sum(v) as s, count(*) as c, min(v) as low, avg(v) as mean from t group by k"
HAVING = f"select k, s from ({SUMS}) where s > 90 order by s desc, k limit 50"


def keyed(groups: int, *, nulls: bool = False) -> pa.Table:
    """Rows clustered, not sorted, by `k`; groups reach over the borders of row groups of 10,000 rows."""
    rng = random.Random(7)
    keys = sorted(rng.sample(range(-groups, 3 * groups), groups))
    rows = [(key, rng.randint(-5, 99)) for key in keys for _ in range(rng.randint(1, 2 * ROWS_PER_GROUP - 1))]
    for start in range(0, len(rows), 5_000):
        part = rows[start : start + 5_000]
        rng.shuffle(part)
        rows[start : start + 5_000] = part
    column = [None if nulls and rng.random() < 0.01 else key for key, _ in rows]
    return pa.table({"k": pa.array(column, pa.int64()), "v": pa.array([value for _, value in rows], pa.int32())})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clustered")
    table = keyed(GROUPS, nulls=True)
    pq.write_table(table, folder / "one.parquet", row_group_size=10_000)
    # Two files share a group, and each has its own.
    half = table.num_rows // 20_000 * 10_000 + 5_000
    pq.write_table(table.slice(half), folder / "two_a.parquet", row_group_size=10_000)
    pq.write_table(table.slice(0, half), folder / "two_b.parquet", row_group_size=10_000)
    return folder


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2) as session:
        yield session


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def expected(query: str, files: str) -> list[tuple[Any, ...]]:
    return rows_of(duckdb.sql(query.replace(" t ", f" '{files}' t ")).to_arrow_table())


@pytest.mark.parametrize("files", ["one.parquet", "two_*.parquet"])
@pytest.mark.parametrize(
    "query",
    [
        SUMS,
        HAVING,
        "select k, count(distinct v) as c from t group by k",
        "select k, sum(v) as s from t where v > 10 and k > 500 group by k",
        "select count(*) as c, sum(s) as s from (select k, sum(v) as s from t group by k) where s < 40",
        "select k, max(v) as m from t group by k order by k desc limit 3",
    ],
)
def test_answers_are_those_of_duckdb(session: bm.Session, folder: Path, query: str, files: str) -> None:
    session.register("t", str(folder / files))
    frame = session.sql(query)
    assert "clustered by c0" in frame.explain(physical=True)
    assert rows_of(frame.collect()) == expected(query, str(folder / files))


def test_groups_leave_early_and_having_goes_with_them(session: bm.Session, folder: Path) -> None:
    session.register("t", str(folder / "one.parquet"))
    text = session.sql(HAVING).explain(analyze=True)
    assert "dropped" not in text
    merged = next(line for line in text.splitlines() if line.startswith("merge groups:"))
    into = int(merged.split(" tasks, ")[1].split(" → ")[0].split()[0])
    assert 0 < into < 50, "border groups only"


def test_joins_that_keep_the_key(session: bm.Session, folder: Path) -> None:
    session.register("t", str(folder / "one.parquet"))
    session.register("names", pa.table({"v": list(range(0, 99, 2)), "name": [f"n{v}" for v in range(0, 99, 2)]}))
    query = "select k, min(name) as n, count(*) as c from t join names on t.v = names.v group by k"
    frame = session.sql(query)
    assert "clustered by c0" in frame.explain(physical=True)
    names = pa.table({"v": list(range(0, 99, 2)), "name": [f"n{v}" for v in range(0, 99, 2)]})
    connection = duckdb.connect()
    connection.register("names", names)
    connection.execute(f"create view t as select * from '{folder / 'one.parquet'}'")
    assert rows_of(frame.collect()) == rows_of(connection.sql(query).to_arrow_table())


def test_the_lever_can_be_off(folder: Path) -> None:
    with bm.connect(threads=1, levers="-clustering") as session:
        session.register("t", str(folder / "one.parquet"))
        assert "clustered by" not in session.sql(SUMS).explain(physical=True)


def test_random_order_does_not_qualify(session: bm.Session, tmp_path: Path) -> None:
    table = keyed(GROUPS)
    order = list(range(table.num_rows))
    random.Random(1).shuffle(order)
    pq.write_table(table.take(order), tmp_path / "t.parquet", row_group_size=10_000)
    session.register("t", str(tmp_path / "t.parquet"))
    assert "clustered by" not in session.sql(SUMS).explain(physical=True)


def test_a_file_whose_ranges_overlap_after_all_is_seen(session: bm.Session, tmp_path: Path) -> None:
    """Half of the row groups lie within one that covers all: few neighbours overlap, but nothing is exclusive."""
    table = keyed(GROUPS)
    wide = pa.table({"k": pa.array([-(10**9), 10**9], pa.int64()), "v": pa.array([1, 2], pa.int32())})
    writer = pq.ParquetWriter(tmp_path / "t.parquet", table.schema)
    writer.write_table(wide)
    writer.write_table(table, row_group_size=10_000)
    writer.close()
    session.register("t", str(tmp_path / "t.parquet"))
    text = session.sql(SUMS).explain(analyze=True)
    if "clustered by" in text:
        assert "clustering was dropped" in text
    assert rows_of(session.sql(SUMS).collect()) == expected(SUMS, str(tmp_path / "t.parquet"))


# ------------------------------------------------------------------------------------------- statistics that lie


@pytest.fixture
def lying(session: bm.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file whose first row group also holds keys of the last one, which its statistics do not say."""
    table = keyed(GROUPS)
    strange = table.slice(table.num_rows - 5_000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.concat_tables([strange, table]), path, row_group_size=10_000)
    true_ranges = _stated

    def stated(file: ParquetFile, column: int) -> Any:
        ranges = true_ranges(file, column)
        return [KeyRange(ranges[0].low, ranges[1].low), *ranges[1:]]

    monkeypatch.setattr("bireme.storage.parquet_table_file.key_ranges", stated)
    monkeypatch.setattr("bireme.storage.parquet_statistics.is_clustered", lambda ranges: True)
    session.register("t", str(path))
    return str(path)


def _stated(file: ParquetFile, column: int) -> Any:
    from bireme.storage.parquet_bounds import key_ranges

    return key_ranges(file, column)


@pytest.mark.parametrize("query", [SUMS, HAVING, f"{SUMS} limit 100000"])
def test_statistics_that_lie_cost_time_only(session: bm.Session, lying: str, query: str) -> None:
    assert "clustered by" in session.sql(query).explain(physical=True)
    assert rows_of(session.sql(query).collect()) == expected(query, lying)
    # From then on the session plans it without.
    assert "clustered by" not in session.sql(query).explain(physical=True)


def test_streams_start_anew(session: bm.Session, lying: str) -> None:
    batches = list(session.sql(SUMS).to_batches())
    assert rows_of(pa.Table.from_batches(batches)) == expected(SUMS, lying)


def test_asynchronous_streams_start_anew(session: bm.Session, lying: str) -> None:
    async def main() -> list[pa.RecordBatch]:
        return [batch async for batch in session.sql(SUMS)]

    assert rows_of(pa.Table.from_batches(asyncio.run(main()))) == expected(SUMS, lying)


def test_explain_tells_of_it(session: bm.Session, lying: str) -> None:
    assert "run again without what rests on statistics" in session.sql(SUMS).explain(analyze=True)


# ------------------------------------------------------------------------------------------------------ ranges

RANGES = st.lists(
    st.one_of(
        st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
        st.sampled_from([(INT64_MIN, INT64_MAX), (INT64_MIN, INT64_MIN), (INT64_MAX, INT64_MAX)]),
    ),
    max_size=6,
)


@given(RANGES)
def test_exclusive_parts_touch_no_other_range(pairs: Sequence[tuple[int, int]]) -> None:
    ranges = [KeyRange(*pair) for pair in pairs]
    for index, part in enumerate(exclusive(ranges)):
        if part.is_empty:
            continue
        own = ranges[index]
        assert own.low <= part.low <= part.high <= own.high
        others = [other for at, other in enumerate(ranges) if at != index and not other.is_empty]
        assert all(other.high < part.low or other.low > part.high for other in others)


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=20, unique=True))
def test_ranges_apart_are_exclusive(cuts: list[int]) -> None:
    ranges = [KeyRange(low, high - 1) for low, high in pairwise(sorted(cuts))]
    assert exclusive(ranges) == ranges


def test_an_unknown_range_may_hold_anything() -> None:
    assert all(part.is_empty for part in exclusive([KeyRange(1, 2), None]))

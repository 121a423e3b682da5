"""Tables whose decoded columns outlive queries: right answers, changed files, little memory, nothing left behind."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme import col

ROWS = 60_000
ROW_GROUP = 7_000
QUERIES = (
    "select count(*), sum(n), sum(price) from t",
    "select word, count(*), sum(price) from t where n % 3 = 0 group by word order by word",
    "select n, text from t where text like '%77%' order by n limit 20",
    "select t.word, max(u.n) from t join t as u on t.n = u.n + 1 where u.price < 20 group by 1 order by 1",
    "select count(*) from t where day is null",
)


def table(seed: int) -> pa.Table:
    rng = random.Random(seed)
    numbers = list(range(ROWS))
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "price": pa.array([Decimal(rng.randrange(10_000)) / 100 for _ in numbers], pa.decimal128(12, 2)),
            "word": pa.array([rng.choice(["red", "green", None, "blue"]) for _ in numbers]),
            "text": pa.array([f"row {rng.randrange(1_000_000)}" for _ in numbers]),
            "day": pa.array([None if rng.random() < 0.1 else rng.randrange(20_000) for _ in numbers], pa.date32()),
        }
    )


def write(path: Path, seed: int = 1) -> None:
    pq.write_table(table(seed), path, row_group_size=ROW_GROUP)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def expected(path: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"create view t as select * from '{path}'")
        return connection.execute(sql).fetchall()


def rows_of(frame: bm.Frame) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in frame.collect().to_pylist()]


def hits_and_misses(session: bm.Session, sql: str) -> tuple[int, int]:
    """Chunks that the scans of a query found and did not find in the cache."""
    profile = session.sql(sql).explain(analyze=True)
    lines = [line for line in profile.splitlines() if "cache gave" in line]
    hits = sum(int(line.partition("cache gave")[2].partition("(")[2].split()[0]) for line in lines)
    return hits, sum(int(line.partition("lacked ")[2].split()[0]) for line in lines)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_answers_are_the_same_from_files_and_from_the_cache(path: Path, backend: str) -> None:
    with bm.connect(threads=2, backend=backend) as session:
        session.register("t", path)
        session.table("t").cache()
        for _ in range(3):
            for sql in QUERIES:
                assert rows_of(session.sql(sql)) == expected(path, sql), sql


def test_columns_are_kept_one_by_one(path: Path) -> None:
    groups = -(-ROWS // ROW_GROUP)
    with bm.connect(threads=2) as session:
        session.register("t", path)
        assert hits_and_misses(session, "select sum(n) from t") == (0, 0)
        session.table("t").cache()
        assert hits_and_misses(session, "select sum(n) from t") == (0, groups)
        assert hits_and_misses(session, "select sum(n) from t") == (groups, 0)
        assert hits_and_misses(session, "select sum(n), max(price) from t") == (groups, groups)
        assert hits_and_misses(session, "select sum(price) from t") == (groups, 0)
        (kept,) = session.cached()
        assert (kept.table, kept.chunks) == ("t", 2 * groups)
        assert kept.nbytes == session.statistics().cache_bytes
        assert 16 * ROWS <= kept.nbytes < 17 * ROWS


def test_row_groups_that_share_a_task_are_kept_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table(1), path, row_group_size=ROWS // 100)
    with bm.connect(threads=2) as session:
        session.register("t", path)
        session.table("t").cache()
        for sql in QUERIES:
            assert rows_of(session.sql(sql)) == expected(path, sql), sql
        assert hits_and_misses(session, "select sum(n) from t where n >= 30000") == (50, 0)
        assert hits_and_misses(session, "select sum(n), min(day) from t where n < 30000") == (100, 0)
        tasks = session.sql("select sum(n) from t").explain(analyze=True)
        (count,) = re.findall(r"scan t: (\d+) tasks, 60 k →", tasks)
        assert int(count) < 40
        for sql in QUERIES:
            assert rows_of(session.sql(sql)) == expected(path, sql), sql


def test_explain_says_what_is_cached(path: Path) -> None:
    with bm.connect(threads=1) as session:
        session.register("t", path)
        assert "cached:" not in session.table("t").explain(physical=True)
        assert "cached: t" in session.table("t").cache().explain(physical=True)


def test_a_changed_file_is_read_anew(path: Path) -> None:
    sql = QUERIES[1]
    with bm.connect(threads=2) as session:
        session.register("t", path)
        session.table("t").cache()
        before = rows_of(session.sql(sql))
        chunks = session.cached()[0].chunks
        write(path, seed=2)
        after = rows_of(session.sql(sql))
        assert after == expected(path, sql) != before
        assert session.cached()[0].chunks == chunks


def test_a_frame_of_files_without_a_name_can_be_cached(path: Path) -> None:
    with bm.connect(threads=2) as session:
        frame = session.scan_parquet(path).cache().filter(col("n") < 10).select(col("n"))
        assert frame.collect().num_rows == frame.collect().num_rows == 10
        assert session.cached()[0].chunks >= 1


def test_uncache_gives_everything_back_and_ends_it(path: Path) -> None:
    with bm.connect(threads=2) as session:
        session.register("t", path)
        session.table("t").cache().collect()
        session.uncache("T")
        assert session.cached() == []
        assert session.statistics().reservations == 0
        session.table("t").collect()
        assert session.cached() == []
        session.table("t").cache().collect()
        session.uncache()
        assert session.cached() == []


@pytest.mark.parametrize("change", ["drop", "register"])
def test_another_table_under_the_name_is_not_cached(path: Path, change: str) -> None:
    with bm.connect(threads=2) as session:
        session.register("t", path)
        session.table("t").cache().collect()
        if change == "drop":
            session.drop("t")
        session.register("t", path)
        assert session.cached() == []
        session.table("t").collect()
        assert session.cached() == []


def test_queries_take_back_what_the_cache_holds(path: Path) -> None:
    with bm.connect(threads=2, memory_limit="8MiB") as session:
        session.register("t", path)
        session.table("t").cache()
        for _ in range(3):
            for sql in QUERIES:
                assert rows_of(session.sql(sql)) == expected(path, sql), sql
                statistics = session.statistics()
                assert statistics.cache_bytes <= 0.6 * (8 << 20)
                assert statistics.reservations == sum(kept.chunks for kept in session.cached())


def test_a_query_that_is_cancelled_leaves_only_whole_chunks(path: Path) -> None:
    with bm.connect(threads=2) as session:
        session.register("t", path)
        session.table("t").cache()
        for _ in range(5):
            batches = session.table("t").to_batches()
            next(batches)
            batches.close()  # type: ignore[attr-defined]
            assert session.statistics().reservations == sum(kept.chunks for kept in session.cached())
        assert rows_of(session.sql(QUERIES[0])) == expected(path, QUERIES[0])


def test_a_session_closes_while_it_fills_its_cache(path: Path) -> None:
    session = bm.connect(threads=2)
    session.register("t", path)
    batches = session.table("t").cache().to_batches()
    next(batches)
    session.close()
    batches.close()  # type: ignore[attr-defined]


def test_tables_in_memory_have_nothing_to_keep() -> None:
    with bm.connect(threads=1) as session:
        frame = session.from_arrow(pa.table({"n": [1, 2, 3]})).cache()
        assert frame.collect().num_rows == 3
        assert session.cached() == []

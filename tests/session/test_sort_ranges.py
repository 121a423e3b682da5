"""Sorts of many rows: cut into ranges, each sorted alone, in memory and out of it, and the whole as one stable sort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.plan import lower_sort

ROWS = 300_000


# Columns of drawn values: the hash of a row and a letter is as good as a draw, and the same on every run.
COLUMNS = """
    i as row,
    case when hash(i, 'a') % 100 > 0 then (hash(i, 'b') % 2000000000)::bigint - 1000000000 end as drawn,
    (i // 9)::int as rising,
    case hash(i, 'c') % 4 when 3 then null else hash(i, 'c') % 4 end::tinyint as few,
    7::smallint as one,
    case hash(i, 'd') % 4 when 0 then 'nan'::double when 1 then -0.0 when 2 then 0.0
        else (hash(i, 'e') % 1000000) / 1e5 - 5 end::double as real,
    'same start ' || hash(i, 'f') % 1000000 as text,
    case hash(i, 'g') % 5 when 0 then 'ab' when 1 then 'abc' when 2 then '' when 3 then 'ünder' end as word,
    'payload ' || i || repeat('x', (i % 70)::int) as wide
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranges") / "t.parquet"
    with duckdb.connect() as made:
        made.execute(
            f"copy (select {COLUMNS} from range({ROWS}) as r(i) order by i) "
            f"to '{path}' (format parquet, row_group_size 40960)"
        )
    return path


@pytest.fixture(params=["1GiB", "8MiB"])
def memory(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session(memory: str, file: Path, tmp_path: Path) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit=memory, spill_folder=tmp_path / "spill") as session:
        session.register("t", str(file))
        yield session


@pytest.fixture(scope="module")
def oracle(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as oracle:
        oracle.execute(f"create table t as select * from '{file}'")
        yield oracle


ORDERS = [
    "drawn desc nulls first",
    "rising, text desc",
    "few nulls last, real desc, drawn",
    "one",
    "one, word nulls first",
    "real",
    "text",
    "drawn % 1000, text",
]


@pytest.mark.parametrize("order", ORDERS)
def test_ranges_follow_each_other_in_one_stable_order(
    session: bm.Session, oracle: duckdb.DuckDBPyConnection, order: str
) -> None:
    got = session.sql(f"select row, wide from t where row % 50 <> 3 order by {order}").collect()
    wanted = oracle.sql(f"select row, wide from t where row % 50 <> 3 order by {order}, row").arrow()
    wanted = wanted.read_all() if hasattr(wanted, "read_all") else wanted
    assert got.column("row").to_pylist() == wanted.column("row").to_pylist()
    assert got.column("wide").to_pylist() == wanted.column("wide").to_pylist()


def test_what_does_not_fit_is_spilled_and_told(file: Path, tmp_path: Path) -> None:
    text = "select * from t order by text"
    with bm.connect(threads=2, memory_limit="8MiB", spill_folder=tmp_path) as session:
        session.register("t", str(file))
        explained = session.sql(text).explain(analyze=True, physical=True)
    assert "by ranges of text#" in explained
    assert "spilled" in explained or "demoted" in explained, explained


def test_the_keys_of_some_splits_are_read_before_all_rows(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few rows are wanted: then the sample asks what the sort asks, and must not wait for all of it."""
    monkeypatch.setattr(lower_sort, "_SHARES_IN_MEMORY", 0)
    monkeypatch.setattr(lower_sort, "_ROWS_PER_RANGE", 1_000)
    with bm.connect(threads=2, memory_limit="8MiB") as session:
        session.register("t", str(file))
        plan = session.sql("select row, one from t where row % 50 = 3 order by row").explain(physical=True)
    assert "splits of t" in plan
    assert "«shared»" not in plan


def test_a_sorted_result_streams_to_a_file(file: Path, session: bm.Session, tmp_path: Path) -> None:
    target = tmp_path / "sorted.parquet"
    session.sql("select * from t order by drawn, text").sink_parquet(target)
    keys = pq.read_table(target, columns=["row", "drawn"])
    drawn = keys.column("drawn").to_pylist()
    values = [value for value in drawn if value is not None]
    assert values == sorted(values)
    assert drawn[len(values) :] == [None] * (ROWS - len(values))
    assert sorted(keys.column("row").to_pylist()) == list(range(ROWS))


def test_no_rows_and_few_rows(session: bm.Session) -> None:
    assert session.sql("select row from t where drawn > 5000000000 order by text").collect().num_rows == 0
    got = session.sql("select row from t where row in (5, 299999, 7) order by row desc").collect()
    assert got.column("row").to_pylist() == [299_999, 7, 5]


WINDOWS = [
    "row_number() over (partition by few order by drawn, row)",
    "rank() over (partition by rising order by text), sum(drawn) over (partition by rising, word order by row)",
    "count(*) over (partition by one, word)",
    "lag(drawn) over (order by row)",
]


@pytest.mark.parametrize("calls", WINDOWS)
def test_windows_in_partitions(session: bm.Session, memory: str, oracle: duckdb.DuckDBPyConnection, calls: str) -> None:
    text = f"select row, wide, {calls} from t where row % 3 = 1 or drawn > 0"
    frame = session.sql(text)
    got = sorted(zip(*(column.to_pylist() for column in frame.collect().columns), strict=True))
    assert got == sorted(oracle.sql(text).fetchall())
    is_cut = "by hash of" in frame.explain(physical=True)
    assert is_cut == (memory == "8MiB" and "partition by" in calls)


def test_windows_that_are_aggregated_run_on_all_slots(file: Path, oracle: duckdb.DuckDBPyConnection) -> None:
    """Whose rows come in no order that anybody sees; ties are still numbered in the order of the table."""
    numbered = "select row, word, row_number() over (partition by word order by few) as place from t"
    with bm.connect(threads=2, memory_limit="1GiB") as session:
        session.register("t", str(file))
        for text, is_cut in (
            (f"select place, count(*) as c, sum(row) as s from ({numbered}) group by place", True),
            (f"select max(place), min(row) from ({numbered}) where place > 3", True),
            (f"select word, first(row) as f from ({numbered}) group by word", False),
        ):
            frame = session.sql(text)
            assert ("by hash of word" in frame.explain(physical=True)) == is_cut
            found = sorted(zip(*(column.to_pylist() for column in frame.collect().columns), strict=True), key=str)
            told = text.replace("order by few", "order by few, row").replace("first(row)", "min(row)")
            assert found == sorted(oracle.sql(told).fetchall(), key=str)


@pytest.mark.parametrize("order", ["one", "case when row % 50 = 7 then row else 0 end", "one, few"])
def test_a_range_that_is_too_large_is_cut_again(
    file: Path, tmp_path: Path, oracle: duckdb.DuckDBPyConnection, order: str
) -> None:
    """Equal keys fall into one range; it is cut by the positions of its rows."""
    text = f"select row, wide from t order by {order}"
    with bm.connect(threads=2, memory_limit="8MiB", spill_folder=tmp_path) as session:
        session.register("t", str(file))
        assert "cut" in session.sql(text).explain(analyze=True).split("done in")[0].split("sort:")[1]
        got = session.sql(text).collect()
    assert got.column("row").to_pylist() == [row for row, _ in oracle.sql(f"{text}, row").fetchall()]

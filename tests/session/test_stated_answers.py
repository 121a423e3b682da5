"""Counts and extremes of whole tables: what metadata states is used as far as it can be trusted, and no further."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.footers import META_DATA, STATISTICS, Fields, chunks, edited
from support.rows import difference

import bireme as bm

GROUP_ROWS = 5_000
GROUPS = 6
ROWS = GROUP_ROWS * GROUPS
# Fields of Statistics.
MAX_VALUE, MIN_VALUE = 5, 6

EXTREMES = ("number", "falling", "sparse", "never", "day", "moment", "money", "word", "long")
STATED = "as its metadata states"
PASSED_OVER = "the top-n's bound dropped"


@cache
def table() -> pa.Table:
    rows = range(ROWS)
    day = datetime.date(2020, 2, 29)
    moment = datetime.datetime(1969, 12, 31)
    return pa.table(
        {
            "number": pa.array([(row * 7_919) % 100_003 - 50_000 for row in rows], pa.int64()),
            "falling": pa.array([ROWS - row for row in rows], pa.int32()),
            "sparse": pa.array([None if row % 3 or row < GROUP_ROWS else row % 11 for row in rows], pa.int16()),
            "never": pa.nulls(ROWS, pa.int32()),
            "day": pa.array([day + datetime.timedelta(row % 400) for row in rows]),
            "moment": pa.array([moment + datetime.timedelta(seconds=row) for row in rows]),
            "money": pa.array([Decimal(row - 9_000) / 4 for row in rows], pa.decimal128(30, 2)),
            "word": pa.array([("b", "ü", "", "a")[row % 4] if row < ROWS - 3 else "zz" for row in rows]),
            "long": pa.array(["prefix " * 20 + str(row * 31 % 977) for row in rows]),
            "real": pa.array([(math.nan, -0.0, 0.0, 1.5)[row % 4] for row in rows]),
        }
    )


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of these tests are worth it."""
    monkeypatch.setattr("bireme.plan.rules.stated_answers._ROWS_PER_ORDER_MIN", 1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stated") / "t.parquet"
    pq.write_table(table(), path, row_group_size=GROUP_ROWS)
    return path


@pytest.fixture(scope="module")
def oracle(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """It knows the rows by values, not by what is said of them."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"create table t as select * from '{file}'")
        yield connection


Check = Callable[..., str]


@pytest.fixture
def check(file: Path, oracle: duckdb.DuckDBPyConnection, session: bm.Session) -> Check:
    """Compares the answer over a file with these rows, and says how it was found."""

    def checked(text: str, path: Path = file) -> str:
        session.register("t", str(path))
        frame = session.sql(text)
        rows = [tuple(row.values()) for row in frame.collect().to_pylist()]
        assert difference(oracle.execute(text).fetchall(), rows) is None
        return frame.explain(analyze=True)

    return checked


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2) as opened:
        yield opened


def test_a_count_of_all_rows_reads_nothing(check: Check) -> None:
    story = check("select count(*), count(1), count(*) + 1 from t")
    assert STATED in story
    assert "scan" not in story


def test_a_count_of_values_reads_them(check: Check) -> None:
    assert STATED not in check("select count(sparse), count(never), count(number) from t")


def test_a_count_of_values_that_cannot_be_null_reads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "strict.parquet"
    pq.write_table(pa.table([pa.array([3, 5, 8])], pa.schema([pa.field("n", pa.int64(), False)])), path)
    with bm.connect(threads=1) as session:
        session.register("t", str(path))
        frame = session.sql("select count(n) as n from t")
        assert frame.collect().to_pylist() == [{"n": 3}]
        assert STATED in frame.explain()


@pytest.mark.parametrize("column", EXTREMES)
def test_extremes_read_what_may_hold_them(check: Check, column: str) -> None:
    story = check(f"select min({column}), max({column}) from t")
    assert (PASSED_OVER in story) == (column != "never")


def test_several_columns_and_counts_in_one_row(check: Check) -> None:
    text = "select max(day), count(*), min(falling), max(falling), min(word), max(long) as l, count(*) as n from t"
    assert PASSED_OVER in check(text)


@pytest.mark.parametrize(
    "text",
    [
        "select min(real), max(real), count(*) from t",
        "select min(number), sum(falling) from t",
        "select min(number + 1) from t",
        "select min(number), max(number) from t where number > 7",
        "select count(*) from t where sparse = 3",
        "select count(*) filter (where sparse = 3), count(distinct word) from t",
        "select word, count(*), min(number) from t group by word",
        "select count(*), min(number) from t group by ()",
        "select count(*), max(day) from (select * from t limit 17)",
        "select count(*), max(day) from t where false",
        "select (select count(*) from t), (select max(number) from t)",
        "select a.falling from t a where a.falling = (select max(falling) from t) and (select count(*) from t) > 5",
    ],
)
def test_whatever_else_is_asked_is_right(check: Check, text: str) -> None:
    check(text)


def test_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.write_table(table().slice(0, 0), path)
    with bm.connect(threads=1) as session:
        session.register("t", str(path))
        found = session.sql("select count(*) as n, min(number) as least, max(word) as last from t").collect()
    assert found.to_pylist() == [{"n": 0, "least": None, "last": None}]


def test_tables_in_memory() -> None:
    with bm.connect(threads=1) as session:
        session.register("t", table())
        found = session.sql("select count(*) as n, max(falling) as f, min(word) as w from t").collect()
    assert found.to_pylist() == [{"n": ROWS, "f": ROWS, "w": ""}]


# ------------------------------------------------------------------------------------- statistics of other writers


def statistics_of(footer: Fields, column: int) -> list[Fields]:
    width = len(table().columns)
    found: list[Fields] = [chunk[META_DATA][1][STATISTICS][1] for chunk in chunks(footer)[column::width]]
    return found


def loose(footer: Fields) -> None:
    """Bounds that hold, and that no value reaches."""
    for stated in statistics_of(footer, 0):
        low, high = struct.unpack("<q", stated[MIN_VALUE][1])[0], struct.unpack("<q", stated[MAX_VALUE][1])[0]
        stated[MIN_VALUE][1], stated[MAX_VALUE][1] = struct.pack("<q", low - 1), struct.pack("<q", high + 7)


def cut_short(footer: Fields) -> None:
    """Texts of at most ten bytes, the upper bound rounded up."""
    for stated in statistics_of(footer, 8):
        cut = stated[MAX_VALUE][1][:10]
        stated[MIN_VALUE][1], stated[MAX_VALUE][1] = stated[MIN_VALUE][1][:10], cut[:-1] + bytes([cut[-1] + 1])


def partly_absent(footer: Fields) -> None:
    for column in range(len(table().columns)):
        for place, stated in enumerate(statistics_of(footer, column)):
            if (place + column) % 3 == 0:
                stated.pop(MIN_VALUE, None)
                stated.pop(MAX_VALUE, None)


def absent(footer: Fields) -> None:
    for chunk in chunks(footer):
        chunk[META_DATA][1].pop(STATISTICS, None)


@pytest.mark.parametrize("edit", [loose, cut_short, partly_absent, absent])
def test_bounds_are_not_taken_for_values(
    check: Check, file: Path, tmp_path: Path, edit: Callable[[Fields], None]
) -> None:
    other = tmp_path / "other.parquet"
    other.write_bytes(edited(file.read_bytes(), edit))
    columns = ", ".join([f"min({name}), max({name})" for name in (*EXTREMES, "real")])
    check(f"select {columns} from t", other)
    for name in ("number", "word", "long"):
        check(f"select max({name}), count(*), min({name}) from t", other)


def test_a_file_that_changes_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with bm.connect(threads=1) as session:
        for rows in (1_000, 3_000):
            pq.write_table(table().slice(0, rows), path)
            session.register("t", str(path))
            found = session.sql("select count(*) as n, max(number) as m from t").collect().to_pylist()
            assert found == [{"n": rows, "m": max(table()["number"].to_pylist()[:rows])}]

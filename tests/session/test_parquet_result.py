"""Results written to Parquet: encoded by tasks, in the order of the rows, of every type, whole or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.errors import BiremeError, Cancelled, ConversionFault, Overflow, SinkFailed

ROWS = 400_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "t.parquet"
    with duckdb.connect() as made:
        made.execute(
            f"""copy (
                select i as row, (hash(i) % 1000003)::bigint as drawn, 'text ' || hash(i, 'x') % 100000 as text,
                    case i % 3 when 0 then 'red' when 1 then 'green' end as colour, (i % 977 / 100)::decimal(9, 2) as d
                from range({ROWS}) as r(i)
            ) to '{path}' (format parquet, row_group_size 40960)"""
        )
    return path


@pytest.fixture(params=["1GiB", "8MiB"])
def session(request: pytest.FixtureRequest, file: Path, tmp_path: Path) -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit=request.param, spill_folder=tmp_path / "spill") as session:
        session.register("t", str(file))
        yield session


def read(path: Path) -> pa.Table:
    return pq.read_table(path, page_checksum_verification=True)


@pytest.mark.parametrize(
    "text",
    [
        "select * from t",
        "select * from t order by drawn, row",
        "select row, text, colour from t where drawn % 7 = 3",
        "select colour, sum(d) as s, count(*) as c from t group by colour order by colour",
        "select row from t where 0 > row",
        "select row, drawn from t order by row limit 100000 offset 7",
    ],
)
def test_a_file_has_the_rows_of_the_result_in_order(session: bm.Session, tmp_path: Path, text: str) -> None:
    target = tmp_path / "out.parquet"
    frame = session.sql(text)
    wanted = frame.collect()
    assert frame.sink_parquet(target) == wanted.num_rows
    found = read(target)
    assert found.schema.equals(wanted.schema)
    assert found.equals(wanted)
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []


def test_row_groups_are_as_long_as_memory_lets_them_be(file: Path, tmp_path: Path) -> None:
    lengths = {}
    for limit in ("1GiB", "8MiB"):
        with bm.connect(threads=2, memory_limit=limit, spill_folder=tmp_path / "spill") as session:
            session.register("t", str(file))
            session.sql("select * from t order by text, row").sink_parquet(tmp_path / "out.parquet")
        metadata = pq.read_metadata(tmp_path / "out.parquet")
        lengths[limit] = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        assert sum(lengths[limit]) == ROWS
    assert max(lengths["1GiB"]) <= 2 * 131_072
    assert len(lengths["1GiB"]) <= 6
    assert len(lengths["8MiB"]) > 8


TYPES = {
    "a": pa.array([1, None, -5], pa.int8()),
    "b": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
    "c": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "d": pa.array([1.5, None, float("nan")], pa.float32()),
    "e": pa.array([float("inf"), None, -0.0]),
    "f": pa.array([Decimal("12345.67"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
    "g": pa.array([Decimal(10**18 - 1), None, Decimal(1 - 10**18)], pa.decimal128(18, 0)),
    "h": pa.array([Decimal(10**37), None, Decimal(-1)], pa.decimal128(38, 0)),
    "i": pa.array([Decimal("0.9"), None, Decimal("-0.9")], pa.decimal128(1, 1)),
    "j": pa.array(["ünder", None, ""]),
    "k": pa.array([b"\x00\xff", None, b""]),
    "l": pa.array([True, None, False]),
    "m": pa.array([0, None, -719162], pa.date32()),
    "n": pa.array([0, None, -1], pa.timestamp("us")),
    "o": pa.array([0, None, 2**40], pa.timestamp("ns", "UTC")),
    "p": pa.array([0, None, 86_399_999_999], pa.time64("us")),
    "q": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "r": pa.array([["x", "x"], None, [None]], pa.list_(pa.string())),
    'with.dots and "quotes"': pa.array([1, 2, 3]),
}


def test_columns_of_every_type(tmp_path: Path) -> None:
    table = pa.table(TYPES)
    with bm.connect(threads=2, memory_limit="1GiB", spill_folder=tmp_path) as session:
        session.register("t", table)
        frame = session.sql("select * from t")
        frame.sink_parquet(tmp_path / "out.parquet")
        assert str(read(tmp_path / "out.parquet").to_pydict()) == str(frame.collect().to_pydict())
        assert read(tmp_path / "out.parquet").schema.equals(frame.collect().schema)
        physical = pq.read_metadata(tmp_path / "out.parquet").schema
        kinds = {physical.column(at).path: physical.column(at).physical_type for at in range(len(physical))}
        assert (kinds["f"], kinds["i"], kinds["g"]) == ("INT32", "INT32", "INT64")


@pytest.mark.parametrize("digits", range(1, 20))
def test_decimals_of_every_width(tmp_path: Path, digits: int) -> None:
    most = Decimal(10**digits - 1)
    table = pa.table({"d": pa.array([most, None, -most, Decimal(0)], pa.decimal128(digits, 0))})
    with bm.connect(threads=1, memory_limit="1GiB", spill_folder=tmp_path) as session:
        session.register("t", table)
        session.sql("select d, min(d) over () as least from t").sink_parquet(tmp_path / "out.parquet")
    found = read(tmp_path / "out.parquet")
    assert found.column("d").to_pylist() == [most, None, -most, Decimal(0)]
    assert duckdb.sql(f"select max(d), min(d) from '{tmp_path / 'out.parquet'}'").fetchall() == [(most, -most)]
    statistics = pq.read_metadata(tmp_path / "out.parquet").row_group(0).column(0).statistics
    assert (statistics.min, statistics.max, statistics.null_count) == (-most, most, 1)


def test_names_that_occur_twice(tmp_path: Path) -> None:
    with bm.connect(threads=1, memory_limit="1GiB", spill_folder=tmp_path) as session:
        session.sql("select 1 as a, 'x' as a, 2 as A").sink_parquet(tmp_path / "out.parquet")
    found = pq.ParquetFile(tmp_path / "out.parquet").read()
    assert found.schema.names == ["a", "a", "A"]
    assert [column.to_pylist() for column in found.columns] == [[1], ["x"], [2]]


def test_texts_of_a_dictionary_with_equal_entries(session: bm.Session, tmp_path: Path) -> None:
    """What is computed per entry may make entries equal."""
    frame = session.sql(
        "select row, substr(colour, 2, 1) as c, coalesce(colour, 'e') as d, left(colour, 0) as z from t"
    )
    frame.sink_parquet(tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet").equals(frame.collect())


def test_a_query_that_fails_leaves_what_was_there(session: bm.Session, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    target.write_bytes(b"before")
    for text, error in (
        ("select cast(text as int) from t order by row", ConversionFault),
        ("select (row + 9223372036854700000) from t", Overflow),
    ):
        with pytest.raises(error):
            session.sql(text).sink_parquet(target)
    assert target.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["out.parquet"]
    statistics = session.statistics()
    assert statistics.queries == 0
    assert statistics.bytes_held == dict.fromkeys(statistics.bytes_held, 0)
    assert session.sql("select count(*) as n from t").sink_parquet(target) == 1


def test_a_session_that_closes_ends_the_file(file: Path, tmp_path: Path) -> None:
    session = bm.connect(threads=2, memory_limit="8MiB", spill_folder=tmp_path / "spill")
    session.register("t", str(file))
    target = tmp_path / "out.parquet"
    ended: list[BaseException] = []

    def write() -> None:
        try:
            session.sql(
                "select a.*, b.text as other from t a join t b on a.drawn = b.drawn order by other"
            ).sink_parquet(target)
        except BiremeError as error:
            ended.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while not session.statistics().tasks_finished and writer.is_alive():
        time.sleep(0.005)
    session.close()
    writer.join(60)
    assert not writer.is_alive()
    assert [type(error) for error in ended] in ([Cancelled], []), ended
    assert target.exists() == (not ended)
    assert not list(tmp_path.glob(".*partial"))


def test_a_folder_that_is_not_there_is_told_before_the_query_runs(session: bm.Session, tmp_path: Path) -> None:
    with pytest.raises(SinkFailed, match="No such file"):
        session.sql("select * from t order by text").sink_parquet(tmp_path / "missing" / "out.parquet")
    assert session.statistics().tasks_finished == 0


def test_a_reader_that_stops_holds_the_query_back(file: Path, tmp_path: Path) -> None:
    """A result that is larger than memory, of which one batch is read: what is made ahead stays within the limit."""
    limit = 16 << 20
    with bm.connect(threads=2, memory_limit=limit, spill_folder=tmp_path) as session:
        session.register("t", str(file))
        batches = session.sql(
            "select a.row, a.text, b.text as other from t a join t b on a.row // 5 = b.row // 5"
        ).to_batches()
        first = next(batches)
        assert first.num_rows
        before = -1
        while (now := session.statistics().tasks_finished) != before:
            before = now
            time.sleep(0.2)
        statistics = session.statistics()
        assert statistics.queries == 1
        held = {tier.name: nbytes for tier, nbytes in statistics.bytes_held.items()}
        assert held["DEVICE"] <= limit * 1.1
        rows = first.num_rows + sum(batch.num_rows for batch in batches)
        assert rows == 5 * ROWS


def test_a_result_that_nobody_collects_goes_with_its_reader(file: Path, tmp_path: Path) -> None:
    with bm.connect(threads=2, memory_limit="16MiB", spill_folder=tmp_path) as session:
        session.register("t", str(file))
        batches = session.sql("select * from t order by text").to_batches()
        next(batches)
        batches.close()
        statistics = session.statistics()
        assert (statistics.queries, statistics.spill_bytes) == (0, 0)
        assert statistics.bytes_held == dict.fromkeys(statistics.bytes_held, 0)
        never_begun = session.sql("select * from t order by text").to_batches()
        del never_begun
        assert session.statistics().queries == 0

"""Results in files and streams: what is in them, and that a file is there whole or not at all."""

import csv
import datetime
import io
import json
import os
import resource
import stat
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bireme.errors import ArgumentFault, ConversionFault, SinkFailed, Unsupported
from bireme.storage.sink import write_file, write_stream

FORMATS = ["parquet", "csv", "json", "arrow"]
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "amount": pa.decimal128(15, 2),
        "big": pa.decimal128(38, 3),
        "text": pa.string(),
        "day": pa.date32(),
        "moment": pa.timestamp("us"),
        "ratio": pa.float64(),
        "yes": pa.bool_(),
    }
)


def batches_of(rows, count=3):
    for part in range(count):
        numbers = range(part * rows, (part + 1) * rows)
        moment = datetime.datetime(1960, 2, 29, 12, 0, 0, 7)
        columns = [
            pa.array(numbers, pa.int64()),
            pa.array([Decimal(i) / 100 for i in numbers], pa.decimal64(15, 2)),
            pa.array(
                [None if i % 4 == 0 else Decimal(f"{'9' * 35}.00{i % 10}") for i in numbers], pa.decimal128(38, 3)
            ),
            pa.array([(None, "", 'a"b', "ünï,cödé\n")[i % 4] for i in numbers]).dictionary_encode(),
            pa.array([datetime.date(1969, 12, 31) + datetime.timedelta(i % 9) for i in numbers]),
            pa.array([moment + datetime.timedelta(days=i) for i in numbers], pa.timestamp("us")),
            pa.array([(0.1, None, float("nan"), float("-inf"))[i % 4] for i in numbers]),
            pa.array([(True, False, None)[i % 3] for i in numbers]),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=SCHEMA.names)


def whole(rows=10, count=3):
    parts = []
    for batch in batches_of(rows, count):
        parts.append(
            pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(batch.columns, SCHEMA, strict=True)], schema=SCHEMA
            )
        )
    return pa.Table.from_batches(parts, SCHEMA)


def alike(found, expected):
    """Equality with NaN equal to itself."""
    return found.schema.types == expected.schema.types and str(found.to_pylist()) == str(expected.to_pylist())


def test_parquet_round_trip(tmp_path):
    path = tmp_path / "out.parquet"
    assert write_file(batches_of(10), SCHEMA, path, "parquet") == 30
    assert alike(pq.read_table(path, page_checksum_verification=True), whole())
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_parquet_gathers_small_batches_into_row_groups(tmp_path):
    small = [pa.record_batch({"a": pa.array(range(1000))})] * 300
    write_file(iter(small), small[0].schema, tmp_path / "out.parquet", "parquet")
    metadata = pq.read_metadata(tmp_path / "out.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [131_072, 131_072, 37_856]


def test_parquet_is_read_by_duckdb(tmp_path):
    path = tmp_path / "out.parquet"
    write_file(batches_of(10), SCHEMA, path, "parquet")
    found = duckdb.sql(f"select sum(n), sum(amount), count(text), max(big) from '{path}'").fetchall()
    assert found == [(435, Decimal("4.35"), 22, Decimal(f"{'9' * 35}.009"))]


@pytest.mark.parametrize("to", ["file", "stream"])
def test_arrow_round_trip(tmp_path, to):
    if to == "file":
        write_file(batches_of(10), SCHEMA, tmp_path / "out.arrow", "arrow")
        found = pa.ipc.open_file(tmp_path / "out.arrow").read_all()
    else:
        stream = io.BytesIO()
        assert write_stream(batches_of(10), SCHEMA, stream, "arrow") == 30
        found = pa.ipc.open_stream(stream.getvalue()).read_all()
    assert alike(found, whole())


def test_csv_tells_null_from_the_empty_string(tmp_path):
    path = tmp_path / "out.csv"
    write_file(batches_of(10), SCHEMA, path, "csv")
    lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    assert lines[0] == SCHEMA.names
    assert len(lines) == 31
    assert lines[3][3] == 'a"b'
    assert lines[4][3] == "ünï,cödé\n"
    assert lines[2][1] == "0.01"
    assert lines[1][4] == "1969-12-31"
    raw = path.read_text(encoding="utf-8").split("\n")
    assert raw[1].split(",")[3] == ""
    assert raw[2].split(",")[3] == '""'


def test_json_lines_keep_every_digit(tmp_path):
    path = tmp_path / "out.json"
    write_file(batches_of(10), SCHEMA, path, "json")
    rows = [json.loads(line, parse_float=Decimal) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 30
    assert rows[0]["amount"] == Decimal("0.00")
    assert rows[1]["big"] == Decimal(f"{'9' * 35}.001")
    assert [row["text"] for row in rows[:4]] == [None, "", 'a"b', "ünï,cödé\n"]
    assert rows[0]["moment"] == "1960-02-29T12:00:00.000007"
    assert [row["ratio"] for row in rows[:4]] == [Decimal("0.1"), None, "NaN", "-Infinity"]
    assert [row["yes"] for row in rows[:3]] == [True, False, None]


def test_json_lines_of_every_other_type(tmp_path):
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1, None], pa.timestamp("ns")),
            pa.array([b"\xff\x00", None]),
            pa.array([[1, None], None], pa.list_(pa.int32())),
            pa.array([{"a": Decimal("1.5"), "b": "x"}, None], pa.struct({"a": pa.decimal128(3, 1), "b": pa.string()})),
            pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            pa.array([2**64 - 1, None], pa.uint64()),
            pa.nulls(2),
        ],
        names=["a", "b", "c", "d", "e", "f", "f"],
    )
    stream = io.BytesIO()
    write_stream([batch], batch.schema, stream, "json")
    first, second = map(json.loads, stream.getvalue().decode().splitlines())
    assert first == {
        "a": "1970-01-01T00:00:00.000000001",
        "b": "/wA=",
        "c": [1, None],
        "d": {"a": 1.5, "b": "x"},
        "e": [["k", 1]],
        "f": 2**64 - 1,
        "f_2": None,
    }
    assert set(second.values()) == {None}


def test_csv_of_nested_values_is_text():
    batch = pa.record_batch({"a": pa.array([[1, 2], None]), "b": pa.array([b"\xff", None])})
    stream = io.BytesIO()
    write_stream([batch], batch.schema, stream, "csv")
    assert list(csv.reader(io.StringIO(stream.getvalue().decode()))) == [["a", "b"], ["[1,2]", "/w=="], ["", ""]]


@pytest.mark.parametrize("format", FORMATS)
def test_no_rows_still_make_a_file(tmp_path, format):
    path = tmp_path / "out"
    assert write_file([], SCHEMA, path, format) == 0
    assert path.exists()
    if format == "parquet":
        assert pq.read_table(path).schema.equals(SCHEMA)


# ------------------------------------------------------------------------------------- all or nothing


@pytest.mark.parametrize("format", FORMATS)
def test_a_query_that_fails_leaves_the_old_file(tmp_path, format):
    path = tmp_path / "out"
    path.write_text("old")
    closed = []

    def failing():
        try:
            yield from batches_of(10)
            raise ConversionFault("the query failed")
        finally:
            closed.append(True)

    with pytest.raises(ConversionFault, match="the query failed"):
        write_file(failing(), SCHEMA, path, format)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]
    assert closed == [True]


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_nothing(tmp_path, format):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(SinkFailed, match="nothing is left behind"):
            write_file(batches_of(2000), SCHEMA, tmp_path / "out", format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_the_query_does_not_start_where_the_target_cannot_be_written(tmp_path):
    started = []

    def batches():
        started.append(True)
        yield from batches_of(1)

    with pytest.raises(SinkFailed, match="No such file"):
        write_file(batches(), SCHEMA, tmp_path / "missing" / "out.parquet", "parquet")
    with pytest.raises(SinkFailed, match="is a folder"):
        write_file(batches(), SCHEMA, tmp_path, "parquet")
    with pytest.raises(ArgumentFault, match="parquet, csv, json, arrow"):
        write_file(batches(), SCHEMA, tmp_path / "out", "xlsx")
    assert started == []


def test_a_type_that_the_format_lacks_is_named(tmp_path):
    batch = pa.record_batch({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(Unsupported, match="parquet"):
        write_file([batch], batch.schema, tmp_path / "out.parquet", "parquet")
    assert os.listdir(tmp_path) == []


def test_a_replaced_file_keeps_its_rights_and_a_link_its_target(tmp_path):
    real = tmp_path / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    write_file(batches_of(1), SCHEMA, link, "csv")
    assert link.is_symlink()
    assert real.read_text().startswith('"n"')
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_devices_are_written_directly():
    assert write_file(batches_of(10), SCHEMA, "/dev/null", "csv") == 30


def test_a_reader_that_went_away_is_an_error_of_ours():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as file, pytest.raises(SinkFailed, match="Broken pipe"):
        write_stream(batches_of(10), SCHEMA, file, "csv")

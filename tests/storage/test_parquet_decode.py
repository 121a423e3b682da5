"""Decoding, against pyarrow's own reader, on files of three writers with random options."""

import datetime
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parquet_files import COLUMNS, duckdb_file, fetch, polars_file, read_rows, table_of

from bireme.errors import Unsupported
from bireme.storage import parquet_decode
from bireme.storage.base import BATCH_ROWS_MAX
from bireme.storage.parquet import open_parquet

# DuckDB reads no times stored in nanoseconds into its TIMESTAMP_S and back; only pyarrow writes all types.
FOR_DUCKDB = {name: kind for name, kind in COLUMNS.items() if name not in ("time", "instant")}


def pyarrow_options(rng):
    encodings = {"int32": "DELTA_BINARY_PACKED", "int64": "BYTE_STREAM_SPLIT", "string": "DELTA_BYTE_ARRAY"}
    has_dictionary = rng.random() < 0.7
    options = {
        "compression": rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "use_dictionary": has_dictionary,
        "row_group_size": rng.choice([3, 50, 1000]),
        "store_decimal_as_integer": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.8,
        "write_page_checksum": rng.random() < 0.5,
        "store_schema": rng.random() < 0.7,
        "data_page_size": rng.choice([64, 1024, None]),
        "dictionary_pagesize_limit": rng.choice([16, None]),
        "use_deprecated_int96_timestamps": rng.random() < 0.2,
    }
    if not has_dictionary and rng.random() < 0.5:
        options["column_encoding"] = encodings
    return options


def is_the_same(path, given_columns=None):
    """Compares our rows with pyarrow's, and our layouts with what they must be."""
    table = open_parquet(path)
    expected = pq.read_table(path, coerce_int96_timestamp_unit="us")
    columns = list(range(len(table.schema))) if given_columns is None else given_columns
    rows = read_rows(table, columns)
    wanted = list(zip(*(expected.column(column).to_pylist() for column in columns), strict=True))
    assert str(rows) == str(wanted)
    assert [field.name for field in table.schema] == expected.schema.names
    arrow = table.schema.select(columns).to_arrow()
    for split in table.splits(columns, []):
        for batch in split.decode(fetch(split)):
            for field, engine in zip(batch.schema, arrow, strict=True):
                kinds = (engine.type, pa.dictionary(pa.int32(), pa.string()))
                assert field.type in (kinds if engine.type == pa.string() else kinds[:1])
            batch.validate(full=True)


@pytest.mark.parametrize("seed", range(24))
def test_files_of_pyarrow(tmp_path, seed):
    rng = random.Random(seed)
    table = table_of(rng.choice([0, 1, 120]), rng, null_share=rng.choice([0, 0.2, 1]))
    options = pyarrow_options(rng)
    if options["use_deprecated_int96_timestamps"]:
        # pyarrow keeps the unit of its own schema for these, and wraps moments that nanoseconds do not hold.
        table = table.drop_columns(["timestamp", "milliseconds", "seconds", "nanoseconds", "instant"])
    pq.write_table(table, tmp_path / "t.parquet", **options)
    is_the_same(tmp_path / "t.parquet")
    order = rng.sample(range(table.num_columns), 5)
    is_the_same(tmp_path / "t.parquet", order)


@pytest.mark.parametrize("seed", range(10))
def test_files_of_duckdb(tmp_path, seed):
    rng = random.Random(seed)
    columns = dict(rng.sample(sorted(FOR_DUCKDB.items()), 12))
    table = table_of(rng.choice([1, 3000]), rng, columns=columns)
    codec = rng.choice(["snappy", "zstd", "uncompressed", "gzip"])
    version = rng.choice(["v1", "v2"])
    duckdb_file(table, tmp_path / "t.parquet", f", compression {codec}, row_group_size 2048, parquet_version {version}")
    is_the_same(tmp_path / "t.parquet")


@pytest.mark.parametrize("seed", range(10))
def test_files_of_polars(tmp_path, seed):
    rng = random.Random(seed)
    table = table_of(rng.choice([1, 500]), rng)
    options = {"compression": rng.choice(["snappy", "zstd", "lz4", "uncompressed"]), "row_group_size": 200}
    polars_file(table, tmp_path / "t.parquet", **options)
    is_the_same(tmp_path / "t.parquet")


def test_nested_columns_are_carried(tmp_path):
    table = pa.table(
        {
            "list": pa.array([[1, None], [], None] * 50),
            "struct": pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}] * 50),
            "map": pa.array([[("k", Decimal("1.50"))], [], None] * 50, pa.map_(pa.string(), pa.decimal128(5, 2))),
            "plain": pa.array([Decimal(i) for i in range(150)], pa.decimal128(9, 1)),
            "deep": pa.array([[[{"s": datetime.date(2000, 1, 1)}]]] * 150),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=40)
    is_the_same(tmp_path / "t.parquet")
    is_the_same(tmp_path / "t.parquet", [3])
    is_the_same(tmp_path / "t.parquet", [2, 0])


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"bc"], pa.large_binary()),
        pa.array([b"ab", None, b"bc"], pa.binary(2)),
        pa.array([1, None, 3], pa.duration("ms")),
        pa.array([1, None, 3], pa.time32("s")),
        pa.array([1, None, 3], pa.time64("ns")),
        pa.array([1, None, 3], pa.timestamp("s", "Europe/Berlin")),
        pa.array([1.5, None, 3], pa.float16()),
        pa.array([Decimal("1.5"), None, Decimal(-3)], pa.decimal256(20, 1)),
        pa.array([Decimal("1.5"), None, Decimal(-3)], pa.decimal32(5, 1)),
        pa.array([1, None, 3], pa.date64()),
        pa.nulls(3),
    ],
    ids=lambda array: str(array.type),
)
def test_other_layouts_of_a_type(tmp_path, array):
    pq.write_table(pa.table({"x": array, "y": [1, 2, 3]}), tmp_path / "t.parquet")
    is_the_same(tmp_path / "t.parquet")


def test_a_type_that_is_not_carried_is_named(tmp_path):
    pq.write_table(pa.table({"huge": pa.array([1], pa.decimal256(76, 0))}), tmp_path / "t.parquet")
    with pytest.raises(Unsupported, match=r"t\.parquet.*'huge'.*decimal"):
        open_parquet(tmp_path / "t.parquet")


def test_old_moments_of_96_bits_come_as_microseconds(tmp_path):
    moments = [datetime.datetime(1960, 2, 29, 1, 2, 3, 4), None, datetime.datetime(2262, 1, 1)]
    pq.write_table(
        pa.table({"t": pa.array(moments, pa.timestamp("us"))}),
        tmp_path / "t.parquet",
        use_deprecated_int96_timestamps=True,
    )
    source = open_parquet(tmp_path / "t.parquet")
    assert str(source.schema[0].type) == "timestamp"
    assert read_rows(source, [0]) == [(moment,) for moment in moments]


def test_equal_names_and_a_column_asked_for_twice(tmp_path):
    table = pa.table([pa.array([1, 2]), pa.array(["a", "b"]), pa.array([3.5, None])], names=["x", "x", "X"])
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_parquet(tmp_path / "t.parquet")
    assert source.schema.names == ("x", "x", "X")
    assert read_rows(source, [0, 1, 2]) == [(1, "a", 3.5), (2, "b", None)]
    assert read_rows(source, [2, 1, 1]) == [(3.5, "a", "a"), (None, "b", "b")]


def test_strings_keep_their_dictionary_where_pages_are_codes(tmp_path):
    few = pa.array([f"word {i % 7}" for i in range(20_000)])
    many = pa.array([f"{i * 2654435761 % 2**32:x} and a tail" * 2 for i in range(20_000)])
    pq.write_table(pa.table({"few": few, "many": many}), tmp_path / "t.parquet", dictionary_pagesize_limit=20_000)
    source = open_parquet(tmp_path / "t.parquet")
    (split,) = source.splits([0, 1], [])
    (batch,) = split.decode(fetch(split))
    assert [str(kind) for kind in batch.schema.types] == [str(pa.dictionary(pa.int32(), pa.string())), "string"]
    assert batch.column(0).dictionary_decode().equals(few)
    assert batch.column(1).equals(many)


def test_large_row_groups_come_in_batches_that_fit(tmp_path):
    rows = 2 * BATCH_ROWS_MAX + 5
    table = pa.table({"n": range(rows), "s": [f"s{i % 3}" for i in range(rows)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=rows)
    (split,) = open_parquet(tmp_path / "t.parquet").splits([0, 1], [])
    batches = list(split.decode(fetch(split)))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS_MAX, BATCH_ROWS_MAX, 5]
    assert batches[2].column(0).to_pylist() == list(range(rows - 5, rows))
    assert batches[1].column(1).to_pylist() == table.column("s").to_pylist()[BATCH_ROWS_MAX : 2 * BATCH_ROWS_MAX]


def test_counting_rows_reads_nothing(tmp_path):
    rows = BATCH_ROWS_MAX + 10
    pq.write_table(pa.table({"n": range(rows)}), tmp_path / "t.parquet", row_group_size=rows)
    (split,) = open_parquet(tmp_path / "t.parquet").splits([], [])
    assert split.ranges == ()
    assert [batch.num_rows for batch in split.decode([])] == [BATCH_ROWS_MAX, 10]


def test_readers_are_used_again_and_survive_an_abandoned_scan(tmp_path):
    rows = BATCH_ROWS_MAX + 10
    pq.write_table(pa.table({"n": range(rows)}), tmp_path / "t.parquet", row_group_size=rows)
    (split,) = open_parquet(tmp_path / "t.parquet").splits([0], [])
    buffers = fetch(split)
    abandoned = split.decode(buffers)
    next(abandoned)
    assert sum(batch.num_rows for batch in split.decode(buffers)) == rows
    abandoned.close()
    assert sum(batch.num_rows for batch in split.decode(buffers)) == rows


def test_decoded_bytes_are_near_what_is_decoded(tmp_path):
    rows = 50_000
    rng = random.Random(1)
    table = pa.table(
        {
            "n": range(rows),
            "money": pa.array([Decimal(i) for i in range(rows)], pa.decimal128(15, 2)),
            "few": [f"word {i % 7}" for i in range(rows)],
            "many": [f"{rng.random()} {rng.random()}" for i in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", store_decimal_as_integer=True)
    (split,) = open_parquet(tmp_path / "t.parquet").splits([0, 1, 2, 3], [])
    (batch,) = split.decode(fetch(split))
    assert batch.nbytes * 0.8 < split.decoded_bytes < batch.nbytes * 1.5


@pytest.mark.parametrize("is_nested", [True, False])
def test_pyarrow_is_told_of_some_row_groups_at_once(tmp_path, monkeypatch, is_nested):
    monkeypatch.setattr(parquet_decode, "_BLOCK_CHUNKS", 6)
    table = table_of(100, random.Random(3))
    if is_nested:
        table = pa.table({"a": range(100), "l": [[{"x": row, "y": "a" * (row % 5)}] * (row % 3) for row in range(100)]})
    path = str(tmp_path / "t.parquet")
    pq.write_table(table, path, row_group_size=7, store_decimal_as_integer=True)
    is_the_same(path)
    source = open_parquet(path)
    splits = source.splits(range(len(source.schema)), [])
    found = {}
    for split in random.Random(4).sample(splits, len(splits)):
        found[split.first_row] = [row for batch in split.decode(fetch(split)) for row in batch.to_pylist()]
    expected = pq.read_table(path).to_pylist()
    assert str([row for first in sorted(found) for row in found[first]]) == str(expected)
    assert source.files[0].metadata.num_row_groups == 0

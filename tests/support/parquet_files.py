"""Tables and Parquet files for storage tests: every type, NULLs, and the options of three writers."""

import datetime
import io
import random
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from bireme.storage.local import LocalByteSource

COLUMNS = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "small decimal": pa.decimal128(9, 2),
    "decimal": pa.decimal128(18, 4),
    "wide decimal": pa.decimal128(38, 10),
    "string": pa.string(),
    "few strings": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "seconds": pa.timestamp("s"),
    "milliseconds": pa.timestamp("ms"),
    "timestamp": pa.timestamp("us"),
    "nanoseconds": pa.timestamp("ns"),
    "instant": pa.timestamp("us", "UTC"),
}


def value_of(kind: pa.DataType, rng: random.Random):
    """A random value of a type, its extremes included."""
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, (1 << bits) - 1)
        )
        return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, min(high, 9))])
    if pa.types.is_floating(kind):
        value = rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), rng.uniform(-9, 9), 3.0])
        return value if kind == pa.float64() else float(pa.scalar(value, kind).as_py())
    if pa.types.is_decimal(kind):
        edge = 10**kind.precision - 1
        unscaled = rng.choice([edge, -edge, 0, -1, rng.randint(-edge, edge), rng.randint(-99, 99)])
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
    if pa.types.is_string(kind):
        return rng.choice(["", "a", "ab", "b", "żółw", "\U0001f6a2", "zz", "a" * 90, f"k{rng.randint(0, 99)}"])
    if pa.types.is_binary(kind):
        return rng.choice([b"", b"\x00", b"\xff\xfe", b"abc"])
    if pa.types.is_date(kind):
        return datetime.date.fromordinal(rng.choice([1, 719_000, 719_163, 730_000, rng.randint(1, 3_652_059)]))
    if pa.types.is_time(kind):
        return (datetime.datetime.min + datetime.timedelta(microseconds=rng.randrange(86_400 * 10**6))).time()
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=rng.randint(-(2**33), 2**33))
    if kind.unit != "s":
        moment += datetime.timedelta(milliseconds=rng.randrange(1000))
    return moment.replace(tzinfo=datetime.UTC) if kind.tz else moment


def table_of(rows: int, rng: random.Random, *, null_share: float = 0.2, columns=COLUMNS) -> pa.Table:
    arrays = []
    for kind in columns.values():
        values = [None if rng.random() < null_share else value_of(kind, rng) for _ in range(rows)]
        arrays.append(pa.array(values, kind))
    return pa.table(arrays, names=list(columns))


def pyarrow_file(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def duckdb_file(table: pa.Table, path, options: str = "") -> None:
    connection = duckdb.connect()
    connection.register("given", table)
    connection.sql("set timezone = 'UTC'")
    connection.sql(f"copy given to '{path}' (format parquet{options})")
    connection.close()


def polars_file(table: pa.Table, path, **options) -> None:
    pl.from_arrow(table).write_parquet(path, **options)


def read_rows(table, columns, filters=()) -> list[tuple]:
    """All rows that the splits of a table give, read as the runtime reads them."""
    rows = []
    for split in table.splits(columns, list(filters)):
        for batch in split.decode(fetch(split)):
            rows.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


def fetch(split) -> list[pa.Buffer]:
    """The bytes that a split needs."""
    with LocalByteSource() as reads:
        return reads.read_all(split.ranges)

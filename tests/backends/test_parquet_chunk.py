"""The chunk reader against pyarrow: every type, encoding, version, codec and null pattern, over selections of rows."""

import decimal
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from support.parquet_chunks import chunk_of, written

from bireme.backends.native import _kernels
from bireme.errors import EngineBug, SourceCorrupt, Unsupported

CODECS = ("none", "snappy", "lz4", "zstd", "gzip", "brotli")


@dataclass(frozen=True)
class Shape:
    """A type of column: how pyarrow stores it, how the engine reads it, and the encodings that it can have."""

    stored: pa.DataType
    draw: Callable[[random.Random], Any]
    target: pa.DataType | None = None
    encodings: tuple[str, ...] = ()
    multiplier: int = 1
    divisor: int = 1
    options: tuple[tuple[str, Any], ...] = ()

    def column(self, rng: random.Random, rows: int, null_share: float) -> pa.Array:
        words = [self.draw(rng) for _ in range(rng.choice([3, 500]))]
        return pa.array([None if rng.random() < null_share else rng.choice(words) for _ in range(rows)], self.stored)


def integers(low: int, high: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.randint(low, high)


def cents(rng: random.Random) -> decimal.Decimal:
    return decimal.Decimal(rng.randint(-(10**6), 10**6)).scaleb(-2)


def text(rng: random.Random) -> str:
    return rng.choice(["", "a", "é", "word ", "a longer word, so that steps are taken "]) + str(rng.randrange(100))


INTEGER = ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
FLOAT = ("BYTE_STREAM_SPLIT",)
TEXT = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED = ("DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
SHAPES = {
    "int64": Shape(pa.int64(), integers(-(2**63), 2**63 - 1), encodings=INTEGER),
    "small int64": Shape(pa.int64(), integers(-9, 9), encodings=INTEGER),
    "int32": Shape(pa.int32(), integers(-(2**31), 2**31 - 1), encodings=INTEGER),
    "int8": Shape(pa.int8(), integers(-128, 127), encodings=INTEGER),
    "int16": Shape(pa.int16(), integers(-(2**15), 2**15 - 1)),
    "uint8": Shape(pa.uint8(), integers(0, 255)),
    "uint16": Shape(pa.uint16(), integers(0, 2**16 - 1)),
    "uint32": Shape(pa.uint32(), integers(0, 2**32 - 1)),
    "uint64": Shape(pa.uint64(), integers(0, 2**64 - 1)),
    "float": Shape(pa.float32(), lambda rng: np.float32(rng.random()), encodings=FLOAT),
    "double": Shape(pa.float64(), lambda rng: rng.random(), encodings=FLOAT),
    "half": Shape(pa.float16(), lambda rng: np.float16(rng.choice([0.1, -0.0, 6e-8, float("inf")])), pa.float32()),
    "bool": Shape(pa.bool_(), lambda rng: rng.random() < 0.5, encodings=("RLE",)),
    "string": Shape(pa.string(), text, encodings=TEXT),
    "binary": Shape(pa.binary(), lambda rng: text(rng).encode("utf-16"), encodings=TEXT),
    "fixed binary": Shape(pa.binary(7), lambda rng: rng.randbytes(7), pa.binary(), encodings=FIXED),
    "decimal": Shape(pa.decimal128(12, 2), cents, pa.decimal64(12, 2), encodings=FIXED),
    "wide decimal": Shape(pa.decimal128(30, 2), cents, encodings=FIXED),
    "integer decimal": Shape(
        pa.decimal128(12, 2), cents, pa.decimal64(12, 2), options=(("store_decimal_as_integer", True),)
    ),
    "narrow integer decimal": Shape(
        pa.decimal128(8, 2), cents, pa.decimal64(8, 2), options=(("store_decimal_as_integer", True),)
    ),
    "date": Shape(pa.date32(), integers(-(10**5), 10**5), encodings=INTEGER),
    "seconds of a day": Shape(pa.time32("s"), integers(0, 86399), divisor=1000),
    "time": Shape(pa.time64("us"), integers(0, 86399 * 10**6), encodings=INTEGER),
    "seconds": Shape(pa.timestamp("s"), integers(-(10**9), 10**9), divisor=1000),
    "milliseconds": Shape(pa.timestamp("ms"), integers(-(10**12), 10**12), pa.timestamp("us"), multiplier=1000),
    "int96": Shape(
        pa.timestamp("us"), integers(-(10**15), 10**15), options=(("use_deprecated_int96_timestamps", True),)
    ),
}


def selection(rng: random.Random, rows: int) -> pa.Array | None:
    kind = rng.randrange(4)
    if kind == 0:
        return None
    first, last = sorted((rng.randint(0, rows), rng.randint(0, rows)))
    share = rng.choice([0.01, 0.3, 0.95]) if kind > 1 else 1
    return pa.array([row for row in range(first, last) if rng.random() < share], pa.uint32())


def layout(rng: random.Random, shape: Shape) -> dict[str, Any]:
    """Options of a writer."""
    options: dict[str, Any] = {
        "compression": rng.choice(CODECS),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "data_page_size": rng.choice([100, 1000, 2**20]),
        "write_batch_size": rng.choice([50, 1024]),
        "write_page_checksum": rng.random() < 0.5,
        "use_dictionary": rng.random() < 0.5,
        "dictionary_pagesize_limit": rng.choice([50, 2**20]),
        **dict(shape.options),
    }
    if shape.encodings and rng.random() < 0.7:
        options |= {"use_dictionary": False, "column_encoding": {"column": rng.choice(shape.encodings)}}
    return options


@pytest.mark.parametrize("name", SHAPES)
@given(seed=st.integers(0, 2**32))
def test_reads_what_pyarrow_reads(name, seed):
    rng, shape = random.Random(seed), SHAPES[name]
    column = shape.column(rng, rng.choice([0, 1, 300, 3000]), rng.choice([0, 0.1, 0.9, 1]))
    expected = column.cast(shape.target or shape.stored)
    chunk = chunk_of(
        written(pa.table({"column": column}), **layout(rng, shape)),
        expected.type,
        is_indexed=rng.random() < 0.5,
        multiplier=shape.multiplier,
        divisor=shape.divisor,
    )
    for _ in range(3):
        rows = selection(rng, len(column))
        found = pa.array(chunk.read(rows))
        found.validate(full=True)
        assert found.equals(expected if rows is None else expected.take(rows))


@given(seed=st.integers(0, 2**32))
def test_codes_and_the_rows_of_kept_codes(seed):
    rng = random.Random(seed)
    shape = SHAPES[rng.choice(["string", "int64", "decimal", "date"])]
    column = shape.column(rng, rng.choice([1, 300, 3000]), rng.choice([0, 0.1, 0.9, 1]))
    options = layout(rng, Shape(shape.stored, shape.draw)) | {
        "use_dictionary": True,
        "dictionary_pagesize_limit": 2**20,
    }
    expected = column.cast(shape.target or shape.stored)
    chunk = chunk_of(written(pa.table({"column": column}), **options), expected.type)
    assert chunk.is_dictionary()
    words = pa.array(chunk.dictionary())
    keep = bytes(rng.choice([0, 1, 7]) for _ in words)
    for keep_null in (False, True):
        rows = selection(rng, len(column))
        codes = pa.array(chunk.read_codes(rows))
        assert words.take(codes).equals(expected if rows is None else expected.take(rows))
        numbers = range(len(column)) if rows is None else rows.to_pylist()
        kept = [keep_null if code is None else keep[code] for code in codes.to_pylist()]
        found = pa.array(chunk.select_codes(rows, keep, keep_null)).to_pylist()
        assert found == [row for row, is_kept in zip(numbers, kept, strict=True) if is_kept]


def test_pages_without_wanted_rows_are_not_decompressed():
    column = pa.array(range(50_000), pa.int64())
    content = written(pa.table({"column": column}), use_dictionary=False, data_page_size=8000, compression="snappy")
    chunk = chunk_of(content, pa.int64())
    assert not chunk.is_dictionary()
    found = pa.array(chunk.read(pa.array([7, 30_000], pa.uint32())))
    assert found.to_pylist() == [7, 30_000]
    assert chunk.pages_skipped > 10
    decompressed = chunk.bytes_decompressed
    assert 0 < decompressed < 50_000
    # What is decompressed stays.
    pa.array(chunk.read(pa.array([8, 30_001], pa.uint32())))
    assert chunk.bytes_decompressed == decompressed


def test_a_chunk_that_leaves_its_dictionary_is_read_but_has_no_codes():
    column = pa.array([f"word {row}" for row in range(5000)])
    content = written(pa.table({"column": column}), dictionary_pagesize_limit=2000, data_page_size=2000)
    chunk = chunk_of(content, pa.string())
    assert not chunk.is_dictionary()
    assert pa.array(chunk.read(None)).equals(column)
    with pytest.raises(EngineBug, match="not all codes"):
        chunk.read_codes(None)


@pytest.mark.parametrize(
    ("column", "target", "message"),
    [
        (pa.array([1, 300], pa.int32()), pa.int8(), "does not fit"),
        (pa.array([1, -1], pa.int64()), pa.uint32(), "does not fit"),
        (pa.array([b"\xff\xfe"], pa.binary()), pa.string(), "not UTF-8"),
        (pa.array([b"a\xc3", b"\xa9"], pa.binary()), pa.string(), "not UTF-8"),
    ],
)
@pytest.mark.parametrize("use_dictionary", [False, True])
def test_values_that_are_not_of_the_type(column, target, message, use_dictionary):
    content = written(pa.table({"column": column}), use_dictionary=use_dictionary)
    with pytest.raises(SourceCorrupt, match=rf"the page at byte \d+ of the column chunk: .*{message}"):
        chunk_of(content, target).read(None)


def test_a_wrong_checksum_is_noticed():
    column = pa.array(range(1000), pa.int64())
    content = bytearray(written(pa.table({"column": column}), use_dictionary=False, write_page_checksum=True))
    content[2000] ^= 1
    with pytest.raises(SourceCorrupt, match="checksum"):
        chunk_of(bytes(content), pa.int64()).read(None)


def test_a_codec_that_fails_is_a_corrupt_page():
    content = written(pa.table({"column": pa.array(range(1000))}), use_dictionary=False, compression="zstd")
    damaged = content[:60] + bytes(40) + content[100:]
    with pytest.raises(SourceCorrupt, match="does not decompress"):
        chunk_of(damaged, pa.int64()).read(None)


def test_unsupported_types_say_so():
    content = written(pa.table({"column": pa.array(range(10))}))
    with pytest.raises(Unsupported, match="not read here"):
        chunk_of(content, pa.float64())


def test_wanted_rows_are_checked():
    chunk = chunk_of(written(pa.table({"column": pa.array(range(10))})), pa.int64())
    for rows in ([3, 2], [4, 4], [10]):
        with pytest.raises(EngineBug, match="rows wanted"):
            chunk.read(pa.array(rows, pa.uint32()))
    with pytest.raises(EngineBug, match="uint32"):
        chunk.read(pa.array([1], pa.int32()))


def test_the_bytes_are_kept_alive():
    content = bytearray(written(pa.table({"column": pa.array(range(10))}), use_dictionary=False, compression="none"))
    chunk = chunk_of(bytes(content), pa.int64())
    assert isinstance(chunk, _kernels.ParquetChunk)
    content.clear()
    assert pa.array(chunk.read(None)).to_pylist() == list(range(10))

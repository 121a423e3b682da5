"""Columns of every type for tests of kernels: corner values, all pairs of them, and drawn ones.

Values are python's; `column` lays them out as the engine has them, also dictionary-encoded or as a slice.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from decimal import Context, Decimal
from functools import lru_cache
from random import Random
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

from bireme.backends.reference.values import from_values
from bireme.data import types as t
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType, Field, Kind
from bireme.plan.expr import Interval
from bireme.plan.functions.conversion import integer_range

_EXACT = Context(prec=60)
_TEXTS = (
    "",
    " ",
    "a",
    "A",
    "b",
    "ab",
    "abc",
    "abcabc",
    " a b ",
    "ä",
    "Äöü",
    "日本語",
    "e\u0301x",
    "\U0001f600",
    "%",
    "_",
    "a_c",
    "a%c",
    "a\\b",
    "a,b,,c",
    "1995-01-31",
    "42",
    "-1.5",
    "true",
    "x" * 40,
    "abcdefghijklmnop",
    "abcdefghijkl",
    "abcdefghijklm",
    "\n",
)
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.7,
    100.0,
    1e10,
    -1e10,
    1e-7,
    1e16,
    123456789.123,
    float("inf"),
    float("-inf"),
    float("nan"),
)
_DATES = tuple(
    datetime.date(*ymd)
    for ymd in (
        (1970, 1, 1),
        (1969, 12, 31),
        (2000, 2, 29),
        (1900, 2, 28),
        (1992, 1, 1),
        (1998, 12, 31),
        (2020, 1, 31),
        (2021, 1, 3),
        (2024, 12, 30),
        (1, 1, 1),
        (9999, 12, 31),
        (1582, 10, 15),
        (1600, 3, 1),
        (2100, 2, 28),
        (2001, 1, 1),
        (2000, 12, 31),
    )
)
_MOMENTS = (
    datetime.datetime(1970, 1, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(2020, 1, 31, 10, 11, 12, 123456),
    datetime.datetime(2000, 2, 29, 12),
    datetime.datetime(1995, 6, 15, 0, 30),
    datetime.datetime(1900, 1, 1, 13, 0, 1),
    datetime.datetime(2021, 1, 3, 23, 59, 59),
    datetime.datetime(2100, 3, 1, 0, 0, 0, 1),
)
_INTERVALS = (
    Interval(0, 0, 0),
    Interval(1, 0, 0),
    Interval(0, 30, 0),
    Interval(0, 1, 0),
    Interval(14, 3, 3_723_000_004_000),
    Interval(-1, 0, 0),
    Interval(0, -2, -1_500_000_000),
    Interval(0, 0, 86_400_000_000_000),
    Interval(12, 0, 0),
)


@lru_cache(maxsize=64)
def corner_values(kind: DataType) -> list[Any]:
    """Values at and around the edges of a type; NULL is among them."""
    match kind.kind:
        case Kind.BOOL:
            values: Sequence[Any] = (True, False)
        case Kind.STRING:
            values = _TEXTS
        case Kind.BINARY:
            values = (b"", b"a", b"ab", b"\x00\xff", b"x" * 20)
        case Kind.FLOAT64:
            values = (*_FLOATS, 1.7976931348623157e308, 5e-324)
        case Kind.FLOAT32:
            values = (0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 1e10, 3.0e38, float("inf"), float("-inf"), float("nan"))
        case Kind.DATE:
            values = _DATES
        case Kind.TIMESTAMP:
            values = _MOMENTS if kind.unit == "us" else tuple(moment.replace(microsecond=0) for moment in _MOMENTS)
        case Kind.TIME:
            values = (datetime.time(0), datetime.time(23, 59, 59, 999999), datetime.time(10, 11, 12, 123456))
        case Kind.INTERVAL:
            values = _INTERVALS
        case Kind.DECIMAL:
            values = _decimal_corners(kind)
        case _:
            low, high = integer_range(kind)
            near = (-100, -7, -3, -1, 0, 1, 2, 3, 7, 100)
            values = sorted({low, low + 1, high, high - 1, *(v for v in near if v >= low)})
    return [*values, None]


def _decimal_corners(kind: DataType) -> list[Decimal]:
    largest = 10**kind.precision - 1
    one = 10**kind.scale
    counts = {0, 1, -1, largest, -largest, largest // 2, one, -one, 5 * one // 2, -5 * one // 2, 3 * one, 7, 15, -15}
    counts |= {45, 55}
    return [decimal_of(count, kind) for count in sorted(counts) if abs(count) <= largest]


def decimal_of(count: int, kind: DataType) -> Decimal:
    """The decimal of an unscaled count."""
    return Decimal(count).scaleb(-kind.scale, _EXACT)


def random_value(kind: DataType, random: Random) -> Any:
    """A corner value, or any other of the type."""
    if random.random() < 0.5:
        return random.choice(corner_values(kind))
    match kind.kind:
        case Kind.STRING:
            return "".join(random.choices("ab%_, äß日\x00\U0001f600", k=random.choice((0, 1, 3, 8, 30))))
        case Kind.FLOAT64:
            return random.choice((random.uniform(-10, 10), random.gauss(0, 1e9), random.expovariate(1e300)))
        case Kind.DATE:
            return datetime.date(1900, 1, 1) + datetime.timedelta(days=random.randrange(73_000))
        case Kind.TIMESTAMP if kind.unit == "us":
            return datetime.datetime(1900, 1, 1) + datetime.timedelta(
                microseconds=random.randrange(6_307_200_000_000_000)
            )
        case Kind.DECIMAL:
            limit = 10 ** random.randint(1, kind.precision) - 1
            return decimal_of(random.randint(-limit, limit), kind)
        case _ if kind.is_integer:
            low, high = integer_range(kind)
            return random.choice((random.randint(low, high), random.randint(max(low, -5), 5)))
        case _:
            return random.choice(corner_values(kind))


def column(items: Sequence[Any], kind: DataType, encoded: bool = False) -> pa.Array:
    """A column in engine layout; `encoded` dictionary-encodes texts."""
    array = from_values(list(items), kind)
    return array.dictionary_encode() if encoded and kind.kind is Kind.STRING else array


def schema_of(types: Sequence[DataType]) -> Schema:
    """Columns c0, c1, … of the given types."""
    return Schema(tuple([Field(f"c{index}", kind) for index, kind in enumerate(types)]))


def corner_batch(types: Sequence[DataType], rows_max: int = 180) -> pa.RecordBatch:
    """All combinations of corner values, evenly thinned to `rows_max` rows."""
    rows = list(itertools.product(*(corner_values(kind) for kind in types)))
    if len(rows) > rows_max:
        # An odd step that shares no factor with the columns' counts, so that no column is thinned to a pattern.
        rows = [rows[index * 7919 % len(rows)] for index in range(rows_max)]
    columns = list(zip(*rows, strict=True)) if rows else []
    return batch_of(columns, types, len(rows))


def batch_of(columns: Sequence[Sequence[Any]], types: Sequence[DataType], rows: int) -> pa.RecordBatch:
    """A batch of python values."""
    arrays = [column(items, kind) for items, kind in zip(columns, types, strict=True)]
    return record_batch(arrays, schema_of(types).names, rows)


@st.composite
def batches(
    draw: st.DrawFn, types: Sequence[DataType], rows_min: int = 0, rows_max: int = 30, few: bool = False
) -> pa.RecordBatch:
    """Batches of random columns: sliced out of longer ones, texts sometimes dictionary-encoded; with `few`, columns
    have few different values. Drawn are the rows and a seed, because drawing each value would take most of the time.
    """
    rows = draw(st.integers(rows_min, rows_max))
    random = Random(draw(st.integers(0, 1 << 32)))
    before, after = random.choice((0, 0, 3, 9)), random.choice((0, 2))
    arrays = []
    for kind in types:
        size = before + rows + after
        pool = [random_value(kind, random) for _ in range(random.randint(1, 4) if few else size)]
        items = random.choices(pool, k=size) if few else pool
        arrays.append(column(items, kind, encoded=random.random() < 0.4).slice(before, rows))
    return record_batch(arrays, schema_of(types).names, rows)


EVERY_TYPE: tuple[DataType, ...] = (
    t.BOOL,
    t.INT8,
    t.INT16,
    t.INT32,
    t.INT64,
    t.UINT8,
    t.UINT16,
    t.UINT32,
    t.UINT64,
    t.FLOAT32,
    t.FLOAT64,
    t.decimal(4, 1),
    t.decimal(15, 2),
    t.decimal(18, 4),
    t.decimal(30, 6),
    t.HUGEINT,
    t.STRING,
    t.BINARY,
    t.DATE,
    t.TIME,
    t.TIMESTAMP,
    t.timestamp("s"),
    t.timestamp("ms"),
    t.INTERVAL,
)
KEY_TYPES: tuple[DataType, ...] = (
    t.BOOL,
    t.INT8,
    t.INT32,
    t.INT64,
    t.UINT64,
    t.FLOAT64,
    t.decimal(15, 2),
    t.decimal(30, 6),
    t.STRING,
    t.DATE,
    t.TIMESTAMP,
)

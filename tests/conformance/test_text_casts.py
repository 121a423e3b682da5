"""Casts from and to text in the native backend against the reference: drawn texts near those that mean something, drawn
values, one a batch, so that no odd text sends another one to the reference.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import EVERY_TYPE, schema_of
from support.evaluation import columns_of

from bireme.backends.native import NativeKernels
from bireme.backends.reference.casts import cast_array
from bireme.backends.reference.values import from_values
from bireme.data import types as t
from bireme.data.types import DataType, Kind
from bireme.errors import ConversionFault
from bireme.plan import functions

_PIECES = (
    *"0123456789", *"+-.eE_:/ TZ", "00", "12", "59", "2000", "1999-12-31", "2024-02-29", "10:11", ":12", ".5", "e5",
    "e-3", "0x", "1f", "nan", "inf", "infinity", "true", "no", "UTC", "+05", "+05:30", "-0330", "\\x41", "\\", "\t",
    "\x1f", "\x00", "\u00a0", "\u0663", "é", "K", "99999999999999999999", "0.000000000000000000000000000001",
)  # fmt: skip
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=6).map("".join)
_READ = [
    kind
    for kind in (*EVERY_TYPE, t.decimal(38, 37), t.decimal(38, 0), t.timestamp("s"), t.timestamp("ns"))
    if kind is not t.STRING and functions.is_castable(t.STRING, kind) and not kind.is_nested
]
_FLOATS = st.floats() | st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
_SINGLES = st.floats(width=32) | st.integers(0, 2**32 - 1).map(
    lambda bits: struct.unpack("<f", bits.to_bytes(4, "little"))[0]
)
_COUNTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**15), 10**16)


def _program(source: DataType, target: DataType, *, safe: bool) -> Any:
    (column,) = columns_of(schema_of([source]))
    return NativeKernels().program(
        schema_of([source]), predicate=None, exprs=[functions.cast(column, target, safe)], names=["x"]
    )


def _outcome(compute: Any) -> Any:
    try:
        return repr(compute().to_pylist())
    except ConversionFault as fault:
        return str(fault)


def _check(programs: list[Any], array: pa.Array, source: DataType, target: DataType) -> None:
    batch = pa.record_batch([array], names=["c0"])
    for safe, program in zip((False, True), programs, strict=True):
        expected = _outcome(lambda safe=safe: cast_array(array, source, target, safe))
        assert _outcome(lambda program=program: program.run(batch).column(0)) == expected, (array, safe)


@pytest.mark.parametrize("target", [pytest.param(kind, id=str(kind)) for kind in _READ])
def test_texts_are_read_as_the_reference_reads_them(target: DataType) -> None:
    programs = [_program(t.STRING, target, safe=safe) for safe in (False, True)]

    @given(text=_TEXTS)
    def check(text: str) -> None:
        _check(programs, pa.array([text]), t.STRING, target)

    check()


def _values_of(kind: DataType) -> st.SearchStrategy[pa.Array]:
    if kind.is_float:
        drawn = _FLOATS if kind.kind is Kind.FLOAT64 else _SINGLES
        return drawn.map(lambda value: pa.array([value], t.to_arrow(kind)))
    if kind.kind is Kind.TIMESTAMP:
        return _COUNTS.map(lambda count: pa.array([count]).cast(t.to_arrow(kind), safe=False))
    if kind.kind is Kind.TIME:
        ticks = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        width = pa.int32() if kind.unit in ("s", "ms") else pa.int64()
        return st.integers(0, ticks - 1).map(lambda count: pa.array([count], width).cast(t.to_arrow(kind)))
    if kind is t.BINARY:
        return st.binary(max_size=20).map(lambda value: pa.array([value], pa.binary()))
    if kind is t.DATE:
        return st.integers(-(2**31), 2**31 - 1).map(lambda count: pa.array([count], pa.int32()).cast(pa.date32()))
    digits = kind.precision
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(
        lambda count: from_values([None if count == 7 else _scaled(count, kind.scale)], kind)
    )


def _scaled(count: int, scale: int) -> Any:
    from bireme.data.exact_decimal import EXACT

    return EXACT.scaleb(count, -scale)


_WRITTEN = [
    t.FLOAT64, t.FLOAT32, t.TIMESTAMP, t.timestamp("s"), t.timestamp("ms"), t.timestamp("ns"), t.timestamp("us", "UTC"),
    t.TIME, DataType(Kind.TIME, unit="ns"), DataType(Kind.TIME, unit="s"), t.DATE, t.decimal(38, 20), t.decimal(38, 0),
    t.decimal(18, 18), t.decimal(5, 2), t.BINARY,
]  # fmt: skip


@pytest.mark.parametrize("source", [pytest.param(kind, id=f"{kind}-{kind.unit}") for kind in _WRITTEN])
def test_values_are_written_as_the_reference_writes_them(source: DataType) -> None:
    programs = [_program(source, t.STRING, safe=safe) for safe in (False, True)]

    @given(array=_values_of(source))
    def check(array: pa.Array) -> None:
        _check(programs, array, source, t.STRING)

    check()


@pytest.mark.parametrize("exponent", range(-149, 128))
def test_powers_of_two_in_single_precision(exponent: int) -> None:
    """Where the shortest digits that read back may not be those nearest to the value."""
    program = _program(t.FLOAT32, t.STRING, safe=False)
    array = pa.array([2.0**exponent], pa.float32())
    assert program.run(pa.record_batch([array], names=["c0"])).column(0) == cast_array(
        array, t.FLOAT32, t.STRING, False
    )


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in _READ if kind.kind is not Kind.INTERVAL])
def test_reading_plain_texts_is_native(kind: DataType) -> None:
    assert _program(t.STRING, kind, safe=True).fallbacks == ()

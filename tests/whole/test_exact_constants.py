"""Constants of many digits are calculated with to the last one, whatever the caller's thread thinks of decimals."""

from __future__ import annotations

import decimal
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bireme as bm
from bireme.errors import SyntaxFault

_DIGITS = 38
_EXACT = decimal.Context(prec=100)
_NUMBERS = st.integers(-(10**_DIGITS) + 1, 10**_DIGITS - 1) | st.integers(-(10**19), 10**19)


@pytest.fixture(scope="module", autouse=True)
def _few_digits() -> object:
    """What a caller may have set for reasons of their own."""
    with decimal.localcontext(decimal.Context(prec=4)):
        yield


@pytest.fixture(scope="module")
def session() -> object:
    with bm.connect(threads=1) as session:
        yield session


def _value(session: bm.Session, expression: str) -> object:
    return session.sql(f"select {expression} as x").collect().column("x")[0].as_py()


@given(left=_NUMBERS, right=_NUMBERS)
def test_arithmetic_of_whole_numbers(session: bm.Session, left: int, right: int) -> None:
    for symbol, expected in (("+", left + right), ("-", left - right), ("*", left * right)):
        if abs(expected) < 10**_DIGITS:
            call = f"({left})::decimal(38, 0) {symbol} ({right})::decimal(38, 0)"
            assert _value(session, call) == expected, call
    assert _value(session, f"-({left})::decimal(38, 0)") == -left


@given(unscaled=st.integers(1, 10**_DIGITS - 1), scale=st.integers(0, 37))
def test_a_decimal_is_the_number_written(session: bm.Session, unscaled: int, scale: int) -> None:
    number = _EXACT.scaleb(Decimal(unscaled), -scale)
    text = f"{number:.{scale}f}"
    if len(text.replace(".", "")) <= _DIGITS:
        assert _value(session, text) == number
        assert _value(session, f"-{text}") == _EXACT.minus(number)
    table = pa.table({"x": pa.array([0])})
    with decimal.localcontext(decimal.Context(prec=4)):
        found = session.from_arrow(table).select(bm.lit(number).alias("y")).collect()
    assert found.column("y")[0].as_py() == number


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("interval '1234567.654321 seconds'", 1_234_567_654_321_000),
        ("interval '-1234567.654321' second", -1_234_567_654_321_000),
        ("interval '98765.4321 minutes'", 5_925_925_926_000_000),
        ("interval '123456789.25 milliseconds'", 123_456_789_250_000),
    ],
)
def test_intervals(session: bm.Session, text: str, nanoseconds: int) -> None:
    assert _value(session, text) == pa.MonthDayNano((0, 0, nanoseconds))


def test_a_limit_may_be_calculated(session: bm.Session) -> None:
    found = session.sql("select 1 as x from range(100000) limit 123456 - 100000 * 1").collect()
    assert found.num_rows == 23_456


@pytest.mark.parametrize("digits", [39, 40, 400])
def test_a_whole_number_is_never_rounded_unasked(session: bm.Session, digits: int) -> None:
    with pytest.raises(SyntaxFault, match=f"at most 38 digits here, not {digits}"):
        session.sql(f"select {'1' * digits}")
    assert _value(session, f"{'1' * 39}e0") == float("1" * 39)

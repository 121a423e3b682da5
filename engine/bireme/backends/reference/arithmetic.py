"""Arithmetic on columns: exact for whole numbers and decimals, IEEE for floats, by the calendar for dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.span_arithmetic import between, moved, negated, summed, times
from bireme.backends.reference.vectors import (
    Bools,
    Numbers,
    any_null,
    exact_difference,
    exact_product,
    exact_sum,
    fixed,
    from_floats,
    from_integers,
    integers,
    nulls_of,
    scaled,
    truncated_quotient,
    widened,
)
from bireme.data.types import INTERVAL, TIME
from bireme.errors import DomainFault, Overflow
from bireme.plan.expr import Call
from bireme.plan.functions.texts import NANOSECONDS_A_DAY

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]
_NOUNS: Final = {
    "add": ("addition", "+"),
    "subtract": ("subtraction", "-"),
    "multiply": ("multiplication", "*"),
    "int_divide": ("division", "//"),
    "modulo": ("modulo", "%"),
}
_INT64_BOUND: Final = 1 << 63


def _shown(array: pa.Array, row: int) -> str:
    try:
        return str(array[row].as_py())
    except (OverflowError, ValueError):  # a date that python does not have
        return "a date outside of the years 1 to 9999"


def _finish(call: Call, args: list[pa.Array], values: Numbers, missing: Bools) -> pa.Array:
    noun, symbol = _NOUNS[call.function]

    def describe(row: int) -> str:
        return f"{noun} {_shown(args[0], row)} {symbol} {_shown(args[1], row)}"

    return from_integers(values, missing, call.type, describe)


def _native_floats(array: pa.Array) -> Numbers:
    """The floats in their own width, in which arithmetic on them is done; slots of NULLs hold zero."""
    values = fixed(array, f"<f{array.type.bit_width // 8}").copy()
    values[nulls_of(array)] = 0
    return values


def _float_result(call: Call, args: list[pa.Array], compute: Callable[[Numbers, Numbers], Numbers]) -> pa.Array:
    with np.errstate(all="ignore"):
        values = compute(_native_floats(args[0]), _native_floats(args[1]))
    return from_floats(values, any_null(args), call.type)


def _linear(sign: int) -> Evaluator:
    """add and subtract."""
    exact = exact_sum if sign > 0 else exact_difference

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        left, right = call.args[0].type, call.args[1].type
        if call.type.is_float:
            return _float_result(call, args, np.add if sign > 0 else np.subtract)
        if right is INTERVAL:
            if left is INTERVAL:
                return summed(args, sign)
            return _finish(call, args, moved(args, left, sign), any_null(args))
        if call.type is INTERVAL:
            return between(left, args)
        if right is TIME:
            days = scaled(integers(args[0]), NANOSECONDS_A_DAY // 1000)
            return _finish(call, args, exact_sum(days, integers(args[1])), any_null(args))
        return _finish(call, args, exact(integers(args[0]), integers(args[1])), any_null(args))

    return evaluate


def _multiply(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.type.is_float:
        return _float_result(call, args, np.multiply)
    if call.type is INTERVAL:
        return times(args, call.args[1].type)
    return _finish(call, args, exact_product(integers(args[0]), integers(args[1])), any_null(args))


def _divide(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.type is INTERVAL:
        return times(args, call.args[1].type, inverse=True)
    return _float_result(call, args, np.divide)


def _check_divisor(call: Call, args: list[pa.Array], zero: Bools) -> None:
    failing = zero & ~any_null(args)
    if failing.any():
        row = int(np.flatnonzero(failing)[0])
        symbol = _NOUNS[call.function][1]
        raise DomainFault(
            f"division by zero in {_shown(args[0], row)} {symbol} 0; write nullif(divisor, 0) to get NULL instead"
        )


def _int_divide(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.type.is_float:
        _check_divisor(call, args, _native_floats(args[1]) == 0)
        return _float_result(call, args, np.divide)
    left, right = integers(args[0]), integers(args[1])
    _check_divisor(call, args, np.asarray(right == 0, np.bool_))
    return _finish(call, args, truncated_quotient(left, np.where(right == 0, 1, right)), any_null(args))


def _modulo(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.type.is_float:
        return _float_result(call, args, np.fmod)
    left, right = integers(args[0]), integers(args[1])
    _check_divisor(call, args, np.asarray(right == 0, np.bool_))
    divisor = np.where(right == 0, 1, right)
    quotient = truncated_quotient(left, divisor)
    rest = exact_difference(left, exact_product(quotient, divisor))
    return _finish(call, args, rest, any_null(args))


def _negate(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.type.is_float:
        return from_floats(-_native_floats(args[0]), nulls_of(args[0]), call.type)
    if call.type is INTERVAL:
        return negated(args[0])
    values = integers(args[0])
    values = -widened(values, _INT64_BOUND if len(values) and int(values.min()) == -_INT64_BOUND else 0)
    return from_integers(values, nulls_of(args[0]), call.type, lambda row: f"negation of {_shown(args[0], row)}")


# ------------------------------------------------------------------------------------------------- bits


def _bits(combine: Callable[[int, int], int]) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        pairs = zip(*(array.to_pylist() for array in args), strict=True)
        values = [None if a is None or b is None else combine(a, b) for a, b in pairs]
        missing = any_null(args)
        numbers = np.array([0 if value is None else value for value in values], object)
        return from_integers(numbers, missing, call.type, lambda row: f"shift of {_shown(args[0], row)}")

    return evaluate


def _shift(up: bool) -> Evaluator:
    """More bits than the type has, or a negative number of them, give 0 or fail, as in DuckDB."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        bits = call.type.bits
        return _bits(lambda value, by: _shift_up(value, by, bits) if up else _shift_down(value, by, bits))(call, args)

    return evaluate


def _shift_up(value: int, by: int, bits: int) -> int:
    if value < 0:
        raise DomainFault(f"cannot shift the negative number {value} up")
    if by < 0:
        raise DomainFault(f"cannot shift by the negative number {by}")
    if by >= bits:
        if value == 0:
            return 0
        raise Overflow(f"shift of {value} by {by} bits leaves the type")
    return value << by


def _shift_down(value: int, by: int, bits: int) -> int:
    return value >> by if 0 <= by < bits else 0


def _bitwise_not(call: Call, args: list[pa.Array]) -> pa.Array:
    values = integers(args[0])
    if not call.type.is_signed:
        values = exact_difference(np.array([(1 << call.type.bits) - 1], object), values)
    else:
        values = ~values
    return from_integers(values, nulls_of(args[0]), call.type, lambda row: f"the bits of {_shown(args[0], row)}")


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "add": _linear(1),
    "subtract": _linear(-1),
    "multiply": _multiply,
    "divide": _divide,
    "int_divide": _int_divide,
    "modulo": _modulo,
    "negate": _negate,
    "bitwise_and": _bits(lambda left, right: left & right),
    "bitwise_or": _bits(lambda left, right: left | right),
    "bitwise_xor": _bits(lambda left, right: left ^ right),
    "shift_left": _shift(up=True),
    "shift_right": _shift(up=False),
    "bitwise_not": _bitwise_not,
}

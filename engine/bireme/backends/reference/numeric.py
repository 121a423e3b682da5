"""Functions of numbers on columns, and the hash. Outside their domain, functions of doubles give NaN or infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends import hash as engine_hash
from bireme.backends.reference.vectors import (
    Numbers,
    any_null,
    floats,
    from_bools,
    from_floats,
    from_integers,
    integers,
    nulls_of,
    rounded_quotient,
    scaled,
    widened,
)
from bireme.data.types import INT8
from bireme.errors import DomainFault, Overflow
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]
Doubles = Callable[..., Any]


def _of_doubles(compute: Doubles) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        with np.errstate(all="ignore"):
            values = compute(*(floats(array) for array in args))
        return from_floats(values, any_null(args), call.type)

    return evaluate


def _test_of_doubles(test: Doubles) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        return from_bools(test(floats(args[0])), nulls_of(args[0]))

    return evaluate


def _by_row(compute: Callable[[float], float]) -> Doubles:
    """A function of the C library, one value at a time; what it cannot compute is NaN."""

    def compute_one(value: float) -> float:
        try:
            return compute(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, value)

    return lambda values: np.array([compute_one(value) for value in values.tolist()], np.float64)


# --------------------------------------------------------------------------------------------- rounding


def _half_away(values: Numbers) -> Numbers:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)


def _without_false_ties(values: Numbers, scaled: Numbers, digits: int) -> Numbers:
    """Scaled values that end in .5 only because they were rounded to it, moved to the side that they are on."""
    ties = np.flatnonzero(np.abs(scaled - np.trunc(scaled)) == 0.5)
    if len(ties) == 0:
        return scaled
    moved = scaled.copy()
    for row in ties.tolist():
        exact = Fraction(float(values[row])) * Fraction(10) ** digits
        if abs(exact) < abs(Fraction(float(scaled[row]))):
            moved[row] = np.trunc(scaled[row])
    return moved


def _floor(values: Numbers, divisor: int) -> Numbers:
    return widened(values, divisor) // divisor


def _ceil(values: Numbers, divisor: int) -> Numbers:
    return -(-widened(values, divisor) // divisor)


def _trunc(values: Numbers, divisor: int) -> Numbers:
    wide = widened(values, divisor)
    quotient = np.abs(wide) // divisor
    return np.where(wide < 0, -quotient, quotient)


_DIVISIONS: Final[dict[str, Callable[[Numbers, int], Numbers]]] = {
    "round": rounded_quotient,
    "trunc": _trunc,
    "floor": _floor,
    "ceil": _ceil,
}
_FLOAT_ROUNDINGS: Final[dict[str, Callable[[Numbers], Numbers]]] = {
    "round": _half_away,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
}


def _rounding(call: Call, args: list[pa.Array]) -> pa.Array:
    """round, trunc, floor and ceil of any number; the digits are a constant."""
    digits = args[1][0].as_py() if len(args) > 1 and len(args[1]) else 0
    if digits is None:
        return pa.nulls(len(args[0]), args[0].type) if call.type is call.args[0].type else _null_column(call, args)
    if call.type.is_float:
        return from_floats(_rounded_floats(call.function, floats(args[0]), digits), nulls_of(args[0]), call.type)
    scale = call.args[0].type.scale
    kept = min(digits, scale)
    counts = _DIVISIONS[call.function](integers(args[0]), 10 ** (scale - kept))
    if kept < 0:
        counts = scaled(counts, 10**-kept)
    return from_integers(
        counts,
        nulls_of(args[0]),
        call.type,
        lambda row: f"{call.function} of {args[0][row].as_py()} to {digits} digits",
    )


def _null_column(call: Call, args: list[pa.Array]) -> pa.Array:
    rows = len(args[0])
    return from_integers(np.zeros(rows, np.int64), np.ones(rows, np.bool_), call.type, lambda _: call.function)


def _rounded_floats(function: str, values: Numbers, digits: int) -> Numbers:
    """Scaled by the power of ten, rounded, scaled back; a value that this would make infinite stays as it is."""
    rounding = _FLOAT_ROUNDINGS[function]
    with np.errstate(all="ignore"):
        if digits == 0:
            return rounding(values)
        power = np.float64(10.0 ** abs(digits)) if abs(digits) <= 308 else np.float64(np.inf)
        scaled = values * power if digits > 0 else values / power
        if function == "round":
            scaled = _without_false_ties(values, scaled, digits)
        scaled = rounding(scaled) / power if digits > 0 else rounding(scaled) * power
        if digits < 0 and np.isinf(power):
            scaled = np.zeros_like(values)
    return np.where(np.isfinite(scaled), scaled, values)


# ------------------------------------------------------------------------------------------------ signs


def _abs(call: Call, args: list[pa.Array]) -> pa.Array:
    missing = nulls_of(args[0])
    if call.type.is_float:
        return from_floats(np.abs(floats(args[0])), missing, call.type)
    values = integers(args[0])
    values = np.abs(values.astype(object) if len(values) and values.min() == -(1 << 63) else values)
    return from_integers(values, missing, call.type, lambda row: f"the absolute value of {args[0][row].as_py()}")


def _sign(call: Call, args: list[pa.Array]) -> pa.Array:
    kind = call.args[0].type
    values = floats(args[0]) if kind.is_float else integers(args[0])
    signs = (values > 0).astype(np.int64) - (values < 0).astype(np.int64)
    return from_integers(signs, nulls_of(args[0]), INT8, lambda _: "sign")


def _of_integers(compute: Callable[..., int]) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        missing = any_null(args)
        rows = zip(missing, *(integers(array).tolist() for array in args), strict=True)
        values = np.array([0 if gone else compute(*row) for gone, *row in rows], object)
        return from_integers(values, missing, call.type, lambda row: f"{call.function} of {values[row]}")

    return evaluate


# The largest whose factorial has 38 digits.
_FACTORIAL_MAX: Final = 33


def _factorial(value: int) -> int:
    if value < 0:
        raise DomainFault(f"there is no factorial of {value}")
    if value > _FACTORIAL_MAX:
        raise Overflow(f"the factorial of {value} has more than 38 digits")
    return math.factorial(value)


def _cot(values: Numbers) -> Numbers:
    return 1.0 / np.tan(values)


def _power(base: Numbers, exponent: Numbers) -> Numbers:
    return np.power(base, exponent)


def _hash(call: Call, args: list[pa.Array]) -> pa.Array:
    return pa.array(engine_hash.hash_rows(args, len(args[0])), pa.uint64())


def _log_gamma(value: float) -> float:
    """Infinite at its poles, which are zero and the negative whole numbers."""
    return math.inf if value <= 0 and (math.isinf(value) or value == math.floor(value)) else math.lgamma(value)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "abs": _abs,
    "sign": _sign,
    "round": _rounding,
    "trunc": _rounding,
    "floor": _rounding,
    "ceil": _rounding,
    "power": _of_doubles(_power),
    "sqrt": _of_doubles(np.sqrt),
    "cbrt": _of_doubles(np.cbrt),
    "ln": _of_doubles(np.log),
    "log10": _of_doubles(np.log10),
    "log2": _of_doubles(np.log2),
    "exp": _of_doubles(np.exp),
    "sin": _of_doubles(np.sin),
    "cos": _of_doubles(np.cos),
    "tan": _of_doubles(np.tan),
    "cot": _of_doubles(_cot),
    "asin": _of_doubles(np.arcsin),
    "acos": _of_doubles(np.arccos),
    "atan": _of_doubles(np.arctan),
    "atan2": _of_doubles(np.arctan2),
    "sinh": _of_doubles(np.sinh),
    "cosh": _of_doubles(np.cosh),
    "tanh": _of_doubles(np.tanh),
    "asinh": _of_doubles(np.arcsinh),
    "acosh": _of_doubles(np.arccosh),
    "atanh": _of_doubles(np.arctanh),
    "even": _of_doubles(lambda values: np.copysign(np.ceil(np.abs(values) / 2) * 2, values)),
    "gamma": _of_doubles(_by_row(lambda value: math.inf if value == 0 else math.gamma(value))),
    "lgamma": _of_doubles(_by_row(_log_gamma)),
    "signbit": _test_of_doubles(np.signbit),
    "gcd": _of_integers(math.gcd),
    "lcm": _of_integers(math.lcm),
    "factorial": _of_integers(_factorial),
    "degrees": _of_doubles(lambda values: values * (180.0 / math.pi)),
    "radians": _of_doubles(lambda values: values * (math.pi / 180.0)),
    "is_nan": _test_of_doubles(np.isnan),
    "is_inf": _test_of_doubles(np.isinf),
    "is_finite": _test_of_doubles(np.isfinite),
    "hash": _hash,
}

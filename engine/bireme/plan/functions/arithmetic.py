"""Arithmetic: + - * / // %, the sign, and the bits of integers, over numbers, dates and spans of time.

The type rules are DuckDB's. Two decimals are added at the larger scale; a product keeps all its digits, but stays
within 18 where both factors do (its overflow is checked when it runs). `/` divides doubles. An integer constant beside
a decimal counts only the digits it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from bireme.data.types import (
    DATE,
    DECIMAL64_DIGITS,
    DECIMAL128_DIGITS,
    FLOAT32,
    FLOAT64,
    HUGEINT,
    INT32,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Interval, Literal
from bireme.plan.functions import moments
from bireme.plan.functions.casting import adapt, capped_decimal, cast, common_of_two, decimal_shape, exact_decimal
from bireme.plan.functions.registry import Args, ScalarFunction, overloaded, wrong_arguments
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class Typing:
    """The types that an operator's two arguments are cast to, and that of its result."""

    left: DataType
    right: DataType
    result: DataType
    swapped: bool = False


def _operator(name: str, symbol: str, args: Args, signatures: tuple[str, ...]) -> Expr:
    if len(args) != 2:
        raise wrong_arguments(name, args, signatures)
    left, right = args
    if left.__class__ is Literal or right.__class__ is Literal:
        left, right = _adapt_constants(name, left, right)
    typing = typing_of(name, left.type, right.type)
    if typing is None:
        raise TypeFault(f"there is no {args[0].type} {symbol} {args[1].type}; cast one side if a conversion is meant")
    if typing.swapped:
        left, right = right, left
    if left.type is not typing.left:
        left = cast(left, typing.left)
    if right.type is not typing.right:
        right = cast(right, typing.right)
    if left.__class__ is Literal and right.__class__ is Literal:
        folded = _moved(name, left, right, typing.result)
        if folded is not None:
            return folded
    return Call(name, (left, right), typing.result)


def _moved(name: str, left: Expr, right: Expr, result: DataType) -> Literal | None:
    """A constant date or timestamp plus or minus a constant interval, at once, so that a comparison of a date column
    with it sees a constant.
    """
    assert isinstance(left, Literal)
    assert isinstance(right, Literal)
    if not isinstance(right.value, Interval) or name not in ("add", "subtract") or left.value is None:
        return None
    return moments.move_constant(left, right.value, 1 if name == "add" else -1, result)


def _adapt_constants(name: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Constants in the type that the other operand gives them."""
    if (
        isinstance(left, Literal)
        and isinstance(right, Literal)
        and left.type is not STRING
        and right.type is not STRING
    ):
        return left, right
    if isinstance(right, Literal):
        return left, _beside(name, right, left.type)
    assert isinstance(left, Literal)
    return _beside(name, left, right.type), right


def _beside(name: str, constant: Literal, other: DataType) -> Literal:
    if constant.value is None:
        return Literal(None, other) if other.is_numeric else constant
    if constant.type is STRING:
        if not (other.is_numeric or (other is DATE and name == "subtract")):
            raise TypeFault(f"write the type of the text {constant.value!r} before it, as in date '1995-01-31'")
        return adapt(constant, other) or constant
    if other is HUGEINT and name == "int_divide" and constant.type.is_integer:
        return adapt(constant, HUGEINT) or constant
    if constant.type.is_integer and other.kind is Kind.DECIMAL and isinstance(constant.value, int):
        return adapt(constant, exact_decimal(constant.value)) or constant
    if other.is_integer or (other.is_float and constant.type is not FLOAT64):
        return adapt(constant, other) or constant
    return constant


@lru_cache(maxsize=4096)
def typing_of(name: str, left: DataType, right: DataType) -> Typing | None:
    """The typing of an operator for two types; None where it takes no such operands."""
    if left is NULL or right is NULL:
        return _with_null(name, left, right)
    if left.is_numeric and right.is_numeric:
        return _NUMERIC[name](left, right)
    return _temporal(name, left, right)


def _with_null(name: str, left: DataType, right: DataType) -> Typing | None:
    if left is right:
        return typing_of(name, INT32, INT32)
    other = left if right is NULL else right
    beside = (
        INTERVAL if other.is_temporal else FLOAT64 if other is INTERVAL and name in ("multiply", "divide") else other
    )
    return typing_of(name, left if right is NULL else beside, beside if right is NULL else right)


# ---------------------------------------------------------------------------------------------- numbers


def _integers(left: DataType, right: DataType) -> DataType:
    """What two integer types compute in: the wider one, else bigint (the 38-digit decimal beyond)."""
    common = common_of_two(left, right)
    assert common is not None
    return common if common in (left, right, HUGEINT) else INT64


def _sum(left: DataType, right: DataType) -> Typing:
    if left.is_integer and right.is_integer:
        return _alike(_integers(left, right))
    if left.is_float or right.is_float:
        return _alike(_floats(left, right))
    (whole_left, scale_left), (whole_right, scale_right) = _shape(left), _shape(right)
    scale = max(scale_left, scale_right)
    result = capped_decimal(max(whole_left, whole_right) + 1, scale)
    return Typing(_rescaled(left, scale), _rescaled(right, scale), result)


def _rescaled(kind: DataType, scale: int) -> DataType:
    if kind.kind is Kind.DECIMAL and kind.scale == scale:
        return kind
    return capped_decimal(_shape(kind)[0], scale)


def _product(left: DataType, right: DataType) -> Typing:
    if left.is_integer and right.is_integer:
        return _alike(_integers(left, right))
    if left.is_float or right.is_float:
        return _alike(_floats(left, right))
    left, right = _as_decimal(left), _as_decimal(right)
    precision, scale = left.precision + right.precision, left.scale + right.scale
    if scale > DECIMAL128_DIGITS:
        raise TypeFault(f"{left} * {right} has {scale} decimal places, at most 38 are possible; cast to fewer first")
    short = left.precision <= DECIMAL64_DIGITS and right.precision <= DECIMAL64_DIGITS and scale <= DECIMAL64_DIGITS
    limit = DECIMAL64_DIGITS if short else DECIMAL128_DIGITS
    return Typing(left, right, decimal(min(precision, limit), scale))


def _quotient(left: DataType, right: DataType) -> Typing:
    return _alike(FLOAT32 if _floats(left, right) is FLOAT32 and (left.is_float or right.is_float) else FLOAT64)


def _whole_quotient(left: DataType, right: DataType) -> Typing:
    if left.is_integer and right.is_integer:
        return _alike(_integers(left, right))
    if all(kind.is_integer or kind is HUGEINT for kind in (left, right)):
        return _alike(HUGEINT)
    return _quotient(left, right)


def _remainder(left: DataType, right: DataType) -> Typing:
    if left.is_integer and right.is_integer:
        return _alike(_integers(left, right))
    common = common_of_two(left, right)
    assert common is not None
    return _alike(common)


def _floats(left: DataType, right: DataType) -> DataType:
    return FLOAT64 if FLOAT64 in (left, right) else FLOAT32


def _alike(kind: DataType) -> Typing:
    return Typing(kind, kind, kind)


def _shape(kind: DataType) -> tuple[int, int]:
    shape = decimal_shape(kind)
    assert shape is not None
    return shape


def _as_decimal(kind: DataType) -> DataType:
    return kind if kind.kind is Kind.DECIMAL else capped_decimal(*_shape(kind))


_NUMERIC: Final[dict[str, Callable[[DataType, DataType], Typing]]] = {
    "add": _sum,
    "subtract": _sum,
    "multiply": _product,
    "divide": _quotient,
    "int_divide": _whole_quotient,
    "modulo": _remainder,
}

# ---------------------------------------------------------------------------------- dates and intervals


def _temporal(name: str, left: DataType, right: DataType) -> Typing | None:
    match name:
        case "add":
            return _time_sum(left, right) or _turned(_time_sum(right, left))
        case "subtract":
            return _time_difference(left, right)
        case "multiply":
            return _scaled_interval(left, right) or _turned(_scaled_interval(right, left))
        case "divide" if left is INTERVAL and right.is_numeric:
            return Typing(INTERVAL, FLOAT64, INTERVAL)
        case _:
            return None


def _turned(typing: Typing | None) -> Typing | None:
    return Typing(typing.left, typing.right, typing.result, swapped=True) if typing is not None else None


def _moving(left: DataType, right: DataType) -> Typing | None:
    """A point in time moved by a span."""
    if left is DATE and right.is_integer and right.bits <= 32 and right.kind is not Kind.UINT32:
        return Typing(DATE, INT32, DATE)
    if right is not INTERVAL:
        return None
    if left is DATE:
        return Typing(DATE, INTERVAL, TIMESTAMP)
    return Typing(left, INTERVAL, left) if left.kind in (Kind.TIMESTAMP, Kind.TIME, Kind.INTERVAL) else None


def _time_sum(left: DataType, right: DataType) -> Typing | None:
    if left is DATE and right is TIME:
        return Typing(DATE, TIME, TIMESTAMP)
    return _moving(left, right)


def _time_difference(left: DataType, right: DataType) -> Typing | None:
    if left is DATE and right is DATE:
        return Typing(DATE, DATE, INT64)
    if {left.kind, right.kind} <= {Kind.DATE, Kind.TIMESTAMP}:
        common = common_of_two(left, right)
        return Typing(common, common, INTERVAL) if common is not None else None
    return _moving(left, right)


def _scaled_interval(left: DataType, right: DataType) -> Typing | None:
    if left is not INTERVAL or not right.is_numeric:
        return None
    return Typing(INTERVAL, INT64 if right.is_integer else FLOAT64, INTERVAL)


# ---------------------------------------------------------------------------------------------- entries


def _binary(name: str, symbol: str, doc: str, types: str, *aliases: str) -> ScalarFunction:
    signatures = (f"{symbol} of {types}",)

    def bind(args: Args) -> Expr:
        return _operator(name, symbol, args, signatures)

    return ScalarFunction(name, bind, signatures, doc, (symbol, *aliases), fails=True)


def _floored_quotient(args: Args) -> Expr:
    left, right = _doubles("fdiv", args)
    return Call("floor", (Call("divide", (left, right), FLOAT64),), FLOAT64)


def _floored_rest(args: Args) -> Expr:
    left, right = _doubles("fmod", args)
    whole = Call("multiply", (_floored_quotient((left, right)), right), FLOAT64)
    return Call("subtract", (left, whole), FLOAT64)


def _doubles(name: str, args: Args) -> Args:
    if len(args) != 2 or not all(arg.type.is_numeric or arg.type is NULL for arg in args):
        raise wrong_arguments(name, args, (f"{name}(number, number) → double",))
    return tuple([cast(arg, FLOAT64) for arg in args])


_NEGATE: Final = ("-number", "-interval")


def _negate(args: Args) -> Expr:
    if len(args) != 1:
        raise wrong_arguments("negate", args, _NEGATE)
    (arg,) = args
    if isinstance(arg, Literal) and (arg.value is None or arg.type.is_numeric):
        return _negated(arg)
    if not (arg.type.is_numeric or arg.type is INTERVAL):
        raise wrong_arguments("negate", args, _NEGATE)
    return Call("negate", args, arg.type)


def _negated(constant: Literal) -> Expr:
    value = constant.value
    if value is None:
        return Literal(None, INT32) if constant.type is NULL else constant
    negative = Literal(-value, constant.type)  # type: ignore[operator]
    fits = not constant.type.is_integer or adapt(Literal(-value, INT64), constant.type) is not None  # type: ignore[operator]
    return negative if fits else Call("negate", (constant,), constant.type)


def _bits(name: str, doc: str, *aliases: str) -> ScalarFunction:
    signatures = (f"{name}(integer, integer) → integer, of any integer type",)

    def bind(args: Args) -> Expr:
        if len(args) != 2:
            raise wrong_arguments(name, args, signatures)
        left, right = args
        if isinstance(left, Literal) or isinstance(right, Literal):
            left, right = _adapt_constants(name, left, right)
        if not (left.type.is_integer and right.type.is_integer):
            raise wrong_arguments(name, args, signatures)
        kind = _integers(left.type, right.type)
        return Call(name, (cast(left, kind), cast(right, kind)), kind)

    return ScalarFunction(name, bind, signatures, doc, aliases, fails=name.startswith("shift"))


def _flipped(args: Args) -> Expr:
    if len(args) != 1 or not args[0].type.is_integer:
        raise wrong_arguments("bitwise_not", args, ("~integer",))
    return Call("bitwise_not", args, args[0].type)


ADD: Final = _binary(
    "add", "+", "The sum; moves a date or time by an interval, a date by days.", "numbers, dates and intervals"
)

FUNCTIONS: Final = (
    ADD,
    _binary(
        "subtract",
        "-",
        "The difference; days between dates, the interval between timestamps.",
        "numbers, dates and intervals",
    ),
    _binary("multiply", "*", "The product; an interval so many times.", "numbers, or a number and an interval"),
    _binary("divide", "/", "The quotient as a double; infinite or NaN for a zero divisor.", "numbers"),
    _binary("int_divide", "//", "The quotient of integers, truncated; DomainFault for a zero divisor.", "numbers"),
    _binary(
        "modulo", "%", "The remainder, with the sign of the dividend; DomainFault for a zero divisor.", "numbers", "mod"
    ),
    ScalarFunction(
        "fdiv", _floored_quotient, ("fdiv(number, number) → double",), "The quotient, rounded down.", fails=True
    ),
    ScalarFunction(
        "fmod", _floored_rest, ("fmod(number, number) → double",), "What rounding the quotient down leaves.", fails=True
    ),
    ScalarFunction("negate", _negate, _NEGATE, "The value with its sign turned.", fails=True),
    overloaded(
        "power",
        "The first argument to the power of the second.",
        ((FLOAT64, FLOAT64), FLOAT64),
        aliases=("pow", "**", "^"),
    ),
    _bits("bitwise_and", "The bits set in both.", "&"),
    _bits("bitwise_or", "The bits set in either.", "|"),
    _bits("bitwise_xor", "The bits set in exactly one.", "xor"),
    _bits("shift_left", "The bits moved up; Overflow where one leaves the type.", "<<"),
    _bits("shift_right", "The bits moved down.", ">>"),
    ScalarFunction("bitwise_not", _flipped, ("~integer",), "Every bit turned.", ("~",)),
)

"""Functions of numbers. Rounding is half away from zero; outside their domain, double functions give NaN or
infinity.
"""

from __future__ import annotations

from typing import Final

from bireme.data.types import BOOL, FLOAT64, HUGEINT, INT8, INT32, INT64, NULL, DataType, Kind, decimal
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import cast
from bireme.plan.functions.registry import Args, ScalarFunction, overloaded, wrong_arguments

_DIGITS_MAX: Final = 400


def _double(name: str, doc: str, *aliases: str) -> ScalarFunction:
    return overloaded(name, doc, ((FLOAT64,), FLOAT64), aliases=aliases)


def _kept(name: str, doc: str, *aliases: str, result: DataType | None = None, fails: bool = False) -> ScalarFunction:
    """A function of one number of any type, which it keeps unless `result` says otherwise."""
    signatures = (f"{name}(number) → {'the same type' if result is None else result}",)

    def bind(args: Args) -> Expr:
        args = _numbers(name, args, 1, signatures)
        return Call(name, args, result or args[0].type)

    return ScalarFunction(name, bind, signatures, doc, aliases, fails=fails)


def _numbers(name: str, args: Args, count: int, signatures: tuple[str, ...]) -> Args:
    if len(args) != count or not (args[0].type.is_numeric or args[0].type is NULL):
        raise wrong_arguments(name, args, signatures)
    return (cast(args[0], INT32), *args[1:]) if args[0].type is NULL else args


def _rounding(name: str, doc: str, *aliases: str, takes_digits: bool, keeps_integers: bool) -> ScalarFunction:
    """round, trunc, floor and ceil: to decimal places where `takes_digits`, else to whole numbers.

    A decimal loses the places that are rounded away; integers stay as they are, or become doubles (floor, ceil).
    """
    signatures = tuple(f"{name}(number{places}) → number" for places in (("", ", integer") if takes_digits else ("",)))

    def bind(args: Args) -> Expr:
        digits = _digits(name, args[1]) if takes_digits and len(args) == 2 else None
        arg = _numbers(name, args, 1 if digits is None else 2, signatures)[0]
        if arg.type.is_integer:
            if digits is None:
                return arg if keeps_integers else Call(name, (cast(arg, FLOAT64),), FLOAT64)
            return Call(name, (arg, digits), arg.type)
        rest = () if digits is None else (digits,)
        if arg.type.kind is not Kind.DECIMAL:
            return Call(name, (arg, *rest), arg.type)
        places = 0 if digits is None or not isinstance(digits.value, int) else digits.value
        return Call(name, (arg, *rest), decimal(arg.type.precision, min(max(places, 0), arg.type.scale)))

    return ScalarFunction(name, bind, signatures, doc, aliases, fails=True)


def _digits(name: str, arg: Expr) -> Literal:
    if not isinstance(arg, Literal) or not (arg.type.is_integer or arg.type is NULL):
        raise TypeFault(f"the number of digits of {name} must be a whole constant")
    if arg.value is None:
        return Literal(None, INT32)
    assert isinstance(arg.value, int)
    return Literal(max(-_DIGITS_MAX, min(_DIGITS_MAX, arg.value)), INT32)


def _log(args: Args) -> Expr:
    """log(x) is that to base 10; log(base, x) to any base."""
    if len(args) == 1:
        return _LOG10.bind(args)
    if len(args) != 2:
        raise wrong_arguments("log", args, ("log(double)", "log(double, double)"))
    base, value = _LOG10.bind(args[:1]), _LOG10.bind(args[1:])
    return Call("divide", (value, base), FLOAT64)


def _pi(args: Args) -> Expr:
    if args:
        raise wrong_arguments("pi", args, ("pi() → double",))
    return Literal(3.141592653589793, FLOAT64)


_LOG10: Final = _double("log10", "The logarithm to base 10.")

FUNCTIONS: Final = (
    _kept("abs", "The value without its sign.", fails=True),
    _rounding(
        "round",
        "To so many decimal places (0 if not given), half away from zero.",
        takes_digits=True,
        keeps_integers=True,
    ),
    _rounding(
        "trunc",
        "Without the digits after so many decimal places (0 if not given).",
        takes_digits=True,
        keeps_integers=True,
    ),
    _rounding("floor", "The greatest whole number that is not greater.", takes_digits=False, keeps_integers=False),
    _rounding("ceil", "The least whole number that is not less.", "ceiling", takes_digits=False, keeps_integers=False),
    _kept("sign", "-1, 0 or 1.", result=INT8),
    _double("sqrt", "The square root."),
    _double("cbrt", "The cube root."),
    _double("ln", "The natural logarithm."),
    _LOG10,
    _double("log2", "The logarithm to base 2."),
    ScalarFunction(
        "log",
        _log,
        ("log(double) → double", "log(double, double) → double"),
        "The logarithm to base 10, or to the first argument.",
    ),
    _double("exp", "e to this power."),
    *(
        _double(name, f"The {word} of an angle in radians.")
        for name, word in (("sin", "sine"), ("cos", "cosine"), ("tan", "tangent"), ("cot", "cotangent"))
    ),
    *(
        _double(name, f"The angle in radians whose {word} this is.")
        for name, word in (("asin", "sine"), ("acos", "cosine"), ("atan", "tangent"))
    ),
    *(
        _double(name, f"The hyperbolic {word}.")
        for name, word in (("sinh", "sine"), ("cosh", "cosine"), ("tanh", "tangent"))
    ),
    *(
        _double(name, f"The number whose hyperbolic {word} this is.")
        for name, word in (("asinh", "sine"), ("acosh", "cosine"), ("atanh", "tangent"))
    ),
    overloaded("gcd", "The greatest common divisor.", ((INT64, INT64), INT64), aliases=("greatest_common_divisor",)),
    overloaded(
        "lcm", "The least common multiple.", ((INT64, INT64), INT64), aliases=("least_common_multiple",), fails=True
    ),
    overloaded("factorial", "The product of the numbers from 1 to this one.", ((INT32,), HUGEINT), fails=True),
    _double("even", "The next even number away from zero."),
    _double("gamma", "The gamma function."),
    _double("lgamma", "The logarithm of the gamma function."),
    overloaded("signbit", "Whether the sign is that of a negative number.", ((FLOAT64,), BOOL)),
    overloaded("atan2", "The angle in radians of the point (second, first).", ((FLOAT64, FLOAT64), FLOAT64)),
    _double("degrees", "An angle in radians, in degrees."),
    _double("radians", "An angle in degrees, in radians."),
    ScalarFunction("pi", _pi, ("pi() → double",), "The number π."),
    overloaded("is_nan", "Whether it is not a number.", ((FLOAT64,), BOOL), aliases=("isnan",)),
    overloaded("is_inf", "Whether it is infinite.", ((FLOAT64,), BOOL), aliases=("isinf",)),
    overloaded("is_finite", "Whether it is neither infinite nor NaN.", ((FLOAT64,), BOOL), aliases=("isfinite",)),
)

"""Constants: numbers, texts, TRUE and NULL, intervals, and parameters whose values the caller gives."""

from __future__ import annotations

import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from sqlglot import expressions as exp

from bireme.data import types as t
from bireme.data.exact_decimal import EXACT
from bireme.data.types import DataType
from bireme.errors import ArgumentFault, SyntaxFault, Unsupported
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.lexemes import plain_text
from bireme.frontend.sql.operators import part
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.syntax import Node
from bireme.plan import functions
from bireme.plan.expr import Expr, Interval, Literal
from bireme.plan.functions import texts

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_TRUE: Final = Literal(True, t.BOOL)
_FALSE: Final = Literal(False, t.BOOL)
_NULL: Final = Literal(None, t.NULL)
_WHOLE_UNITS: Final = frozenset({"second", "millisecond", "microsecond"})


def literal(node: Node, context: Context) -> Expr:
    value = node.args["this"]
    if node.args.get("is_string"):
        return Literal(value, t.STRING)
    return number(value)


def number(text: str) -> Literal:
    """A number as SQL types it: the narrowest integer from INTEGER up, a decimal with a point, a double with an e."""
    try:
        if text.isdecimal():
            return _integer(int(text))
        if "e" not in text and "E" not in text:
            whole, _, fraction = text.partition(".")
            precision = max(1, len(whole) + len(fraction))
            if precision <= t.DECIMAL128_DIGITS:
                return Literal(Decimal(text), t.decimal(precision, len(fraction)))
        return Literal(float(text), t.FLOAT64)
    except (ValueError, InvalidOperation):
        raise SyntaxFault(f"'{text}' is not a number") from None


def _integer(value: int) -> Literal:
    if value <= _INT32_MAX:
        return Literal(value, t.INT32)
    if value <= _INT64_MAX:
        return Literal(value, t.INT64)
    if value < 10**t.DECIMAL128_DIGITS:
        return Literal(Decimal(value), t.HUGEINT)
    raise SyntaxFault(
        f"a whole number has at most {t.DECIMAL128_DIGITS} digits here, not {len(str(value))}; "
        "write it with an exponent, such as 1.5e40, if a double will do"
    )


def boolean(node: Node, context: Context) -> Expr:
    return _TRUE if node.args["this"] else _FALSE


def null(node: Node, context: Context) -> Expr:
    return _NULL


def negative(node: Node, context: Context) -> Expr:
    operand = part(node, "this", context)
    if isinstance(operand, Literal) and operand.type.is_numeric:
        value, kind = operand.value, operand.type
        if isinstance(value, float | Decimal) or (isinstance(value, int) and _has_opposite(value, kind)):
            return Literal(EXACT.minus(value) if isinstance(value, Decimal) else -value, kind)
    return functions.scalar("negate", (operand,))


def _has_opposite(value: int, kind: t.DataType) -> bool:
    return kind.is_signed and value != -(1 << kind.bits - 1)


def interval(node: Node, context: Context) -> Expr:
    amount, unit = node.args.get("this"), node.args.get("unit")
    if unit is not None and unit.__class__ is not exp.Var:
        raise Unsupported("intervals from one unit TO another are not supported; add several intervals")
    if not isinstance(amount, Node):
        raise SyntaxFault("an interval without an amount")
    if amount.__class__ is exp.Literal and unit is None:
        return Literal(_read(plain_text(amount.args["this"])), t.INTERVAL)
    name = texts.unit_name(unit.name) if unit is not None else "second"
    if not texts.is_span_unit(name):
        raise SyntaxFault(f"'{unit.name if unit is not None else ''}' is not a unit of time")
    if amount.__class__ is exp.Literal:
        value = _amount(amount.args["this"])
        if name not in _WHOLE_UNITS and not node.args.get("fraction_in_string"):
            value = Decimal(int(value))
        return Literal(_checked(texts.span(value, name), amount.args["this"]), t.INTERVAL)
    count = context.bind(amount)
    if name not in _WHOLE_UNITS and (count.type.is_float or count.type.kind is t.Kind.DECIMAL):
        count = functions.scalar("trunc", (count,))
    return functions.scalar("multiply", (Literal(texts.span(Decimal(1), name), t.INTERVAL), count))


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise SyntaxFault(f"'{text}' is not an amount of time") from None


def _checked(value: Interval, text: str) -> Interval:
    try:
        return texts.in_range(value)
    except OverflowError:
        raise SyntaxFault(
            f"'{text}' leaves the range of an interval: ±292 years of time, months and days apart"
        ) from None


def _read(text: str) -> Interval:
    try:
        return texts.read_interval(text)
    except OverflowError:
        raise SyntaxFault(
            f"'{text}' leaves the range of an interval: ±292 years of time, months and days apart"
        ) from None
    except ValueError:
        raise SyntaxFault(f"'{text}' is not an interval; write for example INTERVAL '3 days'") from None


def placeholder(node: Node, context: Context) -> Expr:
    return value_literal(context.statement.parameter(str(node.args.get("this"))))


def value_literal(value: object) -> Literal:
    """A constant from a Python value."""
    match value:
        case None:
            return _NULL
        case bool():
            return _TRUE if value else _FALSE
        case int():
            typed = _integer(abs(value))
            return typed if value >= 0 else Literal(-typed.value, typed.type)  # type: ignore[operator]
        case float():
            return Literal(value, t.FLOAT64)
        case Decimal() if value.is_finite():
            exponent = -int(value.as_tuple().exponent)
            scale = max(0, exponent)
            digits = max(len(value.as_tuple().digits) - min(0, exponent), scale, 1)
            return Literal(value, t.decimal(digits, scale))
        case _:
            return _other_literal(value)


def _other_literal(value: object) -> Literal:
    kinds: tuple[tuple[type, DataType], ...] = (
        (str, t.STRING),
        (bytes, t.BINARY),
        (Interval, t.INTERVAL),
        (datetime.datetime, t.TIMESTAMP),
        (datetime.date, t.DATE),
        (datetime.time, t.TIME),
    )
    for python, kind in kinds:
        if isinstance(value, python):
            zoned = isinstance(value, datetime.datetime) and value.tzinfo is not None
            return Literal(value, t.timestamp("us", "UTC") if zoned else kind)  # type: ignore[arg-type]
    raise ArgumentFault(f"a parameter cannot be a {type(value).__name__}; give a number, text, date, time or None")


def clock(node: Node, context: Context) -> Expr:
    """CURRENT_DATE and its like."""
    return clock_value(_CLOCKS[node.__class__], context)


_CLOCKS: Final[dict[type[Node], str]] = {
    exp.CurrentDate: "today",
    exp.CurrentTime: "current_time",
    exp.CurrentTimestamp: "now",
    exp.Localtime: "current_time",
    exp.Localtimestamp: "current_localtimestamp",
}


def clock_value(name: str, context: Context) -> Literal:
    """The date, time or instant at which the statement is bound, in UTC."""
    now = context.statement.now()
    match name:
        case "today" | "current_date":
            return Literal(now.date(), t.DATE)
        case "current_time" | "get_current_time":
            return Literal(now.time(), t.TIME)
        case "current_localtimestamp" | "localtimestamp":
            return Literal(now.replace(tzinfo=None), t.TIMESTAMP)
    return Literal(now, t.timestamp("us", "UTC"))


_THIS: Final = frozenset({"this"})

HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.Literal: (literal, frozenset({"this", "is_string"})),
    exp.RawString: (lambda node, context: Literal(node.args["this"], t.STRING), _THIS),
    exp.Boolean: (boolean, _THIS),
    exp.Null: (null, frozenset()),
    exp.Neg: (negative, _THIS),
    exp.Interval: (interval, frozenset({"this", "unit", "fraction_in_string"})),
    exp.Placeholder: (placeholder, _THIS),
    exp.CurrentDate: (clock, _THIS),
    exp.CurrentTime: (clock, _THIS),
    exp.CurrentTimestamp: (clock, _THIS | {"sysdate"}),
    exp.Localtime: (clock, _THIS),
    exp.Localtimestamp: (clock, _THIS),
}

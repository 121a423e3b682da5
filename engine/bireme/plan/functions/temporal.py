"""Functions of dates, times, timestamps and intervals; their arithmetic is in `arithmetic`.

Timestamps are taken in microseconds; one with a time zone is taken in UTC.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bireme.data.types import (
    BOOL,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
    Kind,
    timestamp,
)
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Case, Expr, Literal
from bireme.plan.functions.arithmetic import ADD
from bireme.plan.functions.casting import cast, coerce
from bireme.plan.functions.naming import suggest
from bireme.plan.functions.registry import (
    Args,
    NullRule,
    ScalarFunction,
    choose,
    is_null,
    overloaded,
    signature,
    wrong_arguments,
)
from bireme.plan.functions.structs import struct
from bireme.plan.functions.texts import unit_name

_PARTS: Final = {
    "year": "The year.",
    "quarter": "The quarter, 1 to 4.",
    "month": "The month, 1 to 12.",
    "week": "The week of the ISO year, 1 to 53.",
    "day": "The day of the month, 1 to 31.",
    "dayofweek": "The day of the week, 0 for Sunday.",
    "isodow": "The day of the week, 1 for Monday to 7 for Sunday.",
    "dayofyear": "The day of the year, 1 to 366.",
    "isoyear": "The year that the ISO week belongs to.",
    "yearweek": "ISO year and week as one number, such as 202005.",
    "decade": "The year divided by ten.",
    "century": "The century; 2000 is in the 20th.",
    "millennium": "The millennium; 2000 is in the 2nd.",
    "hour": "The hour, 0 to 23.",
    "minute": "The minute, 0 to 59.",
    "second": "The second, 0 to 59.",
    "millisecond": "Seconds and their fraction in milliseconds.",
    "microsecond": "Seconds and their fraction in microseconds.",
    "epoch": "Seconds since 1970, with their fraction.",
}
_OF_CLOCK: Final = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_OF_INTERVAL: Final = frozenset(
    {"year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "epoch", "decade"}
)
_PART_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "day": ("dayofmonth",), "week": ("weekofyear",), "dayofweek": ("weekday", "dow"), "dayofyear": ("doy",),
}  # fmt: skip
# Names of parts that are not units of a span.
_PART_NAMES: Final = {
    "dow": "dayofweek", "weekday": "dayofweek", "doy": "dayofyear", "isoweek": "week", "weekofyear": "week",
    "dayofmonth": "day",
}  # fmt: skip
_TRUNCATED: Final = frozenset(
    {
        "millennium",
        "century",
        "decade",
        "year",
        "isoyear",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    }
)
_DIFFERENCES: Final = _TRUNCATED


_NANOSECONDS: Final = timestamp("ns")


def _moment(arg: Expr, days_only: bool = False) -> Expr:
    """A timestamp of any unit or zone, or a time of any unit, as one in microseconds; other types unchanged.

    Nanoseconds are cut off, where a cast would round: 59.9999999 seconds are still in their minute.
    """
    if arg.type.kind is Kind.TIMESTAMP and arg.type.unit == "ns":
        return Call("date_trunc", (Literal("microsecond", STRING), cast(arg, _NANOSECONDS)), TIMESTAMP)
    if arg.type.kind is Kind.TIMESTAMP and arg.type is not TIMESTAMP:
        return cast(arg, TIMESTAMP)
    if arg.type.kind is Kind.TIME and arg.type is not TIME:
        return cast(arg, TIME)
    return cast(arg, TIMESTAMP) if days_only and arg.type is DATE else arg


def _part(name: str, doc: str) -> ScalarFunction:
    result = FLOAT64 if name == "epoch" else INT64
    kinds: list[DataType] = [DATE, TIMESTAMP]
    kinds += [TIME] if name in _OF_CLOCK or name == "epoch" else []
    kinds += [INTERVAL] if name in _OF_INTERVAL else []
    signatures = (f"{name}({' or '.join(map(str, kinds))}) → {result}",)
    accepted = frozenset(kinds)
    of_clock = name in _OF_CLOCK or name == "epoch"

    def bind(args: Args) -> Expr:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        arg = Literal(None, TIMESTAMP) if is_null(args[0]) else _moment(args[0], days_only=of_clock)
        if arg.type not in accepted:
            raise wrong_arguments(name, args, signatures)
        return Call(name, (arg,), result)

    return ScalarFunction(name, bind, signatures, doc, _PART_ALIASES.get(name, ()))


def _unit(name: str, arg: Expr, known: frozenset[str]) -> str:
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        raise TypeFault(f"the unit of {name} must be a constant such as 'month'")
    lowered = arg.value.strip().lower()
    unit = _PART_NAMES.get(lowered) or unit_name(lowered)
    if unit not in known:
        raise TypeFault(f"{name} knows no unit {arg.value!r}{suggest(unit, known)}")
    return unit


def _date_part(args: Args) -> Expr:
    """The function of the part that a constant names; a struct of the parts that a list of constants names."""
    if len(args) != 2:
        raise wrong_arguments("date_part", args, ("date_part(unit, timestamp) → bigint",))
    if args[0].type.kind is Kind.LIST:
        return _date_parts(args[0], args[1])
    return _PART_FUNCTIONS[_unit("date_part", args[0], frozenset(_PARTS))].bind(args[1:])


def _date_parts(units: Expr, moment: Expr) -> Expr:
    given = units.args if isinstance(units, Call) and units.function == "list_value" else ()
    names = [unit.value for unit in given if isinstance(unit, Literal) and isinstance(unit.value, str)]
    if not names or len(names) < len(given):
        raise TypeFault("date_part takes the name of a part, or a list of such constants that is not empty")
    parts = struct(names, [_date_part((Literal(name, STRING), moment)) for name in names])
    return Case(((Call("is_null", (moment,), BOOL), Literal(None, parts.type)),), parts, parts.type)


def _date_trunc(args: Args) -> Expr:
    signatures = ("date_trunc(unit, date or timestamp) → timestamp",)
    if len(args) != 2:
        raise wrong_arguments("date_trunc", args, signatures)
    unit = Literal(_unit("date_trunc", args[0], _TRUNCATED), STRING)
    arg = Literal(None, TIMESTAMP) if is_null(args[1]) else _moment(args[1])
    if arg.type not in (DATE, TIMESTAMP):
        raise wrong_arguments("date_trunc", args, signatures)
    return Call("date_trunc", (unit, arg), TIMESTAMP)


def _difference(name: str, doc: str, *aliases: str) -> ScalarFunction:
    signatures = (f"{name}(unit, date, date) → bigint", f"{name}(unit, timestamp, timestamp) → bigint")
    overloads = (((DATE, DATE), INT64), ((TIMESTAMP, TIMESTAMP), INT64))

    def bind(args: Args) -> Expr:
        if len(args) != 3:
            raise wrong_arguments(name, args, signatures)
        unit = Literal(_unit(name, args[0], _DIFFERENCES), STRING)
        moments = (_moment(args[1]), _moment(args[2]))
        (first, second), result = choose(name, overloads, moments, signatures)
        return Call(name, (unit, coerce(moments[0], first), coerce(moments[1], second)), result)

    return ScalarFunction(name, bind, signatures, doc, aliases)


def _of_moments(
    name: str, doc: str, *overloads: tuple[tuple[DataType, ...], DataType], fails: bool = True
) -> ScalarFunction:
    """A function of fixed parameter types that takes timestamps of every unit."""
    signatures = tuple(signature(name, overload) for overload in overloads)

    def bind(args: Args) -> Expr:
        moments = tuple([_moment(arg) for arg in args])
        params, result = choose(name, overloads, moments, signatures)
        return Call(name, tuple([coerce(arg, kind) for arg, kind in zip(moments, params, strict=True)]), result)

    return ScalarFunction(name, bind, signatures, doc, fails=fails)


def _strftime() -> ScalarFunction:
    """The format may stand first or last, as DuckDB takes it."""
    function = _of_moments(
        "strftime",
        "The text of a date or timestamp in a format such as '%Y-%m-%d'.",
        ((DATE, STRING), STRING),
        ((TIMESTAMP, STRING), STRING),
    )

    def bind(args: Args) -> Expr:
        if len(args) == 2 and args[0].type is STRING and args[1].type is not STRING:
            args = (args[1], args[0])
        if len(args) == 2 and args[0].type.unit == "ns" and args[0].type.kind is Kind.TIMESTAMP:
            return Call("strftime", (cast(args[0], _NANOSECONDS), coerce(args[1], STRING)), STRING)
        return function.bind(args)

    return replace(function, bind=bind)


def _of_day(name: str, doc: str, result: DataType) -> ScalarFunction:
    signatures = (f"{name}(date or timestamp) → {result}",)

    def bind(args: Args) -> Expr:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        arg = Literal(None, DATE) if is_null(args[0]) else _moment(args[0])
        if arg.type is TIMESTAMP:
            arg = cast(arg, DATE)
        if arg.type is not DATE:
            raise wrong_arguments(name, args, signatures)
        return Call(name, (arg,), result)

    return ScalarFunction(name, bind, signatures, doc)


_INSTANT: Final = timestamp("us", "UTC")


def _age(args: Args) -> Expr:
    if len(args) != 2:
        raise wrong_arguments("age", args, ("age(timestamp, timestamp) → interval",))
    return Call("age", tuple([coerce(_moment(arg, days_only=True), TIMESTAMP) for arg in args]), INTERVAL)


def _date_add(args: Args) -> Expr:
    if len(args) != 2:
        raise wrong_arguments("date_add", args, ("date_add(date or timestamp, interval) → timestamp",))
    return ADD.bind(args)


def _count(unit: str, doc: str) -> ScalarFunction:
    name = f"epoch_{unit}"
    signatures = (f"{name}(date or timestamp) → bigint",)

    def bind(args: Args) -> Expr:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        arg = Literal(None, TIMESTAMP) if is_null(args[0]) else args[0]
        if unit == "ns" and arg.type.kind is Kind.TIMESTAMP and arg.type.unit == "ns":
            return Call(name, (cast(arg, _NANOSECONDS),), INT64)
        arg = _moment(arg, days_only=True)
        if arg.type is not TIMESTAMP:
            raise wrong_arguments(name, args, signatures)
        return Call(name, (arg,), INT64)

    return ScalarFunction(name, bind, signatures, doc)


def _span(unit: str, kind: DataType) -> ScalarFunction:
    return overloaded(f"to_{unit}", f"An interval of so many {unit}.", ((kind,), INTERVAL), fails=True)


_PART_FUNCTIONS: Final = {name: _part(name, doc) for name, doc in _PARTS.items()}

FUNCTIONS: Final = (
    *_PART_FUNCTIONS.values(),
    ScalarFunction(
        "date_part",
        _date_part,
        ("date_part(unit, timestamp) → bigint",),
        "The part that the unit names.",
        ("datepart", "extract"),
    ),
    ScalarFunction(
        "date_trunc",
        _date_trunc,
        ("date_trunc(unit, date or timestamp) → timestamp",),
        "The start of the unit it lies in.",
        ("datetrunc",),
    ),
    _difference("date_diff", "How many starts of the unit lie between the second argument and the third.", "datediff"),
    _difference("date_sub", "How many whole units lie between the second argument and the third.", "datesub"),
    overloaded("make_date", "The date of a year, month and day.", ((INT64, INT64, INT64), DATE), fails=True),
    overloaded("make_time", "The time of hour, minute and seconds.", ((INT64, INT64, FLOAT64), TIME), fails=True),
    _of_moments(
        "time_bucket",
        "The start of the bucket of this width that the point lies in.",
        ((INTERVAL, TIMESTAMP), TIMESTAMP),
        ((INTERVAL, DATE), DATE),
    ),
    ScalarFunction(
        "age",
        _age,
        ("age(timestamp, timestamp) → interval",),
        "The years, months, days and time from the second to the first.",
    ),
    ScalarFunction(
        "date_add",
        _date_add,
        ("date_add(date or timestamp, interval) → timestamp",),
        "The point in time moved by an interval.",
        fails=True,
    ),
    overloaded("to_timestamp", "The instant so many seconds after 1970.", ((FLOAT64,), _INSTANT), fails=True),
    _of_moments("julian", "The Julian day.", ((DATE,), FLOAT64), ((TIMESTAMP,), FLOAT64), fails=False),
    overloaded(
        "make_timestamp",
        "The timestamp of year, month, day, hour, minute and seconds.",
        ((INT64, INT64, INT64, INT64, INT64, FLOAT64), TIMESTAMP),
        fails=True,
    ),
    _strftime(),
    overloaded(
        "strptime", "The timestamp that a text in this format means.", ((STRING, STRING), TIMESTAMP), fails=True
    ),
    overloaded(
        "try_strptime",
        "As strptime, but NULL for a text that does not fit.",
        ((STRING, STRING), TIMESTAMP),
        nulls=NullRule.ADDS,
    ),
    _of_day("last_day", "The last day of the month.", DATE),
    _of_day("dayname", "The English name of the day of the week.", STRING),
    _of_day("monthname", "The English name of the month.", STRING),
    _count("ms", "Milliseconds since 1970, rounded down."),
    _count("us", "Microseconds since 1970."),
    _count("ns", "Nanoseconds since 1970."),
    *(
        _span(unit, INT32)
        for unit in ("millennia", "centuries", "decades", "years", "quarters", "months", "weeks", "days")
    ),
    *(_span(unit, INT64) for unit in ("hours", "minutes", "microseconds")),
    *(_span(unit, FLOAT64) for unit in ("seconds", "milliseconds")),
)

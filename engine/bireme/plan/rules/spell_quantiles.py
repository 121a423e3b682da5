"""Quantiles, the mode and entropy: what depends on how a value stands among the others of its group.

Quantiles become the values at one or two places, which group tables select (`plan.states.HOLISTIC`). Beside aggregates
that see the order of rows, which is lost on the way to those tables, and for values that are no machine words, they
become the least value at a position: rows are numbered by value within their group, those whose value is NULL in a
window of their own, so that the rows of the other window are those that count. The mode and entropy read how many rows
of the group share a row's value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from bireme.data.node import replaced
from bireme.data.types import BOOL, DATE, FLOAT64, INT64, STRING, DataType, Kind
from bireme.errors import DomainFault
from bireme.plan import functions
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Call,
    Case,
    Expr,
    Literal,
    SortKey,
    WindowCall,
)
from bireme.plan.relation import Aggregate
from bireme.plan.rules import spell_ordered
from bireme.plan.rules.spelling import Numbers, Speller, Spelling, counted, double, first_part, is_null, null, scalar

# What becomes, or stays, an aggregate that depends on the order of rows.
_SEES_ORDER: Final = frozenset({*spell_ordered.SPELLERS, "mode"}) - {"any_value"}


def _places(value: Expr, rel: Aggregate, numbers: Numbers) -> tuple[Expr, Expr]:
    """The number of a row by its value within its group, from 1, and how many rows count there."""
    window = (*rel.keys, is_null(value))
    order = (SortKey(value, False, False),)
    number = numbers.add(WindowCall(functions.window("row_number", []), window, order, UP_TO_PEERS))
    rows = numbers.add(WindowCall(functions.window("count", []), window, (), WHOLE_PARTITION))
    return number, rows


def _picker(value: Expr, number: Expr) -> Callable[[Expr], Aggregation]:
    place = functions.cast(scalar("-", number, Literal(1, number.type)), FLOAT64)
    return lambda position: functions.aggregate("min", [value], filter=scalar("=", place, position))


def _is_selected(call: Aggregation, rel: Aggregate, numbers: Numbers) -> bool:
    """Whether group tables can select values of the call; over frames all are."""
    if not numbers.are_offered:
        return True
    kind = call.args[0].type
    if not (kind.is_numeric or kind.is_temporal or kind.kind in (Kind.BOOL, Kind.DURATION)):
        return False
    return not any(each.distinct or each.order or each.function in _SEES_ORDER for each in rel.aggregates)


def _selected(function: str, value: Expr, fraction: float) -> Aggregation:
    return Aggregation(function, (value, double(fraction)), value.type)


def _discrete_quantile(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    value = counted(call)
    if _is_selected(call, rel, numbers):
        return Spelling([_selected("quantile_discrete", value, _fraction(call))], first_part)
    number, rows = _places(value, rel, numbers)
    position = scalar("greatest", double(0.0), _discrete(rows, _fraction(call)))
    return Spelling([_picker(value, number)(position)], first_part)


def _continuous_quantile(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    value, fraction = counted(call), _fraction(call)
    between = _between_numbers if call.type.is_numeric else _BETWEEN.get(call.type.kind)
    if between is None:
        # Nothing lies between two texts: DuckDB takes the discrete one.
        return _discrete_quantile(call, rel, numbers)
    if _is_selected(call, rel, numbers):
        ends = [_selected(function, value, fraction) for function in ("quantile_lower", "quantile_higher")]
        return Spelling(
            [*ends, functions.aggregate("count", [value])],
            lambda columns: between([*columns[:2], _part(_position(columns[2], fraction))], call.type),
        )
    number, rows = _places(value, rel, numbers)
    at, position = _picker(value, number), _position(rows, fraction)
    part = functions.aggregate("max", [_part(position)], filter=Call("is_not_null", (value,), BOOL))
    parts = [at(scalar("floor", position)), at(scalar("ceil", position)), part]
    return Spelling(parts, lambda columns: between(columns, call.type))


def _position(rows: Expr, fraction: float) -> Expr:
    """Where the quantile of so many rows lies, from 0: at a row, or between two."""
    last = functions.cast(scalar("-", rows, Literal(1, rows.type)), FLOAT64)
    return scalar("*", last, double(fraction))


def _part(position: Expr) -> Expr:
    return scalar("-", position, scalar("floor", position))


def _fraction(call: Aggregation) -> float:
    if call.function == "median":
        return 0.5
    fraction = call.args[1]
    value = fraction.value if isinstance(fraction, Literal) else None
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise DomainFault(f"the fraction of {call.function} must be from 0 to 1, not {value!r}")
    return value


def _discrete(rows: Expr, fraction: float) -> Expr:
    """The position, from 0, of the first value that the fraction of all values does not exceed."""
    count = functions.cast(rows, FLOAT64)
    after = scalar("floor", scalar("-", count, scalar("*", count, double(fraction))))
    return scalar("-", scalar("-", count, after), double(1.0))


def _between_numbers(columns: Sequence[Expr], kind: DataType) -> Expr:
    """The value so far between two neighbours; where they are one, infinities included, that one."""
    low, high, part = functions.cast(columns[0], FLOAT64), functions.cast(columns[1], FLOAT64), columns[2]
    between = scalar("+", low, scalar("*", scalar("-", high, low), part))
    same = Case(((scalar("=", low, high), low),), between, FLOAT64)
    if kind.kind is Kind.DECIMAL:
        exact = functions.cast(columns[0], kind)
        return Case(((scalar("=", columns[0], columns[1]), exact),), _between_decimals(low, high, part, kind), kind)
    return functions.cast(same, kind)


def _between_decimals(low: Expr, high: Expr, part: Expr, kind: DataType) -> Expr:
    """Between the unscaled numbers, without what is behind their last digit."""
    factor = double(10.0**kind.scale)
    least, greatest = (scalar("round", scalar("*", value, factor)) for value in (low, high))
    between = scalar("trunc", scalar("+", least, scalar("*", scalar("-", greatest, least), part)))
    return functions.cast(scalar("/", between, factor), kind)


def _between_moments(columns: Sequence[Expr], kind: DataType) -> Expr:
    low, high = functions.cast(columns[0], kind), functions.cast(columns[1], kind)
    part = functions.cast(_microseconds_after(low, high, columns[2]), INT64)
    return scalar("+", low, scalar("to_microseconds", part))


def _microseconds_after(low: Expr, high: Expr, part: Expr) -> Expr:
    distance = functions.cast(scalar("date_diff", Literal("microsecond", STRING), low, high), FLOAT64)
    return scalar("*", distance, part)


def _between_spans(columns: Sequence[Expr], kind: DataType) -> Expr:
    low, high = functions.cast(columns[0], kind), functions.cast(columns[1], kind)
    return scalar("+", low, scalar("*", scalar("-", high, low), columns[2]))


def _between_clocks(columns: Sequence[Expr], kind: DataType) -> Expr:
    day = Literal(datetime.date(1970, 1, 1), DATE)
    low, high = [scalar("+", day, functions.cast(column, kind)) for column in columns[:2]]
    part = functions.cast(scalar("round", _microseconds_after(low, high, columns[2])), INT64)
    return functions.cast(scalar("+", low, scalar("to_microseconds", part)), kind)


# How far a quantile is between two neighbours of types other than numbers.
_BETWEEN: Final[dict[Kind, Callable[[Sequence[Expr], DataType], Expr]]] = {
    Kind.TIMESTAMP: _between_moments,
    Kind.TIME: _between_clocks,
    Kind.INTERVAL: _between_spans,
}


def _mode(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    """The first of the values that most rows have."""
    value = counted(call)
    order = (SortKey(is_null(value)), SortKey(_alike(value, rel, numbers), descending=True), *call.order)
    return Spelling([Aggregation("first", (value,), call.type, order=order)], first_part)


def _alike(value: Expr, rel: Aggregate, numbers: Numbers) -> Expr:
    """How many rows of the group have the row's value."""
    return numbers.add(WindowCall(functions.window("count", []), (*rel.keys, value), (), WHOLE_PARTITION))


def _entropy(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    """Of n rows of which c share a value: log2(n) less the mean of log2(c)."""
    value = counted(call)
    present = Call("is_not_null", (value,), BOOL)
    alike = scalar("log2", functions.cast(_alike(value, rel, numbers), FLOAT64))
    parts = [functions.aggregate("count", [value]), functions.aggregate("avg", [alike], filter=present)]
    return Spelling(parts, _entropy_of)


def _entropy_of(columns: Sequence[Expr]) -> Expr:
    rows = scalar("log2", functions.cast(columns[0], FLOAT64))
    return scalar("coalesce", scalar("-", rows, columns[1]), double(0.0))


def _each_of(spell: Callable[[Aggregation, Aggregate, Numbers], Spelling]) -> Speller:
    """Quantiles at several fractions: a list of them, NULL over no value."""

    def spelt(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
        fractions = call.args[1] if len(call.args) > 1 else None
        if not isinstance(fractions, Call):
            return spell(call, rel, numbers)
        kind = call.type.children[0].type
        each = [
            spell(replaced(call, args=(call.args[0], fraction), type=kind), rel, numbers) for fraction in fractions.args
        ]
        ends = list(accumulate(len(part.parts) for part in each))

        def finish(columns: Sequence[Expr]) -> Expr:
            starts = [0, *ends[:-1]]
            pairs = zip(each, starts, ends, strict=True)
            values = tuple([functions.cast(part.finish(columns[start:end]), kind) for part, start, end in pairs])
            return Case(((is_null(values[0]), null(call.type)),), Call("list_value", values, call.type), call.type)

        return Spelling([part for spelling in each for part in spelling.parts], finish)

    return spelt


def _mad(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling | None:
    """Of all values in one list: the median of how far they are from their median."""
    value = counted(call)
    together = functions.aggregate("array_agg", [value], filter=Call("is_not_null", (value,), BOOL))
    inner = spell_ordered.SPELLERS["array_agg"](together, rel, numbers) or Spelling([together], first_part)
    return Spelling(inner.parts, lambda columns: scalar("list_mad", inner.finish(columns)))


SPELLERS: Final[dict[str, Speller]] = {
    "median": _continuous_quantile,
    "quantile_cont": _each_of(_continuous_quantile),
    "quantile_disc": _each_of(_discrete_quantile),
    "mad": _mad,
    "mode": _mode,
    "entropy": _entropy,
}

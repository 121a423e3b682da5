"""Expressions become simpler ones of the same value; what that does to whole plans is tested on random plans."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from bireme.data.schema import Schema
from bireme.data.types import (
    BOOL,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    decimal,
)
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Interval, Literal
from bireme.plan.rules.fold import fold_expr, fold_predicate
from bireme.plan.tree import FALSE, TRUE, UNKNOWN, negate

SCHEMA = Schema((Field("n", INT32, True), Field("d", DATE, True), Field("k", INT64, False), Field("s", STRING, True)))
N, D, K, S = Column(0, INT32), Column(1, DATE), Column(2, INT64), Column(3, STRING)
JANUARY_31 = Literal(datetime.date(1996, 1, 31), DATE)


def number(value: int | None) -> Literal:
    return Literal(value, INT32)


def test(function: str, *args: Expr) -> Call:
    return Call(function, args, BOOL)


test.__test__ = False  # type: ignore[attr-defined]


def span(months: int = 0, days: int = 0, nanoseconds: int = 0) -> Literal:
    return Literal(Interval(months, days, nanoseconds), INTERVAL)


@pytest.mark.parametrize(
    ("function", "amount", "expected"),
    [
        ("add", span(months=1), datetime.datetime(1996, 2, 29)),
        ("add", span(months=13), datetime.datetime(1997, 2, 28)),
        ("subtract", span(months=2), datetime.datetime(1995, 11, 30)),
        ("add", span(days=30), datetime.datetime(1996, 3, 1)),
        ("subtract", span(months=12, days=1), datetime.datetime(1995, 1, 30)),
        ("add", span(nanoseconds=3_600_000_000_000), datetime.datetime(1996, 1, 31, 1)),
    ],
)
def test_dates_move_by_intervals(function, amount, expected) -> None:
    call = Call(function, (JANUARY_31, amount), TIMESTAMP)
    assert fold_expr(call) is Literal(expected, TIMESTAMP)


def test_dates_differ_by_days() -> None:
    days = Call("subtract", (JANUARY_31, Literal(datetime.date(1995, 12, 31), DATE)), INT64)
    assert fold_expr(days) is Literal(31, INT64)


def test_arithmetic_is_exact_and_what_overflows_is_left() -> None:
    money = decimal(4, 2)
    total = Call("add", (Literal(Decimal("0.06"), money), Literal(Decimal("0.01"), money)), decimal(5, 2))
    assert fold_expr(total) is Literal(Decimal("0.07"), decimal(5, 2))
    fits = Call("multiply", (number(2**15), number(2**15)), INT32)
    assert fold_expr(fits) is number(2**30)
    overflows = Call("multiply", (number(2**16), number(2**16)), INT32)
    assert fold_expr(overflows) is overflows


def test_division_by_zero_is_left_for_run_time() -> None:
    zero, one = Literal(0.0, FLOAT64), Literal(1.0, FLOAT64)
    call = Call("divide", (one, zero), FLOAT64)
    assert fold_expr(call) is call


def test_a_cast_that_fails_is_left_and_a_try_cast_is_null() -> None:
    text = Literal("twelve", STRING)
    assert fold_expr(Cast(text, INT32)) is Cast(text, INT32)
    assert fold_expr(Cast(text, INT32, True)) is number(None)
    assert fold_expr(Cast(Literal("12", STRING), INT32)) is number(12)


@pytest.mark.parametrize("value", [TRUE, FALSE, UNKNOWN, test("eq", N, number(1))])
def test_and_and_or_with_constants(value: Expr) -> None:
    assert fold_expr(test("and", value, TRUE)) is value
    assert fold_expr(test("or", value, FALSE)) is value
    assert fold_expr(test("and", value, FALSE)) is FALSE
    assert fold_expr(test("or", value, TRUE)) is TRUE
    assert fold_expr(negate(negate(value))) is value


def test_unknown_is_not_false_except_in_a_filter() -> None:
    other = test("eq", N, number(1))
    both = test("and", other, UNKNOWN)
    assert fold_expr(both) is both
    assert fold_expr(test("eq", N, number(None))) is UNKNOWN
    assert fold_predicate(test("eq", N, number(None))) is FALSE


def test_not_moves_into_comparisons() -> None:
    assert fold_expr(negate(test("lt", N, number(1)))) is test("ge", N, number(1))
    either = test("or", test("eq", N, number(1)), test("is_null", S))
    assert fold_expr(negate(either)) is test("and", test("ne", N, number(1)), test("is_not_null", S))


def test_constants_stand_on_the_right() -> None:
    assert fold_expr(test("lt", number(1), N)) is test("gt", N, number(1))


def test_what_all_branches_say_is_said_once() -> None:
    a, b, c = test("eq", N, number(1)), test("is_null", S), test("is_null", D)
    either = test("or", test("and", a, b), test("and", c, a))
    assert fold_expr(either) is test("and", a, test("or", b, c))
    assert fold_expr(test("or", a, test("and", a, b))) is a


def test_equalities_of_one_column_become_a_list() -> None:
    either = test("or", test("eq", N, number(1)), test("eq", number(2), N), test("is_null", S))
    assert fold_expr(either) is test("or", InList(N, (number(1), number(2))), test("is_null", S))
    assert fold_expr(InList(N, (number(1), number(1)))) is test("eq", N, number(1))


@pytest.mark.parametrize(
    ("items", "expected"),
    [((1, 2), FALSE), ((3, None), TRUE), ((1, None), UNKNOWN)],
)
def test_lists_of_constants(items, expected) -> None:
    assert fold_expr(InList(number(3), tuple(map(number, items)))) is expected


@pytest.mark.parametrize(
    ("function", "hour", "expected"),
    [
        ("lt", 0, "lt"),
        ("ge", 0, "ge"),
        ("eq", 0, "eq"),
        ("lt", 6, "le"),
        ("le", 6, "le"),
        ("gt", 6, "gt"),
        ("ge", 6, "gt"),
    ],
)
def test_dates_are_compared_as_dates(function, hour, expected) -> None:
    moment = Literal(datetime.datetime(1995, 3, 15, hour), TIMESTAMP)
    day = Literal(datetime.date(1995, 3, 15), DATE)
    assert fold_expr(test(function, Cast(D, TIMESTAMP), moment)) is test(expected, D, day)


def test_a_day_that_is_no_midnight_equals_no_date() -> None:
    call = test("eq", Cast(D, TIMESTAMP), Literal(datetime.datetime(1995, 3, 15, 6), TIMESTAMP))
    assert fold_expr(call) is call


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [("lt", "7.00", ("lt", 7)), ("lt", "6.50", ("le", 6)), ("ge", "6.50", ("gt", 6)), ("gt", "-1.50", ("gt", -2))],
)
def test_integers_are_compared_as_integers(function, value, expected) -> None:
    wide = decimal(14, 2)
    call = test(function, Cast(N, wide), Literal(Decimal(value), wide))
    assert fold_expr(call) is test(expected[0], N, number(expected[1]))


def test_a_cast_that_loses_stays() -> None:
    call = test("eq", Cast(K, FLOAT64), Literal(1.0, FLOAT64))
    assert fold_expr(call) is call


def test_a_constant_outside_the_range_of_the_column_stays() -> None:
    call = test("lt", Cast(N, INT64), Literal(2**40, INT64))
    assert fold_expr(call) is call


def test_null_tests_by_the_schema() -> None:
    assert fold_expr(test("is_null", K), SCHEMA) is FALSE
    assert fold_expr(test("is_not_null", K), SCHEMA) is TRUE
    assert fold_expr(test("is_null", N), SCHEMA) is test("is_null", N)


def test_cases_with_known_conditions() -> None:
    unknown = test("is_null", S)
    case = Case(((FALSE, number(1)), (unknown, number(2)), (TRUE, number(3)), (unknown, number(4))), number(5), INT32)
    assert fold_expr(case) is Case(((unknown, number(2)),), number(3), INT32)
    assert fold_expr(Case(((UNKNOWN, number(1)),), number(2), INT32)) is number(2)


def test_coalesce_stops_at_what_is_not_null() -> None:
    call = Call("coalesce", (Literal(None, INT64), K, Literal(7, INT64)), INT64)
    assert fold_expr(call, SCHEMA) is K
    assert fold_expr(call) is Call("coalesce", (K, Literal(7, INT64)), INT64)


def test_what_is_simple_already_is_the_same_object() -> None:
    expr = test("and", test("lt", N, number(3)), test("like", S, Literal("a%", STRING)))
    assert fold_expr(expr, SCHEMA) is expr

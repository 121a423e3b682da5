"""Skipping parts of a table, against evaluating the filter on every row.

The rule under test has one side only: a part may be skipped only where no row of it makes the filter TRUE. What must
be skipped is tested on hand-made cases.
"""

import datetime
import math
import random
from decimal import Decimal

import pytest

from bireme.data.types import BOOL, DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP, decimal
from bireme.plan.expr import Call, Cast, Column, InList, Literal
from bireme.storage.prune import Bounds, may_be_true

MONEY = decimal(15, 2)
TYPES = (INT64, FLOAT64, STRING, DATE, MONEY, BOOL)
VALUES = {
    INT64: range(-3, 4),
    FLOAT64: [-1.0, -0.0, 0.0, 1.5, 2.0, math.inf, -math.inf, math.nan],
    STRING: ["", "a", "ab", "abc", "b", "ba", "ż", "\U0001f6a2"],
    DATE: [datetime.date(1969, 1, day) for day in range(1, 5)],
    MONEY: [Decimal("-1.25"), Decimal("0.00"), Decimal("0.01"), Decimal("3.00")],
    BOOL: [False, True],
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct")
TRUTH_TESTS = ("is_true", "is_not_true", "is_false", "is_not_false")
PATTERNS = ["", "a%", "ab_", "%b", "a", "ab%c", "ż%", "a!%%", "\U0001f6a2%"]


def call(function, *args):
    return Call(function, args, BOOL)


def random_operand(rng, kind):
    choice = rng.random()
    if choice < 0.6:
        return Column(TYPES.index(kind), kind)
    return Literal(None if choice > 0.95 else rng.choice(VALUES[kind]), kind)


def random_leaf(rng):
    kind = rng.choice(TYPES)
    match rng.randrange(8):
        case 0 | 1 | 2:
            return call(rng.choice(COMPARISONS), random_operand(rng, kind), random_operand(rng, kind))
        case 3:
            return call(rng.choice(["is_null", "is_not_null"]), random_operand(rng, kind))
        case 4:
            items = tuple(random_operand(rng, kind) for _ in range(rng.randint(1, 3)))
            return InList(random_operand(rng, kind), items)
        case 5:
            escape = [Literal("!", STRING)] if rng.random() < 0.5 else []
            return call("like", Column(2, STRING), Literal(rng.choice(PATTERNS), STRING), *escape)
        case 6:
            return call("starts_with", Column(2, STRING), Literal(rng.choice(VALUES[STRING]), STRING))
        case _:
            return rng.choice([Column(5, BOOL), Literal(True, BOOL), Literal(False, BOOL), Literal(None, BOOL)])


def random_predicate(rng, depth=3):
    if depth == 0 or rng.random() < 0.4:
        return random_leaf(rng)
    match rng.randrange(4):
        case 0 | 1 as which:
            args = [random_predicate(rng, depth - 1) for _ in range(rng.randint(2, 3))]
            return call(("and", "or")[which], *args)
        case 2:
            return call("not", random_predicate(rng, depth - 1))
        case _:
            return call(rng.choice(TRUTH_TESTS), random_predicate(rng, depth - 1))


def random_rows(rng):
    null_share = rng.choice([0, 0.3, 1])
    return [
        tuple(None if rng.random() < null_share else rng.choice(VALUES[kind]) for kind in TYPES)
        for _ in range(rng.randint(1, 4))
    ]


# ------------------------------------------------------- the meaning of predicates, value by value


def rank(value):
    """A key that orders values as the engine does: NaN above everything and equal to itself, 0.0 equal to -0.0."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def evaluate(expr, row):
    match expr:
        case Column(index):
            return row[index]
        case Literal(value):
            return value
        case InList(arg, items):
            return any_of([compare("eq", evaluate(arg, row), evaluate(item, row)) for item in items])
        case Call("and", args):
            return invert(any_of([invert(evaluate(arg, row)) for arg in args]))
        case Call("or", args):
            return any_of([evaluate(arg, row) for arg in args])
        case Call("not", (arg,)):
            return invert(evaluate(arg, row))
        case Call("is_null", (arg,)):
            return evaluate(arg, row) is None
        case Call("is_not_null", (arg,)):
            return evaluate(arg, row) is not None
        case Call("is_true" | "is_false" | "is_not_true" | "is_not_false" as function, (arg,)):
            found = evaluate(arg, row) is function.endswith("true")
            return not found if "not" in function else found
        case Call("like" | "starts_with" as function, args):
            return matches(function, *(evaluate(arg, row) for arg in args))
        case Call(function, (left, right)):
            return compare(function, evaluate(left, row), evaluate(right, row))


def compare(function, left, right):
    if function in ("is_distinct", "is_not_distinct"):
        same = (left is None and right is None) or (None not in (left, right) and rank(left) == rank(right))
        return same == (function == "is_not_distinct")
    if left is None or right is None:
        return None
    a, b = rank(left), rank(right)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[function]


def invert(truth):
    return None if truth is None else not truth


def any_of(truths):
    return True if True in truths else None if None in truths else False


def matches(function, text, pattern, escape=None):
    if text is None:
        return None
    if function == "starts_with":
        return text.startswith(pattern)
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == escape and rest:
        return text[:1] == rest[0] and matches(function, text[1:], rest[1:], escape)
    if head == "%":
        return any(matches(function, text[start:], rest, escape) for start in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and matches(function, text[1:], rest, escape)


def random_bounds(rows, index, rng):
    """What statistics would say: exact bounds or fewer facts; never a highest float, which a NaN would exceed."""
    values = [row[index] for row in rows if row[index] is not None]
    ordered = sorted((value for value in values if value == value), key=rank)
    low = ordered[0] if ordered and rng.random() < 0.8 else None
    high = ordered[-1] if ordered and rng.random() < 0.8 and TYPES[index] is not FLOAT64 else None
    return Bounds(len(rows), low, high, len(rows) - len(values) if rng.random() < 0.8 else None)


def column_bounds(*bounds):
    return [lambda found=found: found for found in bounds]


@pytest.mark.parametrize("seed", range(10))
def test_a_part_is_skipped_only_where_no_row_is_kept(seed):
    rng = random.Random(seed)
    skipped = 0
    for _ in range(1000):
        predicate, rows = random_predicate(rng), random_rows(rng)
        found = [random_bounds(rows, index, rng) for index in range(len(TYPES))]
        kept = [row for row in rows if evaluate(predicate, row) is True]
        may = may_be_true([predicate], column_bounds(*found))
        assert may or not kept, (predicate, rows, found)
        skipped += not may
    assert skipped > 100, "bounds this tight rule many predicates out"


# ----------------------------------------------------------------------------- it does skip


N = Column(0, INT64)
S = Column(0, STRING)


def number(value):
    return Literal(value, INT64)


def text(value):
    return Literal(value, STRING)


WITHIN = Bounds(10, 5, 9, 0)
SKIPS = [
    call("lt", N, number(5)),
    call("le", N, number(4)),
    call("gt", N, number(9)),
    call("ge", N, number(10)),
    call("eq", N, number(4)),
    call("gt", number(5), N),
    call("eq", number(10), N),
    InList(N, (number(1), number(12), Literal(None, INT64))),
    call("is_null", N),
    call("not", call("is_not_null", N)),
    call("and", call("ge", N, number(5)), call("gt", N, number(9))),
    call("or", call("lt", N, number(5)), call("gt", N, number(9))),
    call("not", call("ge", N, number(5))),
    call("not", call("or", call("ge", N, number(5)), call("is_null", N))),
    call("eq", N, Literal(None, INT64)),
    call("is_not_true", call("le", N, number(9))),
    call("is_not_distinct", N, number(3)),
    call("gt", Cast(N, decimal(38, 0)), Literal(Decimal(9), decimal(38, 0))),
    Literal(False, BOOL),
    Literal(None, BOOL),
]


@pytest.mark.parametrize("predicate", SKIPS, ids=repr)
def test_what_bounds_rule_out_is_skipped(predicate):
    assert not may_be_true([predicate], column_bounds(WITHIN))


KEEPS = [
    call("lt", N, number(6)),
    call("eq", N, number(9)),
    call("ne", N, number(5)),
    call("is_not_null", N),
    call("unheard_of", N),
    call("not", call("unheard_of", N)),
    call("gt", Cast(N, INT32), Literal(9, INT32)),
]


@pytest.mark.parametrize("predicate", KEEPS, ids=repr)
def test_what_bounds_allow_is_kept(predicate):
    assert may_be_true([predicate], column_bounds(WITHIN))


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (call("like", S, text("forest%")), True),
        (call("like", S, text("fo%green")), True),
        (call("like", S, text("e%")), False),
        (call("like", S, text("g%")), False),
        (call("like", S, text("g")), False),
        (call("like", S, text("%g")), True),
        (call("like", S, text("!%g%"), text("!")), True),
        (call("starts_with", S, text("fz")), False),
        (call("starts_with", S, text("for")), True),
        (call("eq", S, text("g")), False),
    ],
    ids=repr,
)
def test_prefixes(predicate, kept):
    assert may_be_true([predicate], column_bounds(Bounds(10, "foam", "fox", 0))) is kept


def test_a_constant_column_and_ne():
    assert not may_be_true([call("ne", N, number(5))], column_bounds(Bounds(10, 5, 5, 0)))


def test_nothing_but_nulls():
    column = column_bounds(Bounds(10, None, None, 10))
    assert not may_be_true([call("ge", N, number(0))], column)
    assert may_be_true([call("is_null", N)], column)
    assert not may_be_true([call("is_not_null", N)], column)


def test_a_nan_may_be_above_every_bound():
    x = Column(0, FLOAT64)
    column = column_bounds(Bounds(10, 1.0, None, 0))
    assert may_be_true([call("gt", x, Literal(1e300, FLOAT64))], column)
    assert may_be_true([call("eq", x, Literal(math.nan, FLOAT64))], column)
    assert not may_be_true([call("lt", x, Literal(1.0, FLOAT64))], column)


def test_dates_compare_with_moments_through_casts_only():
    day = Column(0, DATE)
    column = column_bounds(Bounds(10, datetime.date(2000, 1, 1), datetime.date(2000, 1, 9), 0))
    late = Literal(datetime.datetime(2000, 1, 9, 0, 0, 1), TIMESTAMP)
    assert not may_be_true([call("ge", Cast(day, TIMESTAMP), late)], column)
    assert may_be_true([call("lt", Cast(day, TIMESTAMP), late)], column)
    assert may_be_true([call("ge", day, late)], column), "types that Python does not compare prove nothing"

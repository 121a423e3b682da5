"""Which inequalities of a condition the order of build rows answers, and what is left to test."""

from __future__ import annotations

import pytest

from bireme.data.types import BOOL, INT32, INT64, INTERVAL, DataType
from bireme.plan.expr import Call, Column, Expr, Literal
from bireme.plan.range_keys import RangeBound, RangeBounds, RangeKeys, ranges_of
from bireme.plan.tree import conjoin

# Columns 0 to 2 are those of the stream, 3 to 5 those of the build side.
_STREAM = 3


def column(index: int, kind: DataType = INT64) -> Column:
    return Column(index, kind)


def compared(left: int | Expr, sign: str, right: int | Expr) -> Expr:
    sides = [column(side) if isinstance(side, int) else side for side in (left, right)]
    return Call({"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "<>": "ne"}[sign], tuple(sides), BOOL)


def found(*parts: Expr) -> tuple[RangeKeys, RangeBounds] | None:
    return ranges_of(conjoin(parts), _STREAM)


def test_one_inequality_bounds_one_key() -> None:
    expected = (RangeKeys((column(0),)), RangeBounds((RangeBound(0, "gt", column(1)),), None))
    assert found(compared(1, "<", 3)) == expected
    assert found(compared(3, ">", 1)) == expected


def test_intervals_that_overlap_bound_two_keys() -> None:
    keys = RangeKeys((column(1), column(0)), True)
    bounds = (RangeBound(0, "gt", column(0)), RangeBound(1, "lt", column(1)))
    assert found(compared(0, "<", 4), compared(3, "<", 1)) == (keys, RangeBounds(bounds, None))


def test_a_key_with_bounds_from_both_sides_comes_first() -> None:
    between = compared(5, ">=", 1), compared(5, "<=", 2)
    keys = RangeKeys((column(2), column(0)))
    bounds = (RangeBound(0, "ge", column(1)), RangeBound(0, "le", column(2)), RangeBound(1, "gt", column(0)))
    assert found(compared(3, ">", 0), *between) == (keys, RangeBounds(bounds, None))


def test_what_is_not_answered_is_left_to_test() -> None:
    others = (
        compared(0, "<>", 3),
        compared(0, "<", 1),
        compared(3, "<", 4),
        compared(Call("add", (column(0), column(3)), INT64), "<", 4),
        compared(2, "<", 3),
        compared(2, ">", 4),
        compared(2, ">", 5),
    )
    answered = compared(1, "<", 3), compared(1, ">=", 4)
    made = found(*answered, *others)
    assert made is not None
    assert made[0] == RangeKeys((column(0), column(1)), True)
    assert made[1].rest is conjoin(others)


@pytest.mark.parametrize(
    "part",
    [
        compared(0, "<>", 3),
        compared(0, "<", 1),
        compared(3, "<", Literal(5, INT64)),
        compared(Call("add", (column(0, INT32), column(1, INT32)), INT32), "<", column(3, INT32)),
        compared(column(0, INTERVAL), "<", column(3, INTERVAL)),
    ],
    ids=["no inequality", "one side", "a constant", "may fail", "no order"],
)
def test_other_conditions_are_not_answered(part: Expr) -> None:
    assert found(part) is None
    assert ranges_of(None, _STREAM) is None

"""Whether two results are the same: as multisets or in order, numbers within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

EXACT = 1e-9
FLOATING = 1e-6


def difference(expected: Sequence[Row], actual: Sequence[Row], *, ordered: bool = False) -> str | None:
    """What first differs between two results, as text; None where they are the same."""
    if len(expected) != len(actual):
        return f"{len(expected)} rows expected, {len(actual)} found"
    if not ordered:
        expected, actual = sorted(expected, key=_sort_key), sorted(actual, key=_sort_key)
    for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
        if len(left) != len(right) or not all(map(_same, left, right)):
            return f"row {index}: {left} expected, {right} found"
    return None


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float | Decimal) and isinstance(right, int | float | Decimal):
        if isinstance(left, float) or isinstance(right, float):
            a, b = float(left), float(right)
            return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=FLOATING, abs_tol=FLOATING)
        return math.isclose(left, right, rel_tol=EXACT)
    return bool(left == right)


def _sort_key(row: Row) -> tuple[Any, ...]:
    # Floats are rounded, so that equal rows stand at the same place on both sides.
    return tuple(
        (value is None, f"{value:.4e}" if isinstance(value, float | Decimal | int) else str(value)) for value in row
    )

"""Whether two answers to one query are equal.

Rows are compared as multisets, and the columns of the query's ORDER BY row by row as well, so that a wrong order is
seen but ties may come in any. Exact types compare exactly (decimals by value, whatever their
scale), floats to a relative 1e-6: engines add them up in different orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import sqlglot

_FLOAT_TOLERANCE: Final = 1e-6


def order_columns(sql: str) -> list[int]:
    """The positions of the output columns by which the query orders its rows, most significant first."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, sqlglot.exp.Query)
    order = tree.args.get("order")
    names = [name.lower() for name in tree.named_selects]
    positions = []
    for key in order.expressions if order is not None else []:
        name = key.this.name.lower()
        if name not in names:
            break
        positions.append(names.index(name))
    return positions


def difference(ours: pa.Table, theirs: pa.Table, ordered_by: Sequence[int]) -> str | None:
    """What differs between two answers, in words; None where they are equal."""
    if ours.num_columns != theirs.num_columns:
        return f"{ours.num_columns} columns instead of {theirs.num_columns}"
    if ours.num_rows != theirs.num_rows:
        return f"{ours.num_rows} rows instead of {theirs.num_rows}"
    mine, other = _rows(ours), _rows(theirs)
    for position, (row, expected) in enumerate(zip(mine, other, strict=True)):
        if not all(_equal(row[index], expected[index]) for index in ordered_by):
            return f"row {position + 1} is {row} instead of {expected}"
    for row, expected in zip(sorted(mine, key=_sort_key), sorted(other, key=_sort_key), strict=True):
        if not _equal_rows(row, expected):
            return f"the row {row} stands where {expected} was expected"
    return None


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _equal_rows(row: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return all(map(_equal, row, expected))


def _equal(value: Any, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    if isinstance(value, float) or isinstance(expected, float):
        one, other = float(value), float(expected)
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=_FLOAT_TOLERANCE, abs_tol=max(_step(value), _step(expected), 1e-9))
    return bool(value == expected)


def _step(value: Any) -> float:
    """The smallest difference that a decimal can show; engines that average decimals round to it."""
    if not isinstance(value, Decimal):
        return 0.0
    exponent = value.as_tuple().exponent
    return 10.0**exponent if isinstance(exponent, int) else 0.0


def _sort_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # Floats are rounded so that values within the tolerance sort alike on both sides.
    return tuple([(value is None, str(_rounded(value))) for value in row])


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return f"{float(value):.5g}"
    return value

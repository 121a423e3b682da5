"""Whether two answers to one query are equal.

Rows are compared as multisets, and the columns of the query's ORDER BY row by row as well, so that a wrong order is
seen but ties may come in any. Exact types compare exactly (decimals by value, whatever their
scale), floats to a relative 1e-6: engines add them up in different orders. Answers of many rows are compared by the
same rules in `many_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import sqlglot

from bireme.cli.harness.many_rows import FLOAT_TOLERANCE, difference_of_many

# Above it, rows as Python tuples would take minutes and gigabytes.
_ROWS_AS_TUPLES_MAX: Final = 20_000


def order_columns(sql: str) -> list[int]:
    """The positions of the output columns by which the query orders its rows, most significant first."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, sqlglot.exp.Query)
    order = tree.args.get("order")
    names = [column.output_name.lower() for column in tree.selects]
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
    if ours.num_rows > _ROWS_AS_TUPLES_MAX:
        return difference_of_many(ours, theirs, ordered_by)
    mine, other = rows_of(ours), rows_of(theirs)
    for position, (row, expected) in enumerate(zip(mine, other, strict=True)):
        if not all(_equal(row[index], expected[index]) for index in ordered_by):
            return f"row {position + 1} is {row} instead of {expected}"
    floats = [
        index
        for index, pair in enumerate(zip(ours.schema.types, theirs.schema.types, strict=True))
        if any(pa.types.is_floating(kind) for kind in pair)
    ]
    for row, expected in zip(_sorted(mine, floats), _sorted(other, floats), strict=True):
        if not equal_rows(row, expected):
            return f"the row {row} stands where {expected} was expected"
    return None


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples of Python values."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def equal_rows(row: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    """Whether two rows are equal, floats within the tolerance."""
    return all(map(_equal, row, expected))


def _equal(value: Any, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    if isinstance(value, float) or isinstance(expected, float):
        one, other = float(value), float(expected)
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=FLOAT_TOLERANCE, abs_tol=max(_step(value), _step(expected), 1e-9))
    return bool(value == expected)


def _step(value: Any) -> float:
    """The smallest difference that a decimal can show; engines that average decimals round to it."""
    if not isinstance(value, Decimal):
        return 0.0
    exponent = value.as_tuple().exponent
    return 10.0**exponent if isinstance(exponent, int) else 0.0


def _sorted(rows: Sequence[tuple[Any, ...]], floats: Sequence[int]) -> list[tuple[Any, ...]]:
    """The rows by their exact columns; among equal ones by floats, first rounded so that both sides sort alike."""
    exact = [index for index in range(len(rows[0]) if rows else 0) if index not in floats]

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (
            *[_exact_key(row[index]) for index in exact],
            *[_float_key(row[index], "5") for index in floats],
            *[_float_key(row[index], "17") for index in floats],
        )

    return sorted(rows, key=key)


def _exact_key(value: Any) -> tuple[Any, ...]:
    """Equal for equal values, of whatever types, and the same order for both answers."""
    if isinstance(value, (int, Decimal)):
        return (0, Decimal(value), "")
    return (value is not None, Decimal(0), str(value))


def _float_key(value: Any, digits: str) -> tuple[bool, str]:
    return (value is None, "" if value is None else f"{float(value):.{digits}g}")

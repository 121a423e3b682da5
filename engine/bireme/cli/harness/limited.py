"""Answers to queries with LIMIT: which of several rows that tie at the edge are kept is free, and nothing else is.

`Limited` is what the oracle is asked instead: the rows up to one past the limit, with the keys they are ordered by.
Where the key just before the first row wanted, or just after the last, equals that row's own, the rows of that key are
a choice: each of ours must be one of them, which the oracle says by looking among all rows of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from bireme.cli.harness.answers import difference, equal_rows, rows_of

_KEY = "order_key_"


@dataclass(frozen=True, slots=True)
class Limited:
    """A query with LIMIT, as the oracle is asked about it; `first` and `everything` end in `key_count` order keys."""

    first: str
    everything: str
    key_count: int
    offset: int
    limit: int

    def column_names(self, count: int) -> list[str]:
        return [f"c{index}" for index in range(count)]

    def rows_like(self, wanted: Path, schema: pa.Schema) -> str:
        """All rows of the query that equal a row of the Parquet file `wanted` in every column that is not a float."""
        names = self.column_names(len(schema))
        keys = [f"k{index}" for index in range(self.key_count)]
        alike = [
            f"everything.{name} is not distinct from wanted.{name}"
            for name, field in zip(names, schema, strict=True)
            if not pa.types.is_floating(field.type)
        ]
        return (
            f"select everything.* from ({self.everything}) as everything({', '.join(names + keys)}) "
            f"semi join read_parquet('{wanted}') as wanted on {' and '.join(alike) or 'true'}"
        )


def limited(sql: str) -> Limited | None:
    """How to check a query by `limited_difference`; None where it has no LIMIT."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    if not isinstance(tree, exp.Select) or tree.args.get("limit") is None:
        return None
    order = tree.args.get("order")
    keys = [] if order is None else [_key_of(tree, key.this) for key in order.expressions]
    limit, offset = _count(tree.args["limit"]), _count(tree.args.get("offset"))
    keyed = tree.select(*[exp.alias_(key.copy(), f"{_KEY}{index}") for index, key in enumerate(keys)])
    keyed.set("offset", None)
    first = keyed.limit(offset + limit + 1).sql("duckdb")
    keyed.set("limit", None)
    keyed.set("order", None)
    return Limited(first, keyed.sql("duckdb"), len(keys), offset, limit)


def _key_of(tree: exp.Select, key: exp.Expr) -> exp.Expr:
    """What a key stands for in the list of columns: a name or number there goes before the columns of tables."""
    if isinstance(key, exp.Column) and not key.table:
        named = (column for column in tree.selects if isinstance(column, exp.Alias) and column.alias == key.name)
        return next(named, key).unalias()
    if isinstance(key, exp.Literal) and key.is_int:
        # Behind a star nobody knows the numbers without the schema.
        before = tree.selects[: int(key.name)]
        return key if any(column.is_star for column in before) else before[-1].unalias()
    return key


def _count(node: exp.Expression | None) -> int:
    return 0 if node is None else int(node.expression.name)


def limited_difference(
    ours: pa.Table, first: pa.Table, cut: Limited, ordered_by: Sequence[int], like: Callable[[pa.Table], pa.Table]
) -> str | None:
    """What is wrong with our answer, in words; None where it is right. `first` answers `cut.first`."""
    columns = first.num_columns - cut.key_count
    window = first.slice(cut.offset, cut.limit).select(list(range(columns)))
    keys = rows_of(first.select(list(range(columns, first.num_columns))))
    free = _free_keys(keys, cut)
    if not free or ours.num_rows != window.num_rows or ours.num_columns != columns:
        return difference(ours, window, ordered_by)
    differs = difference(ours.select(list(ordered_by)), window.select(list(ordered_by)), range(len(ordered_by)))
    if differs is not None:
        return differs
    rows = rows_of(window)
    fixed = [row for row, key in zip(rows, keys[cut.offset :], strict=False) if not _among(key, free)]
    chosen = like(ours)
    allowed = [row[:columns] for row in rows_of(chosen) if _among(row[columns:], free)]
    return _unmatched(rows_of(ours), fixed, allowed)


def _free_keys(keys: Sequence[tuple[Any, ...]], cut: Limited) -> list[tuple[Any, ...]]:
    """The keys of which only some rows are in the answer."""
    start, end = cut.offset, cut.offset + cut.limit
    free = []
    if 0 < start < len(keys) and equal_rows(keys[start - 1], keys[start]):
        free.append(keys[start])
    if start < end < len(keys) and equal_rows(keys[end - 1], keys[end]):
        free.append(keys[end])
    return free


def _among(key: tuple[Any, ...], keys: Sequence[tuple[Any, ...]]) -> bool:
    return any(equal_rows(key, other) for other in keys)


def _unmatched(
    ours: Sequence[tuple[Any, ...]], fixed: Sequence[tuple[Any, ...]], allowed: Sequence[tuple[Any, ...]]
) -> str | None:
    """The first row that must be in our answer and is not, or that is there and must not be."""
    left = list(ours)
    for row in fixed:
        found = next((index for index, other in enumerate(left) if equal_rows(other, row)), None)
        if found is None:
            return f"the row {row} is missing"
        del left[found]
    pool = list(allowed)
    for row in left:
        found = next((index for index, other in enumerate(pool) if equal_rows(row, other)), None)
        if found is None:
            return f"the row {row} is not one of those that tie at the limit"
        del pool[found]
    return None

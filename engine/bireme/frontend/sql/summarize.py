"""SUMMARIZE: a row for each column of a table or query, with what its values are like.

All of it is one aggregate over all rows, whose columns then become rows: lists beside each other, unnested.
"""

from __future__ import annotations

from typing import Final, Protocol

from bireme.data.types import DATE, FLOAT64, INT64, STRING, TIMESTAMP, DataType, decimal
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Column, Expr, Literal
from bireme.plan.functions.encodings import type_name
from bireme.plan.functions.order_keys import has_order
from bireme.plan.relation import Aggregate, Project, Unnest

_NAMES: Final = (
    "column_name", "column_type", "min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75", "count",
    "null_percentage",
)  # fmt: skip
_NO_TEXT: Final = Literal(None, STRING)
_QUARTERS: Final = (0.25, 0.5, 0.75)
_PERCENTAGE: Final = decimal(9, 2)


class Aggregates(Protocol):
    """Gives the column of an aggregate over all rows."""

    def __call__(self, name: str, *args: Expr) -> Expr: ...


def summarize(node: Node, block: Block) -> Query:
    """The columns of a table or query, one a row."""
    check_arguments(node, {"this", "table"})
    query = block.statement.bind_query(node.args["this"], block)
    calls: dict[Aggregation, int] = {}

    def value(name: str, *args: Expr) -> Expr:
        call = functions.aggregate(name, args)
        return Column(calls.setdefault(call, len(calls)), call.type)

    columns = [Column(index, kind) for index, kind in enumerate(query.types)]
    rows = [_row(name, column, value) for name, column in zip(query.names, columns, strict=True)]
    names = tuple([f"value{index}" for index in range(len(calls))])
    summed = Aggregate(query.relation, (), tuple(calls), names)
    lists = tuple([functions.scalar("list_value", each) for each in zip(*rows, strict=True)])
    made = Unnest(Project(summed, lists, _NAMES), (), tuple(range(len(lists))), _NAMES)
    return Query(made, _NAMES, made.schema.types)


def _row(name: str, column: Column, value: Aggregates) -> list[Expr]:
    kind = column.type
    rows, there = value("count"), value("count", column)
    ordered = [_text(value(end, column)) if has_order(kind) else _NO_TEXT for end in ("min", "max")]
    different = value("approx_count_distinct", column) if has_order(kind) else Literal(None, INT64)
    mean = _text(value("avg", column)) if kind.is_numeric or kind in (DATE, TIMESTAMP) else _NO_TEXT
    spread = _text(value("stddev_samp", column)) if kind.is_numeric else _NO_TEXT
    quarters = [_quantile(column, fraction, value) for fraction in _QUARTERS]
    first = (Literal(name, STRING), Literal(type_name(kind), STRING))
    return [*first, *ordered, different, mean, spread, *quarters, rows, _missing(rows, there)]


def _quantile(column: Column, fraction: float, value: Aggregates) -> Expr:
    """A quantile, as a value of the column's type."""
    kind: DataType = column.type
    if not (kind.is_numeric or kind.is_temporal):
        return _NO_TEXT
    return _text(functions.cast(value("quantile_cont", column, Literal(fraction, FLOAT64)), kind))


def _missing(rows: Expr, there: Expr) -> Expr:
    """How many percent of the rows are NULL; NULL where there is no row."""
    lacking = functions.scalar("multiply", (Literal(100, INT64), functions.scalar("subtract", (rows, there))))
    share = functions.scalar("divide", (lacking, functions.scalar("nullif", (rows, Literal(0, INT64)))))
    return functions.cast(share, _PERCENTAGE)


def _text(value: Expr) -> Expr:
    return functions.cast(value, STRING)

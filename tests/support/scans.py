"""Scans of Parquet files: predicates over drawn columns, and two ways to run them, natively and by decoding all."""

import datetime
import random
from typing import Any

import pyarrow as pa

from bireme.backends.base import RowFilter
from bireme.backends.native import NativeKernels
from bireme.data.schema import Schema
from bireme.data.types import BOOL, DataType, Kind
from bireme.plan.expr import Call, Column, Expr, InList, Literal
from bireme.plan.tree import conjoin
from support.parquet_files import fetch

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct")


def literal_of(value: Any, kind: DataType) -> Literal:
    if isinstance(value, datetime.timedelta):
        return Literal(value // datetime.timedelta(microseconds=1), kind)
    return Literal(value, kind)


def drawn_conjunct(schema: Schema, table: pa.Table, rng: random.Random) -> Expr:
    """A condition over one or two columns of a table, about values that it has."""
    index = rng.randrange(len(schema))
    kind = schema[index].type
    column = Column(index, kind)
    values = [value for value in table.column(index).to_pylist() if value is not None]
    if (
        not values
        or kind.kind is Kind.BINARY
        or (kind.kind is Kind.TIMESTAMP and kind.unit == "ns")
        or rng.random() < 0.15
    ):
        return Call(rng.choice(["is_null", "is_not_null"]), (column,), BOOL)
    alike = [other for other in range(len(schema)) if schema[other].type is kind and other != index]
    if alike and rng.random() < 0.5:
        return Call(rng.choice(COMPARISONS), (column, Column(rng.choice(alike), kind)), BOOL)
    if kind.kind is Kind.STRING and rng.random() < 0.4:
        pattern = Literal(rng.choice(["a%", "%a%", "_b", "k1%", "%"]), kind)
        return Call("like", (column, pattern), BOOL)
    if rng.random() < 0.3:
        return InList(column, tuple([literal_of(rng.choice(values), kind) for _ in range(3)]))
    both = column, literal_of(rng.choice(values), kind)
    return Call(rng.choice(COMPARISONS), both if rng.random() < 0.8 else both[::-1], BOOL)


def drawn_predicate(schema: Schema, table: pa.Table, rng: random.Random) -> Expr | None:
    parts = [drawn_conjunct(schema, table, rng) for _ in range(rng.randint(0, 3))]
    if len(parts) > 1 and rng.random() < 0.3:
        parts[:2] = [Call("or", (parts[0], parts[1]), BOOL)]
    return conjoin(parts)


def scanned(
    split: Any, schema: Schema, predicate: Expr | None, exprs: list[Expr], **options: Any
) -> list[pa.RecordBatch]:
    """What the native scan makes of a split. `options`: filters, is_late, rows_max."""
    scan = NativeKernels().scan(
        schema,
        predicate=predicate,
        exprs=exprs,
        names=[f"x{index}" for index in range(len(exprs))],
        filters=options.get("filters", ()),
        is_late=options.get("is_late", True),
    )
    encoded = split.encoded()
    assert not isinstance(encoded, str), encoded
    batches, counts = scan.run(encoded, fetch(split), options.get("rows_max", 1 << 17))
    assert counts.rows_in - counts.dropped_by_conditions - counts.dropped_by_filters >= sum(b.num_rows for b in batches)
    return batches


def decoded(split: Any, schema: Schema, predicate: Expr | None, exprs: list[Expr]) -> list[pa.RecordBatch]:
    """The same by decoding everything and running a program."""
    names = [f"x{index}" for index in range(len(exprs))]
    program = NativeKernels().program(schema, predicate=predicate, exprs=exprs, names=names)
    return [program.run(batch) for batch in split.decode(fetch(split))]


def rows_of(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def filter_by(keys: pa.RecordBatch, columns: tuple[int, ...]) -> RowFilter:
    found = NativeKernels().join_table(keys, null_equal_count=0).key_filter()
    assert found is not None
    return RowFilter(found, columns, "a table")

"""Decimals are narrowed only on proof, the rows stay the same, and a lie in metadata ends in Overflow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ir_to_sql import to_sql
from support.planning import catalog_of, context_over, parquet_tables
from support.rows import difference
from support.tpc_data import query_texts, tables, tpch_folder

from bireme.backends.native import NativeKernels
from bireme.backends.reference import ReferenceKernels
from bireme.data.types import HUGEINT, INT64, decimal
from bireme.errors import Overflow
from bireme.frontend.sql import bind_sql
from bireme.plan import functions, tree
from bireme.plan.expr import Aggregation, Column, Literal
from bireme.plan.optimize import optimize
from bireme.plan.physical import AggregateStep, GroupSpec
from bireme.plan.relation import Aggregate, Filter, Join, JoinKind, Project, Scan, Union
from bireme.plan.rules.narrow_decimals import narrow_decimals
from bireme.plan.source import TableStatistics
from bireme.plan.statistics.bounds import Range
from bireme.storage.arrow_table import open_arrow

_WIDE = decimal(38, 2)


def _numbers(*texts):
    return [None if text is None else Decimal(text) for text in texts]


@pytest.fixture(scope="module")
def sources():
    """Columns of 15 and of 38 digits and of integers, some small, some not."""
    return {
        "t": open_arrow(
            pa.table(
                {
                    "g": pa.array([1, 1, 2, 2, None], pa.int64()),
                    "small": pa.array(_numbers("1.50", "-2.25", None, "99.99", "0.00"), pa.decimal128(15, 2)),
                    "rate": pa.array(_numbers("0.05", "0.10", "0.00", None, "1.00"), pa.decimal128(15, 2)),
                    "large": pa.array(_numbers("9999999999999.99", "1", "2", "3", "4"), pa.decimal128(15, 2)),
                    "wide": pa.array(_numbers("1.00", "2.00", None, "3.00", "-7.00"), pa.decimal128(38, 2)),
                    "count": pa.array([3, -4, 5, None, 7], pa.int32()),
                    "huge": pa.array([2**62, 1, 2, 3, 4], pa.int64()),
                }
            )
        )
    }


def scan(sources, table="t"):
    source = sources[table]
    return Scan(table, source.version, source.schema, tuple(range(len(source.schema.fields))))


def column(rel, name):
    (at,) = rel.schema.positions(name)
    return tree.column(rel.schema, at)


def summed(rel, arg, keys=()):
    names = (*(f"k{at}" for at in range(len(keys))), "total")
    return Aggregate(rel, tuple(keys), (functions.aggregate("sum", [arg]),), names)


def aggregates(plan):
    return [call for rel in tree.relations(plan) if isinstance(rel, Aggregate) for call in rel.aggregates]


def test_a_sum_that_is_proved_to_fit_has_18_digits_inside_and_its_own_type_outside(sources):
    plan = summed(scan(sources), column(scan(sources), "small"))
    narrowed = narrow_decimals(plan, context_over(sources))
    assert [call.type for call in aggregates(narrowed)] == [decimal(18, 2)]
    assert narrowed.schema is plan.schema


@pytest.mark.parametrize(("name", "inside"), [("count", decimal(18, 0)), ("huge", HUGEINT)])
def test_integers_are_summed_in_64_bits_only_when_the_sum_fits(sources, name, inside):
    plan = summed(scan(sources), column(scan(sources), name))
    assert [call.type for call in aggregates(narrow_decimals(plan, context_over(sources)))] == [inside]


def test_a_sum_of_large_values_over_many_rows_stays_wide(sources):
    table = scan(sources)
    pairs = Join(table, table, JoinKind.INNER)
    pairs = Join(Join(pairs, pairs, JoinKind.INNER), table, JoinKind.INNER)
    few, many = (
        summed(table, column(table, "large")),
        summed(pairs, Column(column(table, "large").index, decimal(15, 2))),
    )
    assert [call.type for call in aggregates(narrow_decimals(few, context_over(sources)))] == [decimal(18, 2)]
    assert [call.type for call in aggregates(narrow_decimals(many, context_over(sources)))] == [_WIDE]


def test_a_join_by_the_keys_of_a_grouping_multiplies_no_rows(sources):
    table = scan(sources)
    groups = summed(table, column(table, "small"), [column(table, "g")])
    joined = Join(table, groups, JoinKind.INNER, (column(table, "g"),), (Column(0, INT64),))
    bounds = context_over(sources).bounds
    assert bounds.rows(joined) == 5
    assert bounds.rows(Join(table, table, JoinKind.INNER, (column(table, "g"),), (column(table, "g"),))) == 25


def test_arithmetic_above_a_narrow_sum_is_narrow_and_compared_without_casts(sources):
    table = scan(sources)
    groups = summed(table, column(table, "small"), [column(table, "g")])
    above = functions.scalar(
        "gt", [functions.scalar("add", [Column(1, _WIDE), Column(1, _WIDE)]), Literal(Decimal("1.00"), _WIDE)]
    )
    narrowed = narrow_decimals(Filter(groups, above), context_over(sources))
    (condition,) = [rel.predicate for rel in tree.relations(narrowed) if isinstance(rel, Filter)]
    assert {part.type for operand in condition.args for part in tree.walk(operand)} == {decimal(18, 2)}


def test_inputs_of_a_union_get_their_types_back(sources):
    table = scan(sources)
    small = summed(table, column(table, "small"))
    large = Project(table, (column(table, "wide"),), ("total",))
    narrowed = narrow_decimals(Union((small, large)), context_over(sources))
    assert {source.schema.types for source in narrowed.inputs} == {(_WIDE,)}


def test_a_plan_without_wide_decimals_is_returned_itself(sources):
    plan = Filter(scan(sources), functions.scalar("is_null", [column(scan(sources), "small")]))
    assert narrow_decimals(plan, context_over(sources)) is plan


@dataclass
class Lying:
    """A table whose metadata names a smaller maximum than the data has, as that of a damaged file may."""

    truth: object

    def __getattr__(self, name):
        return getattr(self.truth, name)

    def statistics(self):
        known = self.truth.statistics()
        columns = [
            replace(
                one,
                minimum=None if one.minimum is None else type(one.minimum)(0),
                maximum=None if one.maximum is None else type(one.maximum)(1),
            )
            for one in known.columns
        ]
        return TableStatistics(known.rows, tuple(columns))


@pytest.mark.parametrize("kernels", [ReferenceKernels(), NativeKernels()], ids=["reference", "native"])
def test_metadata_that_lies_ends_in_overflow(kernels):
    rows = pa.table({"x": pa.array([10**17 - 1] * 12, pa.decimal128(17, 0))})
    sources = {"t": Lying(open_arrow(rows))}
    table = scan(sources)
    plan = narrow_decimals(summed(table, column(table, "x")), context_over(sources))
    (call,) = aggregates(plan)
    assert call.type is decimal(18, 0)
    groups = kernels.group_table(GroupSpec((), (AggregateStep("sum", 0, table.schema.types[0], call.type),)))
    batch = pa.RecordBatch.from_arrays([rows.column(0).combine_chunks().cast(pa.decimal64(17, 0))], names=["x"])
    with pytest.raises(Overflow):
        _finished(groups, batch)


def _finished(groups, batch):
    groups.update(batch, 0)
    return groups.finish()


class Exprs:
    """Draws exact arithmetic over the columns of a table."""

    def __init__(self, draw, table):
        self.draw = draw
        self.table = table

    def number(self, depth):
        if depth == 0:
            return self.leaf()
        match self.draw(st.sampled_from(["add", "subtract", "multiply", "negate", "abs", "case", "coalesce", "cast"])):
            case "negate" | "abs" as function:
                return functions.scalar(function, [self.number(depth - 1)])
            case "case":
                test = functions.scalar("is_null", [self.leaf()])
                return functions.scalar("if", [test, self.number(depth - 1), self.number(depth - 1)])
            case "cast":
                return functions.cast(self.number(depth - 1), decimal(38, self.draw(st.integers(0, 6))))
            case function:
                return functions.scalar(function, [self.number(depth - 1), self.number(depth - 1)])

    def leaf(self):
        if self.draw(st.integers(0, 3)) == 0:
            return Literal(self.draw(st.decimals(-50, 50, places=1)), decimal(4, 1))
        return column(self.table, self.draw(st.sampled_from(["small", "rate", "wide", "count"])))


def drawn(data, sources):
    table = scan(sources)
    expr = Exprs(data.draw, table).number(data.draw(st.integers(1, 3)))
    return table, expr


@pytest.fixture(scope="module")
def connection(sources):
    with duckdb.connect() as made:
        made.execute("SET threads = 1")
        batch = sources["t"].sample(range(len(sources["t"].schema)))
        wide = [
            array.cast(pa.decimal128(array.type.precision, array.type.scale))
            if pa.types.is_decimal(array.type)
            else array
            for array in batch.columns
        ]
        made.register("t", pa.table(wide, names=batch.schema.names))
        yield made


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bounds_hold_and_narrowed_sums_are_the_same(sources, connection, data):
    table, expr = drawn(data, sources)
    plan = summed(table, expr, [column(table, "g")])
    try:
        values = connection.execute(to_sql(Project(table, (expr,), ("x",)))).fetchall()
        expected = connection.execute(to_sql(plan)).fetchall()
    except (duckdb.OutOfRangeException, duckdb.ConversionException):
        return  # an overflow by the declared types
    found = context_over(sources).bounds.value(table, expr)
    assert found is not None
    for (value,) in values:
        assert value is None or found.low <= Decimal(value).scaleb(expr.type.scale) <= found.high
    narrowed = narrow_decimals(plan, context_over(sources))
    assert narrowed.schema is plan.schema
    assert difference(expected, connection.execute(to_sql(narrowed)).fetchall()) is None


def test_bounds_of_a_sum_hold_for_one_row_and_for_all(sources):
    table = scan(sources)
    bounds = context_over(sources).bounds
    assert bounds.column(summed(table, column(table, "small")), 0) == Range(-225 * 5, 9999 * 5)
    assert bounds.column(Aggregate(table, (), (Aggregation("count_star", (), INT64),), ("n",)), 0) == Range(0, 5)


@pytest.fixture(scope="module")
def tpch():
    folder = tpch_folder()
    with duckdb.connect() as made:
        made.execute("SET threads = 2")
        for name, path in tables(folder).items():
            made.execute(f"CREATE VIEW {name} AS FROM '{path}'")
        yield made, parquet_tables(folder)


@pytest.mark.parametrize("name", query_texts("tpch"))
def test_tpch_keeps_its_answers(tpch, name):
    connection, sources = tpch
    context = context_over(sources)
    plan = optimize(bind_sql(query_texts("tpch")[name], catalog_of(sources)), context)
    narrowed = narrow_decimals(plan, context)
    assert narrowed.schema.types == plan.schema.types
    assert (
        difference(connection.execute(to_sql(plan)).fetchall(), connection.execute(to_sql(narrowed)).fetchall()) is None
    )

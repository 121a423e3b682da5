"""Estimates are near the truth where metadata and a sample can tell, and sane where they cannot."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.planning import catalog_of, context_over, parquet_tables
from support.tpc_data import tpch_folder

from bireme.data.schema import Schema
from bireme.data.types import BOOL, DATE, INT64, STRING, decimal
from bireme.frontend.sql import bind_sql
from bireme.plan import functions
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Call, Column, Literal
from bireme.plan.optimize import optimize
from bireme.plan.relation import Aggregate, Filter, Join, JoinKind, Limit, Project, Scan, Sort, Union
from bireme.plan.source import ColumnStatistics, TableStatistics
from bireme.plan.statistics import StatisticsCache
from bireme.plan.statistics.column import chao, remaining, values_in_range
from bireme.storage.arrow_table import open_arrow


@pytest.fixture(scope="module")
def tpch():
    return parquet_tables(tpch_folder("0.1"))


def scan(sources, table):
    source = sources[table]
    return Scan(table, source.version, source.schema, tuple(range(len(source.schema.fields))))


def at(sources, table, name):
    (position,) = sources[table].schema.positions(name)
    return Column(position, sources[table].schema[position].type)


def filtered(sources, table, condition):
    """The scan under a condition written in SQL."""
    return optimize(bind_sql(f"select * from {table} where {condition}", catalog_of(sources)), context_over(sources))


@pytest.mark.parametrize(
    ("table", "column", "truth"),
    [
        ("customer", "c_custkey", 15_000),
        ("orders", "o_orderkey", 150_000),
        ("orders", "o_custkey", 10_000),
        ("orders", "o_orderdate", 2_406),
        ("lineitem", "l_orderkey", 150_000),
        ("lineitem", "l_partkey", 20_000),
        ("lineitem", "l_suppkey", 1_000),
        ("lineitem", "l_shipmode", 7),
        ("lineitem", "l_discount", 11),
        ("partsupp", "ps_suppkey", 1_000),
        ("partsupp", "ps_partkey", 20_000),
        ("part", "p_type", 150),
        ("nation", "n_regionkey", 5),
    ],
)
def test_distinct_counts_of_tpch_are_near_the_truth(tpch, table, column, truth):
    found = context_over(tpch).estimates.column(scan(tpch, table), at(tpch, table, column).index)
    assert 0.6 * truth <= found.distinct <= 1.6 * truth


@pytest.mark.parametrize(
    ("table", "column", "unique"),
    [
        ("customer", "c_custkey", True),
        ("orders", "o_orderkey", True),
        ("supplier", "s_suppkey", True),
        ("lineitem", "l_orderkey", False),
        ("partsupp", "ps_partkey", False),
        ("orders", "o_custkey", False),
    ],
)
def test_keys_are_recognised(tpch, table, column, unique):
    assert context_over(tpch).estimates.column(scan(tpch, table), at(tpch, table, column).index).unique is unique


def test_a_key_of_two_columns_is_counted_as_tuples(tpch):
    estimates = context_over(tpch).estimates
    key = [at(tpch, "partsupp", "ps_partkey"), at(tpch, "partsupp", "ps_suppkey")]
    assert estimates.tuples(scan(tpch, "partsupp"), key) == pytest.approx(80_000, rel=0.05)


@pytest.mark.parametrize(
    ("table", "condition", "truth"),
    [
        ("lineitem", "l_shipdate <= date '1998-09-02'", 591_000),
        ("lineitem", "l_discount between 0.05 and 0.07 and l_quantity < 24", 75_000),
        ("lineitem", "l_commitdate < l_receiptdate", 379_809),
        ("lineitem", "l_shipmode in ('MAIL', 'SHIP')", 171_000),
        ("orders", "o_comment not like '%special%requests%'", 148_318),
        ("part", "p_name like '%green%'", 1_070),
        ("part", "p_size = 15 and p_type like '%BRASS'", 75),
        ("customer", "substring(c_phone, 1, 2) in ('13', '31')", 1_200),
    ],
)
def test_a_sample_answers_any_predicate(tpch, table, condition, truth):
    plan = filtered(tpch, table, condition)
    found = context_over(tpch).estimates.rows(plan)
    assert truth / 1.8 <= found <= 1.8 * truth


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        ("select * from orders, lineitem where o_orderkey = l_orderkey", 600_572),
        ("select * from partsupp, lineitem where ps_partkey = l_partkey and ps_suppkey = l_suppkey", 600_572),
        ("select * from customer, orders where c_custkey = o_custkey and c_mktsegment = 'BUILDING'", 30_000),
        ("select * from nation, region where n_regionkey = r_regionkey and r_name = 'ASIA'", 5),
        ("select * from customer left join orders on c_custkey = o_custkey", 155_000),
        ("select * from customer where not exists (select * from orders where o_custkey = c_custkey)", 5_000),
        ("select * from customer where exists (select * from orders where o_custkey = c_custkey)", 10_000),
        ("select o_orderdate, count(*) from orders group by o_orderdate", 2_406),
        ("select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300", 5),
        ("select * from orders limit 10", 10),
    ],
)
def test_relations_above_tables_are_near_the_truth(tpch, query, truth):
    context = context_over(tpch)
    found = context.estimates.rows(optimize(bind_sql(query, catalog_of(tpch)), context))
    assert truth / 2.5 <= found <= 2.5 * truth + 5


@dataclass
class Told:
    """A table of which only statistics and a given sample are known."""

    schema: Schema
    known: TableStatistics
    drawn: pa.RecordBatch
    version: str = "1"
    asked: list = field(default_factory=list)

    def statistics(self):
        return self.known

    def sample(self, columns):
        self.asked.append(tuple(columns))
        return self.drawn.select(list(columns))


def told(rows, values, low, high, **more):
    drawn = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["k"])
    known = TableStatistics(rows, (ColumnStatistics(low, high, 0, **more),))
    return Told(Schema.from_arrow(pa.schema([pa.field("k", pa.int64())])), known, drawn)


def distinct(source):
    return context_over({"t": source}).estimates.column(scan({"t": source}, "t"), 0)


def test_a_dense_key_is_known_without_a_sample():
    source = told(1_000_000, [], 1, 1_000_000)
    found = distinct(source)
    assert found.unique
    assert found.distinct == 1_000_000
    assert not source.asked


def test_blocks_of_rows_tell_the_density_of_keys():
    # Three blocks of a column whose values rise by one, each four times: a sample at random would see other repeats.
    values = [start + at // 4 for start in (10, 400_000, 900_000) for at in range(600)]
    assert distinct(told(4_000_000, values, 0, 999_999, clustered=True)).distinct == pytest.approx(1_000_000, rel=0.05)
    assert distinct(told(4_000_000, values, 0, 999_999)).distinct == pytest.approx(1_000_000, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([10, 100, 3_000, 50_000]))
def test_a_sample_at_random_bounds_distinct_counts(seed, truth):
    values = np.random.default_rng(seed).integers(0, truth, 2_000) * 1_009
    found = distinct(told(1_000_000, values.tolist(), 0, truth * 1_009)).distinct
    assert truth / 2.5 <= found <= 2.5 * truth


def test_the_estimate_of_chao():
    assert chao(once=10, twice=4, distinct=20) == 20 + 10 * 9 / (2 * 5)
    assert chao(once=0, twice=4, distinct=20) == 20


def test_values_that_remain_of_a_column():
    assert remaining(100, 100, 10) == pytest.approx(10)
    assert remaining(5, 1_000, 500) == pytest.approx(5, rel=0.01)
    assert remaining(5, 1_000, 0) == 0


def test_steps_of_types():
    assert values_in_range(INT64, 1, 10) == 10
    assert values_in_range(DATE, 0, 364) == 365
    assert values_in_range(decimal(15, 2), 0, 1) == 101
    assert values_in_range(BOOL, None, None) == 2
    assert values_in_range(STRING, None, None) == np.inf


@pytest.fixture(scope="module")
def small():
    numbers = range(10_000)
    return {
        "t": open_arrow(
            pa.table(
                {
                    "k": pa.array(numbers, pa.int64()),
                    "few": pa.array([at % 10 for at in numbers], pa.int64()),
                    "gaps": pa.array([None if at % 4 == 0 else at for at in numbers], pa.int64()),
                    "rare": pa.array([at == 9_999 for at in numbers]),
                }
            )
        )
    }


@pytest.mark.parametrize(("condition", "truth"), [("k < 5000", 5_000), ("k >= 9000 and few = 3", 100), ("k = 17", 1)])
def test_ranges_of_a_column_in_file_order_are_not_left_to_the_sample(small, condition, truth):
    assert context_over(small).estimates.rows(filtered(small, "t", condition)) == pytest.approx(truth, rel=0.1)


def test_what_the_sample_does_not_hold_is_rare_but_not_impossible(small):
    rare = Filter(scan(small, "t"), at(small, "t", "rare"))
    assert 0 < context_over(small).estimates.rows(rare) < 10


def test_a_small_table_is_its_own_sample():
    sources = {"t": open_arrow(pa.table({"k": pa.array([1, 2, 3], pa.int64())}))}
    nothing = Filter(scan(sources, "t"), functions.scalar("gt", [Column(0, INT64), Literal(9, INT64)]))
    assert context_over(sources).estimates.rows(nothing) == 0


def test_shares_of_null(small):
    estimates = context_over(small).estimates
    assert estimates.column(scan(small, "t"), 2).null_share == pytest.approx(0.25)
    left = Join(
        scan(small, "t"), Limit(scan(small, "t"), 2_500), JoinKind.LEFT, (Column(0, INT64),), (Column(0, INT64),)
    )
    assert estimates.rows(left) == pytest.approx(10_000, rel=0.01)
    assert estimates.column(left, 4).null_share == pytest.approx(0.75, abs=0.05)


def test_every_kind_of_relation_has_an_estimate(small):
    table = scan(small, "t")
    estimates = context_over(small).estimates
    count = Aggregation("count_star", (), INT64)
    assert estimates.rows(Project(table, (Column(1, INT64),), ("x",))) == 10_000
    assert estimates.rows(Aggregate(table, (Column(1, INT64),), (count,), ("few", "n"))) == pytest.approx(10, rel=0.01)
    assert estimates.rows(Aggregate(table, (), (count,), ("n",))) == 1
    sets = Aggregate(table, (Column(0, INT64), Column(1, INT64)), (count,), ("k", "few", "n"), ((0,), (1,), ()))
    assert estimates.rows(sets) == pytest.approx(10_011, rel=0.01)
    assert estimates.rows(Union((table, table))) == 20_000
    assert estimates.rows(Sort(table, (), 7, 2)) == 7
    assert estimates.rows(Limit(table, None, 9_990)) == 10
    assert estimates.row_bytes(table) == pytest.approx(8 * 3 + 1, abs=1)


def test_joins_of_the_same_sides_are_consistent(small):
    table = scan(small, "t")
    estimates = context_over(small).estimates
    keys = (Column(0, INT64),)
    half = Filter(table, functions.scalar("lt", [Column(0, INT64), Literal(5_000, INT64)]))
    semi = estimates.rows(Join(table, half, JoinKind.SEMI, keys, keys))
    anti = estimates.rows(Join(table, half, JoinKind.ANTI, keys, keys))
    assert semi == pytest.approx(5_000, rel=0.05)
    assert semi + anti == pytest.approx(10_000, rel=0.05)
    assert estimates.rows(Join(table, half, JoinKind.MARK, keys, keys)) == 10_000
    full = estimates.rows(Join(table, half, JoinKind.FULL, keys, keys))
    assert full == pytest.approx(10_000, rel=0.05)


def test_a_repeated_query_evaluates_nothing(small):
    cache, evaluated = StatisticsCache(), []
    evaluate = context_over(small).evaluate

    def counting(predicate, batch, schema):
        evaluated.append(predicate)
        return evaluate(predicate, batch, schema)

    for _ in range(3):
        context = PlanContext(lambda table, _: small[table], counting, cache)
        condition = Call(
            "or", (at(small, "t", "rare"), functions.scalar("lt", [Column(1, INT64), Literal(3, INT64)])), BOOL
        )
        context.estimates.rows(Filter(scan(small, "t"), condition))
    assert len(evaluated) == 1


def test_columns_of_every_type_have_estimates():
    zone, day = datetime.UTC, datetime.date(1969, 12, 31)
    table = pa.table(
        {
            "bool": [True, None, False],
            "tiny": pa.array([1, None, -1], pa.int8()),
            "unsigned": pa.array([0, None, 2**64 - 1], pa.uint64()),
            "float": pa.array([float("nan"), None, float("inf")], pa.float32()),
            "double": [-0.0, None, 1e308],
            "wide": pa.array([Decimal("9" * 36), None, Decimal(-1)], pa.decimal128(38, 2)),
            "text": ["é", None, ""],
            "code": pa.array(["a", None, "a"]).dictionary_encode(),
            "bytes": [b"", None, b"x"],
            "day": [day, None, day],
            "time": [datetime.time(1), None, datetime.time(2)],
            "moment": [datetime.datetime(1, 1, 1), None, datetime.datetime(9999, 1, 1)],
            "instant": [datetime.datetime(2020, 1, 1, tzinfo=zone), None, datetime.datetime(2021, 1, 1, tzinfo=zone)],
            "span": [datetime.timedelta(1), None, datetime.timedelta(2)],
            "list": [[1], None, []],
            "struct": [{"x": 1}, None, {"x": None}],
            "nothing": pa.nulls(3),
        }
    )
    for rows in (table, table.slice(0, 0)):
        sources = {"t": open_arrow(rows)}
        whole = scan(sources, "t")
        estimates = context_over(sources).estimates
        for index, column in enumerate(whole.schema):
            found = estimates.column(whole, index)
            assert 0 <= found.distinct <= 3, column
            assert found.mean_bytes > 0
            assert found.null_share == (1.0 if column.name == "nothing" else 1 / 3) * (rows.num_rows > 0)
            key = Column(index, column.type)
            assert 0 <= estimates.rows(Join(whole, whole, JoinKind.INNER, (key,), (key,))) <= 9
            assert 0 <= estimates.rows(Filter(whole, Call("eq", (key, Literal(None, column.type)), BOOL))) <= 3


def test_a_predicate_that_fails_on_the_sample_is_estimated_by_rule():
    sources = {"t": open_arrow(pa.table({"s": ["1", "x", "3"]}))}
    number = functions.cast(Column(0, STRING), INT64)
    found = context_over(sources).estimates.rows(
        Filter(scan(sources, "t"), functions.scalar("gt", [number, Literal(0, INT64)]))
    )
    assert 0 < found < 3


def test_the_cache_forgets_the_oldest():
    cache = StatisticsCache(entry_count_max=3)
    for number in range(5):
        cache.put(number, number)
    assert len(cache) == 3
    assert cache.get(1) is None
    assert cache.get(4) == 4

"""All rules together keep what a query means: DuckDB gives the same answer to the text and to the optimized plan."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.ir_to_sql import to_sql
from support.planning import catalog_of, context_over, parquet_tables
from support.rows import difference
from support.tpc_data import query_texts, tables, tpcds_folder, tpch_folder

from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.optimize import RULES, optimize
from bireme.plan.relation import Rel
from bireme.plan.rules.split_distinct import split_distinct
from bireme.plan.rules.unnest import unnest
from bireme.plan.verify import Stage, verify

Suite = tuple[duckdb.DuckDBPyConnection, TableCatalog, PlanContext]


def _suite(folder) -> Iterator[Suite]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, path in tables(folder).items():
            connection.execute(f"CREATE TABLE {name} AS FROM '{path}'")
        sources = parquet_tables(folder)
        yield connection, catalog_of(sources), context_over(sources)


@pytest.fixture(scope="module")
def tpch() -> Iterator[Suite]:
    yield from _suite(tpch_folder())


@pytest.fixture(scope="module")
def tpcds() -> Iterator[Suite]:
    yield from _suite(tpcds_folder())


def optimized(plan: Rel, context: PlanContext) -> Rel:
    """The plan after all rules, verified after each."""
    bound = plan
    verify(plan, Stage.BOUND)
    for rule in RULES:
        plan = rule(plan, context)
        done = RULES.index(rule)
        unnested, split = done >= RULES.index(unnest), done >= RULES.index(split_distinct)
        verify(plan, Stage.OPTIMIZED if split else Stage.UNNESTED if unnested else Stage.BOUND, like=bound)
    return plan


def check(suite: Suite, text: str) -> None:
    connection, catalog, context = suite
    plan = optimized(bind_sql(text, catalog), context)
    expected = connection.execute(text).fetchall()
    assert difference(expected, connection.execute(to_sql(plan)).fetchall()) is None


@pytest.mark.parametrize("name", query_texts("tpch"))
def test_tpch_keeps_its_meaning(tpch: Suite, name: str) -> None:
    check(tpch, query_texts("tpch")[name])


@pytest.mark.parametrize("name", query_texts("tpcds"))
def test_tpcds_keeps_its_meaning(tpcds: Suite, name: str) -> None:
    check(tpcds, query_texts("tpcds")[name])


def test_rules_change_nothing_of_a_plan_that_needs_none(tpch: Suite) -> None:
    _, catalog, context = tpch
    plan = optimize(bind_sql("SELECT r_regionkey, r_name, r_comment FROM region", catalog), context)
    assert optimize(plan, context) is plan

"""Every rule keeps the meaning of plans that nobody wrote; DuckDB computes both."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from support.ir_to_sql import to_sql
from support.nested_queries import TABLES
from support.random_plans import plans
from support.rows import difference

from bireme.plan.context import PlanContext
from bireme.plan.explain import explain
from bireme.plan.relation import Rel
from bireme.plan.rules.prune_columns import prune_columns
from bireme.plan.rules.push_filters import push_filters
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.split_distinct import split_distinct
from bireme.plan.verify import Stage, verify


def _unasked(*_: object):
    raise AssertionError("these rules ask nothing of tables")


CONTEXT = PlanContext(_unasked, _unasked)
SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        for name, table in TABLES.items():
            opened.register(f"arrow_{name}", table)
            opened.execute(f"CREATE TABLE {name} AS FROM arrow_{name}")
        yield opened


def check(connection: duckdb.DuckDBPyConnection, plan: Rel) -> None:
    verify(plan, Stage.UNNESTED)
    if not plan.schema.fields:
        return
    expected = connection.execute(to_sql(plan)).fetchall()
    changed = plan
    for rule in (simplify, push_filters, split_distinct, prune_columns):
        changed = rule(changed, CONTEXT)
        verify(changed, Stage.UNNESTED, like=plan)
        found = difference(expected, connection.execute(to_sql(changed)).fetchall())
        assert found is None, f"{rule.__name__}: {found}\n{explain(plan)}\n{explain(changed)}"
    verify(changed, Stage.OPTIMIZED)
    again = push_filters(changed, CONTEXT)
    assert difference(expected, connection.execute(to_sql(again)).fetchall()) is None


@SOME
@given(plan=plans())
def test_rules_keep_the_meaning_of_small_plans(connection, plan: Rel) -> None:
    check(connection, plan)


@pytest.mark.slow
@MANY
@given(plan=plans(depth=4))
def test_rules_keep_the_meaning_of_many_plans(connection, plan: Rel) -> None:
    check(connection, plan)

"""Subqueries leave plans without a change of meaning, in every form, place and correlation; DuckDB is the judge.

The full product of `support.nested_queries` is slow; every run takes a part of it that visits every form.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from support.ir_to_sql import to_sql
from support.nested_queries import TABLES, nested_queries
from support.rows import difference

from bireme.data.schema import Schema
from bireme.errors import Unsupported
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.expr import Literal, ScalarSubquery
from bireme.plan.relation import Aggregate, Join, JoinKind, Rel
from bireme.plan.rules.prune_columns import prune_columns
from bireme.plan.rules.push_filters import push_filters
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.split_distinct import split_distinct
from bireme.plan.rules.unnest import unnest
from bireme.plan.tree import contains, relations
from bireme.plan.verify import Stage, verify

# A prime, so that every form, place and source is met.
STRIDE = 29
QUERIES = dict(nested_queries())
CATALOG = TableCatalog({name: ("1", Schema.from_arrow(table.schema)) for name, table in TABLES.items()})


def _unasked(*_: object):
    raise AssertionError("these rules ask nothing of tables")


CONTEXT = PlanContext(_unasked, _unasked)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        for name, table in TABLES.items():
            opened.register(f"arrow_{name}", table)
            opened.execute(f"CREATE TABLE {name} AS FROM arrow_{name}")
        yield opened


def check(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Compares answers; False where DuckDB has none."""
    try:
        expected = connection.execute(text).fetchall()
    except duckdb.Error:
        return False
    bound = bind_sql(text, CATALOG)
    plan = unnest(bound, CONTEXT)
    verify(plan, Stage.UNNESTED, like=bound)
    assert difference(expected, connection.execute(to_sql(plan)).fetchall()) is None
    for rule in (simplify, push_filters, split_distinct, prune_columns):
        plan = rule(plan, CONTEXT)
    verify(plan, Stage.OPTIMIZED, like=bound)
    assert difference(expected, connection.execute(to_sql(plan)).fetchall()) is None
    return True


@pytest.mark.parametrize("part", range(8))
def test_some_nested_queries(connection, part: int) -> None:
    names = list(QUERIES)[part * STRIDE :: 8 * STRIDE]
    assert sum(check(connection, QUERIES[name]) for name in names) > len(names) * 0.8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(STRIDE))
def test_every_nested_query(connection, part: int) -> None:
    names = list(QUERIES)[part::STRIDE]
    assert sum(check(connection, QUERIES[name]) for name in names) > len(names) * 0.8


# -------------------------------------------------------------------------------- the shape of plans


def unnested(text: str) -> Rel:
    return unnest(bind_sql(text, CATALOG), CONTEXT)


def joins(plan: Rel) -> list[Join]:
    return [rel for rel in relations(plan) if isinstance(rel, Join)]


def test_equal_correlation_leaves_one_join_over_a_grouping() -> None:
    plan = unnested("SELECT id FROM o WHERE b > (SELECT avg(v) FROM i WHERE i.k = o.a)")
    (join,) = joins(plan)
    assert join.kind is JoinKind.LEFT
    assert sum(isinstance(rel, Aggregate) for rel in relations(plan)) == 1


def test_exists_with_inequality_is_a_semi_join_with_a_residual() -> None:
    (join,) = joins(unnested("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.a AND i.v <> o.b)"))
    assert join.kind is JoinKind.SEMI
    assert len(join.left_keys) == 1
    assert join.residual is not None


def test_not_in_is_null_aware_and_not_exists_is_not() -> None:
    (by_in,) = joins(unnested("SELECT id FROM o WHERE b NOT IN (SELECT v FROM i)"))
    (by_exists,) = joins(unnested("SELECT id FROM o WHERE NOT EXISTS (SELECT v FROM i WHERE v = b)"))
    assert (by_in.kind, by_in.null_aware) == (JoinKind.ANTI, True)
    assert (by_exists.kind, by_exists.null_aware) == (JoinKind.ANTI, False)


def test_not_in_without_null_is_a_plain_anti_join() -> None:
    (join,) = joins(unnested("SELECT id FROM o WHERE coalesce(b, 0) NOT IN (SELECT coalesce(v, 0) FROM i)"))
    assert not join.null_aware


def test_a_mark_of_which_only_truth_matters_is_not_null_aware() -> None:
    (join,) = joins(unnested("SELECT id FROM o WHERE b IN (SELECT v FROM i) OR id = 1"))
    assert (join.kind, join.null_aware) == (JoinKind.MARK, False)


def test_an_uncorrelated_scalar_subquery_stays() -> None:
    plan = unnested("SELECT id FROM o WHERE b > (SELECT max(v) FROM i)")
    assert contains(plan, ScalarSubquery)
    assert not joins(plan)


def test_a_subquery_without_from_is_its_expression() -> None:
    plan = unnested("SELECT id, (SELECT a + b) FROM o")
    assert not joins(plan)


def test_existence_of_an_aggregate_is_known() -> None:
    plan = simplify(unnested("SELECT EXISTS (SELECT max(v) FROM i WHERE i.k = o.a) FROM o"), CONTEXT)
    assert not joins(plan)
    assert plan.exprs == (Literal(True, plan.schema.types[0]),)  # type: ignore[attr-defined]


def test_a_scalar_subquery_of_one_row_by_its_keys_needs_no_check() -> None:
    (one,) = joins(unnested("SELECT (SELECT max(v) FROM i WHERE i.k = o.a GROUP BY k) FROM o"))
    (many,) = joins(unnested("SELECT (SELECT v FROM i WHERE i.w = o.id) FROM o"))
    assert (one.kind, many.kind) == (JoinKind.LEFT, JoinKind.SINGLE)


def test_what_is_not_covered_is_named() -> None:
    with pytest.raises(Unsupported, match="full join"):
        unnested("SELECT id FROM o FULL JOIN j ON o.a = j.k AND EXISTS (SELECT 1 FROM i WHERE i.k = o.a)")

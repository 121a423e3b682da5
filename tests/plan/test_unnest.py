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


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, l.n FROM o, LATERAL (SELECT count(*) AS n FROM i WHERE i.k = o.a) l",
        "SELECT id, l.m FROM o, LATERAL (SELECT max(v) AS m, count(*) AS n FROM i WHERE i.k = o.a) l WHERE l.n < 2",
        "SELECT id, l.n FROM o LEFT JOIN LATERAL (SELECT count(*) + 1 AS n FROM i WHERE i.k = o.a) l ON true",
        "SELECT id, l.n FROM o LEFT JOIN LATERAL (SELECT count(*) AS n FROM i WHERE i.k = o.a) l ON l.n > 1",
        "SELECT id, l.v FROM o LEFT JOIN LATERAL (SELECT v FROM i WHERE i.k = o.a) l ON l.v > o.b",
        "SELECT id, l.v FROM o, LATERAL (SELECT v FROM i WHERE i.k < o.a ORDER BY w LIMIT 2) l",
        "SELECT id, l.v, m.u FROM o, LATERAL (SELECT v FROM i WHERE i.k = o.a) l, LATERAL "
        "(SELECT u FROM j WHERE j.u < l.v AND j.k = o.a) m",
        "SELECT id, l.t FROM o, LATERAL (SELECT x.k + y.t AS t FROM i x, LATERAL "
        "(SELECT sum(u) AS t FROM j WHERE j.k = x.k AND j.u > o.a) y WHERE x.k = o.a) l",
        "SELECT id, l.c FROM o, LATERAL (SELECT o.a + o.b AS c) l WHERE l.c > 10",
        "SELECT id, l.c FROM o LEFT JOIN LATERAL (SELECT o.a + o.b AS c WHERE o.s = 'x') l ON true",
        "SELECT a, count(*) FROM o GROUP BY a HAVING count(*) >= (SELECT min(w) FROM i WHERE i.k = o.a)",
        "SELECT s, max(a) FROM o GROUP BY s HAVING max(a) IN (SELECT k FROM i) OR s IS NULL",
        "SELECT (SELECT count(*) FROM i WHERE i.k = o.a) AS n, count(*) FROM o GROUP BY n",
        "SELECT id, sum((SELECT max(v) FROM i WHERE i.k = o.a)) OVER (ORDER BY id) FROM o",
        "SELECT id, rank() OVER (ORDER BY (SELECT count(*) FROM i WHERE i.k = o.a)) FROM o",
        "SELECT sum(b) FILTER (WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.a)), count(DISTINCT a) FROM o",
        "SELECT id FROM o WHERE a = (SELECT max(k) FROM i WHERE i.v = (SELECT max(u) FROM j WHERE j.k = o.a))",
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.a AND EXISTS (SELECT 1 FROM j WHERE j.k = i.k "
        "AND NOT EXISTS (SELECT 1 FROM i x WHERE x.k = o.a AND x.v = j.u)))",
        "SELECT id FROM o x WHERE (SELECT count(*) FROM o y WHERE y.a = x.a AND y.b < (SELECT max(v) FROM i "
        "WHERE i.k = x.a OR i.k = y.b)) > 0",
        "SELECT id FROM o RIGHT JOIN j ON o.a = j.k AND o.b IN (SELECT v FROM i WHERE i.k = j.k)",
        "SELECT id FROM o LEFT JOIN j ON o.a = j.k AND (SELECT count(*) FROM i WHERE i.k = o.a AND i.w > j.u) > 0",
        "SELECT id, EXISTS (SELECT 1 FROM i), NOT EXISTS (SELECT 1 FROM i WHERE w > 100) FROM o",
        "SELECT id FROM o WHERE b IN (SELECT v FROM i LIMIT 0) OR b > ALL (SELECT v FROM i WHERE w > 100)",
        "SELECT id FROM o WHERE (a, b) NOT IN (SELECT k, v FROM i)",
        "SELECT id, (a, b) IN (SELECT k, v FROM i) FROM o",
        "SELECT (SELECT sum(x.b) FROM o x WHERE x.s = t.s) FROM (SELECT s FROM o UNION SELECT 'q') t",
        "WITH c AS (SELECT k, sum(v) AS t FROM i GROUP BY k) SELECT id FROM o WHERE b < (SELECT max(t) FROM c) "
        "AND EXISTS (SELECT 1 FROM c WHERE c.k = o.a)",
    ],
)
def test_other_places_of_subqueries(connection, text: str) -> None:
    assert check(connection, text)


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


def test_a_full_join_with_a_subquery_keeps_both_sides() -> None:
    plan = unnested("SELECT id FROM o FULL JOIN j ON o.a = j.k AND EXISTS (SELECT 1 FROM i WHERE i.k = o.a)")
    assert JoinKind.FULL in {join.kind for join in joins(plan)}

"""Every form of subquery, correlated in every way, at every place of a query, over tables with NULLs.

DuckDB's answer to the text is compared with its answer to the plan, printed as SQL again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb
import pytest
from support import null_tables
from support.ir_to_sql import to_sql
from support.rows import difference

from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel
from bireme.plan.rules.unnest import unnest

# What is asked of the rows of the subquery; `{inner}` is its FROM and WHERE.
FORMS = {
    "in": "t.a IN (SELECT u.a {inner})",
    "not in": "t.a NOT IN (SELECT u.a {inner})",
    "exists": "EXISTS (SELECT u.a {inner})",
    "not exists": "NOT EXISTS (SELECT u.a {inner})",
    "less any": "t.b < ANY (SELECT u.c / 10 {inner})",
    "greater equal all": "t.b >= ALL (SELECT u.c / 10 {inner})",
    "scalar max": "t.b < (SELECT max(u.c) / 10 {inner})",
    "scalar count": "(SELECT count(u.c) {inner}) = 1",
}
INNERS = {
    "uncorrelated": "FROM u",
    "uncorrelated without NULL": "FROM u WHERE u.a IS NOT NULL",
    "empty": "FROM u WHERE u.c > 1000",
    "equal": "FROM u WHERE u.s = t.s",
    "not equal": "FROM u WHERE u.s <> t.s",
    "less": "FROM u WHERE u.c < t.b * 10 + 1",
    "equal or": "FROM u WHERE u.s = t.s OR u.c = t.b * 10",
    "not distinct": "FROM u WHERE u.s IS NOT DISTINCT FROM t.s",
}
PLACES = {
    "where": "SELECT t.a, t.b, t.s FROM t WHERE {condition}",
    "or": "SELECT t.a, t.b, t.s FROM t WHERE {condition} OR t.b = 20",
    "not": "SELECT t.a, t.b, t.s FROM t WHERE NOT ({condition})",
    "select": "SELECT t.a, t.b, {condition} AS found FROM t",
    "case": "SELECT CASE WHEN {condition} THEN t.b ELSE -1 END AS chosen FROM t",
    "aggregate": "SELECT t.s, sum(CASE WHEN {condition} THEN 1 ELSE 0 END), bool_or({condition}) FROM t GROUP BY t.s",
    "and not": "SELECT t.a, t.b, t.s FROM t WHERE t.b > 5 AND NOT ({condition})",
}
CASES = list(product(FORMS, INNERS, PLACES))

Tables = tuple[duckdb.DuckDBPyConnection, TableCatalog]


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with null_tables.connect() as connection:
        yield connection, null_tables.catalog(connection)


def bound(plan: Rel) -> Rel:
    return plan


def unnested(plan: Rel) -> Rel:
    return unnest(plan, PlanContext(_unasked, _unasked))


def _unasked(*arguments):
    raise AssertionError("unnesting looks at no data")


def text_of(form: str, inner: str, place: str) -> str:
    return PLACES[place].format(condition=FORMS[form].format(inner=INNERS[inner]))


def test_there_are_as_many_cases_as_were_studied() -> None:
    assert len(CASES) == 448


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("form", FORMS)
def test_subquery(tables: Tables, form: str, inner: str, place: str) -> None:
    connection, catalog = tables
    text = text_of(form, inner, place)
    expected = connection.execute(text).fetchall()
    for stage in (bound, unnested):
        actual = connection.execute(to_sql(stage(bind_sql(text, catalog)))).fetchall()
        assert difference(expected, actual) is None, f"{stage.__name__}: {text}"

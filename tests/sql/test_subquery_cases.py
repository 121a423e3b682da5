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
from support.subquery_cases import FORMS, INNERS, PLACES, text_of

from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel
from bireme.plan.rules.unnest import unnest

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

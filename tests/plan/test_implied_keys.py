"""Groupings keep the keys that determine the others, and give the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from support.ir_to_sql import to_sql
from support.rows import difference

from bireme.data.schema import Schema
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.relation import Aggregate
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.unnest import unnest
from bireme.plan.tree import relations
from bireme.plan.verify import Stage, verify

TABLE = pa.table(
    {
        "a": pa.array([1, 1, 2, None, 5, None], pa.int32()),
        "b": pa.array([1, 2, 2, 3, None, None], pa.int64()),
        "x": pa.array([0.0, -0.0, 1.0, float("nan"), None, 1.0]),
        "s": pa.array(["p", "P", "q", "q", None, ""]),
    }
)
CATALOG = TableCatalog({"t": ("1", Schema.from_arrow(TABLE.schema)), "none": ("2", Schema.from_arrow(TABLE.schema))})

# The query, and how many keys its groupings have afterwards.
CASES = [
    ("select 1, s, count(*) from t group by 1, s", 1),
    ("select a, a - 1, a - 2, sum(b) from t group by a, a - 1, a - 2", 1),
    ("select a + b, a, b, count(*) from t group by a + b, a, b", 2),
    ("select a, b, a + 1, upper(s), count(*) from t group by a, b, a + 1, upper(s)", 3),
    ("select upper(s), lower(upper(s)), count(*) from t group by 1, 2", 2),
    ("select x, 1 / x, count(*) from t group by x, 1 / x", 2),
    ("select a + b, a + b, count(*) from t group by 1, 2", 1),
    ("select 1, 'c', max(a) from t group by 1, 2", 1),
    ("select 1, 'c', max(a) from none group by 1, 2", 1),
    ("select a, a + 1, count(*) from t group by a, a + 1 having a + 1 > 2", 1),
    ("select case when a > 1 then 'm' else s end, s, a, count(*) from t group by 1, 2, 3", 2),
    ("select a, a + 1, count(*) from t group by grouping sets ((a, a + 1), (a + 1))", 2),
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.register("t", TABLE)
        opened.register("none", TABLE.slice(0, 0))
        yield opened


@pytest.mark.parametrize(("text", "keys"), CASES)
def test_only_keys_that_count_are_left(connection: duckdb.DuckDBPyConnection, text: str, keys: int) -> None:
    def unasked(*_: object):
        raise AssertionError("nothing is asked of tables")

    plan = unnest(bind_sql(text, CATALOG), PlanContext(unasked, unasked))
    simpler = simplify(plan, PlanContext(unasked, unasked))
    verify(simpler, Stage.UNNESTED, like=plan)
    assert [len(rel.keys) for rel in relations(simpler) if isinstance(rel, Aggregate)] == [keys]
    expected = connection.execute(text).fetchall()
    assert difference(expected, connection.execute(to_sql(simpler)).fetchall()) is None

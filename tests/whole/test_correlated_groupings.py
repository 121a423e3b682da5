"""Groupings inside subqueries that read the outer row: with and without an empty grouping set, over no row too.

An empty grouping set has one row even where the outer row meets nothing, and a NULL key meets nothing by `=`.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import bireme as bm

GROUPINGS = (
    "", "group by cube(v)", "group by rollup(v, w)", "group by grouping sets ((), (v))",
    "group by grouping sets ((v), ())",
    "group by cube(v, w)", "group by grouping sets ((), ())", "group by grouping sets (())",
)  # fmt: skip
CONDITIONS = (
    "n.k = o.k", "n.k = o.k and v > 1", "n.k is not distinct from o.k", "n.k < o.k", "n.k = o.k and false",
    "o.k is null",
    "n.k = o.k or n.v = o.k", "n.k = o.k and n.w = o.k",
)  # fmt: skip
QUERIES = (
    "select k, (select sum(c) from (select count(*) c from n where {0} {1}) q) from o",
    "select k, c from o, lateral (select count(*) c from n where {0} {1})",
    "select k, c from o left join lateral (select sum(v) c from n where {0} {1}) l on true",
    "select k, exists (select 1 from n where {0} {1}) from o",
    "select k from o where 0 in (select count(*) from n where {0} {1})",
    "select k from o where 0 not in (select count(*) from n where {0} {1} having count(*) <> 1)",
)
TABLES = {
    "o": pa.table({"k": [1, 2, None, 4, None]}),
    "n": pa.table({"k": [1, 1, 2, None], "v": [1, 2, 3, 4], "w": [1, None, 1, 2]}),
}


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2) as session:
        for name, table in TABLES.items():
            session.register(name, table)
        yield session


def _rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row)) for row in zip(*[column.to_pylist() for column in table.columns], strict=True))


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda text: text or "none")
def test_groupings_of_the_outer_row(grouping: str, session: bm.Session) -> None:
    compared = 0
    with duckdb.connect() as oracle:
        for name, table in TABLES.items():
            oracle.register(name, table)
        for query in QUERIES:
            for condition in CONDITIONS:
                text = query.format(condition, grouping)
                try:
                    wanted = _rows(oracle.sql(text).to_arrow_table())
                except duckdb.Error:
                    continue  # what DuckDB cannot unnest is no oracle
                assert _rows(session.sql(text).collect()) == wanted, text
                compared += 1
    assert compared > 30

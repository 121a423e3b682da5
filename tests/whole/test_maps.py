"""Maps: made, looked into and taken apart, as in DuckDB; over columns that are slices, with NULLs and empty maps."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import drawn

import bireme as bm
from bireme.errors import BiremeError, DomainFault, QueryError

KEYS = st.sampled_from(["a", "b", "", "é", "long key, longer than a word"])
MAPS = st.none() | st.dictionaries(KEYS, st.none() | st.integers(-3, 3), max_size=4).map(
    lambda made: list(made.items())
)
PAIRS = st.none() | st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=4, unique_by=lambda pair: pair[0])
EXPRESSIONS = [
    "m['a']", "m[k]", "map_keys(m)", "map_values(m)", "map_entries(m)", "cardinality(m)", "map_contains(m, k)",
    "map_contains_value(m, 2)", "map_extract(m, k)", "element_at(m, 'b')", "map_extract_value(m, '')",
    "map_concat(m, n)", "map_concat(n, m, n)", "map(map_keys(m), map_values(m))", "map_from_entries(map_entries(m))",
    "map([k, k || 'x'], [1, 2])", "map {k: m, 'other': n}[k]['a']", "map {1: m['a'] + 1}[1]", "map_keys(m)[1]",
    "m is null", "coalesce(m['a'], -1)",
]  # fmt: skip


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("backend", ["native", "reference"])
@drawn(20)
@given(rows=st.lists(st.tuples(MAPS, MAPS, st.none() | KEYS), min_size=1, max_size=12), cut=st.integers(0, 3))
def test_maps_as_in_duckdb(backend: str, rows: list[tuple[Any, Any, Any]], cut: int) -> None:
    kind = pa.map_(pa.string(), pa.int32())
    table = pa.table(
        {
            "m": pa.array([row[0] for row in rows], kind),
            "n": pa.array([row[1] for row in rows], kind),
            "k": pa.array([row[2] for row in rows], pa.string()),
        }
    ).slice(cut)
    without_keys = [text for text in EXPRESSIONS if "{k" not in text and "[k," not in text]
    texts = EXPRESSIONS if table["k"].null_count == 0 else without_keys
    query = "select " + ", ".join(texts) + " from t"
    with duckdb.connect() as oracle, bm.connect(backend=backend) as session:
        oracle.register("t", table)
        session.register("t", table)
        assert rows_of(session.sql(query).collect()) == rows_of(oracle.sql(query).to_arrow_table())


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select map([1, 1], ['a', 'b'])", "different"),
        ("select map {'a': 1, 'a': 2}", "different"),
        ("select map([1, null], ['a', 'b'])", "NULL"),
        ("select map([1], ['a', 'b'])", "as many"),
        ("select map_from_entries([('a', 1), null])", "NULL"),
        ("select map_from_entries([('a', 1), ('a', 2)])", "different"),
    ],
)
def test_maps_that_cannot_be_are_errors(backend: str, sql: str, message: str) -> None:
    with bm.connect(backend=backend) as session, pytest.raises(DomainFault, match=message):
        session.sql(sql).collect()


@pytest.mark.parametrize(
    "sql",
    [
        "select map {'a'}", "select map(1, 2)", "select map_keys([1])",
        "select map_concat(map {'a': 1})", "select map_from_entries([1])", "select map_contains(map {'a': 1})",
        "select map {map {'a': 1}: 2}", "select element_at(1, 2)",
    ],
)  # fmt: skip
def test_what_is_no_map_is_refused_by_name(sql: str) -> None:
    with bm.connect() as session, pytest.raises(QueryError) as caught:
        session.sql(sql)
    assert isinstance(caught.value, BiremeError)


def test_maps_are_written_and_read(tmp_path: Any) -> None:
    path = str(tmp_path / "maps.parquet")
    with bm.connect() as session:
        made = session.sql("select i, map([i, i + 1], ['a', null]) as m from range(100) r(i)")
        made.sink_parquet(path)
        session.register("t", path)
        found = session.sql("select m[i], m[i + 1], m[i + 2], typeof(m) from t order by i").collect()
    assert rows_of(found) == [("a", None, None, "MAP(BIGINT, VARCHAR)")] * 100

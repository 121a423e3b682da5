"""Answers are the same whichever levers may be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import duckdb
import pyarrow as pa
import pytest
from support.nested_queries import TABLES, nested_queries
from support.rows import difference
from support.tpc_data import query_texts, tables, tpch_folder

import bireme as bm
from bireme.config import Levers

CHOICES = [
    "none",
    *[f"-{lever.name}" for lever in fields(Levers)],
    *[f"none,+{lever.name}" for lever in fields(Levers)],
]
NESTED = [text for _, text in nested_queries()][::449]
Row = tuple[object, ...]


@pytest.fixture(scope="module")
def expected() -> Iterator[dict[str, list[Row]]]:
    """DuckDB's answers, by query."""
    found: dict[str, list[Row]] = {}
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, path in tables(tpch_folder()).items():
            connection.execute(f"create view {name} as select * from read_parquet('{path}')")
        for name, table in TABLES.items():
            connection.register(name, table)
        for text in [*query_texts("tpch").values(), *NESTED]:
            try:
                found[text] = connection.execute(text).fetchall()
            except duckdb.Error:
                continue  # some products mean nothing to DuckDB either
        yield found


def rows(table: pa.Table) -> list[Row]:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


@pytest.mark.parametrize("levers", CHOICES)
def test_levers_change_no_answer(expected: dict[str, list[Row]], levers: str) -> None:
    with bm.connect(threads=2, levers=levers) as session:
        for name, source in (tables(tpch_folder()) | TABLES).items():
            session.register(name, source)
        for text, answer in expected.items():
            assert difference(answer, rows(session.sql(text).collect())) is None, text

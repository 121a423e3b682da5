"""Counts the rows that leave every join of a plan, and those of DuckDB's plan for the same query.

Each join's subplan is printed as SQL and counted by DuckDB, so the figures are those of the data, not estimates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from bireme.plan import tree
from bireme.plan.context import PlanContext
from bireme.plan.relation import Join, Rel, Scan
from support.ir_to_sql import to_sql


@dataclass(frozen=True)
class CountedJoin:
    """A join, the rows that leave it, and how many were expected."""

    kind: str
    tables: tuple[str, ...]
    rows: int
    expected: float


def joins_of(plan: Rel, context: PlanContext, connection: duckdb.DuckDBPyConnection) -> list[CountedJoin]:
    """Every join of an optimized plan (in subqueries too; a shared one once), counted."""
    counted = []
    for rel in tree.relations(plan):
        if isinstance(rel, Join):
            tables = tuple([scan.table for scan in tree.relations(rel) if isinstance(scan, Scan)])
            found = connection.execute(f"SELECT count(*) FROM ({to_sql(rel)})").fetchone()
            assert found is not None
            counted.append(CountedJoin(rel.kind.value, tables, found[0], context.estimates.rows(rel)))
    return counted


def duckdb_join_rows(text: str, connection: duckdb.DuckDBPyConnection) -> int:
    """The rows that leave all joins of DuckDB's own plan."""
    connection.execute("PRAGMA enable_profiling = 'no_output'")
    try:
        found = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {text.strip().rstrip(';')}").fetchone()
    finally:
        connection.execute("PRAGMA disable_profiling")
    assert found is not None
    return sum(rows for name, rows in _operators(json.loads(found[1])) if "JOIN" in name or name == "CROSS_PRODUCT")


def _operators(node: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The name and output rows of each operator; DuckDB 2 and 1.x call them differently."""
    name = node.get("name") or node.get("operator_type") or ""
    rows = node.get("intermediate_rows", node.get("operator_cardinality", 0))
    yield name, rows
    for child in [*node.get("operator", []), *node.get("children", [])]:
        yield from _operators(child)

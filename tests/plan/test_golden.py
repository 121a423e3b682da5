"""The optimized plans of TPC-H as committed text, to be read as a diff when a rule changes.

`BIREME_WRITE_GOLDEN=1 pytest tests/plan/test_golden.py` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.planning import catalog_of, context_over, parquet_tables
from support.tpc_data import query_texts, tpch_folder

from bireme.frontend.sql import bind_sql
from bireme.plan.explain import explain
from bireme.plan.optimize import optimize

GOLDEN = Path(__file__).parent / "golden"
WRITE = bool(os.environ.get("BIREME_WRITE_GOLDEN"))


@pytest.fixture(scope="module")
def sources():
    return parquet_tables(tpch_folder())


@pytest.mark.parametrize("name", query_texts("tpch"))
def test_plan_is_as_committed(sources, name: str) -> None:
    plan = optimize(bind_sql(query_texts("tpch")[name], catalog_of(sources)), context_over(sources))
    path = GOLDEN / f"{name}.txt"
    if WRITE:
        path.write_text(explain(plan), encoding="utf-8")
    assert explain(plan) == path.read_text(encoding="utf-8")

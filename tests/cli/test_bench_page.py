"""The page of the benchmarks: figures, ratios and failures end up in it, and it is well-formed."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
MACHINE = {
    "date": "2026-01-01T00:00+00:00", "command": "python bench/all.py --out a&b", "processor": "a <processor>",
    "cores": 2, "memory_bytes": 8 << 30, "system": "Linux", "python": "3.11", "versions": {"duckdb": "2"},
    "failures": ["hot ended with exit code 2"],
}  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("bench_page", BENCH / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_page"] = module  # where dataclasses look for their own module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bench_page"]


def record(query: str, engine: str, *seconds: float, error: str | None = None) -> dict[str, Any]:
    return {
        "section": "cold", "title": "Cold & dry", "suite": "tpch", "query": query, "engine": engine,
        "seconds": list(seconds), "error": error, "peak_bytes": 1 << 20,
    }  # fmt: skip


RECORDS = [
    record("Q1", "bireme", 1.0, 9.0, 2.0),
    record("Q1", "duckdb", 4.0),
    record("Q1", "polars", 1.0, error="wrong answer: <1>"),
    record("Q2", "bireme", 3.0),
    record("Q2", "duckdb", 1.5),
    record("Q2", "polars", 6.0),
    record("Q1", "bireme:-clustering", 4.0),
    record("Q2", "bireme:-clustering", 3.0),
]


def test_ratios_are_to_the_fastest_engine_of_another_name(page: ModuleType) -> None:
    (table,) = page.tables(RECORDS)
    assert (table.ratio("Q1"), table.ratio("Q2")) == (0.5, 2.0)
    assert page.variants(table) == [
        "bireme:-clustering takes 1.41 × as long (geometric mean), 2.00 × in Q1",
    ]


def test_the_page_says_what_was_measured_and_what_failed(page: ModuleType) -> None:
    text = page.page(MACHINE, RECORDS)
    for said in ("wrong answer: &lt;1&gt;", "a &lt;processor&gt;", "hot ended", "1.00<td>2.00 (Q2)", "bench/all.py"):
        assert said in text
    assert not re.search(r"(?:src|href)=[\"']?(?:http|//)", text)
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(drawing)


def test_kernels_have_floors(page: ModuleType) -> None:
    records = [
        {"section": "micro-scan", "title": "Kernels", "suite": "micro", "family": "scan", "case": "a", "rows": 9,
         "engine": engine, "ns_per_row": ns, "gb_per_second": 1.0, "floor_ns_per_row": 0.5}
        for engine, ns in (("bireme", 2.0), ("pyarrow", 4.0))
    ]  # fmt: skip
    (table,) = page.tables(records)
    assert (table.unit, table.ratio("a"), table.floors) == ("ns a row", 0.5, {"a": 0.5})
    assert 'class="floor"' in page.chart(table)

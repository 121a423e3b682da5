"""IN and NOT IN over several keys look at pairs, as few at once as memory wants and as many as calls are worth."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import bireme as bm
from bireme.operators import pairs
from bireme.operators.null_aware import NullAwareMarks
from bireme.operators.pairs import PAIRS_MAX, StepRows, rows_against_all

QUERY = "select i from a where (x, y) not in (select x, y from b where b.s = a.s) order by i"
SAME = """select i from a where not exists (
    select 1 from b where b.s = a.s and ((a.x = b.x) and (a.y = b.y)) is distinct from false
) order by i"""


def test_steps_grow_while_matches_are_few_and_shrink_where_they_are_many() -> None:
    step = StepRows()
    first = step.count
    step.adapt(first, 0)
    assert step.count > first
    while step.count < 100_000:
        step.adapt(step.count, step.count)
    large = step.count
    step.adapt(10, 10)  # the last rows of a batch tell nothing of longer ones
    assert step.count == large
    step.adapt(large, large * 1_000)
    assert step.count == PAIRS_MAX // 1_000
    step.adapt(step.count, step.count * 10 * PAIRS_MAX)
    assert step.count == 1


@pytest.mark.parametrize(("rows", "step"), [(0, PAIRS_MAX), (1, PAIRS_MAX), (1_000, 1_048), (10 * PAIRS_MAX, 1)])
def test_steps_against_all_rows(rows: int, step: int) -> None:
    assert rows_against_all(rows) == step


def tables(rows: int, groups: int) -> dict[str, pa.Table]:
    """Two tables of which some keys are NULL, so that some comparisons are."""
    found = {}
    for name, seed in (("a", 1), ("b", 2)):
        draw = np.random.default_rng(seed)
        columns = {"i": pa.array(np.arange(rows)), "s": pa.array(draw.integers(groups, size=rows))}
        for key in ("x", "y"):
            columns[key] = pa.array(draw.integers(900, size=rows), mask=draw.random(rows) < 0.04)
        found[name] = pa.table(columns)
    return found


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(("rows", "groups", "calls_max"), [(6_000, 6_000, 16), (1_200, 3, 60)], ids=["few", "many"])
def test_pairs_are_looked_at_by_what_rows_match(
    rows: int, groups: int, calls_max: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original = NullAwareMarks._comparison_is_null

    def counted(marks: NullAwareMarks, keys: pa.RecordBatch, stream: Any, build: Any) -> npt.NDArray[np.bool_]:
        sizes.append(len(stream))
        return original(marks, keys, stream, build)

    monkeypatch.setattr(NullAwareMarks, "_comparison_is_null", counted)
    monkeypatch.setattr(pairs, "PAIRS_MAX", 60_000)
    data = tables(rows, groups)
    with duckdb.connect() as oracle, bm.connect(threads=1, backend=backend) as session:
        for name, table in data.items():
            oracle.register(name, table)
            session.register(name, table)
        expected = [row for (row,) in oracle.execute(SAME).fetchall()]
        assert session.sql(QUERY).collect().column("i").to_pylist() == expected
    assert 0 < len(expected) < rows
    assert 0 < len(sizes) <= calls_max
    assert max(sizes) <= 60_000

"""Values picked by their rank in a group: every backend against sorting them, and quantiles against DuckDB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batches
from support.drawn import drawn
from support.duck import Duck, rows_of

from bireme.backends.base import Kernels
from bireme.data import types as t
from bireme.data.record import plain
from bireme.data.types import DataType
from bireme.plan.physical import AggregateStep, GroupSpec

KINDS = (
    t.BOOL, t.INT8, t.INT64, t.UINT64, t.FLOAT32, t.FLOAT64, t.decimal(15, 2), t.decimal(30, 6), t.DATE, t.TIMESTAMP,
)  # fmt: skip
FUNCTIONS = ("quantile_lower", "quantile_higher", "quantile_discrete")
FRACTIONS = (0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 0.999, 1.0)


def spec_of(keys: Sequence[DataType], kind: DataType, fractions: Sequence[float]) -> GroupSpec:
    """Every function at every fraction of one argument, between aggregates that have states."""
    place = len(keys)
    steps = [AggregateStep(name, place, kind, kind, each) for each in fractions for name in FUNCTIONS]
    count = AggregateStep("count", place, kind, t.INT64)
    return GroupSpec(tuple(keys), (AggregateStep("max", place, kind, kind), *steps, count))


def place_of(function: str, fraction: float, count: int) -> int:
    if function == "quantile_lower":
        return math.floor((count - 1) * fraction)
    if function == "quantile_higher":
        return math.ceil((count - 1) * fraction)
    return max(0, count - math.floor(count - count * fraction) - 1)


def by_sorting(batch: pa.RecordBatch, spec: GroupSpec) -> dict[str, list[Any]]:
    """The results by the text of the keys."""
    width = len(spec.key_types)
    groups: dict[str, list[Any]] = {} if width else {"()": []}
    for row in rows_of([plain(column) for column in batch.columns]):
        values = groups.setdefault(text_of(row[:width]), [])
        if row[width] is not None:
            values.append(row[width])
    return {key: _results(sorted(values, key=_order), spec) for key, values in groups.items()}


def _order(value: Any) -> tuple[bool, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def _results(values: list[Any], spec: GroupSpec) -> list[Any]:
    if not values:
        return [None] * (len(spec.aggregates) - 1) + [0]
    picked = [values[place_of(step.function, step.fraction, len(values))] for step in spec.aggregates[1:-1]]
    return [values[-1], *picked, len(values)]


def text_of(values: Sequence[Any]) -> str:
    return repr(tuple([0.0 if isinstance(value, float) and value == 0 else value for value in values]))


def found(answers: Sequence[pa.RecordBatch], width: int) -> dict[str, str]:
    rows = [row for answer in answers for row in rows_of([plain(column) for column in answer.columns])]
    assert len({text_of(row[:width]) for row in rows}) == len(rows)
    return {text_of(row[:width]): text_of(row[width:]) for row in rows}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("keys", [(), (t.INT8,), (t.STRING, t.FLOAT64)], ids=["none", "one", "two"])
@drawn(3)
@given(data=st.data())
def test_values_at_ranks(backend: Kernels, keys: tuple[DataType, ...], kind: DataType, data: st.DataObject) -> None:
    """Rows in several batches, to one table or to the merge of a partition."""
    batch = data.draw(batches([*keys, kind], few=data.draw(st.booleans())))
    fractions = data.draw(st.lists(st.sampled_from(FRACTIONS), min_size=1, max_size=3))
    spec = spec_of(keys, kind, fractions)
    cuts = sorted(data.draw(st.lists(st.integers(0, batch.num_rows), max_size=3)))
    ends = [0, *cuts, batch.num_rows]
    pieces = [batch.slice(low, high - low) for low, high in pairwise(ends)]
    wanted = {key: text_of(values) for key, values in by_sorting(batch, spec).items()}
    table = backend.group_table(spec)
    for piece in pieces:
        table.update(piece, 0)
    assert found([table.finish()], len(keys)) == wanted
    assert found(list(backend.merge_groups(spec, [], pieces)), len(keys)) == wanted
    assert table.groups == 0


@drawn(10)
@given(data=st.data())
def test_discrete_quantiles_as_in_duckdb(backend: Kernels, duck: Duck, data: st.DataObject) -> None:
    batch = data.draw(batches([t.INT8, t.INT32], few=data.draw(st.booleans())))
    fraction = data.draw(st.floats(0, 1))
    spec = GroupSpec((t.INT8,), (AggregateStep("quantile_discrete", 1, t.INT32, t.INT32, fraction),))
    table = backend.group_table(spec)
    table.update(batch, 0)
    wanted = duck.query(f"select c0, quantile_disc(c1, {fraction!r}::double) from t group by c0", batch)
    assert sorted(rows_of([plain(column) for column in table.finish().columns]), key=repr) == sorted(wanted, key=repr)

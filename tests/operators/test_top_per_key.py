"""What the sink below a window leaves out, call by call: nothing that is wanted, also where a call is made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given

from bireme.backends.native import NativeKernels
from bireme.config import Levers
from bireme.data.ids import EdgeId
from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import OutOfRoom
from bireme.operators.sinks import Emit
from bireme.operators.states import QueryStates
from bireme.operators.top_per_key import DropBeyondTop
from bireme.plan.expr import Column, SortKey
from bireme.plan.physical import EmitSink
from bireme.plan.top_per_key import TopPerKey

Rows = list[tuple[int, int]]
SCHEMA = Schema((Field("k", INT64), Field("v", INT64)))
CALLS = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), max_size=30), max_size=6)


def batch_of(rows: Rows) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(2)]
    return pa.record_batch(columns, names=["k", "v"])


def sink_of(limit: int, *, is_dense: bool = False) -> Emit:
    top = TopPerKey((Column(0, INT64),), SortKey(Column(1, INT64)), limit, is_dense)
    kernels = NativeKernels()
    drop = DropBeyondTop(top, SCHEMA, kernels, QueryStates(Levers()), 2, 1_000)
    return Emit(EmitSink(EdgeId(0), (), top), 1, kernels, drop)


def absorbed(sink: Emit, rows: Rows, slot: int) -> Rows:
    emissions = sink.absorb([batch_of(rows)], 0, slot)
    return [(row["k"], row["v"]) for each in emissions for row in each.batch.to_pylist()]


def first(rows: Rows, limit: int, *, is_dense: bool) -> Rows:
    """The rows that are among the first of their key, or beside the last of them."""
    found: Rows = []
    for key in {key for key, _ in rows}:
        values = sorted(value for other, value in rows if other == key)
        lowest: Sequence[int] = sorted(set(values)) if is_dense else values
        found += [(key, value) for value in values if value <= lowest[:limit][-1]]
    return sorted(found)


@given(calls=CALLS, limit=st.integers(1, 4), is_dense=st.booleans(), data=st.data())
def test_nothing_that_is_wanted_is_left_out(calls: list[Rows], limit: int, is_dense: bool, data: st.DataObject) -> None:
    sink = sink_of(limit, is_dense=is_dense)
    kept = [row for rows in calls for row in absorbed(sink, rows, data.draw(st.integers(0, 1)))]
    every = [row for rows in calls for row in rows]
    assert first(kept, limit, is_dense=is_dense) == first(every, limit, is_dense=is_dense)


@example(calls=[[(0, 1), (0, 2)]], limit=2, failing={0})
@given(calls=CALLS, limit=st.integers(1, 4), failing=st.sets(st.integers(0, 5)))
def test_a_call_that_failed_and_is_made_again_counts_once(calls: list[Rows], limit: int, failing: set[int]) -> None:
    sink = sink_of(limit)
    kept: Rows = []
    for number, rows in enumerate(calls):

        def fails(rows: Rows = rows) -> Iterator[pa.RecordBatch]:
            yield batch_of(rows)
            raise OutOfRoom("no memory is left")

        if number in failing:
            with pytest.raises(OutOfRoom):
                sink.absorb(fails(), 0, 0)
        kept += absorbed(sink, rows, 0)
    every = [row for rows in calls for row in rows]
    assert first(kept, limit, is_dense=False) == first(every, limit, is_dense=False)

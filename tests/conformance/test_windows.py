"""Window functions of every backend against DuckDB: frames of every unit, peers, NULLs, ties, filters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batches, schema_of
from support.drawn import drawn
from support.duck import Duck, difference, values_of

from bireme.backends.base import Kernels, WindowStream
from bireme.backends.reference.windows import RANKS
from bireme.data import types as t
from bireme.data.node import replaced
from bireme.data.types import DataType, to_arrow
from bireme.errors import DomainFault
from bireme.plan import functions
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Bound,
    BoundKind,
    Column,
    Exclusion,
    Frame,
    FrameUnit,
    Interval,
    Literal,
    SortKey,
    WindowCall,
)
from bireme.plan.window_order import keys_of

# Partition, order, value, flag; the row's number breaks ties where the answer would depend on them.
TYPES: tuple[DataType, ...] = (t.INT8, t.INT32, t.decimal(15, 2), t.BOOL, t.DATE, t.STRING, t.INT64)
PARTITION, ORDER, VALUE, FLAG, DAY, TEXT = (Column(index, TYPES[index]) for index in range(6))
ROW = Column(6, t.INT64)


@dataclass(frozen=True)
class Example:
    sql: str
    call: Aggregation
    ignore_nulls: bool = False
    ties: bool = False  # whether rows that are peers may get different values


def integer(value: int) -> Literal:
    return Literal(value, t.INT32)


EXAMPLES = [
    Example("row_number()", functions.window("row_number", []), ties=True),
    Example("rank()", functions.window("rank", [])),
    Example("dense_rank()", functions.window("dense_rank", [])),
    Example("percent_rank()", functions.window("percent_rank", [])),
    Example("cume_dist()", functions.window("cume_dist", [])),
    Example("ntile(3)", functions.window("ntile", [integer(3)]), ties=True),
    Example("lag(c2)", functions.window("lag", [VALUE]), ties=True),
    Example("lag(c2, 2, 0)", functions.window("lag", [VALUE, integer(2), integer(0)]), ties=True),
    Example("lead(c5, 1, 'x')", functions.window("lead", [TEXT, integer(1), Literal("x", t.STRING)]), ties=True),
    Example("lead(c2, 0)", functions.window("lead", [VALUE, integer(0)]), ties=True),
    Example("lag(c2, -1)", functions.window("lag", [VALUE, integer(-1)]), ties=True),
    Example("lag(c2 ignore nulls)", functions.window("lag", [VALUE]), ignore_nulls=True, ties=True),
    Example("lead(c2, 2 ignore nulls)", functions.window("lead", [VALUE, integer(2)]), ignore_nulls=True, ties=True),
    Example("first_value(c2)", functions.window("first_value", [VALUE]), ties=True),
    Example("last_value(c5)", functions.window("last_value", [TEXT]), ties=True),
    Example("nth_value(c2, 2)", functions.window("nth_value", [VALUE, integer(2)]), ties=True),
    Example("first_value(c2 ignore nulls)", functions.window("first_value", [VALUE]), ignore_nulls=True, ties=True),
    Example("last_value(c2 ignore nulls)", functions.window("last_value", [VALUE]), ignore_nulls=True, ties=True),
    Example("sum(c2)", functions.window("sum", [VALUE])),
    Example("count(*)", functions.window("count", [])),
    Example("count(c5)", functions.window("count", [TEXT])),
    Example("avg(c1)", functions.window("avg", [ORDER])),
    Example("min(c5)", functions.window("min", [TEXT])),
    Example("max(c2)", functions.window("max", [VALUE])),
    Example("sum(c2) filter (where c3)", functions.window("sum", [VALUE], filter=FLAG)),
    Example("count(distinct c5)", functions.window("count", [TEXT], distinct=True)),
    Example("stddev_samp(c1)", functions.window("stddev_samp", [ORDER])),
    Example("bool_or(c3)", functions.window("bool_or", [FLAG])),
]


def row_bound(kind: BoundKind, count: int) -> Bound:
    return Bound(kind, Literal(count, t.INT32))


_START = BoundKind.UNBOUNDED_PRECEDING, BoundKind.PRECEDING, BoundKind.CURRENT_ROW, BoundKind.FOLLOWING
_END = BoundKind.PRECEDING, BoundKind.CURRENT_ROW, BoundKind.FOLLOWING, BoundKind.UNBOUNDED_FOLLOWING


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Frames that SQL allows: the start is not of a later kind than the end."""
    unit = draw(st.sampled_from(FrameUnit))
    kinds = list(BoundKind)
    start = draw(st.sampled_from(_START))
    end = draw(st.sampled_from([kind for kind in _END if kinds.index(kind) >= kinds.index(start)]))
    return Frame(unit, *(_bound(kind, draw(st.integers(0, 3))) for kind in (start, end)))


def _bound(kind: BoundKind, count: int) -> Bound:
    return row_bound(kind, count) if kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING) else Bound(kind)


def frame_text(frame: Frame) -> str:
    end = frame.end
    if frame.unit is FrameUnit.RANGE and end == row_bound(BoundKind.PRECEDING, 0):
        # The same; with "unbounded preceding and 0 preceding" DuckDB 2.0 answers differently from run to run.
        end = Bound(BoundKind.CURRENT_ROW)
    ends = [f"{bound.offset.value if bound.offset else ''} {bound.kind.value}" for bound in (frame.start, end)]
    exclusion = "" if frame.exclusion is Exclusion.NOTHING else f" exclude {frame.exclusion.value}"
    return f"{frame.unit.value} between {ends[0]} and {ends[1]}{exclusion}"


def check(backend: Kernels, duck: Duck, batch: pa.RecordBatch, call: WindowCall, sql: str) -> None:
    # Small keys: the oracle computes the ends of a RANGE frame in the key's type, and fails where they leave it.
    keys = pa.array([None if key is None else key % 50 - 10 for key in batch.column(1).to_pylist()], pa.int32())
    columns = [batch.column(0), keys, *batch.columns[2:6], pa.array(range(batch.num_rows), pa.int64())]
    numbered = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    (got,) = backend.window(numbered, schema_of(TYPES), [call])
    assert got.type == to_arrow(call.call.type)
    wanted = [row[0] for row in duck.query(f"select {sql} from t order by c6", numbered)]
    found = difference(values_of(got), wanted, 1e-9)
    assert not found, f"{sql}: {found} in {numbered.to_pylist()}"


@pytest.mark.parametrize("example", [pytest.param(example, id=example.sql) for example in EXAMPLES])
@drawn(4)
@given(data=st.data())
def test_window_function_as_in_duckdb(backend: Kernels, duck: Duck, example: Example, data: st.DataObject) -> None:
    batch = data.draw(batches(TYPES, rows_max=20, few=True))
    frame = data.draw(frames())
    down, first = data.draw(st.booleans()), data.draw(st.booleans())
    partitioned = data.draw(st.booleans())
    # A RANGE frame with an offset takes one key only; then only functions that give peers the same value are asked for.
    single = frame.unit is FrameUnit.RANGE
    if single and example.ties:
        frame = UP_TO_PEERS
    if _sees_frames(example.call):
        frame = replaced(frame, exclusion=data.draw(st.sampled_from(Exclusion)))
    keys = [SortKey(ORDER, down, first)]
    text = f"c1 {'desc' if down else 'asc'} nulls {'first' if first else 'last'}"
    if example.ties or frame.unit is FrameUnit.ROWS:
        keys.append(SortKey(ROW))
        text += ", c6"
    call = WindowCall(example.call, (PARTITION,) if partitioned else (), tuple(keys), frame, example.ignore_nulls)
    by = "partition by c0 " if partitioned else ""
    check(backend, duck, batch, call, f"{example.sql} over ({by}order by {text} {frame_text(frame)})")


def _sees_frames(call: Aggregation) -> bool:
    return call.function not in (*RANKS, "lag", "lead") and not call.distinct


def in_window_order(backend: Kernels, batch: pa.RecordBatch, call: WindowCall) -> pa.RecordBatch:
    """The rows by the keys of a window, all of which are columns."""
    keys = keys_of((call.partition, call.order))
    columns = [batch.column(key.expr.index) for key in keys if isinstance(key.expr, Column)]
    assert len(columns) == len(keys)
    if not keys:
        return batch
    by = pa.RecordBatch.from_arrays(columns, names=[f"k{place}" for place in range(len(keys))])
    descending, nulls_first = [key.descending for key in keys], [key.nulls_first for key in keys]
    return backend.take(batch, backend.sort_rows(by, descending=descending, nulls_first=nulls_first, limit=None))


def streamed(stream: WindowStream, pieces: list[pa.RecordBatch]) -> tuple[list[Any], list[Any]]:
    """The rows that a stream gives for some pieces, and their values."""
    stream.restart([stream.survey(piece) for piece in pieces] if stream.needs_surveys else [])
    rows: list[Any] = []
    values: list[Any] = []
    for place, piece in enumerate(pieces):
        given, (column,) = stream.add(piece, is_last=place == len(pieces) - 1)
        rows += given.to_pylist()
        values += values_of(column)
    return rows, values


STREAMED = [
    *EXAMPLES,
    Example("nth_value(c2, 3 ignore nulls)", functions.window("nth_value", [VALUE, integer(3)]), ignore_nulls=True),
    Example("any_value(c2)", functions.window("any_value", [VALUE])),
    Example("max(c5) filter (where c3)", functions.window("max", [TEXT], filter=FLAG)),
    Example("avg(c2) filter (where c3)", functions.window("avg", [VALUE], filter=FLAG)),
    Example("first_value(c5)", functions.window("first_value", [TEXT])),
]


@pytest.mark.parametrize("example", [pytest.param(example, id=example.sql) for example in STREAMED])
@drawn(5)
@given(data=st.data())
def test_rows_in_order_piece_by_piece_give_the_same(backend: Kernels, example: Example, data: st.DataObject) -> None:
    batch = data.draw(batches(TYPES, rows_max=30, few=True))
    frame = data.draw(frames())
    partition = (PARTITION,) if data.draw(st.booleans()) else ()
    order = (SortKey(ORDER, data.draw(st.booleans()), data.draw(st.booleans())),)
    if frame.unit is not FrameUnit.RANGE and data.draw(st.booleans()):
        order = ()
    call = WindowCall(example.call, partition, order, frame, example.ignore_nulls)
    stream = backend.window_stream(schema_of(TYPES), [call])
    if stream is None:
        assert example.call.distinct
        return
    rows = in_window_order(backend, batch, call)
    if not rows.num_rows:
        return
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, rows.num_rows - 1)), max_size=6)) - {rows.num_rows})
    pieces = [rows.slice(start, end - start) for start, end in pairwise([0, *cuts, rows.num_rows])]
    (wanted,) = backend.window(rows, schema_of(TYPES), [call])
    for _ in range(2):  # a stream may be used again
        got_rows, got = streamed(stream, pieces)
        assert repr(got_rows) == repr(rows.to_pylist())
        assert not difference(got, values_of(wanted), 1e-9)
        assert stream.nbytes == 0


@drawn(4)
@given(data=st.data())
def test_without_an_order_every_row_is_a_peer(backend: Kernels, duck: Duck, data: st.DataObject) -> None:
    batch = data.draw(batches(TYPES, rows_max=20, few=True))
    for sql, name, args in (("sum(c2)", "sum", [VALUE]), ("rank()", "rank", []), ("count(*)", "count", [])):
        call = WindowCall(functions.window(name, args), (PARTITION, TEXT), (), WHOLE_PARTITION)
        check(backend, duck, batch, call, f"{sql} over (partition by c0, c5)")


@pytest.mark.parametrize("span", [Interval(0, 3, 0), Interval(1, 0, 0)], ids=["3 days", "1 month"])
@pytest.mark.parametrize("down", [False, True], ids=["asc", "desc"])
@drawn(4)
@given(data=st.data())
def test_range_of_dates_with_an_interval(
    backend: Kernels, duck: Duck, span: Interval, down: bool, data: st.DataObject
) -> None:
    batch = data.draw(batches(TYPES, rows_max=20))
    offset = Literal(span, t.INTERVAL)
    frame = Frame(FrameUnit.RANGE, Bound(BoundKind.PRECEDING, offset), Bound(BoundKind.FOLLOWING, offset))
    call = WindowCall(functions.window("count", []), (), (SortKey(DAY, down, False),), frame)
    width = f"interval '{span.months} months {span.days} days'"
    way = "desc" if down else "asc"
    over = f"order by c4 {way} nulls last range between {width} preceding and {width} following"
    check(backend, duck, batch, call, f"count(*) over ({over})")


def test_a_batch_without_rows(backend: Kernels) -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([], to_arrow(kind)) for kind in TYPES], names=[f"c{i}" for i in range(7)]
    )
    for example in EXAMPLES:
        call = WindowCall(example.call, (PARTITION,), (SortKey(ORDER),), UP_TO_PEERS)
        (got,) = backend.window(batch, schema_of(TYPES), [call])
        assert (got.type, len(got)) == (to_arrow(call.call.type), 0)


@pytest.mark.parametrize("count", [0, -1])
def test_ntile_of_no_buckets_is_an_error(backend: Kernels, count: int) -> None:
    batch = pa.record_batch([pa.array([1, 2], pa.int32())], names=["c0"])
    call = WindowCall(functions.window("ntile", [integer(count)]), (), (SortKey(Column(0, t.INT32)),), UP_TO_PEERS)
    with pytest.raises(DomainFault, match="ntile"):
        backend.window(batch, schema_of([t.INT32]), [call])


def _values(arrays: list[Any]) -> list[list[Any]]:
    return [values_of(array) for array in arrays]


def test_several_calls_at_once(backend: Kernels) -> None:
    batch = pa.record_batch([pa.array([3, 1, 2], pa.int32())], names=["c0"])
    column = Column(0, t.INT32)
    up = WindowCall(functions.window("row_number", []), (), (SortKey(column),), UP_TO_PEERS)
    down = WindowCall(functions.window("row_number", []), (), (SortKey(column, True),), UP_TO_PEERS)
    assert _values(backend.window(batch, schema_of([t.INT32]), [up, down])) == [[3, 1, 2], [1, 3, 2]]

"""Windows that kernels compute by frames of rows, against the reference backend: long partitions, every type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.batches import schema_of
from support.duck import difference, values_of

from bireme.backends.base import Kernels
from bireme.data import types as t
from bireme.data.types import DataType, to_arrow
from bireme.errors import Overflow
from bireme.plan import functions
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Bound,
    BoundKind,
    Column,
    Expr,
    Frame,
    FrameUnit,
    Literal,
    SortKey,
    WindowCall,
)

ROWS = 700
WIDE = t.decimal(38, 2)
VALUES: tuple[DataType, ...] = (
    *(t.INT8, t.INT16, t.INT32, t.INT64, t.UINT8, t.UINT32, t.UINT64, t.FLOAT32, t.FLOAT64),
    *(t.decimal(9, 3), t.decimal(18, 0), WIDE, t.BOOL, t.DATE, t.TIMESTAMP, t.STRING, t.BINARY),
)
NUMBERS = [kind for kind in VALUES if kind.is_numeric]


def bound(kind: BoundKind, rows: int | None = None) -> Bound:
    return Bound(kind, None if rows is None else Literal(rows, t.INT64))


FIRST, LAST = bound(BoundKind.UNBOUNDED_PRECEDING), bound(BoundKind.UNBOUNDED_FOLLOWING)
HERE = bound(BoundKind.CURRENT_ROW)
FRAMES = {
    "whole": WHOLE_PARTITION,
    "up to peers": UP_TO_PEERS,
    "from peers": Frame(FrameUnit.RANGE, HERE, LAST),
    "peers": Frame(FrameUnit.GROUPS, HERE, HERE),
    "so far": Frame(FrameUnit.ROWS, FIRST, HERE),
    "from here": Frame(FrameUnit.ROWS, HERE, LAST),
    "around": Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 7), bound(BoundKind.FOLLOWING, 4)),
    "behind": Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 9), bound(BoundKind.PRECEDING, 3)),
    "ahead": Frame(FrameUnit.ROWS, bound(BoundKind.FOLLOWING, 2), bound(BoundKind.FOLLOWING, 30)),
    "farther than rows": Frame(FrameUnit.ROWS, bound(BoundKind.PRECEDING, 1 << 62), bound(BoundKind.FOLLOWING, 1)),
    "up to before": Frame(FrameUnit.ROWS, FIRST, bound(BoundKind.PRECEDING, 2)),
}


def column(kind: DataType, random: np.random.Generator) -> pa.Array:
    """Few different values, and NULL, NaN and the ends of the type among them."""
    picks = random.integers(0, 12, ROWS)
    if kind in (t.STRING, t.BINARY):
        texts = ["", "a", "aa", "b", "same start, one", "same start, two", "ß", "z" * 40, "y", "c", None, None]
        values: list[Any] = [texts[pick] for pick in picks]
        plain = pa.array([None if text is None else text.encode() for text in values], pa.binary())
        return plain if kind is t.BINARY else plain.cast(pa.string())
    if kind.is_float:
        known = [0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), 1e10, -3.0, 0.1, 7.0, None, None]
        return pa.array([known[pick] for pick in picks], to_arrow(kind))
    if kind is t.BOOL:
        return pa.array([None if pick > 9 else bool(pick % 2) for pick in picks])
    if kind == WIDE:
        return pa.array([None if pick > 9 else Decimal(int(pick) - 5) * 10**20 for pick in picks], to_arrow(kind))
    if kind.kind is t.Kind.DECIMAL:
        return pa.array([None if pick > 9 else Decimal(int(pick) - 5) for pick in picks], to_arrow(kind))
    lowest = 0 if "UINT" in kind.kind.name else -5
    whole = pa.array([None if pick > 9 else int(pick) + lowest for pick in picks], pa.int64())
    return (whole.cast(pa.int32()) if kind is t.DATE else whole).cast(to_arrow(kind))


def table(kind: DataType, seed: int) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    columns = [
        pa.array(random.choice([1, 2, 2, 2, 2, 3, 4], ROWS), pa.int32()),
        pa.array([None if key > 60 else int(key) for key in random.integers(0, 70, ROWS)], pa.int32()),
        column(kind, random),
        pa.array([None if pick > 7 else pick > 2 for pick in random.integers(0, 10, ROWS)], pa.bool_()),
        pa.array(np.arange(ROWS)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{index}" for index in range(len(columns))])


def types_of(kind: DataType) -> tuple[DataType, ...]:
    return (t.INT32, t.INT32, kind, t.BOOL, t.INT64)


def agree(other: Kernels, reference: Kernels, batch: pa.RecordBatch, kind: DataType, calls: list[WindowCall]) -> None:
    schema = schema_of(types_of(kind))
    assert other.window_fallbacks(calls) == ()
    for call, got, wanted in zip(
        calls, other.window(batch, schema, calls), reference.window(batch, schema, calls), strict=True
    ):
        assert got.type == wanted.type == to_arrow(call.call.type)
        found = difference(values_of(got), values_of(wanted), 1e-9)
        assert not found, f"{call}: {found}"


def over(function: str, args: list[Expr], frame: Frame, *, is_divided: bool = True, **more: Any) -> WindowCall:
    key, row = Column(1, t.INT32), Column(4, t.INT64)
    order = (SortKey(key, descending=True, nulls_first=True), *([SortKey(row)] if frame.unit is FrameUnit.ROWS else []))
    call = functions.window(function, args, **more)
    return WindowCall(call, (Column(0, t.INT32),) if is_divided else (), order, frame)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_frames_over_values_of_every_type(other: Kernels, reference: Kernels, kind: DataType, frame: Frame) -> None:
    value = Column(2, kind)
    names = ["min", "max", "count", *(["sum", "avg"] if kind in NUMBERS else [])]
    names += ["bool_and", "bool_or"] if kind is t.BOOL else []
    calls = [over(name, [value], frame) for name in names]
    calls += [over(name, [value], frame, filter=Column(3, t.BOOL)) for name in names]
    calls += [over("count", [], frame), over("count", [], frame, filter=Column(3, t.BOOL), is_divided=False)]
    if frame.unit is FrameUnit.ROWS:
        calls += [over(name, [value], frame) for name in ("first_value", "last_value")]
        calls += [over("nth_value", [value, Literal(number, t.INT64)], frame) for number in (1, 3, 1 << 62)]
    for seed in (1, 2):
        agree(other, reference, table(kind, seed), kind, calls)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_values_further_on(other: Kernels, reference: Kernels, kind: DataType) -> None:
    value, frame = Column(2, kind), FRAMES["so far"]
    calls = [
        over(name, [value, Literal(offset, t.INT64), *default], frame, is_divided=is_divided)
        for name in ("lag", "lead")
        for offset in (0, 1, 5, -2, 1 << 62)
        for default in ([], [Literal(None, kind)], [value])
        for is_divided in (True, False)
    ]
    agree(other, reference, table(kind, 3), kind, calls)


@pytest.mark.parametrize("kind", [t.STRING, t.BINARY], ids=str)
def test_codes_of_a_dictionary(other: Kernels, reference: Kernels, kind: DataType) -> None:
    plain = table(kind, 4)
    codes = plain.column(2).dictionary_encode()
    batch = plain.set_column(2, "c2", pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary))
    unsorted = pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary.take(pa.array([0, 0, *range(2, 10)])))
    for each in (batch, plain.set_column(2, "c2", unsorted)):
        calls = [over(name, [Column(2, kind)], frame) for name in ("min", "max", "count") for frame in FRAMES.values()]
        agree(other, reference, each, kind, calls)


def test_without_keys_all_rows_are_one_frame(other: Kernels, reference: Kernels) -> None:
    batch, value = table(t.INT64, 5), Column(2, t.INT64)
    calls = [WindowCall(functions.window(name, [value]), (), (), WHOLE_PARTITION) for name in ("sum", "min", "count")]
    calls.append(WindowCall(functions.window("count", []), (), (), WHOLE_PARTITION))
    agree(other, reference, batch, t.INT64, calls)
    agree(other, reference, batch.slice(0, 0), t.INT64, calls)
    agree(other, reference, batch.slice(133, 200), t.INT64, calls)


def test_sums_of_38_digits(other: Kernels, reference: Kernels) -> None:
    """Whole where they fit, whatever is summed on the way, and an error where they do not."""
    large = Decimal("9" * 36)
    value, frame = Column(2, WIDE), FRAMES["around"]
    call = over("sum", [value], frame)
    turns = pa.array([large if row % 2 else large.copy_negate() for row in range(ROWS)], to_arrow(WIDE))
    batch = table(WIDE, 6).set_column(2, "c2", turns).sort_by([("c4", "ascending")])
    rows = pa.array(np.zeros(ROWS, np.int32)), pa.array(np.arange(ROWS, dtype=np.int32))
    batch = batch.set_column(0, "c0", rows[0]).set_column(1, "c1", rows[1])
    agree(other, reference, batch, WIDE, [call])
    same = pa.array([large] * ROWS, to_arrow(WIDE))
    for backend in (other, reference):
        with pytest.raises(Overflow, match="sum"):
            backend.window(batch.set_column(2, "c2", same), schema_of(types_of(WIDE)), [call])

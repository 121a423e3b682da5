"""Window functions of the rows in a frame, in C++: counts, sums, means, extremes, and values at a place.

Rule: frames reach as far as a number of rows, the peers or the partition; what is bounded by values or by groups of
peers, leaves rows out, skips NULL or tells values apart runs in the reference backend. So does a sum that might need
more than 38 digits, which only the rows tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from bireme.backends.native import _kernels
from bireme.backends.native.joins import has_order
from bireme.backends.native.tables import take
from bireme.data.record import plain, record_batch
from bireme.data.types import FLOAT64, DataType, Kind, decimal, to_arrow
from bireme.plan.expr import Bound, BoundKind, Exclusion, Expr, FrameUnit, Literal, WindowCall
from bireme.plan.window_order import WindowOrder, keys_of

Evaluate: TypeAlias = Callable[[Sequence[Expr]], pa.RecordBatch]
_End: TypeAlias = tuple[str, int]

_PARTITION: Final = ("partition", 0)
_PEERS: Final = ("peers", 0)
_SUMS: Final = {"sum": "sum", "avg": "mean"}
_PICKS: Final = {"min": "smallest", "max": "largest", "bool_and": "smallest", "bool_or": "largest"}
_PLACES: Final = {"first_value": 1, "last_value": -1}
_SHIFTS: Final = {"lag": -1, "lead": 1}
# Farther than any row.
_FAR: Final = 1 << 60


def is_native(call: WindowCall) -> bool:
    """Whether the kernel computes the call, unless the rows tell otherwise."""
    inner = call.call
    if call.ignore_nulls or inner.order or inner.distinct or call.frame.exclusion is not Exclusion.NOTHING:
        return False
    if not all(has_order(to_arrow(kind)) for kind in _key_types(call)) or _ends(call) is None:
        return False
    if inner.function in ("count", "count_star"):
        return all(has_order(to_arrow(arg.type)) for arg in inner.args)
    if inner.function in _SUMS:
        return _has_native_sum(inner.args[0].type, inner.type)
    if not inner.args or not has_order(to_arrow(inner.args[0].type)):
        return False
    return inner.function in _PICKS or (inner.filter is None and _number(call) is not None)


def values_of_frames(calls: Sequence[WindowCall], evaluate: Evaluate) -> dict[WindowCall, pa.Array]:
    """The values of native calls, in the order of the rows, without those that the reference backend has to compute."""
    shared: dict[WindowOrder, list[WindowCall]] = {}
    for call in calls:
        shared.setdefault((call.partition, call.order), []).append(call)
    found: dict[WindowCall, pa.Array] = {}
    for order, some in shared.items():
        found |= _of_order(order, some, evaluate)
    return found


def _of_order(order: WindowOrder, calls: Sequence[WindowCall], evaluate: Evaluate) -> dict[WindowCall, pa.Array]:
    exprs = list(dict.fromkeys(expr for call in calls for expr in _inputs(call)))
    inputs = evaluate(exprs)
    keys = keys_of(order)
    exported = _kernels.window_frames(
        evaluate([key.expr for key in keys]),
        [key.descending for key in keys],
        [key.nulls_first for key in keys],
        len(order[0]),
        inputs,
        [_task(call, exprs) for call in calls],
    )
    columns = pa.record_batch(exported).columns
    return {
        call: _value(call, inputs, exprs, column)
        for call, column in zip(calls, columns, strict=True)
        if call.call.function not in _SUMS or not pa.types.is_null(column.type)
    }


def _value(call: WindowCall, inputs: pa.RecordBatch, exprs: Sequence[Expr], column: pa.Array) -> pa.Array:
    function = call.call.function
    if function in ("count", "count_star") or function in _SUMS:
        return column
    values = plain(inputs.column(exprs.index(call.call.args[0])))
    if _has_default(call):
        values = pa.concat_arrays([values, plain(inputs.column(exprs.index(call.call.args[2])))])
    return take(record_batch([values], ["values"], len(values)), column).column(0)


def _inputs(call: WindowCall) -> tuple[Expr, ...]:
    inner = call.call
    default = inner.args[2:3] if _has_default(call) else ()
    return (*inner.args[:1], *default, *(() if inner.filter is None else (inner.filter,)))


def _task(call: WindowCall, exprs: Sequence[Expr]) -> tuple[str, int, int, _End, _End, int, bool]:
    inner, ends = call.call, _ends(call)
    assert ends is not None
    argument = exprs.index(inner.args[0]) if inner.args else -1
    kept = -1 if inner.filter is None else exprs.index(inner.filter)
    return _kernel_function(inner.function), argument, kept, *ends, _number(call) or 0, _has_default(call)


def _kernel_function(function: str) -> str:
    if function in ("count", "count_star"):
        return "count"
    known = _SUMS | _PICKS | dict.fromkeys(_SHIFTS, "shift")
    return known.get(function, "nth")


def _key_types(call: WindowCall) -> list[DataType]:
    return [expr.type for expr in (*call.partition, *[key.expr for key in call.order])]


def _has_native_sum(kind: DataType, result: DataType) -> bool:
    if kind.is_float or result == FLOAT64:
        return result == FLOAT64 and (kind.is_float or kind.is_integer or kind.kind is Kind.DECIMAL)
    scale = kind.scale if kind.kind is Kind.DECIMAL else 0
    return (kind.is_integer or kind.kind is Kind.DECIMAL) and result == decimal(38, scale)


def _ends(call: WindowCall) -> tuple[_End, _End] | None:
    """What bounds the frame; None where it is neither rows, nor peers, nor the partition."""
    if call.call.function in _SHIFTS:
        return _PARTITION, _PARTITION
    start, end = (_end(bound, call.frame.unit) for bound in (call.frame.start, call.frame.end))
    return None if start is None or end is None else (start, end)


def _end(bound: Bound, unit: FrameUnit) -> _End | None:
    if bound.kind in (BoundKind.UNBOUNDED_PRECEDING, BoundKind.UNBOUNDED_FOLLOWING):
        return _PARTITION
    if bound.kind is BoundKind.CURRENT_ROW:
        return ("offset", 0) if unit is FrameUnit.ROWS else _PEERS
    offset = None if bound.offset is None else _whole(bound.offset)
    if unit is not FrameUnit.ROWS or offset is None or offset < 0:
        return None
    return "offset", -offset if bound.kind is BoundKind.PRECEDING else offset


def _number(call: WindowCall) -> int | None:
    """Which row of the frame a function of places takes, or how far it looks; None where each row says so itself."""
    inner = call.call
    if inner.function in _PLACES:
        return _PLACES[inner.function]
    if inner.function not in _SHIFTS and inner.function != "nth_value":
        return None
    number = _whole(inner.args[1])
    if inner.function == "nth_value":
        return number if number is not None and number > 0 else None
    return None if number is None else _SHIFTS[inner.function] * number


def _has_default(call: WindowCall) -> bool:
    inner = call.call
    if inner.function not in _SHIFTS or len(inner.args) < 3:
        return False
    default = inner.args[2]
    return not (isinstance(default, Literal) and default.value is None)


def _whole(expr: Expr) -> int | None:
    """The value of a constant whole number, as far as rows reach."""
    if not isinstance(expr, Literal) or type(expr.value) is not int:
        return None
    return max(-_FAR, min(expr.value, _FAR))

"""Aggregates of the elements of each list, which are the rows of a group here. NULL elements are skipped."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.aggregates import AGGREGATES
from bireme.backends.reference.elements import Elements, lists_of, sortable
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import Groups
from bireme.backends.reference.values import from_values, to_values
from bireme.backends.reference.vectors import (
    INT64_BOUND,
    Bools,
    Numbers,
    floats,
    from_floats,
    integers,
    magnitude,
    nulls_of,
    widened,
)
from bireme.data.exact_decimal import EXACT
from bireme.data.types import FLOAT64, DataType, list_of
from bireme.plan.expr import Call
from bireme.plan.physical import AggregateStep

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

# Whole numbers that doubles hold.
EXACT_MAX: Final = 1 << 53


def _summary(compute: Callable[[Elements, DataType], pa.Array]) -> Evaluator:
    """A function of the elements, and of the type of its result."""
    return lambda call, args: compute(Elements(args[0], call.args[0].type), call.type)


def _as_aggregate(function: str) -> Evaluator:
    """The aggregate of that name, which is NULL over no value."""
    return _summary(lambda lists, kind: _aggregate(function, lists, kind))


def _aggregate(function: str, lists: Elements, kind: DataType) -> pa.Array:
    step = AggregateStep(function, 0, lists.kind, kind)
    partial, _, finish = AGGREGATES[function]
    return finish(step, partial(step, lists.values, _groups(lists), 0))


class _Lists(Groups):
    """Each list as the group of its elements, which lie together."""

    def __init__(self, lists: Elements) -> None:
        super().__init__(lists.rows, len(lists.lengths))
        self._lists = lists

    def fold(self, values: Numbers, chosen: Bools, combine: np.ufunc) -> tuple[Numbers, Bools]:
        if not chosen.all():
            return super().fold(values, chosen, combine)
        filled = self._lists.lengths > 0
        folded = np.zeros(self.count, values.dtype)
        if len(values):
            folded[filled] = combine.reduceat(values, self._lists.starts[filled])
        return folded, ~filled


def _groups(lists: Elements) -> Groups:
    return _Lists(lists)


def _count(lists: Elements, kind: DataType) -> pa.Array:
    return pa.array(lists.counts(lists.there), pa.int64(), mask=lists.missing)


def _average(lists: Elements, kind: DataType) -> pa.Array:
    """Whole numbers, and decimals as such, are divided exactly, and rounded once."""
    counts = np.maximum(lists.counts(lists.there), 1)
    if lists.kind.is_float:
        with np.errstate(all="ignore"):
            total, missing = _groups(lists).fold(floats(lists.values), lists.there, np.add)
            return from_floats(total / counts, missing, FLOAT64)
    values = integers(lists.values)
    values = widened(values, magnitude(values) * max(1, len(values)))
    total, missing = _groups(lists).fold(values, lists.there, np.add)
    divisor = widened(counts, INT64_BOUND) * 10**lists.kind.scale
    if max(magnitude(total), magnitude(divisor)) < EXACT_MAX:
        total, divisor = total.astype(np.float64), divisor.astype(np.float64)
    else:
        total = widened(total, INT64_BOUND)
    return from_floats(total / divisor, missing, FLOAT64)


def _extreme(is_greatest: bool) -> Evaluator:
    def compute(lists: Elements, kind: DataType) -> pa.Array:
        codes = sortable(lists.codes())
        best, _ = _groups(lists).fold(codes, lists.there, np.maximum if is_greatest else np.minimum)
        return lists.picked(lists.first(lists.there & (codes == best[lists.rows])))

    return _summary(compute)


def _any_value(lists: Elements, kind: DataType) -> pa.Array:
    return lists.picked(lists.first(lists.there))


def _standard_error(lists: Elements, kind: DataType) -> pa.Array:
    variance = floats(_aggregate("var_pop", lists, FLOAT64))
    counts = lists.counts(lists.there)
    with np.errstate(all="ignore"):
        return from_floats(np.sqrt(variance) / np.sqrt(np.maximum(counts, 1)), counts == 0, FLOAT64)


# ------------------------------------------------------------------------------------- places in an order


def _mode(lists: Elements, kind: DataType) -> pa.Array:
    """Of several that are most frequent the first."""
    ordered, starts = lists.runs(sortable(lists.codes()))
    counts = np.diff(starts, append=len(ordered))
    first = ordered[starts]
    best = np.lexsort((first, -counts, lists.rows[first]))
    return lists.picked(lists.first_of(first[best]))


def _median(lists: Elements, kind: DataType) -> pa.Array:
    ordered = lists.in_order(lists.codes(), lists.there)
    counts = lists.counts(lists.there)
    starts = np.cumsum(counts) - counts
    low, high = (_at(ordered, starts + (counts - less) // 2, counts > 0) for less in (1, 0))
    return _between(lists.picked(low), lists.picked(high), kind)


def _at(elements: Rows, places: Rows, chosen: Bools) -> Rows:
    """The elements at some places; -1 where they are not chosen."""
    found = np.full(len(places), -1, np.int64)
    found[chosen] = elements[places[chosen]]
    return found


def _between(low: pa.Array, high: pa.Array, kind: DataType) -> pa.Array:
    """The value in the middle of two, which may be the same."""
    if kind.is_float:
        one, other = floats(low), floats(high)
        with np.errstate(all="ignore"):
            return from_floats(np.where(one == other, one, one * 0.5 + other * 0.5), nulls_of(low), kind)
    pairs = zip(to_values(low, kind), to_values(high, kind), strict=True)
    return from_values([one if one == other else _middle(one, other) for one, other in pairs], kind)


def _middle(low: Any, high: Any) -> Any:
    match low:
        case Decimal():
            between = EXACT.divide(EXACT.add(low, high), Decimal(2))
            return between.quantize(low, rounding="ROUND_DOWN", context=EXACT)
        case datetime.datetime():
            return low + datetime.timedelta(microseconds=(high - low) // datetime.timedelta(microseconds=1) // 2)
    return low


def _mad(lists: Elements, kind: DataType) -> pa.Array:
    """The median of how far the values are from their median."""
    middles = floats(_median(lists, FLOAT64))
    with np.errstate(all="ignore"):
        away = np.abs(floats(lists.values) - middles[lists.rows])
    distances = from_floats(away, ~lists.there, FLOAT64)
    return _median(Elements(lists_of(distances, lists.lengths, lists.missing, FLOAT64), list_of(FLOAT64)), FLOAT64)


def _entropy(lists: Elements, kind: DataType) -> pa.Array:
    """Of n values of which c are alike: log2(n) less the mean of log2(c); 0 of none."""
    ordered, starts = lists.runs(sortable(lists.codes()))
    alike = np.diff(starts, append=len(ordered))
    rows = lists.rows[ordered[starts]]
    shared = np.bincount(rows, alike * np.log2(np.maximum(alike, 1)), len(lists.lengths))
    counts = np.maximum(lists.counts(lists.there), 1)
    return from_floats(np.log2(counts) - shared / counts, lists.missing, FLOAT64)


# ------------------------------------------------------------------------------------------------ moments


def _powers(lists: Elements, count: int) -> tuple[Rows, list[Any], Any]:
    """How many values there are, the sums of their first powers, and the mean square of what differs from the mean."""
    values, rows = floats(lists.values), lists.counts(lists.there)
    sums = [_groups(lists).fold(values**power, lists.there, np.add)[0] for power in range(1, count + 1)]
    share = 1.0 / np.maximum(rows, 1)
    return rows, sums, share * (sums[1] - sums[0] * sums[0] * share)


def _skewness(lists: Elements, kind: DataType) -> pa.Array:
    with np.errstate(all="ignore"):
        rows, (total, squares, cubes), square = _powers(lists, 3)
        share = 1.0 / rows
        cube = np.maximum(square**3, 0.0)
        third = cubes - 3.0 * squares * total * share + 2.0 * total**3 * share * share
        value = np.sqrt(rows * (rows - 1.0)) / (rows - 2.0) * share * third / np.sqrt(cube)
    return from_floats(value, (rows <= 2) | (cube == 0), FLOAT64)


def _kurtosis(of_sample: bool) -> Callable[[Elements, DataType], pa.Array]:
    def compute(lists: Elements, kind: DataType) -> pa.Array:
        with np.errstate(all="ignore"):
            rows, (total, squares, cubes, fourths), square = _powers(lists, 4)
            share = 1.0 / rows
            fourth = fourths - 4.0 * cubes * total * share + 6.0 * squares * total * total * share * share
            ratio = share * (fourth - 3.0 * total**4 * share**3) / (square * square)
            excess = (rows + 1.0) * ratio - 3.0 * (rows - 1.0)
            value = (rows - 1.0) * excess / ((rows - 2.0) * (rows - 3.0)) if of_sample else ratio - 3.0
        return from_floats(value, (rows <= (3 if of_sample else 1)) | (square <= 0), FLOAT64)

    return compute


_OF_AGGREGATES: Final = (
    "sum", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "product", "bool_and", "bool_or",
)  # fmt: skip

FUNCTIONS: Final[dict[str, Evaluator]] = {
    **{f"list_{name}": _as_aggregate(name) for name in _OF_AGGREGATES},
    "list_count": _summary(_count),
    "list_avg": _summary(_average),
    "list_min": _extreme(is_greatest=False),
    "list_max": _extreme(is_greatest=True),
    "list_sem": _summary(_standard_error),
    "list_median": _summary(_median),
    "list_mode": _summary(_mode),
    "list_mad": _summary(_mad),
    "list_entropy": _summary(_entropy),
    "list_skewness": _summary(_skewness),
    "list_kurtosis": _summary(_kurtosis(of_sample=True)),
    "list_kurtosis_pop": _summary(_kurtosis(of_sample=False)),
    "list_any_value": _summary(_any_value),
}

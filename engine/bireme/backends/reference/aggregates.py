"""The aggregates: what a batch adds to their states, how states merge, and what results from them.

Each works on whole columns; which rows are one group is in `row_groups`. Lists of values are in `collected`,
quantiles in `ranked`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import collected, ranked
from bireme.backends.reference.keys import order_code
from bireme.backends.reference.row_groups import Groups, picked
from bireme.backends.reference.vectors import (
    Bools,
    Numbers,
    floats,
    from_floats,
    from_integers,
    integers,
    magnitude,
    nulls_of,
    widened,
)
from bireme.data import arrays
from bireme.data.types import FLOAT64, TIMESTAMP, DataType
from bireme.errors import Unsupported
from bireme.plan.physical import AggregateStep
from bireme.plan.states import avg_sum_type

States = list[pa.Array]
Partial = Callable[[AggregateStep, pa.Array, Groups, int], States]
Merge = Callable[[AggregateStep, States, Groups], States]
Finish = Callable[[AggregateStep, States], pa.Array]


def _int64(values: Numbers, missing: Bools | None = None) -> pa.Array:
    return arrays.from_numpy(np.asarray(values, np.int64), missing=missing)


# ------------------------------------------------------------------------------------- sums of any numbers


def _sum(array: pa.Array, kind: DataType, groups: Groups, what: str) -> pa.Array:
    chosen = ~nulls_of(array)
    if kind.is_float:
        with np.errstate(all="ignore"):
            total, missing = groups.fold(floats(array), chosen, np.add)
        return from_floats(total, missing, kind)
    values = integers(array)
    total, missing = groups.fold(widened(values, magnitude(values) * max(1, len(values))), chosen, np.add)
    return from_integers(total, missing, kind, lambda row: f"{what} of {total[row]} (without its decimal point)")


def _sum_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    return [_sum(arg, step.type, groups, "sum")]


def _sum_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_sum(states[0], step.type, groups, "sum")]


def _avg_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    return [_sum(arg, avg_sum_type(step), groups, "sum"), _int64(groups.counts(~nulls_of(arg)))]


def _avg_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_sum(states[0], avg_sum_type(step), groups, "sum"), _added(states[1], groups)]


def _avg_final(step: AggregateStep, states: States) -> pa.Array:
    """The double of the sum, over the double of the count times the power of ten; time points round down."""
    counts = integers(states[1])
    missing = counts == 0
    divisor = np.where(missing, 1, counts)
    if step.type is TIMESTAMP:
        return from_integers(widened(integers(states[0]), 1 << 63) // divisor, missing, TIMESTAMP, lambda _: "avg")
    if states[0].type == pa.float64():
        with np.errstate(all="ignore"):
            return from_floats(floats(states[0]) / divisor, missing, FLOAT64)
    scale = avg_sum_type(step).scale
    return from_floats(integers(states[0]).astype(np.float64) / (divisor * float(10**scale)), missing, FLOAT64)


def _added(array: pa.Array, groups: Groups) -> pa.Array:
    total, _ = groups.fold(integers(array), np.ones(len(array), np.bool_), np.add)
    return _int64(total)


# -------------------------------------------------------------------------------------------------- counts


def _count_partial(step: AggregateStep, arg: pa.Array | None, groups: Groups, position: int) -> States:
    chosen = np.ones(len(groups.ids), np.bool_) if arg is None else ~nulls_of(arg)
    return [_int64(groups.counts(chosen))]


def _count_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return [_added(states[0], groups)]


# ---------------------------------------------------------------------------------------- one of the values


def _extreme(step: AggregateStep, values: pa.Array, groups: Groups) -> States:
    """min, max, bool_and (the least truth), bool_or (the greatest) and any_value (the first)."""
    code: Numbers = np.zeros(len(values), np.int64)
    if step.function != "any_value":
        code = order_code(values)
    if step.function in ("max", "bool_or"):
        _, dense = np.unique(code, return_inverse=True)
        code = -dense.reshape(-1)
    return [picked(values, groups.first(code, ~nulls_of(values)))]


def _ends(step: AggregateStep, values: pa.Array, positions: Numbers, chosen: Bools, groups: Groups) -> States:
    rows = groups.first(positions if step.function == "first" else -positions, chosen)
    gone = rows < 0
    return [picked(values, rows), _int64(np.where(gone, 0, positions[rows]), gone)]


def _ends_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    positions = position + np.arange(len(arg), dtype=np.int64)
    return _ends(step, arg, positions, np.ones(len(arg), np.bool_), groups)


def _ends_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return _ends(step, states[0], integers(states[1]), ~nulls_of(states[1]), groups)


# ------------------------------------------------------------------------------------------------ variance


def _moments(count: Numbers, mean: Numbers, deviations: Numbers, groups: Groups) -> States:
    """Parts with a count, a mean and a sum of squared deviations, as one (Chan, Golub and LeVeque 1983)."""
    chosen = count > 0
    with np.errstate(all="ignore"):
        total, _ = groups.fold(count, chosen, np.add)
        weighted, _ = groups.fold(np.where(chosen, mean * count, 0.0), chosen, np.add)
        common = np.divide(weighted, total, out=np.zeros(groups.count), where=total > 0)
        apart = mean - common[groups.ids]
        spread = deviations + np.where(count > 1, count, 1.0) * apart * apart
        squares, _ = groups.fold(np.where(chosen, spread, 0.0), chosen, np.add)
    present = np.zeros(groups.count, np.bool_)
    return [_int64(total), from_floats(common, present, FLOAT64), from_floats(squares, present, FLOAT64)]


def _variance_partial(step: AggregateStep, arg: pa.Array, groups: Groups, position: int) -> States:
    count = (~nulls_of(arg)).astype(np.int64)
    return _moments(count, floats(arg), np.zeros(len(arg)), groups)


def _variance_merge(step: AggregateStep, states: States, groups: Groups) -> States:
    return _moments(integers(states[0]), floats(states[1]), floats(states[2]), groups)


def _variance_final(step: AggregateStep, states: States) -> pa.Array:
    count, squares = integers(states[0]), floats(states[2])
    freedom = count - 1 if step.function.endswith("samp") else count
    missing = freedom <= 0
    with np.errstate(all="ignore"):
        values = squares / np.where(missing, 1, freedom)
        values = np.sqrt(values) if step.function.startswith("stddev") else values
    return from_floats(values, missing, FLOAT64)


# -------------------------------------------------------------------------------- bits and products

_BITS: Final = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}


def _bits(step: AggregateStep, values: pa.Array, groups: Groups) -> States:
    folded, missing = groups.fold(integers(values), ~nulls_of(values), _BITS[step.function])
    return [from_integers(folded, missing, step.type, lambda _: step.function)]


def _product(step: AggregateStep, values: pa.Array, groups: Groups) -> States:
    with np.errstate(all="ignore"):
        folded, missing = groups.fold(floats(values), ~nulls_of(values), np.multiply)
    return [from_floats(folded, missing, FLOAT64)]


def _folded(fold: Callable[[AggregateStep, pa.Array, Groups], States]) -> tuple[Partial, Merge, Finish]:
    """An aggregate whose state is its result."""
    return (
        lambda step, arg, groups, position: fold(step, arg, groups),
        lambda step, states, groups: fold(step, states[0], groups),
        _first_state,
    )


def _first_state(step: AggregateStep, states: States) -> pa.Array:
    return states[0]


_EXTREME: Final = _folded(_extreme)
_VARIANCE: Final = (_variance_partial, _variance_merge, _variance_final)
_COUNT: Final = (_count_partial, _count_merge, _first_state)
_RANKED: Final = (ranked.partial, ranked.merge, ranked.finish)
_ENDS: Final = (_ends_partial, _ends_merge, _first_state)

AGGREGATES: Final[dict[str, tuple[Partial, Merge, Finish]]] = {
    "count": _COUNT,
    "count_star": _COUNT,
    "sum": (_sum_partial, _sum_merge, _first_state),
    "avg": (_avg_partial, _avg_merge, _avg_final),
    "min": _EXTREME,
    "max": _EXTREME,
    "any_value": _EXTREME,
    "bool_and": _EXTREME,
    "bool_or": _EXTREME,
    "first": _ENDS,
    "last": _ENDS,
    "var_samp": _VARIANCE,
    "var_pop": _VARIANCE,
    "stddev_samp": _VARIANCE,
    "stddev_pop": _VARIANCE,
    "bit_and": _folded(_bits),
    "bit_or": _folded(_bits),
    "bit_xor": _folded(_bits),
    "product": _folded(_product),
    "quantile_lower": _RANKED,
    "quantile_higher": _RANKED,
    "quantile_discrete": _RANKED,
    "array_agg": (collected.partial, collected.merge, _first_state),
    "collect": (collected.partial, collected.merge, _first_state),
}


def check_supported(function: str) -> None:
    """Raises Unsupported for an aggregate that is not implemented."""
    if function not in AGGREGATES:
        raise Unsupported(f"the aggregate {function} cannot be computed here yet; use count, sum, avg, min or max")

"""The columns in which a partial aggregate travels between the pipelines, and the workers, that share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.schema import Schema
from bireme.data.types import FLOAT64, INT64, DataType, Field, Kind, decimal, list_of
from bireme.plan.physical import AggregateStep, GroupSpec

# Aggregates that need all values of a group at once: their rows are not grouped early, they meet in the merge.
HOLISTIC: Final = frozenset({"quantile_lower", "quantile_higher", "quantile_discrete"})
# Aggregates whose result is a list of values: it is as long as its states together, so nothing is gained by merging
# these early, and they are put together at the end.
COLLECTING: Final = frozenset({"array_agg", "collect"})


def input_names(count: int) -> tuple[str, ...]:
    """The names of a group table's input columns. Those of states differ, so batches of both may share an edge."""
    return tuple([f"c{index}" for index in range(count)])


def is_input(names: Sequence[str]) -> bool:
    """Whether columns of these names, keys among them, are the input of a group table; else they are states."""
    return names[0] == "c0"


def state_schema(spec: GroupSpec) -> Schema:
    """Keys, then the state columns of each aggregate in turn."""
    types = [*spec.key_types, *(kind for step in spec.aggregates for kind in state_types(step))]
    return Schema(tuple([Field(f"s{index}", kind) for index, kind in enumerate(types)]))


def state_types(step: AggregateStep) -> tuple[DataType, ...]:
    """The columns of a partial aggregate's state, equal in every backend so that states can travel.

    count: the count. sum, min, max, any_value, bool_and, bool_or: the value (NULL over no value). avg: the sum, in
    `avg_sum_type`, and the count. var and stddev: count, mean, and sum of squared deviations
    (merged by Chan et al. 1983). first and last: the value, and the position it came from (NULL over no row).
    array_agg and collect: a list, and the position of the first of its rows; a group has a state for each batch of
    rows, whose positions no other state lies between. Quantiles: the list of values, in any order, which only the
    reference backend has. Others: the result so far.
    """
    match step.function:
        case "count" | "count_star":
            return (INT64,)
        case "avg":
            return (avg_sum_type(step), INT64)
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            return (INT64, FLOAT64, FLOAT64)
        case "first" | "last":
            return (step.type, INT64)
        case _ if step.function in COLLECTING:
            return (step.type, INT64)
        case _ if step.function in HOLISTIC:
            return (list_of(step.type),)
        case _:
            return (step.type,)


def sees_order(function: str) -> bool:
    """Whether the aggregate depends on the order of rows, so that its states hold positions."""
    return function in ("first", "last") or function in COLLECTING


def is_collecting(spec: GroupSpec) -> bool:
    """Whether a grouping has aggregates whose states are as long as what they are of."""
    return any(step.function in COLLECTING for step in spec.aggregates)


def is_holistic(spec: GroupSpec) -> bool:
    """Whether a grouping has aggregates without states."""
    return any(step.function in HOLISTIC for step in spec.aggregates)


def avg_sum_type(step: AggregateStep) -> DataType:
    """The type in which `avg` sums: 38 digits for exact numbers, double for floats."""
    assert step.arg_type is not None
    if step.arg_type.is_float:
        return FLOAT64
    return decimal(38, step.arg_type.scale if step.arg_type.kind is Kind.DECIMAL else 0)

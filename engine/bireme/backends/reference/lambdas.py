"""Functions that a lambda is given to: its body is evaluated over the elements of all lists at once, as over rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.casts import cast_array
from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import bools, nulls_of
from bireme.data.types import to_arrow
from bireme.errors import DomainFault
from bireme.plan.expr import Call, Lambda, Parameter

if TYPE_CHECKING:
    from bireme.backends.reference.expressions import Scope

Evaluator = Callable[["Scope", Call, Lambda], pa.Array]


def _elements(lists: pa.Array) -> tuple[pa.Array, Rows, Rows]:
    """The elements of all lists one after the other, the row of each, and its place in its list."""
    lengths = lengths_of(lists)
    rows = np.repeat(np.arange(len(lists)), lengths)
    starts = np.cumsum(lengths) - lengths
    return lists.flatten(), rows, np.arange(len(rows)) - starts[rows] + 1


def _given(function: Lambda, *values: pa.Array) -> Mapping[Parameter, pa.Array]:
    """Values for the parameters, as far as there are some."""
    return dict(zip(function.parameters, values, strict=False))


def _values(scope: Scope, lists: pa.Array, function: Lambda) -> tuple[pa.Array, pa.Array, Rows]:
    """The elements, what the lambda gives for each, and the row of each."""
    elements, rows, places = _elements(lists)
    inner = scope.at(rows, _given(function, elements, pa.array(places, pa.int64())))
    return elements, inner.evaluate(function.body), rows


def _transform(scope: Scope, call: Call, function: Lambda) -> pa.Array:
    lists = scope.evaluate(call.args[0])
    _, values, _ = _values(scope, lists, function)
    kind = to_arrow(call.type)
    values = values if values.type == kind.value_type else values.cast(kind.value_type)
    return list_array(kind, values, lengths_of(lists), nulls_of(lists))


def _filter(scope: Scope, call: Call, function: Lambda) -> pa.Array:
    lists = scope.evaluate(call.args[0])
    elements, keeps, rows = _values(scope, lists, function)
    chosen = bools(keeps)
    lengths = np.bincount(rows[chosen], minlength=len(lists))
    return list_array(to_arrow(call.type), elements.filter(pa.array(chosen)), lengths, nulls_of(lists))


def _reduce(scope: Scope, call: Call, function: Lambda) -> pa.Array:
    """One step for all lists at a time: those that have another element."""
    lists = scope.evaluate(call.args[0])
    elements, lengths, missing = lists.flatten(), lengths_of(lists), nulls_of(lists)
    starts = np.cumsum(lengths) - lengths
    rows = np.flatnonzero(~missing)
    if len(call.args) == 2:
        if (lengths[rows] == 0).any():
            raise DomainFault("list_reduce of an empty list has no value; give it a first value as a third argument")
        first = elements.take(pa.array(starts[rows]))
        value, done = cast_array(first, call.args[0].type.children[0].type, call.type, safe=False), 1
    else:
        value, done = scope.evaluate(call.args[2]).take(pa.array(rows)), 0
    parts: list[tuple[Rows, pa.Array]] = []
    while len(rows):
        more = lengths[rows] > done
        parts.append((rows[~more], value.filter(pa.array(~more))))
        rows, value = rows[more], value.filter(pa.array(more))
        if not len(rows):
            break
        element = elements.take(pa.array(starts[rows] + done))
        place = pa.array(np.full(len(rows), done + 1), pa.int64())
        value = scope.at(rows, _given(function, value, element, place)).evaluate(function.body)
        done += 1
    return scope.merged(parts, call.type)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "list_transform": _transform,
    "list_filter": _filter,
    "list_reduce": _reduce,
}

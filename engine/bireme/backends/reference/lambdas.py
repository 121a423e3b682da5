"""Functions that a lambda is given to: its body is evaluated over the elements of all lists at once, as over rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.casts import cast_array
from bireme.backends.reference.collected import lengths_of
from bireme.backends.reference.elements import Elements, lists_of
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.vectors import bools, nulls_of
from bireme.errors import DomainFault
from bireme.plan.expr import Call, Lambda, Parameter

if TYPE_CHECKING:
    from bireme.backends.reference.expressions import Scope

Evaluator = Callable[["Scope", Call, Lambda], pa.Array]


def _given(function: Lambda, *values: pa.Array) -> Mapping[Parameter, pa.Array]:
    """Values for the parameters, as far as there are some."""
    return dict(zip(function.parameters, values, strict=False))


def _values(scope: Scope, call: Call, function: Lambda) -> tuple[Elements, pa.Array]:
    """The elements, and what the lambda gives for each."""
    lists = Elements(scope.evaluate(call.args[0]), call.args[0].type)
    inner = scope.at(lists.rows, _given(function, lists.values, pa.array(lists.places() + 1, pa.int64())))
    return lists, inner.evaluate(function.body)


def _transform(scope: Scope, call: Call, function: Lambda) -> pa.Array:
    lists, values = _values(scope, call, function)
    return lists_of(values, lists.lengths, lists.missing, call.type.children[0].type)


def _filter(scope: Scope, call: Call, function: Lambda) -> pa.Array:
    lists, keeps = _values(scope, call, function)
    chosen = bools(keeps)
    return lists.lists(np.flatnonzero(chosen), lists.counts(chosen))


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

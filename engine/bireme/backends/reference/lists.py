"""Functions of lists on columns, over the elements of all lists at once. NULL elements are skipped where values are
compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.collected import list_array
from bireme.backends.reference.elements import Elements, codes_of, lists_of, sortable, spread
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.row_groups import picked
from bireme.backends.reference.values import by_row
from bireme.backends.reference.vectors import Bools, any_null, bools, from_bools, integers, nulls_of
from bireme.data import arrays
from bireme.data.record import plain
from bireme.data.types import INT32, STRING, to_arrow
from bireme.errors import DomainFault, TooMuchAtOnce, ValueTooLarge
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

# Longer than any list.
_FAR: Final = 1 << 40


def _lists(call: Call, args: list[pa.Array]) -> list[Elements]:
    return [Elements(array, arg.type) for array, arg in zip(args, call.args, strict=True)]


def _of_elements(compute: Callable[[Elements], pa.Array]) -> Evaluator:
    """A function of one list."""
    return lambda call, args: compute(Elements(args[0], call.args[0].type))


# ------------------------------------------------------------------------------------------ whole columns


def _list_value(call: Call, args: list[pa.Array]) -> pa.Array:
    rows, width = len(args[0]), len(args)
    kind = to_arrow(call.type)
    together = pa.concat_arrays([arg if arg.type == kind.value_type else arg.cast(kind.value_type) for arg in args])
    places = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    none = np.zeros(rows, np.bool_)
    return list_array(kind, together.take(arrays.from_numpy(places)), np.full(rows, width), none)


def _length(call: Call, args: list[pa.Array]) -> pa.Array:
    return pc.list_value_length(args[0]).cast(pa.int64())


def _flatten(lists: Elements) -> pa.Array:
    inner = Elements(lists.values, lists.kind)
    lengths = np.bincount(lists.rows, inner.lengths, len(lists.lengths)).astype(np.int64)
    return lists_of(inner.values, lengths, lists.missing, inner.kind)


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    """NULL is no list at all."""
    lists = _lists(call, args)
    values = pa.concat_arrays([each.values for each in lists])
    order = np.argsort(np.concatenate([each.rows for each in lists]), kind="stable")
    lengths = np.sum([each.lengths for each in lists], axis=0)
    return lists_of(picked(values, order), lengths, np.zeros(len(lengths), np.bool_), lists[0].kind)


def _joined(call: Call, args: list[pa.Array]) -> pa.Array:
    separators = plain(args[1]).cast(pa.string())
    if args[0].values.null_count == 0 and call.args[0].type.children[0].type is STRING:
        return _joined_texts(args[0], separators)
    lists = Elements(args[0], call.args[0].type)
    counts = lists.counts(lists.there)
    missing = lists.missing | nulls_of(separators) | ((counts == 0) & (lists.lengths > 0))
    texts = lists_of(lists.values.filter(arrays.from_numpy(lists.there)), counts, lists.missing, STRING)
    return pc.if_else(arrays.from_numpy(missing), pa.nulls(1, pa.string())[0], _joined_texts(texts, separators))


def _joined_texts(lists: pa.Array, separators: pa.Array) -> pa.Array:
    """The texts of each list as one. None of them may be NULL; lists and separators may."""
    try:
        return pc.binary_join(lists, separators)
    except pa.ArrowCapacityError as error:
        fault = ValueTooLarge if len(lists) == 1 else TooMuchAtOnce
        raise fault("lists joined into texts give more than 2 GiB of them; join fewer values") from error


# ---------------------------------------------------------------------------------------------- elements


def _extract(call: Call, args: list[pa.Array]) -> pa.Array:
    return _nth(Elements(args[0], call.args[0].type), np.where(nulls_of(args[1]), 0, integers(args[1])))


def _nth(lists: Elements, index: Rows) -> pa.Array:
    at = np.where(index > 0, index - 1, lists.lengths + index)
    inside = (index != 0) & (at >= 0) & (at < lists.lengths)
    return lists.picked(np.where(inside, lists.starts + at, -1))


def _end(index: int) -> Evaluator:
    return _of_elements(lambda lists: _nth(lists, np.full(len(lists.lengths), index, np.int64)))


def _slice(call: Call, args: list[pa.Array]) -> pa.Array:
    if call.args[0].type is STRING:
        return by_row(_part)(call, args)
    return _every(call, args, np.ones(len(args[0]), np.int64))


def _part(text: str, first: int, last: int) -> str:
    start = first - 1 if first > 0 else max(0, len(text) + first if first else 0)
    end = last if last >= 0 else len(text) + last + 1
    return text[start : max(start, end)]


def _stepped(call: Call, args: list[pa.Array]) -> pa.Array:
    step = integers(args[3])
    if ((step == 0) & ~any_null(args)).any():
        raise DomainFault("a step of 0 leads nowhere; the step of a slice is at least 1, or negative")
    return _every(call, args, np.clip(np.where(step == 0, 1, step), -_FAR, _FAR))


def _every(call: Call, args: list[pa.Array], step: Rows) -> pa.Array:
    """Every so many elements between two positions; backwards from the second one."""
    lists, missing = Elements(args[0], call.args[0].type), any_null(args)
    one, other = integers(args[1]), integers(args[2])
    first, last = np.where(step > 0, one, other), np.where(step > 0, other, one)
    start = np.where(first > 0, first - 1, np.where(first < 0, np.maximum(0, lists.lengths + first), 0))
    start = np.minimum(start, lists.lengths)
    end = np.minimum(np.where(last >= 0, last, lists.lengths + last + 1), lists.lengths)
    width = np.where(missing, 0, np.maximum(0, end - start))
    counts = -(-width // np.abs(step))
    from_start = np.where(step > 0, start, start + width - 1)
    return lists.lists(spread(lists.starts + from_start, counts, step), counts, missing)


def _reverse(lists: Elements) -> pa.Array:
    elements = spread(lists.starts + lists.lengths - 1, lists.lengths, np.full(len(lists.lengths), -1))
    return lists.lists(elements, lists.lengths)


def _matches(call: Call, args: list[pa.Array]) -> tuple[Elements, Bools]:
    """The elements, and which are equal to the value of their row, or NULL as it is."""
    lists = Elements(args[0], call.args[0].type)
    codes, wanted = codes_of([lists.values, args[1]], lists.kind)
    match = codes == wanted[lists.rows]
    if args[1].null_count or not lists.there.all():
        match &= lists.there != nulls_of(args[1])[lists.rows]
    return lists, match


def _position(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, match = _matches(call, args)
    found = lists.first(match)
    return pa.array(found - lists.starts + 1, to_arrow(INT32), mask=found < 0)


def _contains(call: Call, args: list[pa.Array]) -> pa.Array:
    """Nothing is in an empty list, not even what is unknown."""
    lists, match = _matches(call, args)
    return from_bools(lists.first(match) >= 0, lists.missing | (nulls_of(args[1]) & (lists.lengths > 0)))


def _distinct(lists: Elements) -> pa.Array:
    first = _different(lists)
    return lists.lists(first, np.bincount(lists.rows[first], minlength=len(lists.lengths)))


def _different(lists: Elements) -> Rows:
    """The first of equal elements, in the order of the lists."""
    ordered, starts = lists.runs(lists.codes())
    return np.sort(ordered[starts])


def _unique(lists: Elements) -> pa.Array:
    counts = np.bincount(lists.rows[_different(lists)], minlength=len(lists.lengths))
    return pa.array(counts, pa.uint64(), mask=lists.missing)


# ---------------------------------------------------------------------------------------------- two lists


def _met(one: Elements, other: Elements) -> tuple[Bools, Bools]:
    """Which elements, of both, are there and equal to one that is there in the other list."""
    there = np.flatnonzero(np.concatenate([one.there, other.there]))
    codes = np.concatenate(codes_of([one.values, other.values], one.kind))[there]
    rows = np.concatenate([one.rows, other.rows])[there]
    order = np.lexsort((sortable(codes), rows))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(rows[order]) != 0) | (codes[order[1:]] != codes[order[:-1]])
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(new) - 1
    is_other = there >= len(one.rows)
    runs = int(new.sum())
    sides = [np.bincount(run[side], minlength=runs) > 0 for side in (~is_other, is_other)]
    met = np.zeros(len(one.rows) + len(other.rows), np.bool_)
    met[there] = (sides[0] & sides[1])[run]
    return met[: len(one.rows)], met[len(one.rows) :]


def _has_any(call: Call, args: list[pa.Array]) -> pa.Array:
    one, other = _lists(call, args)
    met, _ = _met(one, other)
    return from_bools(one.counts(met) > 0, any_null(args))


def _has_all(call: Call, args: list[pa.Array]) -> pa.Array:
    one, other = _lists(call, args)
    _, met = _met(one, other)
    return from_bools(other.counts(other.there & ~met) == 0, any_null(args))


def _intersection(call: Call, args: list[pa.Array]) -> pa.Array:
    one, other = _lists(call, args)
    met, _ = _met(one, other)
    found = _different(one)
    found = found[met[found]]
    return one.lists(found, np.bincount(one.rows[found], minlength=len(one.lengths)))


# -------------------------------------------------------------------------------------------------- order


def _order(call: Call, args: list[pa.Array]) -> tuple[Elements, Rows]:
    """The elements of each list in order, equal ones as they are in it."""
    lists = Elements(args[0], call.args[0].type)
    descending, nulls_first = (bools(arg)[lists.rows] for arg in args[1:])
    codes = sortable(lists.codes())
    codes = np.where(lists.there, np.where(descending, ~codes, codes), 0)
    return lists, np.lexsort((codes, lists.there == nulls_first, lists.rows))


def _sort(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, order = _order(call, args)
    return lists.lists(order, lists.lengths)


def _grade_up(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, order = _order(call, args)
    return list_array(to_arrow(call.type), pa.array(lists.places()[order] + 1), lists.lengths, lists.missing)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "list_value": _list_value,
    "list_length": _length,
    "list_distinct": _of_elements(_distinct),
    "list_unique": _of_elements(_unique),
    "list_reverse": _of_elements(_reverse),
    "list_first": _end(1),
    "list_last": _end(-1),
    "list_contains": _contains,
    "list_position": _position,
    "list_concat": _concat,
    "list_has_any": _has_any,
    "list_has_all": _has_all,
    "list_intersect": _intersection,
    "list_extract": _extract,
    "list_slice": _slice,
    "list_slice_step": _stepped,
    "array_to_string": _joined,
    "flatten": _of_elements(_flatten),
    "list_sort": _sort,
    "list_grade_up": _grade_up,
}

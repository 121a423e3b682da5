"""The elements of all lists of a column, one after the other: what functions of lists are computed over at once.

Elements are equal and ordered as in `keys`: NaN equals NaN and is the greatest number, and a day is as long as 24
hours. NULLs inside of an element are equal and behind all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import keys
from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.order_keys import order_key
from bireme.backends.reference.row_groups import picked
from bireme.backends.reference.values import to_values
from bireme.backends.reference.vectors import Bools, Numbers, nulls_of
from bireme.data.record import plain
from bireme.data.types import DataType, to_arrow
from bireme.plan.functions.order_keys import has_order

# What numbers of elements take while they are made, with those that they are made of.
BYTES_AN_ELEMENT: Final = 32


class Elements:
    """Arrays by element, in the order of rows: `values`, the `rows` that they are of, and which are `there`, not NULL.

    Arrays by row: where its elements begin, how many there are, and whether its list is NULL.
    """

    def __init__(self, lists: pa.Array, kind: DataType) -> None:
        lists = _typed(lists, kind)
        self.kind = kind.children[0].type
        self.values = plain(lists.flatten())
        self.lengths = lengths_of(lists)
        self.missing = nulls_of(lists)
        self.starts: Rows = np.cumsum(self.lengths) - self.lengths
        self.rows: Rows = np.repeat(np.arange(len(lists)), self.lengths)
        self.there: Bools = ~nulls_of(self.values)

    def places(self) -> Rows:
        """Where each element is in its list, from 0."""
        return np.arange(len(self.rows)) - self.starts[self.rows]

    def counts(self, chosen: Bools) -> Rows:
        """How many of the chosen elements each list has."""
        if chosen.all():
            return self.lengths
        return np.bincount(self.rows[chosen], minlength=len(self.lengths))

    def first(self, chosen: Bools) -> Rows:
        """The first chosen element of each list; -1 where there is none."""
        return self.first_of(np.flatnonzero(chosen))

    def first_of(self, elements: Rows) -> Rows:
        """The first of these elements, which come by row, of each list; -1 where there is none."""
        rows = self.rows[elements]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        found = np.full(len(self.lengths), -1, np.int64)
        found[rows[starts]] = elements[starts]
        return found

    def codes(self) -> Numbers:
        """Numbers that are ordered and equal as the elements are; where these have no order, only equal."""
        return codes_of([self.values], self.kind)[0]

    def in_order(self, codes: Numbers, chosen: Bools) -> Rows:
        """The chosen elements by row, then by their codes."""
        elements = np.flatnonzero(chosen)
        return elements[np.lexsort((sortable(codes)[elements], self.rows[elements]))]

    def runs(self, codes: Numbers) -> tuple[Rows, Rows]:
        """The elements that are there by row and code, and where in these another list or code begins. Elements of one
        code come in the order of their list.
        """
        ordered = self.in_order(codes, self.there)
        rows, code = self.rows[ordered], codes[ordered]
        new = np.ones(len(ordered), np.bool_)
        new[1:] = (rows[1:] != rows[:-1]) | (code[1:] != code[:-1])
        return ordered, np.flatnonzero(new)

    def picked(self, elements: Rows) -> pa.Array:
        """The values of some elements; NULL for -1."""
        return picked(self.values, elements)

    def lists(self, elements: Rows, lengths: Rows, missing: Bools | None = None) -> pa.Array:
        """Lists that take so many of these elements each; NULL where `missing` or, if that is not given, these are."""
        missing = self.missing if missing is None else missing
        return lists_of(self.picked(elements), lengths, missing, self.kind)


def lists_of(values: pa.Array, lengths: Rows, missing: Bools, kind: DataType) -> pa.Array:
    """Lists that take so many of `values` of a type each, one after the other."""
    arrow = to_arrow(kind)
    values = values if values.type == arrow else values.cast(arrow)
    return list_array(pa.list_(pa.field("item", arrow)), values, lengths, missing)


def spread(starts: Rows, counts: Rows, steps: Rows) -> Rows:
    """For each row so many numbers from its start on, by its step."""
    numbers: Rows = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    if (steps != 1).any():
        numbers = numbers * np.repeat(steps, counts)
    return numbers + np.repeat(starts, counts)


def codes_of(arrays: Sequence[pa.Array], kind: DataType) -> list[Numbers]:
    """Numbers for the values of several columns of a type, as of `Elements.codes`."""
    arrays = [plain(_typed(array, kind)) for array in arrays]
    if not has_order(kind):
        return _equality_codes(arrays, kind)
    return keys.order_codes([order_key(array, kind) for array in arrays] if kind.is_nested else arrays)


def sortable(codes: Numbers) -> Numbers:
    """The codes in 64 bits."""
    if codes.dtype != object:
        return codes
    return np.unique(codes, return_inverse=True)[1].reshape(-1)


def _equality_codes(arrays: Sequence[pa.Array], kind: DataType) -> list[Numbers]:
    known: dict[Any, int] = {}
    columns = [[_key(value) for value in to_values(array, kind)] for array in arrays]
    return [np.array([known.setdefault(key, len(known)) for key in column], np.int64) for column in columns]


def _key(value: Any) -> Any:
    """What equal values share; it can be hashed."""
    if isinstance(value, list | dict):
        return tuple(map(_key, value.values() if isinstance(value, dict) else value))
    # The only tuples among values are intervals.
    if isinstance(value, tuple):
        return keys.interval_nanoseconds(*value)
    return "NaN" if value != value else value


def _typed(array: pa.Array, kind: DataType) -> pa.Array:
    return pa.nulls(len(array), to_arrow(kind)) if pa.types.is_null(array.type) else array

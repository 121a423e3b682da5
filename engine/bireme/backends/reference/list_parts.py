"""Functions of lists by places and masks, and of lists as vectors, over the elements of all lists at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.allowance import ask
from bireme.backends.reference.elements import BYTES_AN_ELEMENT, Elements, lists_of, spread
from bireme.backends.reference.row_groups import picked
from bireme.backends.reference.vectors import Bools, bools, check_elements, floats, from_floats, integers
from bireme.data.record import plain
from bireme.errors import DomainFault, ValueTooLarge
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]
Doubles = npt.NDArray[np.float64]

_LENGTH_MAX: Final = 1 << 24


def _two_lists(call: Call, args: list[pa.Array]) -> tuple[Elements, Elements, Bools]:
    """Two lists, and where one of them is NULL."""
    one, other = [Elements(array, arg.type) for array, arg in zip(args, call.args, strict=True)]
    return one, other, one.missing | other.missing


# ------------------------------------------------------------------------------------------------- parts


def _where(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, mask, missing = _two_lists(call, args)
    counted = ~missing[mask.rows]
    if not mask.there[counted].all():
        raise DomainFault("the second list of list_where holds NULL; say TRUE or FALSE for each element")
    chosen = bools(mask.values) & counted
    rows, places = mask.rows[chosen], mask.places()[chosen]
    elements = np.where(places < lists.lengths[rows], lists.starts[rows] + places, -1)
    return lists.lists(elements, np.bincount(rows, minlength=len(missing)), missing)


def _select(call: Call, args: list[pa.Array]) -> pa.Array:
    lists, chosen, missing = _two_lists(call, args)
    counted = ~missing[chosen.rows]
    if not chosen.there[counted].all():
        raise DomainFault("the second list of list_select holds NULL; it takes places of elements")
    rows, places = chosen.rows[counted], integers(chosen.values)[counted]
    is_inside = (places >= 1) & (places <= lists.lengths[rows])
    elements = np.where(is_inside, lists.starts[rows] + places - 1, -1)
    return lists.lists(elements, np.where(missing, 0, chosen.lengths), missing)


def _resize(call: Call, args: list[pa.Array]) -> pa.Array:
    lists = Elements(args[0], call.args[0].type)
    lengths = integers(args[1])
    outside = ((lengths < 0) | (lengths > _LENGTH_MAX)) & ~lists.missing
    if outside.any():
        length = lengths[np.flatnonzero(outside)[0]]
        raise ValueTooLarge(f"a list has 0 to {_LENGTH_MAX} elements here, not {length}")
    counts = np.where(lists.missing, 0, lengths)
    _ask_for(lists, int(counts.sum()))
    rows = np.repeat(np.arange(len(counts)), counts)
    places = spread(np.zeros(len(counts), np.int64), counts, np.ones(len(counts), np.int64))
    filling, kind = plain(args[2]), lists.values.type
    values = pa.concat_arrays([lists.values, filling if filling.type == kind else filling.cast(kind)])
    elements = np.where(places < lists.lengths[rows], lists.starts[rows] + places, len(lists.values) + rows)
    return lists_of(picked(values, elements), counts, lists.missing, lists.kind)


def _ask_for(lists: Elements, total: int) -> None:
    check_elements(total)
    nbytes = max(1, lists.values.nbytes) // max(1, len(lists.values))
    ask((BYTES_AN_ELEMENT + nbytes) * total, "the elements of list_resize")


# ----------------------------------------------------------------------------------------------- vectors


class _Vectors:
    """Pairs of lists of as many numbers, those without a NULL list. DomainFault for others."""

    def __init__(self, call: Call, args: list[pa.Array]) -> None:
        one, other, self.missing = _two_lists(call, args)
        uneven = (one.lengths != other.lengths) & ~self.missing
        if uneven.any():
            row = int(np.flatnonzero(uneven)[0])
            raise DomainFault(
                f"vectors have as many numbers, and these have {one.lengths[row]} and {other.lengths[row]}"
            )
        self.counts = np.where(self.missing, 0, one.lengths)
        self.one, self.other = self._numbers(one), self._numbers(other)
        self._rows = one.rows[~self.missing[one.rows]] if self.missing.any() else one.rows

    def _numbers(self, lists: Elements) -> Doubles:
        numbers, there = floats(lists.values), lists.there
        if self.missing.any():
            counted = ~self.missing[lists.rows]
            numbers, there = numbers[counted], there[counted]
        if not there.all():
            raise DomainFault("a vector holds no NULL")
        return numbers

    def sums(self, values: Doubles) -> Doubles:
        """The sum of the values of each pair, from first to last."""
        sums: Doubles = np.asarray(np.bincount(self._rows, values, len(self.counts)), np.float64)
        return sums


def _of_vectors(compute: Callable[[_Vectors], Doubles], *, is_of_some: bool = False) -> Evaluator:
    """A function of two vectors; `is_of_some`: of no numbers it is NULL."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        vectors = _Vectors(call, args)
        missing = vectors.missing | (vectors.counts == 0) if is_of_some else vectors.missing
        with np.errstate(all="ignore"):
            return from_floats(compute(vectors), missing, call.type)

    return evaluate


def _distance(vectors: _Vectors) -> Doubles:
    apart = vectors.one - vectors.other
    distance: Doubles = np.sqrt(vectors.sums(apart * apart))
    return distance


def _product(vectors: _Vectors) -> Doubles:
    return vectors.sums(vectors.one * vectors.other)


def _cosine(vectors: _Vectors) -> Doubles:
    squares = [vectors.sums(numbers * numbers) for numbers in (vectors.one, vectors.other)]
    lengths = np.sqrt(squares[0]) * np.sqrt(squares[1])
    cosine: Doubles = np.clip(_product(vectors) / lengths, -1.0, 1.0)
    return cosine


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "list_where": _where,
    "list_select": _select,
    "list_resize": _resize,
    "list_distance": _of_vectors(_distance),
    "list_inner_product": _of_vectors(_product),
    "list_negative_inner_product": _of_vectors(lambda vectors: -_product(vectors)),
    "list_cosine_similarity": _of_vectors(_cosine, is_of_some=True),
    "list_cosine_distance": _of_vectors(lambda vectors: 1.0 - _cosine(vectors), is_of_some=True),
}

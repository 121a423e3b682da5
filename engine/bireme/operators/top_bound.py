"""The bound of a top-n: what rows of the scan below it need not be looked at any more, as its slots find out.

Rule: a bound only tightens. Each slot writes what it has learnt to a place of its own and readers take the tightest, so
nothing is locked: who reads too early reads a looser bound, which is true as well. Where bounds are used is `scan`;
whether a scan has one is decided in `plan.top_bound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bireme.data.types import BOOL
from bireme.plan.expr import Call, Expr, Literal, SortKey, Value
from bireme.plan.physical import TopBound
from bireme.plan.tree import FALSE, columns_used
from bireme.storage.prune import Bounds, may_be_true


def up_to(key: SortKey, last: Literal) -> Expr | None:
    """What is TRUE of the rows that do not come after one with the key `last`; None where it would be of all."""
    null = Call("is_null", (key.expr,), BOOL)
    if last.value is None:
        return null if key.nulls_first else None
    within = Call("ge" if key.descending else "le", (key.expr, last), BOOL)
    return Call("or", (null, within), BOOL) if key.nulls_first else within


def before(key: SortKey, last: Literal) -> Expr:
    """What is TRUE of the rows that come before one with the key `last`."""
    null = Call("is_null", (key.expr,), BOOL)
    if last.value is None:
        return FALSE if key.nulls_first else Call("is_not_null", (key.expr,), BOOL)
    within = Call("gt" if key.descending else "lt", (key.expr, last), BOOL)
    return Call("or", (null, within), BOOL) if key.nulls_first else within


def precedes(key: SortKey, left: Value, right: Value) -> bool:
    """Whether one value of the key comes before another."""
    if left is None or right is None:
        return left is not right and (left is None) is key.nulls_first
    if left != left or right != right:  # NaN is above every number
        return (left != left) is not (right != right) and (left != left) is key.descending
    return bool(left > right if key.descending else left < right)  # type: ignore[operator]


class _Learnt(NamedTuple):
    """So many rows as are wanted come no later than one with the key `last`, of input number `place`."""

    last: Value
    place: int
    within: Expr | None
    before: Expr


class LiveBound:
    """What the slots of one pipeline have learnt. `place`s number its inputs in the order of the table's rows."""

    def __init__(self, bound: TopBound, key: SortKey, slots: int) -> None:
        self.key = key
        self._is_sole = bound.is_sole
        self._learnt: list[_Learnt | None] = [None] * slots
        self._places: Sequence[int] = ()
        self._bounds: Sequence[tuple[Bounds, ...]] = ()

    def expect(self, places: Sequence[int], bounds: Sequence[tuple[Bounds, ...]]) -> None:
        """The inputs will be read in this order. Where there are `bounds`, each lies within its own, split by split."""
        self._places = places
        self._bounds = bounds

    def place(self, sequence: int) -> int:
        """Where input number `sequence` stands in the order of the table's rows."""
        return self._places[sequence] if self._places else sequence

    def learn(self, slot: int, last: Literal, place: int) -> None:
        """As many rows as are wanted were found, of which the last has this key and came with input `place`."""
        known = self._learnt[slot]
        if known is None or self._is_tighter(last.value, place, known):
            self._learnt[slot] = _Learnt(last.value, place, up_to(self.key, last), before(self.key, last))

    @property
    def is_known(self) -> bool:
        return any(learnt is not None for learnt in self._learnt)

    def condition(self, sequence: int) -> Expr | None:
        """What is TRUE of rows of an input that are still wanted; None where that is any. Of two rows with one key the
        earlier one comes first: what is read now of the input of the bound itself comes after it.
        """
        tightest: _Learnt | None = None
        for learnt in self._learnt:
            if learnt is not None and (tightest is None or self._is_tighter(learnt.last, learnt.place, tightest)):
                tightest = learnt
        if tightest is None:
            return None
        is_later = self._is_sole and self.place(sequence) >= tightest.place
        return tightest.before if is_later else tightest.within

    def passes_over(self, sequence: int, part: int | None = None) -> bool:
        """Whether statistics prove that no row of an input, or of the split number `part` of it, is wanted."""
        if not self._bounds or not self.is_known:
            return False
        wanted = self.condition(sequence)
        stated = self._bounds[sequence] if part is None else self._bounds[sequence][part : part + 1]
        return wanted is not None and not any(_may_hold(wanted, self.key, bounds) for bounds in stated)

    def _is_tighter(self, last: Value, place: int, known: _Learnt) -> bool:
        return precedes(self.key, last, known.last) or (
            not precedes(self.key, known.last, last) and place < known.place
        )


def _may_hold(wanted: Expr, key: SortKey, bounds: Bounds) -> bool:
    """Whether a split may have a row that is wanted, where the key is a column with these bounds."""
    return may_be_true([wanted], [lambda: bounds] * (max(columns_used(key.expr)) + 1))


def reading_order(key: SortKey, bounds: Sequence[tuple[Bounds, ...]]) -> list[int]:
    """The inputs by the first key that they may hold; those that state nothing, last."""
    order = range(len(bounds))
    nulls = [key.nulls_first and any(each.nulls != 0 for each in parts) for parts in bounds]
    best = [_best(key, parts) for parts in bounds]
    known = [index for index in order if not nulls[index] and best[index] is not None]
    known.sort(key=lambda index: best[index], reverse=key.descending)  # type: ignore[arg-type,return-value]
    unknown = [index for index in order if not nulls[index] and best[index] is None]
    return [*[index for index in order if nulls[index]], *known, *unknown]


def _best(key: SortKey, parts: tuple[Bounds, ...]) -> Value:
    stated = [each.high if key.descending else each.low for each in parts]
    if any(value is None for value in stated):
        return None
    return max(stated) if key.descending else min(stated)  # type: ignore[type-var]

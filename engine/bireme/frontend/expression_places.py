"""Methods of expressions whose value depends on the rows around: shifts, ranks, running and rolling aggregates.

Rows are in the order of the input, or in that of `over(…, order_by=…)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bireme.data.types import INT64
from bireme.errors import ArgumentFault
from bireme.frontend.expression_methods import Methods
from bireme.frontend.expression_tree import Place
from bireme.plan.expr import Bound, BoundKind, Frame, FrameUnit, Literal

if TYPE_CHECKING:
    from bireme.frontend.expression import Expression

_FIRST: Final = Bound(BoundKind.UNBOUNDED_PRECEDING)
_HERE: Final = Bound(BoundKind.CURRENT_ROW)
_LAST: Final = Bound(BoundKind.UNBOUNDED_FOLLOWING)
_SO_FAR: Final = Frame(FrameUnit.ROWS, _FIRST, _HERE)
_FROM_HERE: Final = Frame(FrameUnit.ROWS, _HERE, _LAST)
_PEERS: Final = Frame(FrameUnit.RANGE, _HERE, _HERE)
_RANKS: Final = {"min": "rank", "max": "rank", "average": "rank", "dense": "dense_rank", "ordinal": "row_number"}


class PlaceMethods(Methods):
    """Windows."""

    __slots__ = ()

    def shift(self, n: int = 1, *, fill_value: Any = None) -> Expression:
        """The value `n` rows before (after, where it is negative)."""
        rest = () if fill_value is None else (self._given(fill_value),)
        args = (self._tree, self._given(abs(n)), *rest)
        return self._made(Place("lag" if n >= 0 else "lead", args))

    def diff(self, n: int = 1) -> Expression:
        """The value less the one `n` rows before."""
        return self._made(self._tree) - self.shift(n)

    def pct_change(self, n: int = 1) -> Expression:
        """By what share the value differs from the one `n` rows before."""
        return self._made(self._tree) / self.shift(n) - 1

    def forward_fill(self) -> Expression:
        """With the last value before in place of NULL."""
        return self._made(Place("last_value", (self._tree,), _SO_FAR, (), True))

    def backward_fill(self) -> Expression:
        """With the next value in place of NULL."""
        return self._made(Place("first_value", (self._tree,), _FROM_HERE, (), True))

    def _running(self, function: str, reverse: bool) -> Expression:
        value = Place(function, (self._tree,), _FROM_HERE if reverse else _SO_FAR)
        return self._when(self._call("is_not_null"), self._made(value))

    def cum_sum(self, *, reverse: bool = False) -> Expression:
        """The sum of the values so far; NULL where the value is."""
        return self._running("sum", reverse)

    def cum_min(self, *, reverse: bool = False) -> Expression:
        return self._running("min", reverse)

    def cum_max(self, *, reverse: bool = False) -> Expression:
        return self._running("max", reverse)

    def cum_prod(self, *, reverse: bool = False) -> Expression:
        return self._running("product", reverse)

    def cum_count(self, *, reverse: bool = False) -> Expression:
        """How many values are not NULL so far."""
        return self._made(Place("count", (self._tree,), _FROM_HERE if reverse else _SO_FAR))

    def rank(self, method: str = "average", *, descending: bool = False) -> Expression:
        """The rank among all values, from 1; NULL where the value is."""
        if method not in _RANKS:
            raise ArgumentFault(f"method must be one of {', '.join(_RANKS)}, not {method!r}")
        order = ((self._tree, descending, False),)
        place = self._made(Place(_RANKS[method], (), order=order))
        if method in ("max", "average"):
            peers = self._made(Place("count_star", (), _PEERS, order)) - 1
            place = place + (peers if method == "max" else peers / 2)
        return self._when(self._call("is_not_null"), place)

    def is_first_distinct(self) -> Expression:
        """Whether no row before has the same value."""
        return self._numbered("row_number")

    def _numbered(self, function: str) -> Expression:
        return self._made(Place(function)).over(self._made(self._tree)) == 1

    def is_unique(self) -> Expression:
        """Whether no other row has the same value."""
        return self._numbered("count_star")

    def is_duplicated(self) -> Expression:
        """Whether another row has the same value."""
        return ~self._numbered("count_star")

    def _rolling(self, function: str, window_size: int, min_samples: int | None, center: bool) -> Expression:
        if not isinstance(window_size, int) or isinstance(window_size, bool) or window_size < 1:
            raise ArgumentFault(f"window_size takes a number of rows, at least 1, not {window_size!r}")
        behind = window_size // 2 if center else window_size - 1
        frame = Frame(
            FrameUnit.ROWS, _away(BoundKind.PRECEDING, behind), _away(BoundKind.FOLLOWING, window_size - 1 - behind)
        )
        enough = self._made(Place("count", (self._tree,), frame)) >= (
            window_size if min_samples is None else min_samples
        )
        return self._when(enough, self._made(Place(function, (self._tree,), frame)))

    def rolling_sum(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        """The sum of the last `window_size` rows; NULL where fewer than `min_samples` (all) have a value."""
        return self._rolling("sum", window_size, min_samples, center)

    def rolling_mean(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("avg", window_size, min_samples, center)

    def rolling_min(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("min", window_size, min_samples, center)

    def rolling_max(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("max", window_size, min_samples, center)

    def rolling_std(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("stddev_samp", window_size, min_samples, center)

    def rolling_var(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("var_samp", window_size, min_samples, center)

    def rolling_median(self, window_size: int, *, min_samples: int | None = None, center: bool = False) -> Expression:
        return self._rolling("median", window_size, min_samples, center)


def _away(kind: BoundKind, rows: int) -> Bound:
    return Bound(kind, Literal(rows, INT64)) if rows else _HERE

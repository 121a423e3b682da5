"""A filter that wants the first few rows of each key of a window: most others can go before they are sorted.

That is so where every function of the window ranks rows by the same keys in the same order, since a row then changes
nothing for those before it. What the sink below the window leaves out is decided in `operators.top_per_key`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bireme.data.node import Node, node
from bireme.data.types import Kind
from bireme.plan.expr import Call, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Filter, Window
from bireme.plan.tree import conjuncts

_RANKINGS: Final = frozenset({"row_number", "rank", "dense_rank"})
# The values of so many rows are kept for each key.
_LIMIT_MAX: Final = 64
_LESS: Final = {"le": 0, "eq": 0, "lt": 1}
_GREATER: Final = {"ge": 0, "eq": 0, "gt": 1}


@node
class TopPerKey(Node):
    """Who reads the rows wants, of those with equal `keys`, the first `limit` by an order that begins with `order`, and
    what stands beside the last of them; where `is_dense`, those with the first `limit` values.
    """

    keys: tuple[Expr, ...]
    order: SortKey
    limit: int
    is_dense: bool


def wanted_of_keys(rel: Filter, window: Window) -> TopPerKey | None:
    """What `rel` wants of each key of the window below it; None where that may be all rows."""
    if not _rank_alike(window.calls):
        return None
    order = window.calls[0].order[0]
    limits = [each for part in conjuncts(rel.predicate) for each in _limits(part, window)]
    if not limits or not _is_word(order.expr):
        return None
    limit, is_dense = min(limits)
    if not 0 < limit <= _LIMIT_MAX:
        return None
    return TopPerKey(window.calls[0].partition, order, limit, is_dense)


def _rank_alike(calls: tuple[WindowCall, ...]) -> bool:
    first = calls[0]
    return bool(first.order) and all(
        call.call.function in _RANKINGS and call.partition == first.partition and call.order == first.order
        for call in calls
    )


def _is_word(expr: Expr) -> bool:
    kind = expr.type
    return kind.is_integer or kind.is_float or kind.is_temporal or kind.kind in (Kind.DECIMAL, Kind.BOOL)


def _limits(part: Expr, window: Window) -> Iterator[tuple[int, bool]]:
    """The greatest rank that a condition lets pass, and whether it is one of values."""
    if not (isinstance(part, Call) and len(part.args) == 2):
        return
    left, right = part.args
    if isinstance(left, Literal):
        left, right, less = right, left, _GREATER.get(part.function)
    else:
        less = _LESS.get(part.function)
    if less is None or not isinstance(left, Column) or not isinstance(right, Literal):
        return
    call = left.index - len(window.input.schema)
    if call >= 0 and isinstance(right.value, int):
        yield right.value - less, window.calls[call].call.function == "dense_rank"

"""The one order that several windows share, so that their rows can come a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.node import Node, node
from bireme.plan.expr import WHOLE_PARTITION, Expr, SortKey, WindowCall

# Aggregates that are the same in any order of the rows.
_ORDERLESS: Final = frozenset(
    {"count", "count_star", "sum", "min", "max", "avg", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"}
)

# Partition, and order in it.
WindowOrder = tuple[tuple[Expr, ...], tuple[SortKey, ...]]


@node
class NotedKeys(Node):
    """The `keys` of a share of the rows are kept as the sample `sample`, so that rows can be cut by their order."""

    keys: tuple[SortKey, ...]
    sample: str


def by_order(calls: Sequence[WindowCall]) -> dict[WindowOrder, list[WindowCall]]:
    """The calls that can be computed in one order; those that take any order join others of their partition."""
    found: dict[WindowOrder, list[WindowCall]] = {}
    for call in calls:
        if not _takes_any(call):
            found.setdefault((call.partition, call.order), []).append(call)
    for call in calls:
        if _takes_any(call):
            shared = next((order for order in found if order[0] == call.partition), (call.partition, call.order))
            found.setdefault(shared, []).append(call)
    return found


def keys_of(order: WindowOrder) -> tuple[SortKey, ...]:
    """Keys that bring rows into the order."""
    partition, keys = order
    return (*[SortKey(expr) for expr in partition], *keys)


def _takes_any(call: WindowCall) -> bool:
    inner = call.call
    return not call.order and call.frame == WHOLE_PARTITION and inner.function in _ORDERLESS and not inner.order

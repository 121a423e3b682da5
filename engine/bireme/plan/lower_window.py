"""Windows to pipelines: rows by partition, of whose windows all rows are there at once.

A partition that turns out too large is cut while the query runs, by the keys that all its windows share, or by their
order, and rows then come in that order; for this the sink notes keys of some rows. A step can have one order only then,
so windows of several orders become several steps where their rows will hardly fit in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.plan.draft import Opened
from bireme.plan.expr import Column, SortKey, WindowCall
from bireme.plan.physical import EmitSink, Take, WindowStep
from bireme.plan.relation import Window
from bireme.plan.top_per_key import TopPerKey
from bireme.plan.tree import column
from bireme.plan.window_order import NotedKeys, WindowOrder, by_order, keys_of

if TYPE_CHECKING:
    from bireme.plan.lower import Lowering


Orders = Mapping[WindowOrder, Sequence[WindowCall]]


def lower_window(lowering: Lowering, rel: Window, top: TopPerKey | None = None) -> Opened:
    """The rows with all windows; where only the first rows by `top` are wanted, some others may be missing."""
    opened = lowering.open(rel.input)
    orders = by_order(rel.calls)
    if len(orders) > 1 and lowering.partitions_that_fit(opened) > 1:
        return _order_by_order(lowering, rel, opened, orders)
    order = next(iter(orders)) if len(orders) == 1 else None
    return _windowed(lowering, rel, opened, (rel.calls, rel.names), order, top)


def _order_by_order(lowering: Lowering, rel: Window, opened: Opened, orders: Orders) -> Opened:
    """Windows of one order after the other, since rows that do not fit in memory can come in one order only."""
    named = list(zip(rel.calls, rel.names, strict=True))
    done: list[tuple[WindowCall, str]] = []
    for order, calls in orders.items():
        chosen = [each for each in named if each[0] in calls]
        done += chosen
        opened = _windowed(lowering, rel, opened, ([each[0] for each in chosen], [each[1] for each in chosen]), order)
        opened.rows = lowering.rows(rel)
    first = len(rel.input.schema)
    places = [*range(first), *[first + done.index(each) for each in named]]
    opened.project(tuple([column(opened.schema, place) for place in places]), rel.schema.names, rel.schema)
    return opened


def _windowed(
    lowering: Lowering, rel: Window, opened: Opened, named: tuple[Sequence[WindowCall], Sequence[str]],
    order: WindowOrder | None, top: TopPerKey | None = None,
) -> Opened:  # fmt: skip
    """Some of the windows of `rel`, of one `order` if that is given, appended to what there is."""
    calls, names = named
    keys = _common_keys(calls)
    partitions = lowering.window_partitions(rel, opened) if keys else 1
    edge = lowering.draft.edge("window", opened.schema, opened.rows, partitions)
    if top is not None:
        first = SortKey(lowering.bind(top.order.expr, opened), top.order.descending, top.order.nulls_first)
        top = TopPerKey(lowering.bind_all(top.keys, opened), first, top.limit, top.is_dense)
    # Rows can be cut by the order of the windows if some of them are noted.
    noted = None if order is None else NotedKeys(keys_of(order), lowering.sample_name())
    lowering.draft.close(opened, EmitSink(edge, keys if partitions > 1 else (), top, noted))
    windowed = lowering.draft.from_edge(edge, Take.PARTITION, "window")
    added = [Field(name, call.call.type) for name, call in zip(names, calls, strict=True)]
    step = WindowStep(tuple(calls), tuple(names), keys, None if noted is None else noted.sample)
    windowed.add(step, Schema((*opened.schema.fields, *added)))
    return windowed


def _common_keys(calls: Sequence[WindowCall]) -> tuple[int, ...]:
    """The columns that all windows are partitioned by: rows that differ in one of them are in no window together."""
    common = frozenset.intersection(*[frozenset(call.partition) for call in calls])
    return tuple(sorted([key.index for key in common if isinstance(key, Column)]))

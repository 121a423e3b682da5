"""The search for the cheapest order of a join graph.

Up to a limit of pairs, all orders without cross products between unconnected parts are compared, by dynamic
programming over the connected pairs of the graph (Moerkotte and Neumann 2006); bushy trees are among them. That is in
C++ (`native/orders`), for graphs of up to 64 units; larger connected ones have more pairs in any case. Beyond the
limit, the pair with the smallest result is joined first, again and again (greedy operator ordering, Fegaras 1998).
Parts that nothing connects are joined last, smallest first.

Cost of a join: the rows that leave it, plus the rows it must build a table of, plus a little for each row it looks
up. The rows of a set of units do not depend on the order in which it was joined, so orders are compared fairly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from bireme.plan.rules import _orders
from bireme.plan.rules.order_joins_graph import Shape
from bireme.plan.tree import columns_in

PAIR_COUNT_MAX: Final = 4_000
BUILD_COST: Final = 1.0
PROBE_COST: Final = 0.2


class Step(NamedTuple):
    """A join of two ordered parts; the right one is built. A leaf has neither part."""

    units: int
    rows: float
    cost: float
    left: Step | None = None
    right: Step | None = None


class Sizes(Protocol):
    """What the search must know of a graph."""

    @property
    def count(self) -> int:
        """How many units there are."""
        ...

    @property
    def neighbours(self) -> list[int]:
        """For each unit the mask of the units that something connects it with."""
        ...

    @property
    def needs(self) -> list[int]:
        """For each unit what must be on its left: 0 for a leaf, some units for an attachment."""
        ...

    @property
    def rows(self) -> Callable[[int], float]:
        """Gives the rows of the joined units."""
        ...

    @property
    def built(self) -> list[float]:
        """For each unit the rows of its own relation."""
        ...


def given_order(sizes: Sizes, shape: Shape) -> Step:
    """The order that `shape` says, with its cost."""
    if isinstance(shape, int):
        return Step(1 << shape, sizes.rows(1 << shape), 0.0)
    left, right = given_order(sizes, shape[0]), given_order(sizes, shape[1])
    if isinstance(shape[1], int) and sizes.needs[shape[1]]:
        return _attached(sizes, left, shape[1])
    return _joined(sizes, left, right)


def best_order(sizes: Sizes, *, pair_count_max: int = PAIR_COUNT_MAX) -> Step:
    """The cheapest order that the search finds; ties go to the one found first, so that it is always the same."""
    found: list[Step] = []
    for part in _components(sizes):
        found.append(_exhaustive(sizes, part, pair_count_max) or _greedy(sizes, part))
    found.sort(key=lambda step: step.rows)
    order = found[0]
    for step in found[1:]:
        order = _joined(sizes, *_smaller_last(order, step))
    return order


def _smaller_last(first: Step, second: Step) -> tuple[Step, Step]:
    return (first, second) if first.rows >= second.rows else (second, first)


def _joined(sizes: Sizes, left: Step, right: Step) -> Step:
    """The two parts joined, the right one built."""
    units = left.units | right.units
    rows = sizes.rows(units)
    cost = left.cost + right.cost + rows + BUILD_COST * right.rows + PROBE_COST * left.rows
    return Step(units, rows, cost, left, right)


def _attached(sizes: Sizes, left: Step, unit: int) -> Step:
    """The attachment `unit` applied to the rows of `left`."""
    units = left.units | 1 << unit
    rows, built = sizes.rows(units), sizes.built[unit]
    # Either side can be built: what an attachment keeps are rows of the left one, in a stream or in a table.
    small, big = (built, left.rows) if built < left.rows else (left.rows, built)
    cost = left.cost + rows + BUILD_COST * small + PROBE_COST * big
    return Step(units, rows, cost, left, Step(1 << unit, built, 0.0))


def _components(sizes: Sizes) -> list[int]:
    """The connected parts of the graph, as masks."""
    left = (1 << sizes.count) - 1
    parts = []
    while left:
        part = left & -left
        while True:
            grown = part | _reach(sizes.neighbours, part)
            if grown == part:
                break
            part = grown
        parts.append(part)
        left &= ~part
    return parts


def _reach(neighbours: list[int], units: int) -> int:
    mask = 0
    while units:
        low = units & -units
        mask |= neighbours[low.bit_length() - 1]
        units ^= low
    return mask


def _exhaustive(sizes: Sizes, part: int, pair_count_max: int) -> Step | None:
    """The cheapest of all orders of `part`; None if there are too many to compare."""
    if sizes.count > _orders.UNITS_MAX:
        return None
    return _orders.cheapest(
        part, sizes.neighbours, sizes.needs, sizes.rows, sizes.built, pair_count_max, BUILD_COST, PROBE_COST, Step
    )


def _greedy(sizes: Sizes, part: int) -> Step:
    """Joins the pair with the fewest resulting rows until one is left."""
    units = columns_in(part)
    needs = sizes.needs
    steps = [Step(1 << unit, sizes.rows(1 << unit), 0.0) for unit in units if not needs[unit]]
    waiting = [unit for unit in units if needs[unit]]
    while len(steps) > 1 or waiting:
        best: tuple[float, Step, Step, int | None] | None = None
        for index, left in enumerate(steps):
            around = _reach(sizes.neighbours, left.units)
            for right in steps[index + 1 :]:
                if around & right.units:
                    rows = sizes.rows(left.units | right.units)
                    if best is None or rows < best[0]:
                        best = (rows, left, right, None)
            for unit in waiting:
                if not needs[unit] & ~left.units:
                    rows = sizes.rows(left.units | 1 << unit)
                    if best is None or rows < best[0]:
                        best = (rows, left, left, unit)
        if best is None:
            # Connected only through what is not there yet: a cross product of the two smallest.
            steps.sort(key=lambda step: step.rows)
            best = (0.0, steps[0], steps[1], None)
        _, left, right, attached = best
        if attached is None:
            made = _joined(sizes, *_smaller_last(left, right))
        else:
            made = _attached(sizes, left, attached)
            waiting.remove(attached)
        steps = [step for step in steps if step is not left and step is not right]
        steps.append(made)
    return steps[0]

"""The search for the cheapest order of a join graph, in C++ (native/orders)."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

_Step = TypeVar("_Step")

def product(
    single: list[float],
    classes: list[list[tuple[int, float]]],
    factors: list[tuple[int, float]],
    log_max: float,
    /,
) -> Callable[[int], float]:
    """A function that gives the rows of a mask of units, at least one: a product, of which all is given as logarithms.

    `single` are the factors of the units. Of each class, whose members ascend, all members that are in the mask but the
    first divide. The other factors multiply when all their units are in the mask.
    """

def cheapest(
    part: int,
    neighbours: list[int],
    needs: list[int],
    rows: Callable[[int], float],
    built: list[float],
    pairs_max: int,
    build_cost: float,
    probe_cost: float,
    step: Callable[[int, float, float, Any, Any], _Step],
    /,
) -> _Step | None:
    """The cheapest order of the units in the mask `part`; None for none, or after `pairs_max` pairs."""

UNITS_MAX: Final[int]

"""Functions of lists by places and masks, and of lists as vectors, one list at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from bireme.backends.reference.values import by_row
from bireme.errors import DomainFault, OutOfRoom
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_LENGTH_MAX: Final = 1 << 24


# ------------------------------------------------------------------------------------------------- parts


def _where(values: Sequence[Any], mask: Sequence[bool | None]) -> list[Any]:
    if None in mask:
        raise DomainFault("the second list of list_where holds NULL; say TRUE or FALSE for each element")
    return [values[place] if place < len(values) else None for place, chosen in enumerate(mask) if chosen]


def _select(values: Sequence[Any], places: Sequence[int | None]) -> list[Any]:
    if None in places:
        raise DomainFault("the second list of list_select holds NULL; it takes places of elements")
    return [values[place - 1] if 1 <= place <= len(values) else None for place in places]  # type: ignore[operator]


def _resized(values: Sequence[Any] | None, length: int | None, filling: Any) -> list[Any] | None:
    if values is None:
        return None
    length = length or 0
    if not 0 <= length <= _LENGTH_MAX:
        raise OutOfRoom(f"a list has 0 to {_LENGTH_MAX} elements here, not {length}")
    return [*values[:length], *[filling] * (length - len(values))]


# ----------------------------------------------------------------------------------------------- vectors


def _of_vectors(compute: Callable[[Sequence[float], Sequence[float]], Any]) -> Evaluator:
    def checked(one: Sequence[float], other: Sequence[float]) -> Any:
        if len(one) != len(other):
            raise DomainFault(f"vectors have as many numbers, and these have {len(one)} and {len(other)}")
        if None in one or None in other:
            raise DomainFault("a vector holds no NULL")
        return compute(one, other)

    return by_row(checked)


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum([a * b for a, b in zip(one, other, strict=True)])


def _cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    if not one:
        return None
    lengths = math.sqrt(_product(one, one)) * math.sqrt(_product(other, other))
    return max(-1.0, min(1.0, _product(one, other) / lengths)) if lengths else math.nan


def _cosine_distance(one: Sequence[float], other: Sequence[float]) -> float | None:
    cosine = _cosine(one, other)
    return None if cosine is None else 1.0 - cosine


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "list_where": by_row(_where),
    "list_select": by_row(_select),
    "list_resize": by_row(_resized, strict=False),
    "list_distance": _of_vectors(lambda one, other: math.dist(one, other)),
    "list_inner_product": _of_vectors(_product),
    "list_negative_inner_product": _of_vectors(lambda one, other: -_product(one, other)),
    "list_cosine_similarity": _of_vectors(_cosine),
    "list_cosine_distance": _of_vectors(_cosine_distance),
}

"""Functions of lists by places and masks, aggregates of their elements, and lists as vectors, one list at a time."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa

from bireme.backends.reference.lists import EXACT, element_key, element_order, not_null, sliced
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


def _zipped(*args: Any) -> list[dict[str, Any]]:
    lists = [values or [] for values in args[:-1]]
    rows = zip(*lists, strict=False) if args[-1] else zip_longest(*lists)
    return [{f"element{place}": value for place, value in enumerate(row, start=1)} for row in rows]


def _grade_up(values: Sequence[Any], descending: bool, nulls_first: bool) -> list[int]:
    there = [place for place, value in enumerate(values, start=1) if value is not None]
    gone = [place for place, value in enumerate(values, start=1) if value is None]
    there.sort(key=lambda place: element_order(values[place - 1]), reverse=descending)
    return gone + there if nulls_first else there + gone


def _stepped(values: Sequence[Any] | None, first: int | None, last: int | None, step: int | None) -> list[Any] | None:
    """Backwards the part is the same, from its end."""
    if values is None or first is None or last is None or step is None:
        return None
    if step == 0:
        raise DomainFault("a step of 0 leads nowhere; the step of a slice is at least 1, or negative")
    low, high = (first, last) if step > 0 else (last, first)
    return list(sliced(values, low, high)[::step])


# -------------------------------------------------------------------------------------------- aggregates


def _spread(of_sample: bool, finish: Callable[[float, int], float]) -> Callable[[Sequence[Any]], float | None]:
    """A function of the variance, and of how many values there are."""

    def compute(values: Sequence[Any]) -> float | None:
        found = not_null(values)
        count = len(found)
        if count <= of_sample:
            return None
        if not all(map(math.isfinite, found)):
            return math.nan
        mean = sum(found) / count
        return finish(sum([(value - mean) * (value - mean) for value in found]) / (count - of_sample), count)

    return compute


def _median(values: Sequence[Any]) -> Any:
    found = sorted(not_null(values), key=element_order)
    if not found:
        return None
    low, high = found[(len(found) - 1) // 2], found[len(found) // 2]
    match low:
        case _ if low == high or isinstance(low, str):
            return low
        case Decimal():
            between = EXACT.divide(EXACT.add(low, high), Decimal(2))
            return between.quantize(low, rounding="ROUND_DOWN", context=EXACT)
        case datetime.datetime():
            return low + datetime.timedelta(microseconds=(high - low) // datetime.timedelta(microseconds=1) // 2)
    return low + (high - low) * 0.5


def _mode(values: Sequence[Any]) -> Any:
    found = not_null(values)
    counts = Counter(map(element_key, found))
    return max(found, key=lambda value: counts[element_key(value)]) if found else None


def _truth(decide: Callable[[Sequence[bool]], bool]) -> Callable[[Sequence[Any]], bool | None]:
    return lambda values: decide(not_null(values)) if not_null(values) else None


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
    "list_zip": by_row(_zipped, strict=False),
    "list_grade_up": by_row(_grade_up),
    "list_slice_step": by_row(_stepped, strict=False),
    "list_stddev_samp": by_row(_spread(True, lambda variance, _: math.sqrt(variance))),
    "list_stddev_pop": by_row(_spread(False, lambda variance, _: math.sqrt(variance))),
    "list_var_samp": by_row(_spread(True, lambda variance, _: variance)),
    "list_var_pop": by_row(_spread(False, lambda variance, _: variance)),
    "list_sem": by_row(_spread(False, lambda variance, count: math.sqrt(variance) / math.sqrt(count))),
    "list_product": by_row(lambda values: math.prod(not_null(values)) if not_null(values) else None),
    "list_median": by_row(_median),
    "list_mode": by_row(_mode),
    "list_any_value": by_row(lambda values: next(iter(not_null(values)), None)),
    "list_bool_and": by_row(_truth(all)),
    "list_bool_or": by_row(_truth(any)),
    "list_distance": _of_vectors(lambda one, other: math.dist(one, other)),
    "list_inner_product": _of_vectors(_product),
    "list_negative_inner_product": _of_vectors(lambda one, other: -_product(one, other)),
    "list_cosine_similarity": _of_vectors(_cosine),
    "list_cosine_distance": _of_vectors(_cosine_distance),
}

"""What is estimated of one column of one relation, and the arithmetic of distinct counts.

Where the figures come from is in `samples` (tables) and `estimator` (everything above a table).
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Final, NamedTuple

from bireme.data.node import Node, node
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Value

_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_DISCRETE: Final = frozenset({Kind.DATE, Kind.BOOL})


@node
class Origin(Node):
    """The column of a table whose values a column of a relation passes on unchanged."""

    table: str
    version: str
    column: int


class Within(NamedTuple):
    """A set of values that a semi-join kept: so many distinct ones of a table's column."""

    origin: Origin
    distinct: float


@node
class ColumnEstimate(Node):
    """An estimate of one column.

    `distinct` counts the values that occur in the relation. `domain` counts those of which a join partner's value is
    one: filters on other columns lower `distinct` and leave `domain`, filters on this column lower both. `low` and
    `high` are positions on a number line. `unique` says that no value occurs twice in the table it comes from.
    `mean` and `deviation` are set for aggregates, whose range says little. `within` is the set that a semi-join
    has confined the column to: meeting that set again removes nothing.
    """

    distinct: float
    domain: float
    low: float | None = None
    high: float | None = None
    null_share: float = 0.0
    mean_bytes: float = 8.0
    unique: bool = False
    origin: Origin | None = None
    mean: float | None = None
    deviation: float | None = None
    within: Within | None = None

    @property
    def ranged(self) -> bool:
        return self.low is not None and self.high is not None


def position(value: Value) -> float | None:
    """Where a value lies on a number line: dates and timestamps in days; None for what has no distance to others."""
    if isinstance(value, (bool, int, float, Decimal)):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, datetime.datetime):
        midnight = value.hour * 3600 + value.minute * 60 + value.second
        return value.toordinal() - _EPOCH_DAY + midnight / 86_400
    if isinstance(value, datetime.date):
        return float(value.toordinal() - _EPOCH_DAY)
    return None


def values_in_range(kind: DataType, low: float | None, high: float | None) -> float:
    """How many values of a type lie in a range; infinite where the type has no smallest step."""
    if low is None or high is None:
        return 2.0 if kind.kind is Kind.BOOL else math.inf
    if kind.is_integer or kind.kind in _DISCRETE:
        return max(1.0, high - low + 1)
    if kind.kind is Kind.DECIMAL:
        return max(1.0, (high - low) * 10.0**kind.scale + 1)
    return math.inf


def chao(once: int, twice: int, distinct: int) -> float:
    """Chao's lower bound for the number of kinds behind a sample (Chao 1984), in the bias-corrected form.

    Of `distinct` kinds in the sample, `once` were seen exactly once and `twice` exactly twice.
    """
    return distinct + once * (once - 1) / (2 * (twice + 1))


def remaining(distinct: float, rows_before: float, rows_after: float) -> float:
    """How many of `distinct` values still occur when rows are drawn without regard to the value (Cardenas 1975)."""
    if rows_before <= 0 or distinct <= 0 or rows_after <= 0:
        return min(distinct, max(rows_after, 0.0))
    if rows_after >= rows_before:
        return distinct
    repeats = rows_before / distinct if rows_before > distinct else 1.0
    found = distinct * (1.0 - math.pow(1.0 - rows_after / rows_before, repeats))
    return max(found, min(distinct, 1.0))


def overlap(inner: ColumnEstimate, outer: ColumnEstimate) -> float:
    """The share of the range of `inner` that lies within the range of `outer`; 1 where a range is unknown."""
    if inner.low is None or inner.high is None or outer.low is None or outer.high is None:
        return 1.0
    width = inner.high - inner.low
    low = inner.low if inner.low > outer.low else outer.low
    high = inner.high if inner.high < outer.high else outer.high
    if low > high:
        return 0.0
    return 1.0 if width <= 0 else (high - low) / width


def matched_domains(left: ColumnEstimate, right: ColumnEstimate) -> float:
    """How many values an equality of two columns chooses among.

    The larger domain contains the smaller; but what refers to a key cannot have more values than the key, whatever a
    sample says. Values that are confined to a set choose among that.
    """
    if left.within is not None and left.within.origin == right.origin:
        return max(left.within.distinct, right.distinct, 1.0)
    if right.within is not None and right.within.origin == left.origin:
        return max(right.within.distinct, left.distinct, 1.0)
    if left.unique and not right.unique and overlap(right, left) > 0.99:
        return max(left.domain, 1.0)
    if right.unique and not left.unique and overlap(left, right) > 0.99:
        return max(right.domain, 1.0)
    return max(left.domain, right.domain, 1.0)


def equality(left: ColumnEstimate, right: ColumnEstimate) -> float:
    """The share of pairs of rows that an equality of two columns keeps."""
    within_left, within_right = overlap(left, right), overlap(right, left)
    if within_left > 0.99 or within_right > 0.99:
        # One range holds the other: all values of the smaller domain have a partner.
        chosen = matched_domains(left, right)
    else:
        chosen = max(left.domain * within_left, right.domain * within_right, 1.0)
        return within_left * within_right * (1 - left.null_share) * (1 - right.null_share) / chosen
    return (1 - left.null_share) * (1 - right.null_share) / chosen

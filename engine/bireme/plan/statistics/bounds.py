"""What values and row counts can be at most: bounds that hold for certain, as far as the tables' metadata is true.

Bounds of numbers are over **scaled integers**: a decimal of scale 2 with the value 1.50 is 150. A sampled figure never
enters here. Metadata of a damaged file may lie; whoever relies on a bound must make a value beyond it an error
(kernels check against the type of their result), so that a lie costs the query, not its truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, Inexact
from functools import lru_cache
from typing import Any, Final

from bireme.data.node import Node, node
from bireme.data.types import DataType, Kind
from bireme.plan.expr import Aggregation, Call, Case, Cast, Column, Expr, Literal, ScalarSubquery, Value
from bireme.plan.relation import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.source import TableStatistics
from bireme.plan.statistics.cache import StatisticsCache

_EXACT: Final = Context(prec=80, traps=[Inexact])
_LEFT_ROWS: Final = frozenset({JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE})


@node
class Range(Node):
    """The least and the greatest scaled integer a value can be."""

    low: int
    high: int

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))


_NONE_OR_ZERO: Final = Range(0, 0)
_TYPES_KEPT_MAX: Final = 128


def scaled(value: Value, kind: DataType) -> int | None:
    """An exact number as a scaled integer; None for what is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    return int(Decimal(value).scaleb(kind.scale, _EXACT).to_integral_exact(context=_EXACT))


@lru_cache(_TYPES_KEPT_MAX)
def type_range(kind: DataType) -> Range | None:
    """What the type can hold; None for types that are not exact numbers."""
    if kind.is_integer:
        if kind.is_signed:
            return Range(-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1)
        return Range(0, (1 << kind.bits) - 1)
    if kind.kind is Kind.DECIMAL:
        most = 10**kind.precision - 1
        return Range(-most, most)
    return None


def union(ranges: Iterable[Range | None]) -> Range | None:
    """The range around all of `ranges`; None if one of them is unknown."""
    low, high = math.inf, -math.inf
    for found in ranges:
        if found is None:
            return None
        low, high = min(low, found.low), max(high, found.high)
    return None if low > high else Range(int(low), int(high))


def summed(values: Range, count: int) -> Range:
    """What the sum of one to `count` values can be."""
    return Range(min(values.low, values.low * count), max(values.high, values.high * count))


class Bounds:
    """Bounds for the relations of one run of the planner; `statistics` finds a table's metadata, and what was made of
    that is kept in the `cache` for later queries (scans name the table's version).
    """

    def __init__(self, statistics: Callable[[str, str], TableStatistics], cache: StatisticsCache) -> None:
        self._statistics = statistics
        self._cache = cache
        self._rows: dict[Rel, int | None] = {}
        self._columns: dict[tuple[Rel, int], Range | None] = {}
        self._values: dict[tuple[Rel, Expr], Range | None] = {}

    def rows(self, rel: Rel) -> int | None:
        """At most so many rows does `rel` give; None where nothing is known."""
        if rel not in self._rows:
            self._rows[rel] = _rows_max(self, rel)
        return self._rows[rel]

    def column(self, rel: Rel, index: int) -> Range | None:
        """Where the values of a column lie; None where it is not an exact number."""
        key = (rel, index)
        if key not in self._columns:
            natural = type_range(rel.schema.fields[index].type)
            self._columns[key] = natural and _within(_column_range(self, rel, index), natural)
        return self._columns[key]

    def value(self, rel: Rel, expr: Expr) -> Range | None:
        """Where the values of `expr` over `rel` lie; what leaves its type is an error, so it is no value."""
        if expr.__class__ is Column:
            return self.column(rel, expr.index)
        key = (rel, expr)
        if key not in self._values:
            natural = type_range(expr.type)
            self._values[key] = natural and _within(_value_range(self, rel, expr), natural)
        return self._values[key]

    def table(self, scan: Scan) -> TableStatistics:
        return self._statistics(scan.table, scan.version)

    def scanned(self, scan: Scan, index: int) -> Range | None:
        """Where the values of a scan's column lie by the metadata of its table."""
        key = ("range", scan.table, scan.version, scan.columns[index])
        found: tuple[Range | None] | None = self._cache.get(key)
        if found is None:
            found = (_table_range(self.table(scan), scan.columns[index], scan.schema.fields[index].type),)
            self._cache.put(key, found)
        return found[0]


def _within(found: Range | None, natural: Range) -> Range:
    if found is None:
        return natural
    low, high = max(found.low, natural.low), min(found.high, natural.high)
    return Range(low, high) if low <= high else natural


# ------------------------------------------------------------------------------------------ expressions


def _value_range(bounds: Bounds, rel: Rel, expr: Expr) -> Range | None:
    match expr:
        case Literal():
            number = scaled(expr.value, expr.type)
            return _NONE_OR_ZERO if expr.value is None else None if number is None else Range(number, number)
        case Call():
            known = [bounds.value(rel, arg) for arg in expr.args]
            return _call_range(expr.function, expr.args, expr.type, known)
        case Cast():
            return _cast_range(bounds.value(rel, expr.arg), expr.arg.type, expr.type)
        case Case(branches, default):
            return union([*[bounds.value(rel, value) for _, value in branches], bounds.value(rel, default)])
        case ScalarSubquery(plan):
            assert isinstance(plan, Rel)
            return bounds.column(plan, 0)
        case _:
            return None


def _cast_range(found: Range | None, source: DataType, target: DataType) -> Range | None:
    if found is None:
        return None
    by = target.scale - source.scale
    if by >= 0:
        return Range(found.low * 10**by, found.high * 10**by)
    step = 10**-by
    return Range(found.low // step, -(-found.high // step))


def _call_range(function: str, args: Sequence[Expr], kind: DataType, found: Sequence[Range | None]) -> Range | None:
    if function in ("coalesce", "greatest", "least"):
        return union(found)
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    scales = [arg.type.scale for arg in args]
    match function:
        case "add" | "subtract" if scales == [kind.scale, kind.scale]:
            left, right = known
            if function == "subtract":
                right = Range(-right.high, -right.low)
            return Range(left.low + right.low, left.high + right.high)
        case "multiply" if sum(scales) == kind.scale:
            left, right = known
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Range(min(corners), max(corners))
        case "negate" if scales == [kind.scale]:
            return Range(-known[0].high, -known[0].low)
        case "abs" if scales == [kind.scale]:
            low, high = known[0].low, known[0].high
            return Range(0 if low <= 0 <= high else min(abs(low), abs(high)), known[0].magnitude)
        case _:
            return None


# --------------------------------------------------------------------------------------------- columns


def _column_range(bounds: Bounds, rel: Rel, index: int) -> Range | None:
    match rel:
        case Scan():
            return bounds.scanned(rel, index)
        case Join():
            width = len(rel.left.schema.fields)
            if index < width:
                return bounds.column(rel.left, index)
            return None if rel.kind is JoinKind.MARK else bounds.column(rel.right, index - width)
        case Project():
            return bounds.value(rel.input, rel.exprs[index])
        case Filter() | Sort() | Limit():
            return bounds.column(rel.input, index)
        case Aggregate():
            return _aggregate_range(bounds, rel, index)
        case Values(rows):
            return union([bounds.value(rel, row[index]) for row in rows]) if rows else _NONE_OR_ZERO
        case Window(source):
            return bounds.column(source, index) if index < len(source.schema.fields) else None
        case Unnest(source, kept):
            return bounds.column(source, kept[index]) if index < len(kept) else None
        case Union(sources):
            return union([bounds.column(source, index) for source in sources])
        case _:
            return None


def _table_range(table: TableStatistics, column: int, kind: DataType) -> Range | None:
    if table.rows == 0:
        return _NONE_OR_ZERO
    known = table.columns[column]
    low, high = scaled(known.minimum, kind), scaled(known.maximum, kind)
    return None if low is None or high is None or low > high else Range(low, high)


def _aggregate_range(bounds: Bounds, rel: Aggregate, index: int) -> Range | None:
    keys = len(rel.keys)
    if index < keys:
        return bounds.value(rel.input, rel.keys[index])
    if index >= keys + len(rel.aggregates):
        return Range(0, len(rel.grouping_sets or ()))
    call: Aggregation = rel.aggregates[index - keys]
    rows = bounds.rows(rel.input)
    match call.function:
        case "count" | "count_star":
            return None if rows is None else Range(0, rows)
        case "min" | "max" | "any_value" | "first" | "last":
            return bounds.value(rel.input, call.args[0])
        case "sum":
            values = bounds.value(rel.input, call.args[0])
            same_scale = call.args[0].type.scale == call.type.scale
            return summed(values, rows) if values is not None and rows is not None and same_scale else None
        case _:
            return None


# ------------------------------------------------------------------------------------------------ rows


def _rows_max(bounds: Bounds, rel: Rel) -> int | None:
    match rel:
        case Scan():
            return bounds.table(rel).rows
        case Values():
            return len(rel.rows)
        case Project() | Filter() | Window():
            return bounds.rows(rel.input)
        case Sort() | Limit():
            rows, limit = bounds.rows(rel.input), rel.limit
            return limit if rows is None else rows if limit is None else min(rows, limit)
        case Union(sources):
            counts = [bounds.rows(source) for source in sources]
            return None if None in counts else sum([count for count in counts if count is not None])
        case Aggregate():
            sets = rel.grouping_sets
            if not rel.keys and sets is None:
                return 1
            rows = bounds.rows(rel.input)
            return None if rows is None else max(1, rows) * len(sets) if sets is not None else rows
        case Join():
            return _join_rows_max(bounds, rel)
        case _:
            return None


def _join_rows_max(bounds: Bounds, rel: Join) -> int | None:
    left, right = bounds.rows(rel.left), bounds.rows(rel.right)
    if rel.kind in _LEFT_ROWS:
        return left
    if left is None or right is None:
        return None
    pairs = left * right
    if right <= 1 or is_unique(rel.right, rel.right_keys):
        pairs = min(pairs, left)
    if left <= 1 or is_unique(rel.left, rel.left_keys):
        pairs = min(pairs, right)
    kept_left = left if rel.kind in (JoinKind.LEFT, JoinKind.FULL) else 0
    kept_right = right if rel.kind in (JoinKind.RIGHT, JoinKind.FULL) else 0
    return pairs + kept_left + kept_right


def is_unique(rel: Rel, exprs: Sequence[Expr]) -> bool:
    """Whether no two rows of `rel` agree in `exprs`, proved by the shape of the plan."""
    columns = {expr.index for expr in exprs if isinstance(expr, Column)}
    while True:
        match rel:
            case Filter() | Sort() | Limit():
                rel = rel.input
            case Project():
                taken: list[Any] = [rel.exprs[index] for index in columns]
                columns = {expr.index for expr in taken if isinstance(expr, Column)}
                rel = rel.input
            case Join() if rel.kind in _LEFT_ROWS:
                width = len(rel.left.schema.fields)
                columns = {index for index in columns if index < width}
                rel = rel.left
            case Aggregate() if rel.grouping_sets is None:
                return columns.issuperset(range(len(rel.keys)))
            case _:
                return False

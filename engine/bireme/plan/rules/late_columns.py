"""Wide columns that a top-n only carries are left out of what it looks at, and read for the rows that it keeps.

Instead of the columns, the number of the row that they come from travels from the scan to the top-n; the rows kept are
then joined with a second scan of the table, which reads these rows alone (`RowNumbers`, and a lookup by row number).
That pays where many wide rows come to the top-n and few stay.

A grouping on the way loses the columns from its keys where another key, of the same table, is believed to be unique:
the groups are the same if it is. That one row of the table is behind each group is checked while running (`Assume`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bireme.data.types import BINARY, INT64, STRING
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Column, Expr
from bireme.plan.relation import Aggregate, Assume, Filter, Join, JoinKind, Project, Rel, RowNumbers, Scan, Sort
from bireme.plan.rules.prune_columns import prune_columns
from bireme.plan.rules.share import shared
from bireme.plan.statistics.estimator import Estimator
from bireme.plan.tree import (
    column_mask,
    map_operands,
    mask_of,
    operands,
    project,
    remap,
    with_inputs,
)
from bireme.records import dataclass

# Carrying so many bytes costs about as much as a second look at the table.
_SAVED_BYTES_MIN: Final = 2_000_000
_KEPT_ROWS_MAX: Final = 16_384
# The top-n drops all but one in so many rows.
_DROPPED_FACTOR: Final = 8.0

_LEFT_KEPT: Final = frozenset(
    {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE}
)
_RIGHT_KEPT: Final = frozenset({JoinKind.INNER, JoinKind.RIGHT})
_NAME: Final = "row_number"

# The way from a relation down to a scan: which input to take at each join.
Way = tuple[int, ...]


class _Place(NamedTuple):
    """Where a column comes from unchanged: a column of the scan at the end of a way."""

    way: Way
    scan: Scan
    column: int


class _Carried(NamedTuple):
    """A relation with row numbers at position `number`; `positions` are those of the columns that it kept."""

    rel: Rel
    positions: dict[int, int]
    number: int


def late_columns(plan: Rel, context: PlanContext) -> Rel:
    """The same rows and columns, with wide ones read late where that is estimated to pay."""
    if not (context.levers.late_columns and context.levers.runtime_filters):
        return plan
    above: list[Rel] = []
    rel = plan
    while isinstance(rel, Project):
        above.append(rel)
        rel = rel.input
    if not isinstance(rel, Sort) or rel.limit is None:
        return plan
    changed = _late(rel, rel.limit + rel.offset, plan, context.estimates)
    if changed is rel:
        return plan
    for outer in reversed(above):
        changed = with_inputs(outer, [changed])
    return prune_columns(changed, context)


def _late(sort: Sort, kept: int, plan: Rel, estimator: Estimator) -> Rel:
    rows = estimator.rows(sort.input)
    if kept > _KEPT_ROWS_MAX or rows < kept * _DROPPED_FACTOR:
        return sort
    found = _Search(estimator, shared(plan)).best(sort)
    if found is None or found.bytes_each * rows < _SAVED_BYTES_MIN:
        return sort
    return _rewritten(sort, found)


# ------------------------------------------------------------------------------------------------- what to leave out


@dataclass(frozen=True, slots=True)
class _Late:
    """Columns of `scan` that are left out, by position in the top-n, and the mean bytes of these in a row."""

    way: Way
    scan: Scan
    columns: dict[int, int]
    bytes_each: float


class _Search:
    """Looks for the columns that a top-n only carries."""

    def __init__(self, estimator: Estimator, run_once: frozenset[Rel]) -> None:
        self._estimator = estimator
        self._run_once = run_once

    def best(self, sort: Sort) -> _Late | None:
        """The columns of one scan that take most bytes."""
        used = mask_of([key.expr for key in sort.keys])
        by_way: dict[Way, list[tuple[int, _Place]]] = {}
        for index in range(len(sort.schema)):
            place = self._place(sort.input, index) if not used >> index & 1 else None
            if place is not None:
                by_way.setdefault(place.way, []).append((index, place))
        found = [self._leaving(sort.input, way, places) for way, places in by_way.items()]
        return max([late for late in found if late is not None], key=lambda late: late.bytes_each, default=None)

    def _leaving(self, source: Rel, way: Way, places: list[tuple[int, _Place]]) -> _Late | None:
        """What may be left out of the columns at the end of one way."""
        scan = places[0][1].scan
        columns = {index: place.column for index, place in places}
        if not self._may_leave_groups(source, scan, frozenset(columns), way):
            # One of them may have to stay, to tell the groups apart.
            identifying = next((index for index in columns if self._is_unique(scan, columns[index])), None)
            columns = {index: column for index, column in columns.items() if index != identifying}
            if not columns or not self._may_leave_groups(source, scan, frozenset(columns), way):
                return None
        each = sum([self._estimator.column(scan, column).mean_bytes for column in columns.values()])
        return _Late(way, scan, columns, each)

    def _is_unique(self, scan: Scan, column: int) -> bool:
        """Whether a column of fixed width, which is cheap to group by, is believed to be unique."""
        kind = scan.schema[column].type
        return kind not in (STRING, BINARY) and not kind.is_nested and self._estimator.column(scan, column).unique

    def _place(self, rel: Rel, column: int, way: Way = ()) -> _Place | None:
        """Where a column comes from, if nothing on the way looks at it."""
        if rel in self._run_once:
            return None
        match rel:
            case Scan():
                return _Place(way, rel, column) if not mask_of(rel.filters) >> column & 1 else None
            case Filter():
                return self._place(rel.input, column, way) if not column_mask(rel.predicate) >> column & 1 else None
            case Project():
                return self._passed(rel.input, rel.exprs, column, way)
            case Aggregate(source, keys, calls, _, None) if column < len(keys):
                return self._passed(source, [*keys, *[part for c in calls for part in operands(c)]], column, way)
            case Join():
                return self._place_in_join(rel, column, way)
            case _:
                return None

    def _passed(self, source: Rel, exprs: Sequence[Expr], column: int, way: Way) -> _Place | None:
        """Where the expression at `column` comes from, if it is a column that no other expression reads."""
        expr = exprs[column]
        if not isinstance(expr, Column):
            return None
        others = [*exprs[:column], *exprs[column + 1 :]]
        return None if mask_of(others) >> expr.index & 1 else self._place(source, expr.index, way)

    def _place_in_join(self, rel: Join, column: int, way: Way) -> _Place | None:
        width = len(rel.left.schema)
        looked_at = mask_of(rel.left_keys) | mask_of(rel.right_keys) << width
        if rel.residual is not None:
            looked_at |= column_mask(rel.residual)
        if looked_at >> column & 1:
            return None
        if column < width:
            return self._place(rel.left, column, (*way, 0)) if rel.kind in _LEFT_KEPT else None
        return self._place(rel.right, column - width, (*way, 1)) if rel.kind in _RIGHT_KEPT else None

    def _may_leave_groups(self, rel: Rel, scan: Scan, columns: frozenset[int], way: Way) -> bool:
        """Whether the groupings on the way have a key of the same table that is believed to be unique."""
        while not isinstance(rel, Scan):
            match rel:
                case Project(source, exprs):
                    columns = frozenset([e.index for e in (exprs[c] for c in columns) if isinstance(e, Column)])
                    rel = source
                case Aggregate(source, keys):
                    kept = [key for index, key in enumerate(keys) if index not in columns]
                    if not any(self._identifies(source, key, scan, way) for key in kept):
                        return False
                    columns = frozenset([k.index for k in (keys[c] for c in columns) if isinstance(k, Column)])
                    rel = source
                case Join():
                    width = len(rel.left.schema) if way[0] else 0
                    columns = frozenset([column - width for column in columns])
                    rel, way = rel.inputs[way[0]], way[1:]
                case _:
                    rel = rel.inputs[0]
        return True

    def _identifies(self, source: Rel, key: Expr, scan: Scan, way: Way) -> bool:
        """Whether a key is a column of the scan that is believed to be unique."""
        if not isinstance(key, Column):
            return False
        column = _scanned(source, key.index, way)
        return column is not None and self._is_unique(scan, column)


def _scanned(rel: Rel, column: int, way: Way) -> int | None:
    """The column of the scan at the end of `way` that a column is."""
    match rel:
        case Scan():
            return column
        case Project(source, exprs):
            expr = exprs[column]
            return _scanned(source, expr.index, way) if isinstance(expr, Column) else None
        case Join(left):
            width = len(left.schema)
            if (column >= width) != bool(way[0]):
                return None
            return _scanned(rel.inputs[way[0]], column - (width if way[0] else 0), way[1:])
        case Filter(source):
            return _scanned(source, column, way)
        case Aggregate(source, keys):
            key = keys[column] if column < len(keys) else None
            return _scanned(source, key.index, way) if isinstance(key, Column) else None
        case _:
            return None


# ------------------------------------------------------------------------------------------------------ leaving it out


def _rewritten(sort: Sort, late: _Late) -> Rel:
    """The top-n over row numbers, joined with the rows that have these."""
    carried = _carried(sort.input, frozenset(late.columns), late.way)
    keys = tuple([map_operands(key, lambda expr: remap(expr, carried.positions)) for key in sort.keys])
    top = Sort(carried.rel, keys, sort.limit, sort.offset)
    number = Column(carried.number, INT64)
    read = tuple(dict.fromkeys(late.columns.values()))
    scan = late.scan
    rows = RowNumbers(Scan(scan.table, scan.version, scan.table_schema, tuple([scan.columns[each] for each in read])))
    here = Column(len(read), INT64)
    # The rows kept are the build side of both joins' looks at the table, and the stream of the last: their order stays.
    wanted = Join(rows, project(top, [number], [_NAME]), JoinKind.SEMI, (here,), (Column(0, INT64),))
    joined = Join(top, wanted, JoinKind.INNER, (number,), (here,))
    width, fields = len(top.schema), sort.schema.fields
    outputs: list[Expr] = []
    for index, field in enumerate(fields):
        late_column = late.columns.get(index)
        place = carried.positions[index] if late_column is None else width + read.index(late_column)
        outputs.append(Column(place, field.type))
    return project(joined, outputs, sort.schema.names)


def _carried(rel: Rel, late: frozenset[int], way: Way) -> _Carried:
    """`rel` with row numbers of the scan at the end of `way`, perhaps without the columns `late`."""
    match rel:
        case Scan():
            return _Carried(RowNumbers(rel), {index: index for index in range(len(rel.columns))}, len(rel.columns))
        case Filter(source, predicate):
            carried = _carried(source, late, way)
            return carried._replace(rel=Filter(carried.rel, remap(predicate, carried.positions)))
        case Project():
            return _carried_project(rel, late, way)
        case Aggregate():
            return _carried_aggregate(rel, late, way)
        case Join():
            return _carried_join(rel, late, way)
    raise AssertionError(f"{type(rel).__name__} carries no row numbers")


def _carried_project(rel: Project, late: frozenset[int], way: Way) -> _Carried:
    below = frozenset([expr.index for expr in (rel.exprs[c] for c in late) if isinstance(expr, Column)])
    carried = _carried(rel.input, below, way)
    kept = [index for index in range(len(rel.exprs)) if index not in late]
    exprs = [remap(rel.exprs[index], carried.positions) for index in kept]
    names = [rel.names[index] for index in kept]
    made = Project(carried.rel, (*exprs, Column(carried.number, INT64)), (*names, _NAME))
    return _Carried(made, {old: new for new, old in enumerate(kept)}, len(kept))


def _carried_aggregate(rel: Aggregate, late: frozenset[int], way: Way) -> _Carried:
    below = frozenset([key.index for key in (rel.keys[c] for c in late) if isinstance(key, Column)])
    carried = _carried(rel.input, below, way)
    kept = [index for index in range(len(rel.keys)) if index not in late]
    keys = tuple([remap(rel.keys[index], carried.positions) for index in kept])
    calls = [map_operands(call, lambda expr: remap(expr, carried.positions)) for call in rel.aggregates]
    number = Column(carried.number, INT64)
    first, last = len(kept) + len(calls), len(kept) + len(calls) + 1
    ends = [Aggregation(function, (number,), INT64) for function in ("min", "max")]
    names = (*[rel.names[index] for index in kept], *rel.names[len(rel.keys) :], _NAME, f"last_{_NAME}")
    made = Aggregate(carried.rel, keys, (*calls, *ends), names)
    positions = {old: new for new, old in enumerate(kept)}
    positions |= {len(rel.keys) + index: len(kept) + index for index in range(len(calls))}
    return _Carried(Assume(made, first, last), positions, first)


def _carried_join(rel: Join, late: frozenset[int], way: Way) -> _Carried:
    width = len(rel.left.schema)
    side, rest = way[0], way[1:]
    below = frozenset([column - width if side else column for column in late])
    carried = _carried(rel.inputs[side], below, rest)
    left, right = (rel.left, carried.rel) if side else (carried.rel, rel.right)
    in_left = {index: index for index in range(width)} if side else carried.positions
    in_right = carried.positions if side else {index: index for index in range(len(rel.right.schema))}
    offset = len(left.schema)
    both = in_left | {width + old: offset + new for old, new in in_right.items()}
    made = Join(
        left,
        right,
        rel.kind,
        remap(rel.left_keys, in_left),
        remap(rel.right_keys, in_right),
        None if rel.residual is None else remap(rel.residual, both),
        rel.null_equal_count,
        rel.null_aware,
    )
    if rel.kind is JoinKind.MARK:
        both = in_left | {width: offset}
    return _Carried(made, both, carried.number + (offset if side else 0))

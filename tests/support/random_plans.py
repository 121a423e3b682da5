"""Small random plans over the tables of `nested_queries`, for rules that must keep their meaning.

What is drawn has one answer: limits and row numbers order by every column, floats are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from bireme.data.schema import Schema
from bireme.data.types import BOOL, HUGEINT, INT64, STRING, DataType
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Call,
    Case,
    Column,
    Expr,
    InList,
    Literal,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
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
    Values,
    Window,
)
from bireme.plan.tree import all_columns, project
from support.nested_queries import TABLES

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct")
_TRUTHS = ("is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false")


def columns_of(schema: Schema, wanted: DataType) -> list[Column]:
    return [column for column in all_columns(schema) if column.type is wanted]


@st.composite
def numbers(draw, schema: Schema, depth: int = 1) -> Expr:
    """A bigint expression."""
    columns = columns_of(schema, INT64)
    choice = draw(st.integers(0, 9))
    if columns and choice < 6:
        return draw(st.sampled_from(columns))
    if depth and choice < 8:
        function = draw(st.sampled_from(["add", "subtract", "coalesce"]))
        return Call(function, (draw(numbers(schema, depth - 1)), draw(numbers(schema, depth - 1))), INT64)
    return Literal(draw(st.sampled_from([None, 0, 1, 2, 3, 10, 20])), INT64)


@st.composite
def truths(draw, schema: Schema, depth: int = 2) -> Expr:
    """A predicate."""
    choice = draw(st.integers(0, 9))
    if depth and choice < 4:
        function = draw(st.sampled_from(["and", "or"]))
        count = draw(st.integers(2, 3))
        return Call(function, tuple([draw(truths(schema, depth - 1)) for _ in range(count)]), BOOL)
    if depth and choice == 4:
        return Call("not", (draw(truths(schema, depth - 1)),), BOOL)
    if depth and choice == 5:
        return Call(draw(st.sampled_from(_TRUTHS)), (draw(truths(schema, depth - 1)),), BOOL)
    if choice == 6:
        items = draw(st.lists(st.sampled_from([None, 0, 1, 2, 3, 10]), min_size=1, max_size=3))
        return InList(draw(numbers(schema)), tuple([Literal(item, INT64) for item in items]))
    if choice == 7:
        return Call(draw(st.sampled_from(_TRUTHS[:2])), (draw(numbers(schema)),), BOOL)
    if choice == 8 and depth:
        branch = (draw(truths(schema, 0)), draw(truths(schema, 0)))
        return Case((branch,), draw(st.sampled_from([Literal(None, BOOL), Literal(True, BOOL)])), BOOL)
    columns = columns_of(schema, BOOL)
    if columns and draw(st.booleans()):
        return draw(st.sampled_from(columns))
    strings = columns_of(schema, STRING)
    if strings and draw(st.booleans()):
        text = Literal(draw(st.sampled_from(["x", "y", ""])), STRING)
        return Call("eq", (draw(st.sampled_from(strings)), text), BOOL)
    return Call(draw(st.sampled_from(_COMPARISONS)), (draw(numbers(schema)), draw(numbers(schema))), BOOL)


@st.composite
def scans(draw) -> Rel:
    name = draw(st.sampled_from(sorted(TABLES)))
    schema = Schema.from_arrow(TABLES[name].schema)
    return Scan(name, "1", schema, tuple(range(len(schema))))


@st.composite
def plans(draw, depth: int = 3) -> Rel:
    """A plan of at most `depth` levels above its scans."""
    if not depth or draw(st.integers(0, 9)) == 0:
        return draw(scans())
    source = draw(plans(depth - 1))
    make = draw(st.sampled_from([_filters, _filters, _projects, _joins, _joins, _aggregates, _windows, _cuts, _unions]))
    return draw(make(source, depth))


@st.composite
def _filters(draw, source: Rel, depth: int) -> Rel:
    predicate = draw(truths(source.schema))
    if draw(st.integers(0, 5)) == 0:
        inner = draw(plans(1))
        counted = Aggregate(inner, (), (Aggregation("count_star", (), INT64),), ("n",))
        compared = Call("lt", (draw(numbers(source.schema)), ScalarSubquery(counted, INT64)), BOOL)
        predicate = Call("or", (predicate, compared), BOOL)
    return Filter(source, predicate)


@st.composite
def _projects(draw, source: Rel, depth: int) -> Rel:
    kept = draw(st.lists(st.sampled_from(all_columns(source.schema)), max_size=3)) if len(source.schema) else []
    exprs: list[Expr] = [*kept, draw(numbers(source.schema)), draw(truths(source.schema, 1))]
    return Project(source, tuple(exprs), tuple([f"p{index}" for index in range(len(exprs))]))


@st.composite
def _joins(draw, left: Rel, depth: int) -> Rel:
    right = draw(plans(depth - 1))
    kind = draw(st.sampled_from([kind for kind in JoinKind if kind is not JoinKind.SINGLE]))
    pairs: list[tuple[Expr, Expr]] = []
    for _ in range(draw(st.integers(0, 2))):
        lefts, rights = columns_of(left.schema, INT64), columns_of(right.schema, INT64)
        if lefts and rights:
            pairs.append((draw(st.sampled_from(lefts)), draw(st.sampled_from(rights))))
    aware = bool(pairs) and kind in (JoinKind.ANTI, JoinKind.MARK) and draw(st.booleans())
    count = draw(st.integers(0, len(pairs) - 1 if aware else len(pairs)))
    residual = draw(truths(left.schema.concat(right.schema))) if draw(st.booleans()) else None
    left_keys, right_keys = tuple([a for a, _ in pairs]), tuple([b for _, b in pairs])
    return Join(left, right, kind, left_keys, right_keys, residual, count, aware)


def _calls(schema: Schema) -> st.SearchStrategy[Aggregation]:
    argument = numbers(schema)
    condition = st.none() | truths(schema, 1)
    distinct = st.booleans()
    return st.one_of(
        st.builds(lambda c: Aggregation("count_star", (), INT64, False, c), condition),
        st.builds(lambda a, d, c: Aggregation("count", (a,), INT64, d, c), argument, distinct, condition),
        st.builds(lambda a, d, c: Aggregation("sum", (a,), HUGEINT, d, c), argument, distinct, condition),
        st.builds(lambda f, a, d: Aggregation(f, (a,), INT64, d), st.sampled_from(["min", "max"]), argument, distinct),
    )


@st.composite
def _aggregates(draw, source: Rel, depth: int) -> Rel:
    columns = all_columns(source.schema)
    keys: Sequence[Expr] = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True)) if columns else []
    with_sets = bool(keys) and draw(st.integers(0, 3)) == 0
    # SQL has no way to write a grouping of everything without an aggregate.
    calls = draw(st.lists(_calls(source.schema), min_size=1 if with_sets or not keys else 0, max_size=3))
    sets = None
    if with_sets:
        one = st.lists(st.integers(0, len(keys) - 1), unique=True).map(tuple)
        sets = tuple(draw(st.lists(one, min_size=1, max_size=3)))
    names = tuple([f"g{index}" for index in range(len(keys) + len(calls))])
    return Aggregate(source, tuple(keys), tuple(calls), names, sets)


@st.composite
def _windows(draw, source: Rel, depth: int) -> Rel:
    columns = all_columns(source.schema)
    if not columns:
        return source
    partition = tuple(draw(st.lists(st.sampled_from(columns), max_size=2, unique=True)))
    order = tuple([SortKey(column) for column in columns])
    number = WindowCall(Aggregation("row_number", (), INT64), partition, order, UP_TO_PEERS)
    total = WindowCall(Aggregation("count_star", (), INT64), partition[:1], (), WHOLE_PARTITION)
    return Window(source, (number, total), ("number", "total"))


@st.composite
def _cuts(draw, source: Rel, depth: int) -> Rel:
    keys = tuple([SortKey(column, draw(st.booleans()), draw(st.booleans())) for column in all_columns(source.schema)])
    limit = draw(st.none() | st.integers(0, 5))
    if not keys:
        return source
    if draw(st.booleans()):
        return Limit(Sort(source, keys), limit, draw(st.integers(0, 2)))
    return Sort(source, keys, limit, draw(st.integers(0, 2)) if limit is not None else 0)


@st.composite
def _unions(draw, source: Rel, depth: int) -> Rel:
    other = draw(plans(depth - 1))
    numbers_of = [columns_of(each.schema, INT64)[:2] for each in (source, other)]
    width = min(map(len, numbers_of))
    names = [f"u{index}" for index in range(width)]
    sides: list[Rel] = [
        project(each, columns[:width], names) for each, columns in zip((source, other), numbers_of, strict=True)
    ]
    if width == 2 and draw(st.booleans()):
        rows = ((Literal(1, INT64), Literal(None, INT64)),)
        sides.append(Values(rows, sides[0].schema.as_nullable()))
    return Union(tuple(sides))

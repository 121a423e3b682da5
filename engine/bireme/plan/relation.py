"""Relational nodes: what a query is, before anything is said of how it runs.

Columns are positions; names live in schemas and matter only at the root and in messages. Rows have an order only
where a `Sort` (or an input in order, under nodes that keep it) gives one. What the nodes' expressions are is in
`expr`; how the nodes run, in `physical`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bireme.data.choice import Choice
from bireme.data.node import Role, base, node
from bireme.data.schema import Schema
from bireme.data.types import BOOL, INT64, Field
from bireme.plan.expr import Aggregation, Expr, Literal, Relation, SortKey, WindowCall
from bireme.plan.nullable import is_nullable


@base
class Rel(Relation):
    """A relational node with its schema, derived once.

    `schema` is derived from the fields by `_derive`; equal nodes are one object, so it is computed once.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def schema(self) -> Schema: ...
    else:
        schema = Relation.derived

    def _derive(self) -> Schema:
        raise NotImplementedError


@node(parts=("filters",))
class Scan(Rel):
    """Columns `columns` (positions in `table_schema`) of the table that the catalog knows as `table`.

    `version` tells apart tables that had the same name at different times. `filters`, over the output columns of this
    scan, may be used to skip row groups, pages and rows, but a scan promises nothing: a `Filter` above stays.
    """

    table: str
    version: str
    table_schema: Schema
    columns: tuple[int, ...]
    filters: tuple[Expr, ...] = ()

    def _derive(self) -> Schema:
        return self.table_schema.select(self.columns)


@node(inputs=("input",))
class RowNumbers(Rel):
    """The columns of a scan, followed by the number (INT64, from 0) that each row has in its table."""

    input: Scan

    def _derive(self) -> Schema:
        return Schema((*self.input.schema.fields, Field("row_number", INT64, False)))


@node(inputs=("input",))
class Assume(Rel):
    """The input's rows. That the columns `one` and `other` are equal in all of them is assumed: where they are not, the
    query is planned again, without what rests on it (SourceMisstated).
    """

    input: Rel
    one: int
    other: int

    def _derive(self) -> Schema:
        return self.input.schema


@node
class Values(Rel):
    """Literal rows. Zero columns with one row is what `select 1` reads; no rows is an empty relation."""

    rows: tuple[tuple[Literal, ...], ...]
    row_schema: Schema

    def _derive(self) -> Schema:
        return self.row_schema


@node(parts=("exprs",), inputs=("input",))
class Project(Rel):
    """One output column per expression. Keeps the order of rows. May have no columns (rows are still counted)."""

    input: Rel
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]

    def _derive(self) -> Schema:
        source = self.input.schema
        columns = zip(self.names, self.exprs, strict=True)
        return Schema(tuple([Field(name, expr.type, is_nullable(expr, source)) for name, expr in columns]))


@node(parts=("predicate",), inputs=("input",))
class Filter(Rel):
    """The rows for which `predicate` is TRUE, in their order."""

    input: Rel
    predicate: Expr

    def _derive(self) -> Schema:
        return self.input.schema


class JoinKind(Choice):
    """INNER, LEFT, RIGHT, FULL as in SQL. SEMI and ANTI give left rows with and without a match.

    MARK gives every left row and a BOOL column whether it matches. SINGLE is LEFT that fails with
    CardinalityFault where a left row has more than one match. A cross join is INNER without keys.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"
    SINGLE = "single"


def join_schema(left: Schema, right: Schema, kind: JoinKind, mark_nullable: bool) -> Schema:
    """The columns a join of this kind gives."""
    match kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return left
        case JoinKind.MARK:
            return Schema((*left.fields, Field("mark", BOOL, mark_nullable)))
        case JoinKind.LEFT | JoinKind.SINGLE:
            return left.concat(right.as_nullable())
        case JoinKind.RIGHT:
            return left.as_nullable().concat(right)
        case JoinKind.FULL:
            return left.as_nullable().concat(right.as_nullable())
        case JoinKind.INNER:
            return left.concat(right)


@node(role=Role.JOIN, parts=("left_keys", "right_keys", "residual"), inputs=("left", "right"))
class Join(Rel):
    """Rows of both sides where every key pair is equal and `residual` is TRUE.

    `left_keys` are over the left schema, `right_keys` (as many, of equal types) over the right, `residual` over left
    columns followed by right columns. With `null_equal` NULL keys match each other (set operations, unnesting);
    else they match nothing. `null_aware` (ANTI and MARK only) is the meaning of NOT IN and IN: over the right rows
    whose residual is TRUE, the mark is the three-valued OR of the key comparisons; ANTI then keeps the rows whose
    mark is FALSE. With both flags, the first `null_equal_count` key pairs are the null-equal ones (they come from
    unnesting) and select the right rows; the pairs after them are compared three-valued.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    left_keys: tuple[Expr, ...] = ()
    right_keys: tuple[Expr, ...] = ()
    residual: Expr | None = None
    null_equal_count: int = 0
    null_aware: bool = False

    def _derive(self) -> Schema:
        return join_schema(self.left.schema, self.right.schema, self.kind, self.null_aware)


@node(role=Role.DEPENDENT, parts=("condition",), inputs=("left", "right"))
class DependentJoin(Rel):
    """A join whose right side is evaluated anew for each left row (LATERAL): its plan may hold
    `OuterColumn(1, …)` of the left side. INNER, LEFT, SEMI, ANTI, MARK or SINGLE. Gone after `unnest`.
    """

    left: Rel
    right: Rel
    kind: JoinKind
    condition: Expr | None = None

    def _derive(self) -> Schema:
        return join_schema(self.left.schema, self.right.schema, self.kind, mark_nullable=True)


@node(parts=("keys", "aggregates"), inputs=("input",))
class Aggregate(Rel):
    """One row per distinct tuple of `keys` (NULLs equal): the keys, then the aggregates.

    Without keys there is exactly one row, also over no input. `grouping_sets` (tuples of positions in `keys`), when
    given, repeats the grouping for each set with the other keys NULL, and appends one INT64 column after the aggregates
    with the position of the set, which is how `grouping()` is computed above.
    """

    input: Rel
    keys: tuple[Expr, ...]
    aggregates: tuple[Aggregation, ...]
    names: tuple[str, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None

    def _derive(self) -> Schema:
        return aggregate_schema(self)


def aggregate_schema(node: Aggregate) -> Schema:
    """Keys, aggregates, and the number of the grouping set where there are several."""
    source = node.input.schema
    everywhere = set.intersection(*map(set, node.grouping_sets)) if node.grouping_sets else None
    columns = []
    for index, key in enumerate(node.keys):
        padded = everywhere is not None and index not in everywhere
        columns.append(Field(node.names[index], key.type, padded or is_nullable(key, source)))
    for index, call in enumerate(node.aggregates, start=len(node.keys)):
        columns.append(Field(node.names[index], call.type, not call.function.startswith("count")))
    if node.grouping_sets is not None:
        columns.append(Field("grouping_set", INT64, False))
    return Schema(tuple(columns))


@node(inputs=("input",))
class Unnest(Rel):
    """The elements of lists, one a row: the columns `kept` of the input row, then an element of each column `lists`.

    A row gives as many rows as its longest list has elements, shorter lists NULL at their end. One without elements
    gives none, with `keeps_empty` one row of NULLs. With `has_ordinality`, the place of the elements in their lists
    (INT64, from 1; NULL where there are none) comes last. Keeps the order of rows, and of elements in their list.
    """

    input: Rel
    kept: tuple[int, ...]
    lists: tuple[int, ...]
    names: tuple[str, ...]
    keeps_empty: bool = False
    has_ordinality: bool = False

    def _derive(self) -> Schema:
        source = self.input.schema
        added = [source.fields[place].type.children[0].type for place in self.lists]
        if self.has_ordinality:
            added.append(INT64)
        fields = [Field(name, kind) for name, kind in zip(self.names, added, strict=True)]
        return Schema((*source.select(self.kept).fields, *fields))


@node(parts=("calls",), inputs=("input",))
class Window(Rel):
    """The input's columns, in unchanged row order, followed by one column per window function."""

    input: Rel
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    def _derive(self) -> Schema:
        added = [Field(name, call.call.type) for name, call in zip(self.names, self.calls, strict=True)]
        return Schema((*self.input.schema.fields, *added))


@node(parts=("keys",), inputs=("input",))
class Sort(Rel):
    """The rows in order; ties keep the order of the input. With `limit`, only `limit` rows after the first `offset`."""

    input: Rel
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0

    def _derive(self) -> Schema:
        return self.input.schema


@node(inputs=("input",))
class Limit(Rel):
    """The first `limit` rows (None: all) after skipping `offset`, in the order of the input."""

    input: Rel
    limit: int | None
    offset: int = 0

    def _derive(self) -> Schema:
        return self.input.schema


@node(inputs=("sources",))
class Union(Rel):
    """All rows of all inputs, one input after the other; their types are equal, names are the first one's.

    The other set operations become joins and aggregates in the front end, DISTINCT an `Aggregate` without aggregates.
    """

    sources: tuple[Rel, ...]

    def _derive(self) -> Schema:
        columns = zip(*(source.schema.fields for source in self.sources), strict=True)
        return Schema(tuple([Field(c[0].name, c[0].type, any(field.nullable for field in c)) for c in columns]))

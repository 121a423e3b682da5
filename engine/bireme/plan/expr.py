"""Immutable typed expressions over the columns of one relation, by position.

What functions there are and what types they take is in `functions`, the only place that should build `Call`, `Cast`,
`Aggregation` and `WindowCall` from anything a user wrote. What expressions mean is in the backends. Relations are in
`relation`.

Truth is three-valued: predicates are BOOL with NULL for unknown, and a filter keeps only TRUE.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import ClassVar, NamedTuple

from bireme.data.choice import Choice
from bireme.data.node import Node, Role, base, node
from bireme.data.types import BOOL, DataType


class Interval(NamedTuple):
    """A span of time whose parts do not convert into each other: a literal of type INTERVAL."""

    months: int
    days: int
    nanoseconds: int


# What `Literal.value` holds, by kind: None for NULL of any type; bool; int; float; Decimal; str; bytes; date; time;
# datetime (aware where the type has a zone); for nanosecond timestamps and durations the int count; Interval.
Value = None | bool | int | float | Decimal | str | bytes | datetime.date | datetime.time | datetime.datetime | Interval


@base
class Relation(Node):
    """Base of relational nodes; here so that subquery expressions can hold one. The nodes are in `relation`."""

    __slots__ = ()


@base
class Expr(Node):
    """Base of expressions; each has a `type`."""

    __slots__ = ()
    _role: ClassVar[Role] = Role.EXPRESSION
    type: DataType


@node(role=Role.REFERENCE)
class Column(Expr):
    """The input's column at `index`."""

    index: int
    type: DataType


@node(role=Role.OUTER)
class OuterColumn(Expr):
    """Inside the plan of a subquery: column `index` of the input of an operator around it.

    `depth` 1 is the input of the operator whose expression holds this subquery (for a `DependentJoin`: its left
    side), 2 the one around that. Gone after the rule `unnest`.
    """

    depth: int
    index: int
    type: DataType


@node
class Literal(Expr):
    """A constant of a type; `value` None is NULL."""

    value: Value
    type: DataType


@node(role=Role.CALL, parts=("args",))
class Call(Expr):
    """A scalar function of the registry, by its canonical name, with arguments already of the types it takes.

    `and` and `or` take two or more arguments. Result types are explicit: two `multiply` may differ in precision.
    """

    function: str
    args: tuple[Expr, ...]
    type: DataType


@node(parts=("arg",))
class Cast(Expr):
    """`arg` converted to `type`. What does not convert is a ConversionFault, or NULL where `safe` (TRY_CAST)."""

    arg: Expr
    type: DataType
    safe: bool = False


@node(parts=("branches", "default"))
class Case(Expr):
    """The value of the first branch whose condition is TRUE, else `default`. Values all have `type`.

    A branch is evaluated only for rows that reach it, so it may hold what would fail on other rows.
    """

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr
    type: DataType


@node(parts=("arg", "items"))
class InList(Expr):
    """Whether `arg` equals one of `items` (all of its type); NULL when it does not but an item or `arg` is NULL."""

    arg: Expr
    items: tuple[Expr, ...]
    type: DataType = BOOL


@node
class Parameter(Expr):
    """Parameter `place` of the lambda that `level` other lambdas are around; only inside of the body of that one."""

    level: int
    place: int
    type: DataType


@node(parts=("body",))
class Lambda(Expr):
    """What a function is to do with each element of a list; only as the argument of a `Call`.

    `body`, of the lambda's type, is over `parameters` and the columns of the row that the list is in.
    """

    parameters: tuple[Parameter, ...]
    body: Expr
    type: DataType


@node(role=Role.SUBQUERY, inputs=("plan",))
class ScalarSubquery(Expr):
    """The one value of `plan` (one column): NULL for no row, CardinalityFault for more than one.

    A correlated one is gone after `unnest`. One without correlation stays to the end: its plan runs once, first,
    and its value is put in its place.
    """

    plan: Relation
    type: DataType


@node(role=Role.SUBQUERY, inputs=("plan",))
class Exists(Expr):
    """Whether `plan` has a row; never NULL. Gone after `unnest`."""

    plan: Relation
    type: DataType = BOOL


class Quantifier(Choice):
    ANY = "any"
    ALL = "all"


@node(role=Role.SUBQUERY, parts=("operands",), inputs=("plan",))
class QuantifiedSubquery(Expr):
    """`operands <comparison> quantifier (plan)`, three-valued; IN is `eq` with ANY, NOT IN its negation.

    `comparison` is eq, ne, lt, le, gt or ge; more than one operand only with eq and ne (rows compared column by
    column). Operands and the columns of `plan` have equal types. Gone after `unnest`.
    """

    operands: tuple[Expr, ...]
    comparison: str
    quantifier: Quantifier
    plan: Relation
    type: DataType = BOOL


@node(role=Role.CARRIER, parts=("expr",))
class SortKey(Node):
    """One key of an order."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False


@node(role=Role.CARRIER, parts=("args", "filter", "order"))
class Aggregation(Node):
    """One aggregate function over the rows of a group; only in `Aggregate` and `Window`, not a scalar expression.

    `args` is empty for count_star. `filter` keeps the rows where it is TRUE. `order` matters to ordered aggregates
    (first, last, string_agg, array_agg).
    """

    function: str
    args: tuple[Expr, ...]
    type: DataType
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()


class FrameUnit(Choice):
    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class BoundKind(Choice):
    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


class Exclusion(Choice):
    """Which rows a frame leaves out: none, the current one, its peers with it, or its peers without it."""

    NOTHING = "no others"
    CURRENT_ROW = "current row"
    GROUP = "group"
    TIES = "ties"


@node
class Bound(Node):
    """One end of a frame; `offset` (a literal) only with PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Literal | None = None


@node
class Frame(Node):
    """The rows around the current one that a window function sees."""

    unit: FrameUnit
    start: Bound
    end: Bound
    exclusion: Exclusion = Exclusion.NOTHING


WHOLE_PARTITION = Frame(FrameUnit.ROWS, Bound(BoundKind.UNBOUNDED_PRECEDING), Bound(BoundKind.UNBOUNDED_FOLLOWING))
UP_TO_PEERS = Frame(FrameUnit.RANGE, Bound(BoundKind.UNBOUNDED_PRECEDING), Bound(BoundKind.CURRENT_ROW))


@node(role=Role.CARRIER, parts=("call", "partition", "order"))
class WindowCall(Node):
    """One window function: `call` is an aggregate or a function of windows only (row_number, rank, lag, …).

    The frame is always explicit: the front ends fill in SQL's default (UP_TO_PEERS with an order, else
    WHOLE_PARTITION).
    """

    call: Aggregation
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    frame: Frame
    ignore_nulls: bool = False

"""What must hold of a plan after each stage of planning, as code; run between stages in tests and when debugging.

`complaints` lists every breach in words. Stages are in order: what a later one demands, it demands on top. The meaning
of nodes is in `expr` and `relation`; that rules keep it is for tests against an oracle, not for this.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final

from bireme.data.schema import Schema
from bireme.data.types import BOOL, DataType, Kind
from bireme.errors import EngineBug
from bireme.plan.explain import explain
from bireme.plan.expr import (
    Aggregation,
    Call,
    Case,
    Column,
    Exists,
    Expr,
    InList,
    Interval,
    Lambda,
    Literal,
    OuterColumn,
    Parameter,
    QuantifiedSubquery,
    ScalarSubquery,
)
from bireme.plan.relation import (
    Aggregate,
    Assume,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.tree import operands


class Stage(IntEnum):
    """How far planning has come: as bound; without correlated subqueries; without what backends need not know."""

    BOUND = 0
    UNNESTED = 1
    OPTIMIZED = 2


_SAME_TYPES: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"})
_TRUTHS: Final = frozenset({"and", "or", "not"})
# The classes of constants, where a kind of type has just one.
_VALUES: Final[dict[Kind, type]] = {
    Kind.BOOL: bool, Kind.STRING: str, Kind.BINARY: bytes, Kind.DECIMAL: Decimal, Kind.DATE: datetime.date,
    Kind.TIME: datetime.time, Kind.INTERVAL: Interval, Kind.FLOAT32: float, Kind.FLOAT64: float, Kind.INT8: int,
    Kind.INT16: int, Kind.INT32: int, Kind.INT64: int, Kind.UINT8: int, Kind.UINT16: int, Kind.UINT32: int,
    Kind.UINT64: int,
}  # fmt: skip
# Aggregates for which DISTINCT changes nothing.
_BLIND_TO_REPEATS: Final = frozenset({"min", "max", "any_value", "bool_and", "bool_or"})
_NULL_AWARE: Final = (JoinKind.ANTI, JoinKind.MARK)


def verify(plan: Rel, stage: Stage, *, like: Rel | None = None) -> None:
    """Raises EngineBug, with the plan, if something does not hold; with `like`, also if the columns are not those."""
    found = list(complaints(plan, stage))
    if like is not None:
        if plan.schema.names != like.schema.names:
            found.append(f"columns are called {plan.schema.names}, not {like.schema.names}")
        if plan.schema.types != like.schema.types:
            found.append(f"columns have types {plan.schema.types}, not {like.schema.types}")
    if found:
        raise EngineBug("a plan is broken: " + "; ".join(found) + "\n" + _shown(plan))


def _shown(plan: Rel) -> str:
    try:
        return explain(plan)
    except Exception as error:
        return f"(it cannot be shown: {error})"


def complaints(plan: Rel, stage: Stage) -> Iterator[str]:
    """What does not hold, in words."""
    return _Check(stage).plan(plan, ())


class _Check:
    """One check; `around` are the schemas of the operators around a subquery, the innermost last."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seen: set[tuple[Rel, tuple[Schema, ...]]] = set()

    def plan(self, rel: Rel, around: tuple[Schema, ...]) -> Iterator[str]:
        if (rel, around) in self._seen:
            return
        self._seen.add((rel, around))
        inside = (*around, rel.left.schema) if isinstance(rel, DependentJoin) else around
        for index, source in enumerate(rel.inputs):
            yield from self.plan(source, inside if index else around)
        try:
            check = _RELATIONS.get(type(rel))
            if check is None:
                yield f"{type(rel).__name__} is not a relation of plans"
            else:
                yield from check(self, rel, around)
        except (IndexError, ValueError, AttributeError) as error:
            yield f"{type(rel).__name__} is malformed: {error!r}"

    # ---------------------------------------------------------------------------------------- relations

    def scan(self, rel: Scan, around: tuple[Schema, ...]) -> Iterator[str]:
        if any(not 0 <= position < len(rel.table_schema) for position in rel.columns):
            yield f"Scan of {rel.table} reads a column that the table does not have"
            return
        for part in rel.filters:
            yield from self.truth(part, rel.schema, around, "a filter of a Scan")

    def row_numbers(self, rel: RowNumbers, around: tuple[Schema, ...]) -> Iterator[str]:
        if not isinstance(rel.input, Scan):
            yield f"rows of {type(rel.input).__name__} have no numbers"

    def assume(self, rel: Assume, around: tuple[Schema, ...]) -> Iterator[str]:
        if rel.schema[rel.one].type is not rel.schema[rel.other].type:
            yield "columns of different types are assumed to be equal"

    def values(self, rel: Values, around: tuple[Schema, ...]) -> Iterator[str]:
        types = rel.row_schema.types
        for row in rel.rows:
            if tuple([item.type for item in row]) != types:
                yield f"a row of Values has other types than {types}"

    def project(self, rel: Project, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from self.all(rel.exprs, rel.input.schema, around)
        if len(rel.names) != len(rel.exprs):
            yield f"Project has {len(rel.exprs)} columns and {len(rel.names)} names"

    def filter(self, rel: Filter, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from self.truth(rel.predicate, rel.input.schema, around, "the predicate of a Filter")

    def join(self, rel: Join, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from self.all(rel.left_keys, rel.left.schema, around)
        yield from self.all(rel.right_keys, rel.right.schema, around)
        left, right = [key.type for key in rel.left_keys], [key.type for key in rel.right_keys]
        if left != right:
            yield f"keys of a Join have types {left} and {right}"
        if not 0 <= rel.null_equal_count <= len(left):
            yield f"a Join with {len(left)} keys has {rel.null_equal_count} null-equal ones"
        if rel.null_aware and rel.kind not in _NULL_AWARE:
            yield f"a null-aware Join is {rel.kind.value}"
        if rel.residual is not None:
            both = rel.left.schema.concat(rel.right.schema)
            yield from self.truth(rel.residual, both, around, "the residual of a Join")

    def dependent_join(self, rel: DependentJoin, around: tuple[Schema, ...]) -> Iterator[str]:
        if self._stage >= Stage.UNNESTED:
            yield "a DependentJoin is left"
        if rel.kind in (JoinKind.RIGHT, JoinKind.FULL):
            yield f"a DependentJoin is {rel.kind.value}"
        if rel.condition is not None:
            both = rel.left.schema.concat(rel.right.schema)
            yield from self.truth(rel.condition, both, around, "the condition of a DependentJoin")

    def aggregate(self, rel: Aggregate, around: tuple[Schema, ...]) -> Iterator[str]:
        schema = rel.input.schema
        yield from self.all(rel.keys, schema, around)
        if len(rel.names) != len(rel.keys) + len(rel.aggregates):
            yield f"Aggregate has {len(rel.keys) + len(rel.aggregates)} columns and {len(rel.names)} names"
        for call in rel.aggregates:
            yield from self.aggregation(call, schema, around)
            if self._stage >= Stage.OPTIMIZED and call.filter is not None:
                yield f"{call.function} still has a FILTER"
            if self._stage >= Stage.OPTIMIZED and call.distinct and call.function not in _BLIND_TO_REPEATS:
                yield f"{call.function} is still DISTINCT"
        if rel.grouping_sets is not None:
            if self._stage >= Stage.OPTIMIZED:
                yield "an Aggregate still has grouping sets"
            if any(not 0 <= index < len(rel.keys) for each in rel.grouping_sets for index in each):
                yield "a grouping set names a key that is not there"

    def aggregation(self, call: Aggregation, schema: Schema, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from self.all(operands(call), schema, around)
        if call.filter is not None and call.filter.type is not BOOL:
            yield f"the FILTER of {call.function} has type {call.filter.type}"

    def unnest(self, rel: Unnest, around: tuple[Schema, ...]) -> Iterator[str]:
        fields = rel.input.schema.fields
        if not rel.lists or any(fields[place].type.kind is not Kind.LIST for place in rel.lists):
            yield "Unnest is not given lists"
        if any(not 0 <= place < len(fields) for place in rel.kept):
            yield "Unnest keeps a column that is not there"
        if len(rel.names) != len(rel.lists) + rel.has_ordinality:
            yield f"Unnest has {len(rel.lists)} lists and {len(rel.names)} names"

    def window(self, rel: Window, around: tuple[Schema, ...]) -> Iterator[str]:
        for call in rel.calls:
            yield from self.all(operands(call), rel.input.schema, around)
        if len(rel.names) != len(rel.calls):
            yield f"Window has {len(rel.calls)} functions and {len(rel.names)} names"

    def sort(self, rel: Sort, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from self.all([key.expr for key in rel.keys], rel.input.schema, around)
        yield from _cut(rel.limit, rel.offset)

    def limit(self, rel: Limit, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from _cut(rel.limit, rel.offset)

    def union(self, rel: Union, around: tuple[Schema, ...]) -> Iterator[str]:
        if not rel.sources:
            yield "a Union has no inputs"
        elif len({source.schema.types for source in rel.sources}) > 1:
            yield f"inputs of a Union have types {[source.schema.types for source in rel.sources]}"

    # -------------------------------------------------------------------------------------- expressions

    def all(self, exprs: Sequence[Expr], schema: Schema, around: tuple[Schema, ...]) -> Iterator[str]:
        for expr in exprs:
            yield from self.expr(expr, schema, around)

    def truth(self, expr: Expr, schema: Schema, around: tuple[Schema, ...], what: str) -> Iterator[str]:
        if expr.type is not BOOL:
            yield f"{what} has type {expr.type}"
        yield from self.expr(expr, schema, around)

    def expr(self, expr: Expr, schema: Schema, around: tuple[Schema, ...]) -> Iterator[str]:
        yield from _stray(expr)
        yield from self._part(expr, schema, around)

    def _part(self, expr: Expr, schema: Schema, around: tuple[Schema, ...]) -> Iterator[str]:
        for each in operands(expr):
            yield from self._part(each, schema, around)
        match expr:
            case Column(index, type_):
                yield from _reference(index, type_, schema, "column")
            case OuterColumn(depth, index, type_):
                if self._stage >= Stage.UNNESTED:
                    yield f"outer column {index} is left"
                elif not 1 <= depth <= len(around):
                    yield f"outer column {index} is {depth} levels out, of {len(around)}"
                else:
                    yield from _reference(index, type_, around[-depth], "outer column")
            case Literal(value, type_):
                if value is not None and not isinstance(value, _VALUES.get(type_.kind, object)):
                    yield f"{value!r} is not a value of type {type_}"
            case Call(function, args, type_):
                yield from _call(function, args, type_)
            case Case(branches, default, type_):
                if any(condition.type is not BOOL for condition, _ in branches):
                    yield "a condition of a Case is not BOOL"
                if any(value.type is not type_ for value in (*[v for _, v in branches], default)):
                    yield f"a value of a Case is not of its type {type_}"
            case InList(arg, items):
                if any(item.type is not arg.type for item in items):
                    yield f"an item of an InList is not of type {arg.type}"
            case Lambda(_, body, type_):
                if body.type is not type_:
                    yield f"the body of a Lambda of type {type_} has type {body.type}"
            case ScalarSubquery() | Exists() | QuantifiedSubquery():
                yield from self.subquery(expr, (*around, schema))

    def subquery(self, expr: ScalarSubquery | Exists | QuantifiedSubquery, around: tuple[Schema, ...]) -> Iterator[str]:
        plan = expr.plan
        assert isinstance(plan, Rel)
        yield from self.plan(plan, around)
        if isinstance(expr, ScalarSubquery):
            if plan.schema.types != (expr.type,):
                yield f"a scalar subquery of type {expr.type} gives {plan.schema.types}"
        elif self._stage >= Stage.UNNESTED:
            yield f"{type(expr).__name__} is left"
        elif isinstance(expr, QuantifiedSubquery) and plan.schema.types != tuple([o.type for o in expr.operands]):
            yield f"operands of types {[o.type for o in expr.operands]} are compared with {plan.schema.types}"


def _reference(index: int, type_: DataType, schema: Schema, what: str) -> Iterator[str]:
    if not 0 <= index < len(schema):
        yield f"{what} {index} is read of {len(schema)}"
    elif schema.fields[index].type is not type_:
        yield f"{what} {index} is of type {schema.fields[index].type}, not {type_}"


def _call(function: str, args: tuple[Expr, ...], type_: DataType) -> Iterator[str]:
    kinds = [arg.type for arg in args]
    if function in _SAME_TYPES and (len(args) != 2 or kinds[0] is not kinds[1]):
        yield f"{function} compares {kinds}"
    if function in _TRUTHS and any(kind is not BOOL for kind in kinds):
        yield f"{function} is given {kinds}"
    if function in ("and", "or") and len(args) < 2:
        yield f"{function} has {len(args)} argument"
    if function in _SAME_TYPES | _TRUTHS and type_ is not BOOL:
        yield f"{function} gives {type_}"
    if type_.kind is Kind.NULL and function not in ("coalesce", "greatest", "least"):
        yield f"{function} gives values of the type of NULL"


def _stray(expr: Expr, known: frozenset[Parameter] = frozenset()) -> Iterator[str]:
    """Parameters that no lambda around them has."""
    if isinstance(expr, Parameter) and expr not in known:
        yield f"parameter {expr.place} of level {expr.level} is read where there is none"
    if isinstance(expr, Lambda):
        known = known.union(expr.parameters)
    for part in operands(expr):
        yield from _stray(part, known)


def _cut(limit: int | None, offset: int) -> Iterator[str]:
    if (limit is not None and limit < 0) or offset < 0:
        yield f"a limit of {limit} after {offset}"


_RELATIONS: Final[dict[type[Rel], Callable[[_Check, Any, tuple[Schema, ...]], Iterator[str]]]] = {
    Scan: _Check.scan,
    RowNumbers: _Check.row_numbers,
    Assume: _Check.assume,
    Values: _Check.values,
    Project: _Check.project,
    Filter: _Check.filter,
    Join: _Check.join,
    DependentJoin: _Check.dependent_join,
    Aggregate: _Check.aggregate,
    Unnest: _Check.unnest,
    Window: _Check.window,
    Sort: _Check.sort,
    Limit: _Check.limit,
    Union: _Check.union,
}

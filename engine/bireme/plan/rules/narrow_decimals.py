"""Computes in decimals of 18 digits, which fit 64 bits, where value ranges prove that nothing can leave them.

Sums, products and everything above them have 38 digits by SQL's rules. Where the ranges of columns, and for sums the
number of rows, show that 18 are enough, the calculation is done in these; the declared types come back
where a function, a set operation or the result asks for them. Integers are summed in decimal(18,0) likewise.

The proof is from `statistics.bounds`, which uses nothing but metadata of tables. That of a damaged file can lie: then
a value leaves its 18 digits and the kernels raise Overflow, as for every type; a wrong row is never given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.node import holds_decimal128
from bireme.data.types import DECIMAL64_DIGITS, DataType, Kind, decimal
from bireme.plan import tree
from bireme.plan.context import PlanContext
from bireme.plan.expr import (
    Aggregation,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    InList,
    Literal,
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
)
from bireme.plan.statistics.bounds import Bounds, Range, summed

_LIMIT: Final = 10**DECIMAL64_DIGITS
_ARITHMETIC: Final = frozenset({"add", "subtract", "multiply", "negate", "abs"})
_COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"})
_ANY_TYPE: Final = frozenset({"is_null", "is_not_null"})
_ANY_TYPE_AGGREGATES: Final = frozenset({"count", "avg"})
_PASSING_AGGREGATES: Final = frozenset({"min", "max", "any_value", "first", "last"})

Types = tuple[DataType, ...]


def narrow_decimals(plan: Rel, context: PlanContext) -> Rel:
    """The same plan, computed in decimals of 18 digits as far as that is proved to be enough."""
    return _Narrowing(context.bounds).restored(plan)


def _narrowed_type(kind: DataType, values: Range | None) -> DataType | None:
    """The 18-digit type for what is declared as the wider `kind`; None where it is not wider, or not proved to fit."""
    if kind.kind is not Kind.DECIMAL or kind.precision <= DECIMAL64_DIGITS or kind.scale > DECIMAL64_DIGITS:
        return None
    if values is None or values.magnitude >= _LIMIT:
        return None
    return decimal(DECIMAL64_DIGITS, kind.scale)


def _as_type(expr: Expr, kind: DataType) -> Expr:
    if expr.type is kind:
        return expr
    if isinstance(expr, Literal):
        return Literal(expr.value, kind)
    return Cast(expr, kind)


class _Narrowing:
    """One run over a plan. Each relation is narrowed once; its columns may then be narrower than its schema says."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._done: dict[Rel, Rel] = {}

    def restored(self, rel: Rel) -> Rel:
        """`rel` narrowed inside, its columns of the types they are declared with."""
        found = self.relation(rel)
        if found is rel:
            return rel
        declared, actual = rel.schema, found.schema
        if all(a.type is b.type for a, b in zip(declared.fields, actual.fields, strict=True)):
            return found
        exprs = [_as_type(Column(at, field.type), declared.fields[at].type) for at, field in enumerate(actual.fields)]
        return Project(found, tuple(exprs), declared.names)

    def relation(self, rel: Rel) -> Rel:
        """`rel` narrowed; its columns may be narrower too."""
        found = self._done.get(rel)
        if found is None:
            found = self._done[rel] = self._relation(rel)
        return found

    def _relation(self, rel: Rel) -> Rel:
        if not holds_decimal128(rel):
            return rel
        match rel:
            case Scan() | Values():
                return rel
            case Filter():
                scope = self._scope(rel.input)
                changed = scope.restored(rel.predicate)
                return rel if changed is rel.predicate and not scope.changed else Filter(scope.narrowed, changed)
            case Project():
                scope = self._scope(rel.input)
                return Project(scope.narrowed, tuple([scope.expr(expr) for expr in rel.exprs]), rel.names)
            case Sort():
                scope = self._scope(rel.input)
                keys = tuple([tree.map_operands(key, scope.expr) for key in rel.keys])
                return Sort(scope.narrowed, keys, rel.limit, rel.offset)
            case Limit(source, limit, offset):
                return Limit(self.relation(source), limit, offset)
            case Join():
                return self._join(rel)
            case Aggregate():
                return self._aggregate(rel)
            case Union(sources):
                return Union(tuple([self.restored(source) for source in sources]))
            case _:
                rebuilt = tree.with_inputs(rel, [self.restored(source) for source in rel.inputs])
                return tree.map_subplans(rebuilt, self.restored)

    def _scope(self, source: Rel) -> _Scope:
        return _Scope(self, self._bounds, (source,), self.relation(source))

    def _join(self, rel: Join) -> Rel:
        left, right = self._scope(rel.left), self._scope(rel.right)
        left_keys, right_keys = [], []
        for left_key, right_key in zip(rel.left_keys, rel.right_keys, strict=True):
            one, other = left.expr(left_key), right.expr(right_key)
            if one.type is not other.type:
                one, other = _as_type(one, left_key.type), _as_type(other, right_key.type)
            left_keys.append(one)
            right_keys.append(other)
        residual = rel.residual
        if residual is not None:
            # Over both sides' columns, in the types that these have now.
            pair = Join(left.narrowed, right.narrowed, JoinKind.INNER)
            residual = _Scope(self, self._bounds, (rel.left, rel.right), pair).restored(residual)
        return Join(
            left.narrowed,
            right.narrowed,
            rel.kind,
            tuple(left_keys),
            tuple(right_keys),
            residual,
            rel.null_equal_count,
            rel.null_aware,
        )

    def _aggregate(self, rel: Aggregate) -> Rel:
        scope = self._scope(rel.input)
        keys = tuple([scope.expr(key) for key in rel.keys])
        calls = tuple([self._aggregation(scope, rel.input, call) for call in rel.aggregates])
        return Aggregate(scope.narrowed, keys, calls, rel.names, rel.grouping_sets)

    def _aggregation(self, scope: _Scope, source: Rel, call: Aggregation) -> Aggregation:
        condition = None if call.filter is None else scope.restored(call.filter)
        order = tuple([tree.map_operands(key, scope.expr) for key in call.order])
        kind = call.type
        if call.function == "sum" and kind.kind is Kind.DECIMAL:
            args = tuple([scope.expr(arg) for arg in call.args])
            kind = self._sum_type(source, call, args[0]) or kind
        elif call.function in _PASSING_AGGREGATES:
            args = tuple([scope.expr(arg) for arg in call.args])
            kind = args[0].type
        elif call.function in _ANY_TYPE_AGGREGATES:
            args = tuple([scope.expr(arg) for arg in call.args])
        else:
            args = tuple([scope.restored(arg) for arg in call.args])
        return Aggregation(call.function, args, kind, call.distinct, condition, order)

    def _sum_type(self, source: Rel, call: Aggregation, arg: Expr) -> DataType | None:
        if arg.type.kind is Kind.DECIMAL and arg.type.precision > DECIMAL64_DIGITS:
            return None
        values, rows = self._bounds.value(source, call.args[0]), self._bounds.rows(source)
        if values is None or rows is None:
            return None
        return _narrowed_type(call.type, summed(values, rows))


class _Scope:
    """Expressions over one relation (or the two of a join), before and after it was narrowed."""

    def __init__(self, narrowing: _Narrowing, bounds: Bounds, sources: tuple[Rel, ...], narrowed: Rel) -> None:
        self._narrowing = narrowing
        self._bounds = bounds
        self._source = sources[0] if len(sources) == 1 else Join(sources[0], sources[1], JoinKind.INNER)
        self.narrowed = narrowed
        self.changed = len(sources) > 1 or narrowed is not sources[0]

    def restored(self, expr: Expr) -> Expr:
        """`expr` with the type it is declared with."""
        return _as_type(self.expr(expr), expr.type)

    def expr(self, expr: Expr) -> Expr:
        """`expr`, computed as narrow as is proved; its type may be narrower too."""
        if not holds_decimal128(expr) and not (self.changed and self._reads_narrowed(expr)):
            return expr
        match expr:
            case Column():
                return Column(expr.index, self.narrowed.schema.fields[expr.index].type)
            case Literal():
                kind = _narrowed_type(expr.type, self._bounds.value(self._source, expr))
                return expr if kind is None else Literal(expr.value, kind)
            case Call() if expr.function in _ARITHMETIC:
                return self._arithmetic(expr, [self.expr(arg) for arg in expr.args])
            case Call() if expr.function in _COMPARISONS or expr.function == "coalesce":
                return self._alike(expr, expr.args)
            case Call() if expr.function in _ANY_TYPE:
                return Call(expr.function, tuple([self.expr(arg) for arg in expr.args]), expr.type)
            case Cast():
                return self._cast(expr, self.expr(expr.arg), expr.type, expr.safe)
            case Case():
                return self._case(expr)
            case InList(arg, items):
                together = self._together([arg, *items])
                return InList(together[0], tuple(together[1:]), expr.type)
            case _:
                changed = tree.map_operands(expr, self.restored)
                return tree.with_plan(changed, self._narrowing.restored)

    def _reads_narrowed(self, expr: Expr) -> bool:
        fields, declared = self.narrowed.schema.fields, self._source.schema.fields
        read = tree.columns_in(tree.column_mask(expr))
        return any(fields[at].type is not declared[at].type for at in read)

    def _arithmetic(self, expr: Call, args: list[Expr]) -> Expr:
        kind = _narrowed_type(expr.type, self._bounds.value(self._source, expr))
        if kind is not None and all(_fits(arg.type) for arg in args):
            return Call(expr.function, tuple(args), kind)
        return Call(
            expr.function, tuple([_as_type(a, b.type) for a, b in zip(args, expr.args, strict=True)]), expr.type
        )

    def _alike(self, expr: Call, args: Sequence[Expr]) -> Expr:
        together = self._together(args)
        kind = together[0].type if expr.function == "coalesce" else expr.type
        return Call(expr.function, tuple(together), kind)

    def _together(self, exprs: Sequence[Expr]) -> list[Expr]:
        """The expressions in one type: a narrow one when all of them have it."""
        narrowed = [self.expr(expr) for expr in exprs]
        if all(expr.type is narrowed[0].type for expr in narrowed):
            return narrowed
        return [_as_type(narrow, expr.type) for narrow, expr in zip(narrowed, exprs, strict=True)]

    def _cast(self, expr: Cast, arg: Expr, kind: DataType, safe: bool) -> Expr:
        narrow = _narrowed_type(kind, self._bounds.value(self._source, expr))
        # An integer or short decimal that is only widened stays short; one that is rounded is left alone.
        if narrow is not None and _fits(arg.type) and arg.type.scale <= narrow.scale:
            return arg if arg.type is narrow else Cast(arg, narrow, safe)
        return arg if arg.type is kind else Cast(arg, kind, safe)

    def _case(self, expr: Case) -> Expr:
        values = self._together([*[value for _, value in expr.branches], expr.default])
        conditions = [self.restored(condition) for condition, _ in expr.branches]
        return Case(tuple(zip(conditions, values[:-1], strict=True)), values[-1], values[-1].type)


def _fits(kind: DataType) -> bool:
    """Whether arithmetic on the type is arithmetic on 64 bits."""
    return kind.is_integer or (kind.kind is Kind.DECIMAL and kind.precision <= DECIMAL64_DIGITS)

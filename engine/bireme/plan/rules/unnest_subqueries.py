"""Subquery expressions become `Apply` below the operator that holds them; the expression becomes a column of it.

A conjunct of a filter that is a subquery keeps rows and becomes a semi or anti join; anywhere else its value is needed,
and it becomes a mark (EXISTS, IN, ANY, ALL) or a column (scalar). Where only TRUE matters, a mark need not tell FALSE
from unknown. Subqueries without outer columns are unnested on their own; scalar ones stay `ScalarSubquery`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bireme.data.node import holds_dependent
from bireme.data.types import BOOL, INT64, Kind
from bireme.errors import Unsupported
from bireme.plan.expr import (
    Aggregation,
    Call,
    Case,
    Column,
    Exists,
    Expr,
    Literal,
    QuantifiedSubquery,
    Quantifier,
    Relation,
    ScalarSubquery,
)
from bireme.plan.relation import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    Sort,
    Union,
    Values,
    Window,
)
from bireme.plan.rules.unnest_apply import Apply, FreeColumns, replace_outer
from bireme.plan.rules.unnest_outer_joins import keys_in_residual, outer_join
from bireme.plan.rules.unnest_windows import over_columns
from bireme.plan.tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    all_columns,
    conjoin,
    conjuncts,
    equal,
    filtered,
    holds_subquery,
    is_call,
    map_operands,
    negate,
    select,
    shift,
    subplans,
    with_inputs,
)

_OPPOSITE: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
ZERO: Final = Literal(0, INT64)


class Subqueries:
    """Replaces the subqueries of whole plans.

    `unnest` makes a plan without outer columns free of `Apply`.
    """

    def __init__(self, free: FreeColumns, unnest: Callable[[Rel], Rel]) -> None:
        self.free = free
        self.unnest = unnest
        self._done: dict[Rel, Rel] = {}

    def replace(self, rel: Rel) -> Rel:
        """`rel` with `Apply` for every subquery expression and dependent join; its columns stay."""
        found = self._done.get(rel) if holds_dependent(rel) else rel
        if found is None:
            rebuilt = with_inputs(rel, [self.replace(source) for source in rel.inputs])
            if subplans(rebuilt):
                rebuilt = self._replace_own(rebuilt)
            if isinstance(rebuilt, DependentJoin):
                rebuilt = Apply(rebuilt.left, rebuilt.right, rebuilt.kind, (), rebuilt.condition)
            found = self._done[rel] = rebuilt
        return found

    def _replace_own(self, rel: Rel) -> Rel:
        match rel:
            case Filter(source, predicate):
                return self._filter(source, predicate)
            case Join():
                return self._join(rel)
            case DependentJoin(left, right, JoinKind.INNER, condition):
                assert condition is not None
                return self._filter(Apply(left, right, JoinKind.INNER), condition)
            case DependentJoin():
                raise Unsupported("a subquery in ON of an outer LATERAL join is not offered; put it into WHERE there")
            case Window():
                return self.replace(over_columns(rel))
        extended = _Extended(self, rel.inputs[0])
        width = len(rel.inputs[0].schema)
        changed = map_operands(rel, lambda expr: extended.value(expr, only_true=False))
        changed = with_inputs(changed, [extended.rel])
        if isinstance(rel, Project | Aggregate):
            return changed
        added = len(extended.rel.schema) - width
        return select(changed, [*range(width), *range(width + added, len(changed.schema))])

    def _filter(self, source: Rel, predicate: Expr) -> Rel:
        parts = conjuncts(_sink_not(predicate))
        extended = _Extended(self, filtered(source, [part for part in parts if not holds_subquery(part)]))
        asking = [part for part in parts if holds_subquery(part)]
        valued = [part for part in asking if not extended.keep_matching(part)]
        rest = [extended.value(part, only_true=True) for part in valued]
        return select(filtered(extended.rel, rest), range(len(source.schema)))

    def _join(self, rel: Join) -> Rel:
        assert rel.kind not in (JoinKind.MARK, JoinKind.SINGLE), "only rules make such joins"
        assert not rel.null_aware, "only rules make such joins"
        if any(holds_subquery(key) for key in (*rel.left_keys, *rel.right_keys)):
            rel = keys_in_residual(rel)
        assert rel.residual is not None
        if rel.kind is JoinKind.INNER:
            return self._filter(_without_residual(rel), rel.residual)
        return outer_join(rel, self._filter)


def _without_residual(rel: Join) -> Join:
    return Join(rel.left, rel.right, rel.kind, rel.left_keys, rel.right_keys, None, rel.null_equal_count)


class _Extended:
    """An operator's input, growing a column for each subquery whose value is asked for."""

    def __init__(self, subqueries: Subqueries, rel: Rel) -> None:
        self.rel = rel
        self._subqueries = subqueries
        self._values: dict[tuple[Expr, bool], Expr] = {}

    def keep_matching(self, part: Expr) -> bool:
        """Keeps the rows for which the conjunct `part` is TRUE, if it is a subquery that a join can decide."""
        negated = is_call(part, "not")
        inner = part.args[0] if isinstance(part, Call) and negated else part
        match inner:
            case Exists(plan):
                prepared = self._existing(plan)
                if isinstance(prepared, Expr):
                    return False
                self.rel = Apply(self.rel, prepared, JoinKind.ANTI if negated else JoinKind.SEMI)
                return True
            case QuantifiedSubquery():
                return not negated and self._keep_quantified(inner)
        return False

    def _keep_quantified(self, part: QuantifiedSubquery) -> bool:
        plan = self._subqueries.replace(part.plan)  # type: ignore[arg-type]
        compared = part.comparison
        is_any = part.quantifier is Quantifier.ANY
        by_key = compared == ("eq" if is_any else "ne")
        if is_always_one_row(plan) or (not by_key and not self._subqueries.free.of(plan)):
            return False  # cheaper as a comparison with one value
        inner = tuple([self.value(operand, only_true=False) for operand in part.operands])
        kind = JoinKind.SEMI if is_any else JoinKind.ANTI
        if by_key:
            self.rel = Apply(self.rel, plan, kind, inner, None, not is_any)
            return True
        test = self._pairwise(inner, compared, plan)
        self.rel = Apply(self.rel, plan, kind, (), test if is_any else Call("is_not_true", (test,), BOOL))
        return True

    def _pairwise(self, inner: tuple[Expr, ...], comparison: str, plan: Rel) -> Expr:
        """The comparison of a left row with a row of `plan`."""
        right = [shift(column, len(self.rel.schema)) for column in all_columns(plan.schema)]
        if len(inner) == 1:
            return Call(comparison, (inner[0], right[0]), BOOL)
        same = conjoin([equal(a, b) for a, b in zip(inner, right, strict=True)])
        assert same is not None
        return same if comparison == "eq" else negate(same)

    def value(self, expr: Expr, *, only_true: bool) -> Expr:
        """`expr` with columns for the subqueries in it. With `only_true`, FALSE and unknown need not be told apart."""
        if not holds_subquery(expr):
            return expr
        known = self._values.get((expr, only_true))
        if known is None:
            known = self._values[expr, only_true] = self._value(expr, only_true)
        return known

    def _value(self, expr: Expr, only_true: bool) -> Expr:
        match expr:
            case ScalarSubquery(plan):
                return self._scalar(plan)  # type: ignore[arg-type]
            case Exists(plan):
                prepared = self._existing(plan)
                return prepared if isinstance(prepared, Expr) else self._mark(prepared)
            case QuantifiedSubquery():
                return self._quantified(expr, only_true)
            case Call("and" | "or"):
                return map_operands(expr, lambda part: self.value(part, only_true=only_true))
            case Case(branches, default, type_):
                pairs = [(self.value(c, only_true=True), self.value(v, only_true=False)) for c, v in branches]
                return Case(tuple(pairs), self.value(default, only_true=False), type_)
        return map_operands(expr, lambda part: self.value(part, only_true=False))

    def _append(self, applied: Apply) -> list[Column]:
        width = len(self.rel.schema)
        self.rel = applied
        return list(all_columns(applied.schema)[width:])

    def _mark(
        self, plan: Rel, operands: tuple[Expr, ...] = (), condition: Expr | None = None, *, null_aware: bool = False
    ) -> Expr:
        return self._append(Apply(self.rel, plan, JoinKind.MARK, operands, condition, null_aware))[0]

    def _scalar(self, plan: Rel) -> Expr:
        plan = self._subqueries.replace(plan)
        if not self._subqueries.free.of(plan):
            return ScalarSubquery(self._subqueries.unnest(plan), plan.schema.fields[0].type)
        inline = self._inline(plan)
        return inline if inline is not None else self._append(Apply(self.rel, plan, JoinKind.SINGLE))[0]

    def _inline(self, plan: Rel) -> Expr | None:
        """The value of a subquery without FROM: its expression, over this row."""
        match plan:
            case Project(Values(rows, row_schema), (expr,)) if len(rows) == 1 and not row_schema.fields:
                outer = self._subqueries.free.of_expr(expr)
                if all(column.depth == 1 for column in outer) and not holds_subquery(expr):
                    return replace_outer(expr, {column: Column(column.index, column.type) for column in outer})
        return None

    def _existing(self, plan: Relation) -> Rel | Expr:
        """What must have a row for EXISTS to hold; or, where no join is needed, the value itself."""
        rel = _for_existence(self._subqueries.replace(plan))  # type: ignore[arg-type]
        if isinstance(rel, Literal):
            return rel
        assert isinstance(rel, Rel)
        if self._subqueries.free.of(rel):
            return rel
        one = Limit(Project(self._subqueries.unnest(rel), (), ()), 1)
        counted = Aggregate(one, (), (Aggregation("count_star", (), INT64),), ("count",))
        return Call("gt", (ScalarSubquery(counted, INT64), ZERO), BOOL)

    def _quantified(self, expr: QuantifiedSubquery, only_true: bool) -> Expr:
        if expr.quantifier is Quantifier.ALL:
            opposite = _OPPOSITE[expr.comparison]
            any_of = QuantifiedSubquery(expr.operands, opposite, Quantifier.ANY, expr.plan)
            return negate(self.value(any_of, only_true=False))
        plan = self._subqueries.replace(expr.plan)  # type: ignore[arg-type]
        inner = tuple([self.value(operand, only_true=False) for operand in expr.operands])
        if is_always_one_row(plan) and len(inner) == 1:
            return Call(expr.comparison, (inner[0], self._scalar(expr.plan)), BOOL)  # type: ignore[arg-type]
        if expr.comparison == "eq":
            return self._mark(plan, inner, null_aware=not only_true)
        if len(inner) == 1 and _is_ordered(inner[0].type.kind):
            return self._against_extremes(inner[0], expr.comparison, plan)
        test = self._pairwise(inner, expr.comparison, plan)
        is_true = self._mark(plan, (), test)
        is_unknown = self._mark(plan, (), Call("is_null", (self._pairwise(inner, expr.comparison, plan),), BOOL))
        return Case(((is_true, TRUE), (is_unknown, UNKNOWN)), FALSE, BOOL)

    def _against_extremes(self, operand: Expr, comparison: str, plan: Rel) -> Expr:
        """`operand <comparison> ANY (plan)` by the least and greatest value, and the counts of rows and of values."""
        column = all_columns(plan.schema)[0]
        calls = (
            Aggregation("min", (column,), column.type),
            Aggregation("max", (column,), column.type),
            Aggregation("count_star", (), INT64),
            Aggregation("count", (column,), INT64),
        )
        summary = Aggregate(plan, (), calls, ("min", "max", "rows", "values"))
        parts: list[Expr]
        if self._subqueries.free.of(summary):
            parts = list(self._append(Apply(self.rel, summary, JoinKind.SINGLE)))
        else:
            done = self._subqueries.unnest(summary)
            parts = [ScalarSubquery(select(done, [index]), field.type) for index, field in enumerate(done.schema)]
        least, greatest, rows, values = parts
        tested = {"lt": [greatest], "le": [greatest], "gt": [least], "ge": [least]}.get(comparison, [least, greatest])
        tests = [Call(comparison, (operand, extreme), BOOL) for extreme in tested]
        matches = tests[0] if len(tests) == 1 else Call("or", tuple(tests), BOOL)
        with_null = Call("lt", (values, rows), BOOL)
        unknown = Call("or", (Call("is_null", (operand,), BOOL), with_null), BOOL)
        return Case(((equal(rows, ZERO), FALSE), (matches, TRUE), (unknown, UNKNOWN)), FALSE, BOOL)


def _is_ordered(kind: Kind) -> bool:
    return kind not in (Kind.LIST, Kind.STRUCT, Kind.MAP, Kind.BOOL, Kind.INTERVAL, Kind.NULL)


def is_always_one_row(plan: Rel) -> bool:
    """Whether `plan` gives exactly one row, whatever the data."""
    match plan:
        case Project(source) | Sort(source, _, None, 0) | Limit(source, None, 0) | Window(source):
            return is_always_one_row(source)
        case Aggregate(_, keys, _, _, None):
            return not keys
        case Values(rows):
            return len(rows) == 1
    return False


def _for_existence(plan: Rel) -> Rel | Literal:
    """A plan that has rows exactly where `plan` has, or the answer where it is known."""
    match plan:
        case Project(source) | Window(source) | Sort(source, _, None, 0) | Limit(source, None, 0):
            return _for_existence(source)
        case Sort(source, _, int(limit), 0) | Limit(source, int(limit), 0):
            return _for_existence(source) if limit > 0 else FALSE
        case Aggregate(source, keys, _, _, sets):
            always = not keys if sets is None else () in sets
            return TRUE if always else _for_existence(source)
        case Values(rows):
            return TRUE if rows else FALSE
        case Union(sources) if any(_for_existence(source) is TRUE for source in sources):
            return TRUE
    return plan


def _sink_not(expr: Expr) -> Expr:
    """`expr` with NOT moved through AND, OR and NOT towards subqueries, and into ANY and ALL."""
    if not holds_subquery(expr):
        return expr
    match expr:
        case Call("and" | "or"):
            return map_operands(expr, _sink_not)
        case Call("not", (Call("not", (inner,)),)):
            return _sink_not(inner)
        case Call("not", (Call("and" | "or" as function, args),)):
            dual = "or" if function == "and" else "and"
            return Call(dual, tuple([_sink_not(negate(arg)) for arg in args]), BOOL)
        case Call("not", (QuantifiedSubquery(operands, comparison, quantifier, plan),)):
            other = Quantifier.ALL if quantifier is Quantifier.ANY else Quantifier.ANY
            return QuantifiedSubquery(operands, _OPPOSITE[comparison], other, plan)
    return expr

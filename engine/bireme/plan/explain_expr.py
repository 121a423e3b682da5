"""Expressions as text for plans: columns as `name#index`, operators as SQL writes them.

Trees of relations are in `explain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.schema import Schema
from bireme.data.types import Kind
from bireme.errors import EngineBug
from bireme.plan.expr import (
    Aggregation,
    Bound,
    Call,
    Case,
    Cast,
    Column,
    Exclusion,
    Exists,
    Expr,
    InList,
    Interval,
    Lambda,
    Literal,
    OuterColumn,
    Parameter,
    QuantifiedSubquery,
    Relation,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from bireme.plan.physical import Scalar

_INFIX: Final = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or", "concat_op": "||",
    "is_distinct": "is distinct from", "is_not_distinct": "is not distinct from",
}  # fmt: skip
_POSTFIX: Final = {
    "is_null": "is null", "is_not_null": "is not null", "is_true": "is true", "is_not_true": "is not true",
    "is_false": "is false", "is_not_false": "is not false",
}  # fmt: skip


def format_expr(expr: Expr, schema: Schema) -> str:
    """An expression over rows of `schema`, as text."""
    return ExprWriter().expr(expr, schema)


class ExprWriter:
    """Writes expressions; numbers the subqueries it meets."""

    def __init__(self) -> None:
        self.subqueries: dict[Relation, int] = {}

    def named(self, exprs: Sequence[Expr], names: Sequence[str], schema: Schema) -> str:
        parts = []
        for expr, name in zip(exprs, names, strict=True):
            text = self.expr(expr, schema)
            same = isinstance(expr, Column) and schema.fields[expr.index].name == name
            parts.append(text if same else f"{text} as {name}")
        return f"[{', '.join(parts)}]"

    def expr(self, expr: Expr, schema: Schema) -> str:
        match expr:
            case Column(index):
                return f"{schema.fields[index].name}#{index}" if index < len(schema) else f"?#{index}"
            case OuterColumn(depth, index):
                return f"{'outer.' * depth}#{index}"
            case Literal():
                return _constant(expr)
            case Call():
                return self._call(expr, schema)
            case Cast(arg, type_, safe):
                return f"{'try_cast' if safe else 'cast'}({self.expr(arg, schema)} as {type_})"
            case Case(branches, default):
                tests = [f"when {self.expr(c, schema)} then {self.expr(v, schema)}" for c, v in branches]
                return f"case {' '.join(tests)} else {self.expr(default, schema)} end"
            case InList(arg, items):
                return f"{self._part(arg, schema)} in ({', '.join([self.expr(item, schema) for item in items])})"
            case ScalarSubquery(plan):
                return f"subquery {self._subquery(plan)}"
            case Exists(plan):
                return f"exists (subquery {self._subquery(plan)})"
            case QuantifiedSubquery(operands, comparison, quantifier, plan):
                left = ", ".join([self.expr(operand, schema) for operand in operands])
                return f"({left}) {_INFIX[comparison]} {quantifier.value} (subquery {self._subquery(plan)})"
            case Lambda(parameters, body):
                return f"({', '.join([_parameter(each) for each in parameters])}) -> {self.expr(body, schema)}"
            case Parameter():
                return _parameter(expr)
            case Scalar(name):
                return f"scalar {name}"
        raise EngineBug(f"explain does not know {type(expr).__name__}")

    def _subquery(self, plan: Relation) -> int:
        return self.subqueries.setdefault(plan, len(self.subqueries) + 1)

    def _call(self, call: Call, schema: Schema) -> str:
        sign = _INFIX.get(call.function)
        if sign is not None:
            return f" {sign} ".join([self._part(arg, schema) for arg in call.args])
        after = _POSTFIX.get(call.function)
        if after is not None:
            return f"{self._part(call.args[0], schema)} {after}"
        if call.function == "not":
            return f"not {self._part(call.args[0], schema)}"
        return f"{call.function}({', '.join([self.expr(arg, schema) for arg in call.args])})"

    def _part(self, expr: Expr, schema: Schema) -> str:
        """An operand, in brackets where it is itself written with operators."""
        text = self.expr(expr, schema)
        compound = isinstance(expr, InList) or (
            isinstance(expr, Call) and (expr.function in _INFIX or expr.function in _POSTFIX or expr.function == "not")
        )
        return f"({text})" if compound else text

    def aggregation(self, call: Aggregation, schema: Schema) -> str:
        inside = ", ".join([self.expr(arg, schema) for arg in call.args])
        if call.order:
            inside += f" order by {self.order(call.order, schema)}"
        text = f"{call.function}({'distinct ' if call.distinct else ''}{inside})"
        return text if call.filter is None else f"{text} filter ({self.expr(call.filter, schema)})"

    def window(self, call: WindowCall, schema: Schema) -> str:
        text = self.aggregation(call.call, schema) + (" ignore nulls" if call.ignore_nulls else "")
        inside = []
        if call.partition:
            inside.append(f"partition by {', '.join([self.expr(key, schema) for key in call.partition])}")
        if call.order:
            inside.append(f"order by {self.order(call.order, schema)}")
        frame = call.frame
        inside.append(f"{frame.unit.value} {self._bound(frame.start, schema)} to {self._bound(frame.end, schema)}")
        if frame.exclusion is not Exclusion.NOTHING:
            inside.append(f"exclude {frame.exclusion.value}")
        return f"{text} over ({' '.join(inside)})"

    def _bound(self, bound: Bound, schema: Schema) -> str:
        return bound.kind.value if bound.offset is None else f"{self.expr(bound.offset, schema)} {bound.kind.value}"

    def order(self, keys: Sequence[SortKey], schema: Schema) -> str:
        parts = []
        for key in keys:
            text = self._part(key.expr, schema)
            text += " desc" if key.descending else ""
            parts.append(text + (" nulls first" if key.nulls_first else ""))
        return ", ".join(parts)


def _parameter(parameter: Parameter) -> str:
    return f"${parameter.level}.{parameter.place}"


def _constant(literal: Literal) -> str:
    value, kind = literal.value, literal.type
    match value:
        case None:
            return f"null::{kind}"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Interval(months, days, nanoseconds):
            return f"interval '{months} months {days} days {nanoseconds} ns'"
        case bytes():
            return f"'\\x{value.hex()}'"
        case int() | float() if kind.kind in (Kind.INT32, Kind.INT64, Kind.FLOAT64):
            return str(value)
    return f"{value}::{kind}"

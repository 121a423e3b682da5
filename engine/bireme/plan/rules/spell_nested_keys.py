"""Keys that are lists or structs become blobs that are ordered as they are (`functions.order_keys`).

So sorts, groups, joins and windows of every backend take them, out of core too. Groups get their lists back from the
blobs. Comparisons are spelt so when they are bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.node import holds_nested
from bireme.data.types import BINARY, DataType, list_of
from bireme.errors import Unsupported
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Call, Column, Expr, Lambda, Parameter, SortKey, WindowCall
from bireme.plan.functions.order_keys import of_order_key, order_key
from bireme.plan.relation import Aggregate, Join, Project, Rel, Sort, Window
from bireme.plan.tree import all_columns, map_where

# Aggregates that give one of the values that they compare.
_CHOOSING: Final = frozenset({"min", "max", "mode"})
# Relations with keys.
_KEYED: Final = frozenset({Sort, Join, Aggregate, Window})


def spell_nested_keys(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without keys that are lists or structs."""
    return map_where(plan, _KEYED, _has_nested_keys, _spelt) if holds_nested(plan) else plan


def _has_nested_keys(rel: Rel) -> bool:
    kind = rel.__class__
    if kind is Sort:
        return _any_nested([key.expr for key in rel.keys])  # type: ignore[attr-defined]
    if kind is Join:
        return _any_nested(rel.left_keys)  # type: ignore[attr-defined]
    if kind is Aggregate:
        return _any_nested(rel.keys) or any(map(_compares_nested, rel.aggregates))  # type: ignore[attr-defined]
    if kind is Window:
        return any(map(_window_compares_nested, rel.calls))  # type: ignore[attr-defined]
    return False


def _any_nested(exprs: Sequence[Expr]) -> bool:
    for expr in exprs:  # noqa: SIM110  (a loop is twice as fast as any())
        if expr.type.children:
            return True
    return False


def _compares_nested(call: Aggregation) -> bool:
    if call.order and _any_nested([key.expr for key in call.order]):
        return True
    return (call.distinct or call.function in _CHOOSING) and _any_nested(call.args)


def _window_compares_nested(call: WindowCall) -> bool:
    return _any_nested(call.partition) or _any_nested([key.expr for key in call.order]) or _compares_nested(call.call)


def _spelt(rel: Rel) -> Rel:
    if not _has_nested_keys(rel):
        return rel
    match rel:
        case Sort(source, keys, limit, offset):
            return Sort(source, _order(keys), limit, offset)
        case Join(left, right, kind, left_keys, right_keys, residual, count, aware):
            ours, theirs = tuple(map(order_key, left_keys)), tuple(map(order_key, right_keys))
            return Join(left, right, kind, ours, theirs, residual, count, aware)
        case Aggregate(source, keys, aggregates, names, sets):
            calls = tuple(map(_aggregation, aggregates))
            grouped = Aggregate(source, tuple(map(order_key, keys)), calls, names, sets)
            return _restored(grouped, rel.schema.types)
        case Window(source, calls, names):
            return _restored(Window(source, tuple(map(_window, calls)), names), rel.schema.types)
    return rel


def _order(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    return tuple([SortKey(order_key(key.expr), key.descending, key.nulls_first) for key in keys])


def _aggregation(call: Aggregation) -> Aggregation:
    """The same aggregate of blobs, where it compares its values."""
    order = _order(call.order)
    if not _any_nested(call.args) or not (call.distinct or call.function in _CHOOSING):
        return Aggregation(call.function, call.args, call.type, call.distinct, call.filter, order)
    if call.function in _CHOOSING:
        kind = BINARY
    elif call.function == "array_agg":
        kind = list_of(BINARY)
    elif call.function == "count":
        kind = call.type
    else:
        raise Unsupported(f"{call.function}(DISTINCT …) of lists and structs is not offered; take distinct rows first")
    args = tuple(map(order_key, call.args))
    return Aggregation(call.function, args, kind, call.distinct, call.filter, order)


def _window(call: WindowCall) -> WindowCall:
    partition = tuple(map(order_key, call.partition))
    return WindowCall(_aggregation(call.call), partition, _order(call.order), call.frame, call.ignore_nulls)


def _restored(rel: Rel, types: Sequence[DataType]) -> Rel:
    """The columns of `rel`, blobs turned back into what they were made of."""
    columns = all_columns(rel.schema)
    if all(column.type is kind for column, kind in zip(columns, types, strict=True)):
        return rel
    return Project(rel, tuple(map(_value, columns, types)), rel.schema.names)


def _value(column: Column, kind: DataType) -> Expr:
    if column.type is kind:
        return column
    if column.type is BINARY:
        return of_order_key(column, kind)
    element = kind.children[0].type
    parameter = Parameter(0, 0, BINARY)
    return Call("list_transform", (column, Lambda((parameter,), of_order_key(parameter, element), element)), kind)

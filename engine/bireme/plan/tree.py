"""Walking and rebuilding plans; a relation of which nothing changes comes back as the same object.

Rule: a traversal never enters the plans inside subquery expressions unless its name says so, and plans are graphs:
what visits relations visits a shared one once. Expressions are walked in `expr_tree`, whose names are offered here too.

What nodes there are is in `expr` and `relation`; the rules that use this are in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from bireme.data.node import Node
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.plan.expr import (
    Aggregation,
    Column,
    Exists,
    Expr,
    QuantifiedSubquery,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from bireme.plan.expr_tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    ExprMap,
    column_mask,
    columns_in,
    columns_used,
    conjoin,
    conjuncts,
    disjoin,
    disjuncts,
    equal,
    holds_subquery,
    is_call,
    map_expr,
    map_operands,
    mask_of,
    negate,
    operands,
    remap,
    shift,
    subquery_plans,
    substitute,
    unchanged,
    walk,
)
from bireme.plan.relation import (
    Aggregate,
    Assume,
    DependentJoin,
    Filter,
    Join,
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

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "ExprMap",
    "aggregation_exprs",
    "all_columns",
    "column",
    "column_mask",
    "columns_in",
    "columns_used",
    "conjoin",
    "conjuncts",
    "contains",
    "disjoin",
    "disjuncts",
    "equal",
    "expressions",
    "filtered",
    "holds_subquery",
    "is_call",
    "map_aggregation",
    "map_expr",
    "map_expressions",
    "map_operands",
    "map_relations",
    "map_sort_key",
    "map_subqueries",
    "map_where",
    "map_window_call",
    "mask_of",
    "negate",
    "operands",
    "project",
    "relations",
    "remap",
    "select",
    "shift",
    "subplans",
    "subquery_plans",
    "substitute",
    "unchanged",
    "walk",
    "window_exprs",
    "with_inputs",
    "with_plan",
]


def column(schema: Schema, index: int) -> Column:
    """The column at `index` of a relation with `schema`."""
    return Column(index, schema.fields[index].type)


def all_columns(schema: Schema) -> tuple[Column, ...]:
    """Every column of `schema`, in order."""
    return tuple([Column(index, field.type) for index, field in enumerate(schema.fields)])


def filtered(rel: Rel, parts: Sequence[Expr]) -> Rel:
    """The rows of `rel` for which all `parts` are TRUE; `rel` itself for no parts."""
    predicate = conjoin(parts)
    return rel if predicate is None else Filter(rel, predicate)


def project(rel: Rel, exprs: Sequence[Expr], names: Sequence[str]) -> Rel:
    """A projection; `rel` itself where it would give `rel`'s columns under `rel`'s names."""
    fields = rel.schema.fields
    if len(exprs) == len(fields) and all(
        expr.__class__ is Column and expr.index == index and name == field.name
        for index, (expr, name, field) in enumerate(zip(exprs, names, fields, strict=True))
    ):
        return rel
    return Project(rel, tuple(exprs), tuple(names))


def select(rel: Rel, positions: Sequence[int]) -> Rel:
    """The columns of `rel` at `positions`, under their names."""
    fields = rel.schema.fields
    exprs = [Column(position, fields[position].type) for position in positions]
    return project(rel, exprs, [fields[position].name for position in positions])


def with_inputs(rel: Rel, inputs: Sequence[Rel]) -> Rel:
    """`rel` over other inputs."""
    if unchanged(rel.inputs, inputs):
        return rel
    match rel:
        case Filter(_, predicate):
            return Filter(inputs[0], predicate)
        case Project(_, exprs, names):
            return Project(inputs[0], exprs, names)
        case Join(_, _, kind, left_keys, right_keys, residual, null_equal_count, null_aware):
            return Join(inputs[0], inputs[1], kind, left_keys, right_keys, residual, null_equal_count, null_aware)
        case DependentJoin(_, _, kind, condition):
            return DependentJoin(inputs[0], inputs[1], kind, condition)
        case Aggregate(_, keys, aggregates, names, grouping_sets):
            return Aggregate(inputs[0], keys, aggregates, names, grouping_sets)
        case Window(_, calls, names):
            return Window(inputs[0], calls, names)
        case Sort(_, sort_keys, limit, offset):
            return Sort(inputs[0], sort_keys, limit, offset)
        case Limit(_, limit, offset):
            return Limit(inputs[0], limit, offset)
        case Union():
            return Union(tuple(inputs))
        case Unnest(_, kept, lists, names, keeps_empty, has_ordinality):
            return Unnest(inputs[0], kept, lists, names, keeps_empty, has_ordinality)
        case Assume(_, one, other):
            return Assume(inputs[0], one, other)
        case RowNumbers() if isinstance(inputs[0], Scan):
            return RowNumbers(inputs[0])
    raise EngineBug(f"{type(rel).__name__} has no inputs to replace")


def map_sort_key(key: SortKey, change: ExprMap) -> SortKey:
    """`key` with its expression changed."""
    new = change(key.expr)
    return key if new is key.expr else SortKey(new, key.descending, key.nulls_first)


def map_aggregation(call: Aggregation, change: ExprMap) -> Aggregation:
    """`call` with every expression in it changed."""
    return Aggregation(
        call.function,
        tuple([change(arg) for arg in call.args]),
        call.type,
        call.distinct,
        None if call.filter is None else change(call.filter),
        tuple([map_sort_key(key, change) for key in call.order]),
    )


def map_window_call(call: WindowCall, change: ExprMap) -> WindowCall:
    """`call` with every expression in it changed."""
    return WindowCall(
        map_aggregation(call.call, change),
        tuple([change(key) for key in call.partition]),
        tuple([map_sort_key(key, change) for key in call.order]),
        call.frame,
        call.ignore_nulls,
    )


def expressions(rel: Rel) -> list[Expr]:
    """The expressions a relation holds. Those of a join's keys are over one side, its residual over both."""
    find = _EXPRESSIONS.get(rel.__class__)
    return [] if find is None else find(rel)


def _join_expressions(rel: Join) -> list[Expr]:
    found = [*rel.left_keys, *rel.right_keys]
    if rel.residual is not None:
        found.append(rel.residual)
    return found


def _aggregate_expressions(rel: Aggregate) -> list[Expr]:
    found = list(rel.keys)
    for call in rel.aggregates:
        found += aggregation_exprs(call)
    return found


_EXPRESSIONS: Final[dict[type[Rel], Callable[[Any], list[Expr]]]] = {
    Filter: lambda rel: [rel.predicate],
    Project: lambda rel: list(rel.exprs),
    Join: _join_expressions,
    DependentJoin: lambda rel: [] if rel.condition is None else [rel.condition],
    Aggregate: _aggregate_expressions,
    Window: lambda rel: [part for call in rel.calls for part in window_exprs(call)],
    Sort: lambda rel: [key.expr for key in rel.keys],
    Scan: lambda rel: list(rel.filters),
}


def subplans(rel: Rel) -> tuple[Rel, ...]:
    """The plans of the subqueries in the expressions of `rel`."""
    try:
        return rel._facts  # type: ignore[attr-defined,no-any-return]
    except AttributeError:
        found = tuple([plan for expr in expressions(rel) for plan in subquery_plans(expr)])
        object.__setattr__(rel, "_facts", found)
        return found


def aggregation_exprs(call: Aggregation) -> list[Expr]:
    """The expressions an aggregation holds."""
    if call.filter is None and not call.order:
        return list(call.args)
    return [*call.args, *([] if call.filter is None else [call.filter]), *[key.expr for key in call.order]]


def window_exprs(call: WindowCall) -> list[Expr]:
    """The expressions a window function holds."""
    return [*aggregation_exprs(call.call), *call.partition, *[key.expr for key in call.order]]


def map_expressions(rel: Rel, change: ExprMap) -> Rel:
    """`rel` with `change` applied to each expression it holds (whole ones, not their parts)."""
    match rel:
        case Filter(source, predicate):
            new = change(predicate)
            return rel if new is predicate else Filter(source, new)
        case Project(source, exprs, names):
            changed = tuple([change(expr) for expr in exprs])
            return rel if unchanged(exprs, changed) else Project(source, changed, names)
        case Join(left, right, kind, left_keys, right_keys, residual, null_equal_count, null_aware):
            lefts, rights = tuple([change(key) for key in left_keys]), tuple([change(key) for key in right_keys])
            rest = None if residual is None else change(residual)
            return Join(left, right, kind, lefts, rights, rest, null_equal_count, null_aware)
        case DependentJoin(left, right, kind, condition):
            return DependentJoin(left, right, kind, None if condition is None else change(condition))
        case Aggregate(source, keys, aggregates, names, grouping_sets):
            new_keys = tuple([change(key) for key in keys])
            calls = tuple([map_aggregation(call, change) for call in aggregates])
            return Aggregate(source, new_keys, calls, names, grouping_sets)
        case Window(source, window_calls, names):
            return Window(source, tuple([map_window_call(call, change) for call in window_calls]), names)
        case Sort(source, sort_keys, limit, offset):
            return Sort(source, tuple([map_sort_key(key, change) for key in sort_keys]), limit, offset)
        case Scan(table, version, table_schema, columns, filters):
            return Scan(table, version, table_schema, columns, tuple([change(part) for part in filters]))
        case Values() | Limit() | Union() | Unnest() | Assume() | RowNumbers():
            return rel
    raise EngineBug(f"no expressions are known of {type(rel).__name__}")


def map_relations(plan: Rel, change: Callable[[Rel], Rel]) -> Rel:
    """`plan` rebuilt from its leaves up, `change` applied once to each relation, also in plans of subqueries."""
    done: dict[Rel, Rel] = {}

    def visit(rel: Rel) -> Rel:
        found = done.get(rel)
        if found is None:
            rebuilt = with_inputs(rel, [visit(source) for source in rel.inputs])
            found = done[rel] = change(map_subqueries(rebuilt, visit))
        return found

    return visit(plan)


def map_where(plan: Rel, concerns: Callable[[Rel], bool], change: Callable[[Rel], Rel]) -> Rel:
    """`map_relations` by a change that is only about relations of concern; a plan without any is not rebuilt."""
    return map_relations(plan, change) if any(map(concerns, relations(plan))) else plan


def map_subqueries(rel: Rel, change: Callable[[Rel], Rel]) -> Rel:
    """`rel` with `change` applied to the plans of subqueries in its expressions."""
    if not subplans(rel):
        return rel
    return map_expressions(rel, lambda expr: map_expr(expr, lambda part: with_plan(part, change)))


def with_plan(expr: Expr, change: Callable[[Rel], Rel]) -> Expr:
    """`expr` itself, or, where it is a subquery, the same over a changed plan."""
    match expr:
        case ScalarSubquery(plan, type_):
            return ScalarSubquery(change(plan), type_)  # type: ignore[arg-type]
        case Exists(plan, type_):
            return Exists(change(plan), type_)  # type: ignore[arg-type]
        case QuantifiedSubquery(inner, comparison, quantifier, plan, type_):
            return QuantifiedSubquery(inner, comparison, quantifier, change(plan), type_)  # type: ignore[arg-type]
    return expr


def relations(plan: Rel, *, subqueries: bool = True) -> list[Rel]:
    """Every relation of `plan` once, each after those it reads; with `subqueries` also those in expressions."""
    done: dict[Rel, None] = {}

    def visit(rel: Rel) -> None:
        if rel in done:
            return
        for source in rel.inputs:
            visit(source)
        if subqueries:
            for inner in subplans(rel):
                visit(inner)
        done[rel] = None

    visit(plan)
    return list(done)


def contains(node: Node, wanted: type[Node]) -> bool:
    """Whether a node of class `wanted` is anywhere in a relation or its expressions, subqueries included."""
    assert isinstance(node, Rel)
    return any(
        isinstance(rel, wanted) or any(isinstance(part, wanted) for expr in expressions(rel) for part in walk(expr))
        for rel in relations(node)
    )

"""Walking and rebuilding plans and expressions; a node of which nothing changes comes back as the same object.

Rule: a traversal never enters the plans inside subquery expressions unless its name says so, and plans are graphs:
what visits relations visits a shared one once. Columns used by an expression are kept as a bit mask (bit `i` for
column `i`), remembered on the expression.

What nodes there are is in `expr` and `relation`; the rules that use this are in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from bireme.data.node import Node
from bireme.data.schema import Schema
from bireme.data.types import BOOL
from bireme.errors import EngineBug
from bireme.plan.expr import (
    Aggregation,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    InList,
    Literal,
    OuterColumn,
    QuantifiedSubquery,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from bireme.plan.relation import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    Limit,
    Project,
    Rel,
    Scan,
    Sort,
    Union,
    Values,
    Window,
)

ExprMap = Callable[[Expr], Expr]

TRUE: Final = Literal(True, BOOL)
FALSE: Final = Literal(False, BOOL)
UNKNOWN: Final = Literal(None, BOOL)

# ------------------------------------------------------------------------------------------ expressions


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `expr`, in the order of evaluation; plans of subqueries are not among them."""
    kind = expr.__class__
    if kind is Call:
        return expr.args  # type: ignore[attr-defined,no-any-return]
    if kind in _LEAVES:
        return ()
    match expr:
        case Cast(arg):
            return (arg,)
        case Case(branches, default):
            return (*[part for branch in branches for part in branch], default)
        case InList(arg, items):
            return (arg, *items)
        case QuantifiedSubquery(inner):
            return inner
    return ()


_LEAVES: Final = frozenset({Column, Literal, OuterColumn, ScalarSubquery, Exists})


def map_operands(expr: Expr, change: ExprMap) -> Expr:
    """`expr` with `change` applied to each of its operands."""
    kind = expr.__class__
    if kind is Call:
        args: tuple[Expr, ...] = expr.args  # type: ignore[attr-defined]
        changed = tuple([change(arg) for arg in args])
        return expr if _same(args, changed) else Call(expr.function, changed, expr.type)  # type: ignore[attr-defined]
    if kind in _LEAVES:
        return expr
    match expr:
        case Cast(arg, type_, safe):
            new = change(arg)
            return expr if new is arg else Cast(new, type_, safe)
        case Case(branches, default, type_):
            pairs = tuple([(change(condition), change(value)) for condition, value in branches])
            rest = change(default)
            if rest is default and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(pairs, branches, strict=True)):
                return expr
            return Case(pairs, rest, type_)
        case InList(arg, items, type_):
            new, changed = change(arg), tuple([change(item) for item in items])
            return expr if new is arg and _same(items, changed) else InList(new, changed, type_)
        case QuantifiedSubquery(inner, comparison, quantifier, plan, type_):
            changed = tuple([change(operand) for operand in inner])
            return expr if _same(inner, changed) else QuantifiedSubquery(changed, comparison, quantifier, plan, type_)
    return expr


def _same(old: Sequence[Any], new: Sequence[Any]) -> bool:
    for a, b in zip(old, new, strict=True):  # noqa: SIM110  (a loop is twice as fast as all())
        if a is not b:
            return False
    return True


def map_expr(expr: Expr, change: ExprMap) -> Expr:
    """`expr` rebuilt from the leaves up, `change` applied to every part after its operands."""
    return change(map_operands(expr, lambda part: map_expr(part, change)))


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything inside it, outermost first; plans of subqueries are not entered."""
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(operands(part)))


def column_mask(expr: Expr) -> int:
    """The columns `expr` reads, as a bit mask. Outer columns are not among them."""
    if expr.__class__ is Column:
        return 1 << expr.index
    try:
        return expr._memo >> 1  # type: ignore[attr-defined,no-any-return]
    except AttributeError:
        return _learn(expr) >> 1


def holds_subquery(expr: Expr) -> bool:
    """Whether a subquery of any kind is inside `expr`."""
    if expr.__class__ is Column:
        return False
    try:
        return expr._memo & 1 == 1  # type: ignore[attr-defined,no-any-return]
    except AttributeError:
        return _learn(expr) & 1 == 1


def _learn(expr: Expr) -> int:
    """Remembers of `expr` its mask and, in the lowest bit, whether it holds a subquery."""
    known = 1 if expr.__class__ in _SUBQUERIES else 0
    for part in operands(expr):
        if part.__class__ is Column:
            known |= 2 << part.index
        else:
            try:
                known |= part._memo  # type: ignore[attr-defined]
            except AttributeError:
                known |= _learn(part)
    object.__setattr__(expr, "_memo", known)
    return known


_SUBQUERIES: Final = frozenset({ScalarSubquery, Exists, QuantifiedSubquery})


def columns_in(mask: int) -> list[int]:
    """The positions in a mask, ascending."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def mask_of(exprs: Iterable[Expr]) -> int:
    """The columns that any of `exprs` reads."""
    mask = 0
    for expr in exprs:
        mask |= column_mask(expr)
    return mask


def columns_used(expr: Expr) -> frozenset[int]:
    """The positions of the columns that `expr` reads."""
    return frozenset(columns_in(column_mask(expr)))


def substitute(expr: Expr, replacements: Sequence[Expr]) -> Expr:
    """`expr` with column `i` replaced by `replacements[i]`: what it means below a projection."""
    if expr.__class__ is Column:
        return replacements[expr.index]
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: substitute(part, replacements))


def remap(expr: Expr, positions: Sequence[int] | dict[int, int]) -> Expr:
    """`expr` with column `i` moved to `positions[i]`."""
    if expr.__class__ is Column:
        new = positions[expr.index]
        return expr if new == expr.index else Column(new, expr.type)
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: remap(part, positions))


def shift(expr: Expr, by: int) -> Expr:
    """`expr` with every column moved by `by` positions."""
    if by == 0:
        return expr
    if expr.__class__ is Column:
        return Column(expr.index + by, expr.type)
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: shift(part, by))


def conjuncts(predicate: Expr | None) -> list[Expr]:
    """The parts of a conjunction, without repetitions and TRUE; nested ones are flattened."""
    if predicate is None:
        return []
    if not (predicate.__class__ is Call and predicate.function == "and"):
        return [] if predicate is TRUE else [predicate]
    found: dict[Expr, None] = {}
    for arg in predicate.args:
        found.update(dict.fromkeys(conjuncts(arg)))
    return list(found)


def disjuncts(predicate: Expr) -> list[Expr]:
    """The parts of a disjunction, without repetitions; nested ones are flattened."""
    if not (predicate.__class__ is Call and predicate.function == "or"):
        return [predicate]
    found: dict[Expr, None] = {}
    for arg in predicate.args:
        found.update(dict.fromkeys(disjuncts(arg)))
    return list(found)


def conjoin(parts: Sequence[Expr]) -> Expr | None:
    """The conjunction of `parts`; None for none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return Call("and", tuple(parts), BOOL)


def disjoin(parts: Sequence[Expr]) -> Expr:
    """The disjunction of `parts`, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts), BOOL)


def negate(predicate: Expr) -> Expr:
    """NOT, three-valued."""
    return Call("not", (predicate,), BOOL)


def equal(left: Expr, right: Expr) -> Expr:
    """The SQL comparison `left = right`."""
    return Call("eq", (left, right), BOOL)


def is_call(expr: Expr, function: str) -> bool:
    """Whether `expr` is a call of `function`."""
    return expr.__class__ is Call and expr.function == function


def subquery_plans(expr: Expr) -> list[Rel]:
    """The plans of the subqueries directly in `expr` (not of those inside these plans)."""
    if not holds_subquery(expr):
        return []
    return [part.plan for part in walk(expr) if part.__class__ in _SUBQUERIES]  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------- relations


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
    if _same(rel.inputs, inputs):
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
            return rel if _same(exprs, changed) else Project(source, changed, names)
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
        case Values() | Limit() | Union():
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

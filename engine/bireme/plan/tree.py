"""Walking and rebuilding plans; a relation of which nothing changes comes back as the same object.

Rule: a traversal never enters the plans inside subquery expressions unless its name says so, and plans are graphs:
what visits relations visits a shared one once. The traversals are in C++ (`native/nodes`). Expressions are walked in
`expr_tree`, whose names are offered here too.

What nodes there are is in `expr` and `relation`; the rules that use this are in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import Any, Final

from bireme.data.node import (
    Node,
    map_relations,
    map_subplans,
    relations,
    relations_among,
    relations_outside_subqueries,
    subplans,
    with_inputs,
)
from bireme.data.schema import Schema
from bireme.plan.expr import Column, Expr
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
    substitute,
    unchanged,
    walk,
)
from bireme.plan.relation import Filter, Project, Rel

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "ExprMap",
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
    "filtered",
    "holds_subquery",
    "is_call",
    "map_expr",
    "map_operands",
    "map_relations",
    "map_subplans",
    "map_where",
    "mask_of",
    "negate",
    "operands",
    "project",
    "relations",
    "relations_outside_subqueries",
    "remap",
    "select",
    "shift",
    "subplans",
    "substitute",
    "unchanged",
    "walk",
    "with_inputs",
    "with_plan",
]


def column(schema: Schema, index: int) -> Column:
    """The column at `index` of a relation with `schema`."""
    return Column(index, schema.fields[index].type)


# Of the schemas that are asked about all the time, the columns are kept.
_SCHEMAS_KEPT_MAX: Final = 256


@lru_cache(_SCHEMAS_KEPT_MAX)
def all_columns(schema: Schema, start: int = 0) -> tuple[Column, ...]:
    """Every column of `schema`, in order, the first of them at `start`."""
    return tuple([Column(start + index, field.type) for index, field in enumerate(schema.fields)])


def filtered(rel: Rel, parts: Sequence[Expr]) -> Rel:
    """The rows of `rel` for which all `parts` are TRUE; `rel` itself for no parts."""
    predicate = conjoin(parts)
    return rel if predicate is None else Filter(rel, predicate)


def project(rel: Rel, exprs: Sequence[Expr], names: Sequence[str]) -> Rel:
    """A projection; `rel` itself where it would give `rel`'s columns under `rel`'s names."""
    schema = rel.schema
    same = len(exprs) == len(schema.fields) and tuple(exprs) == all_columns(schema) and tuple(names) == schema.names
    return rel if same else Project(rel, tuple(exprs), tuple(names))


def select(rel: Rel, positions: Sequence[int]) -> Rel:
    """The columns of `rel` at `positions`, under their names."""
    fields = rel.schema.fields
    exprs = [Column(position, fields[position].type) for position in positions]
    return project(rel, exprs, [fields[position].name for position in positions])


def map_where(
    plan: Rel, classes: Container[type[Rel]], concerns: Callable[[Any], bool], change: Callable[[Rel], Rel]
) -> Rel:
    """`map_relations` by a change that is only about such relations of some classes; a plan without any stays."""
    return map_relations(plan, change) if any(map(concerns, relations_among(plan, classes))) else plan


def with_plan(expr: Expr, change: Callable[[Rel], Rel]) -> Expr:
    """`expr` itself, or, where it is a subquery, the same over a changed plan."""
    return with_inputs(expr, [change(plan) for plan in expr.inputs])


def contains(node: Node, wanted: type[Node]) -> bool:
    """Whether a node of class `wanted` is anywhere in a relation or its expressions, subqueries included."""
    assert isinstance(node, Rel)
    return any(isinstance(part, wanted) for rel in relations(node) for part in walk(rel))

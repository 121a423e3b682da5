"""Subqueries in expressions: scalar, EXISTS, and comparisons with ANY or ALL rows of a query, of which IN is one.

The query itself is bound by `query` in a block whose outer context is the one around the subquery.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import DataType, Kind
from bireme.errors import ClauseFault, SyntaxFault, Unsupported
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.statement import Handler, Query
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Call, Column, Exists, Expr, QuantifiedSubquery, Quantifier, ScalarSubquery
from bireme.plan.functions.order_keys import order_key
from bireme.plan.functions.untyped import retyped
from bireme.plan.relation import Project, Rel
from bireme.plan.tree import all_columns, substitute

QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def inner_query(node: Node, context: Context) -> Query:
    """Binds a query whose outer columns are those of `context`."""
    block = Block(context.statement, context, context.block.tables)
    return context.statement.bind_query(node, block)


def scalar(node: Node, context: Context) -> Expr:
    query = inner_query(node, context)
    if len(query.types) != 1:
        raise ClauseFault(f"a subquery used as a value must have one column; this one has {len(query.types)}")
    return ScalarSubquery(query.relation, query.types[0])


def exists(node: Node, context: Context) -> Expr:
    query = node.args["this"]
    if not isinstance(query, QUERIES):
        raise Unsupported("EXISTS takes a query")
    return Exists(inner_query(query, context).relation)


def row(node: Node, context: Context) -> tuple[Expr, ...]:
    """The expressions of a row value; one expression is a row of one."""
    while node.__class__ is exp.Paren:
        node = node.args["this"]
    if node.__class__ is not exp.Tuple:
        return (context.bind(node),)
    check_arguments(node, {"expressions"})
    items = node.args.get("expressions") or []
    if not items:
        raise SyntaxFault("an empty row")
    return tuple([context.bind(item) for item in items])


def quantified(left: Node, comparison: str, right: Node, context: Context) -> Expr:
    """`left <comparison> ANY|ALL (query)`."""
    check_arguments(right, {"this"})
    quantifier = Quantifier.ALL if right.__class__ is exp.All else Quantifier.ANY
    query_node = right.args["this"]
    while query_node.__class__ is exp.Paren:
        query_node = query_node.args["this"]
    if not isinstance(query_node, QUERIES):
        raise Unsupported(f"{quantifier.name} takes a query; for constants use IN (…)")
    query = inner_query(query_node, context)
    operands = _as_wide(row(left, context), query.types)
    if len(operands) != len(query.types):
        raise ClauseFault(f"{len(operands)} values are compared with the {len(query.types)} columns of a subquery")
    if comparison not in _QUANTIFIED:
        raise Unsupported(f"{comparison} with {quantifier.name} is not supported")
    pairs = [
        functions.unify((operand, Column(index, kind)), "a comparison with a subquery")
        for index, (operand, kind) in enumerate(zip(operands, query.types, strict=True))
    ]
    compared_with = with_types(query, [column.type for _, column in pairs])
    lefts = tuple([operand for operand, _ in pairs])
    if len(lefts) > 1 and comparison not in ("eq", "ne"):
        lefts = (functions.scalar("row", lefts),)
        rights = functions.scalar("row", all_columns(compared_with.schema))
        compared_with = Project(compared_with, (rights,), ("row",))
    if any(operand.type.is_nested for operand in lefts):
        columns = tuple([order_key(column) for column in all_columns(compared_with.schema)])
        compared_with = Project(compared_with, columns, compared_with.schema.names)
    return QuantifiedSubquery(tuple(map(order_key, lefts)), comparison, quantifier, compared_with)


def _as_wide(operands: tuple[Expr, ...], types: Sequence[DataType]) -> tuple[Expr, ...]:
    """The operands; of `row(a, b)` its parts, where it is compared with columns and not with another row."""
    (first, *others) = operands
    is_row = isinstance(first, Call) and first.function == "struct_pack" and not others
    return first.args if isinstance(first, Call) and is_row and types[0].kind is not Kind.STRUCT else operands


_QUANTIFIED: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def with_types(query: Query, kinds: Sequence[DataType]) -> Rel:
    """The relation of a query with its columns cast to `kinds`."""
    if all(kind is own for kind, own in zip(kinds, query.types, strict=True)):
        return query.relation
    made = columns_made(query.relation)
    if made is not None and any(map(retyped, made.exprs, kinds)):
        exprs = [retyped(expr, kind) or expr for expr, kind in zip(made.exprs, kinds, strict=True)]
        rows = Project(made.input, tuple(exprs), query.names)
        return with_types(Query(rows, query.names, tuple([expr.type for expr in exprs])), kinds)
    columns = [Column(index, own) for index, own in enumerate(query.types)]
    exprs = [functions.cast(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return Project(query.relation, tuple(exprs), query.names)


def columns_made(relation: Rel) -> Project | None:
    """One projection for those that a relation ends with; None where it ends with none."""
    if not isinstance(relation, Project):
        return None
    while isinstance(relation.input, Project):
        inner = relation.input
        exprs = tuple([substitute(expr, inner.exprs) for expr in relation.exprs])
        relation = Project(inner.input, exprs, relation.names)
    return relation


# Everything that a query can have; `query` checks it when it binds the node.
QUERY_ARGUMENTS: Final = {
    kind: frozenset(kind.arg_types) for kind in (exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect)
}

HANDLERS: Final[dict[type[Node], Handler]] = {
    **{kind: (scalar, known) for kind, known in QUERY_ARGUMENTS.items()},
    exp.Exists: (exists, frozenset({"this"})),
}

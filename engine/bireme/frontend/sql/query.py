"""Queries of any form: SELECT, set operations, VALUES and parentheses, each with its WITH, ORDER BY and LIMIT."""

from __future__ import annotations

from typing import Final

from sqlglot import expressions as exp

from bireme.errors import QueryError, Unsupported
from bireme.frontend.sql.catalog_statements import STATEMENTS
from bireme.frontend.sql.context import Block, Context, Item
from bireme.frontend.sql.limits import bind_range, sorted_rows
from bireme.frontend.sql.order import bind_terms
from bireme.frontend.sql.scope import Scope, Source
from bireme.frontend.sql.select import bind_select
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.frontend.sql.tables import bind_unused, starred, values, with_tables
from bireme.plan.expr import Column, SortKey

_SUBQUERY: Final = frozenset({"this", "alias", "with_", "order", "limit", "offset"})
_VALUES: Final = frozenset({"expressions", "with_", "order", "limit", "offset"})


def bind_query(node: Node, block: Block) -> Query:
    """Binds a query in `block`; columns that it does not know are looked for around the block."""
    try:
        inner = with_tables(node.args.get("with_"), block)
        query = _bind(node, inner)
        if inner is not block:
            bind_unused(inner, block)
        block.reach = max(block.reach, inner.reach)
        return query
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def _bind(node: Node, block: Block) -> Query:
    kind = node.__class__
    if kind is exp.Select:
        return bind_select(node, block)
    if kind is exp.Table or (kind is exp.Subquery and node.args.get("joins")):
        # Joins in parentheses that stand where a query is expected.
        return _ordered(starred(block.statement.bind_joins(node, block)), node, block)
    if kind is exp.Subquery:
        check_arguments(node, _SUBQUERY)
        return _ordered(bind_query(node.args["this"], block), node, block)
    if isinstance(node, exp.SetOperation):
        from bireme.frontend.sql.set_operations import bind_set_operation

        return _ordered(bind_set_operation(node, block), node, block)
    if kind is exp.Values:
        check_arguments(node, _VALUES)
        return _ordered(values(node, block), node, block)
    if kind is exp.Pivot:
        from bireme.frontend.sql.pivots import statement as pivoted

        return pivoted(node, block)
    statement = STATEMENTS.get(kind)
    if statement is not None:
        return statement(node, block)
    raise Unsupported(f"{node.key.upper()} is not supported as a query")


def _ordered(query: Query, node: Node, block: Block) -> Query:
    """ORDER BY and LIMIT around a query that is bound already: over its output columns only."""
    rows = bind_range(node, block)
    order = node.args.get("order")
    if order is None:
        return query._replace(relation=sorted_rows(query.relation, (), rows))
    context = Context(block, Scope.of(Source.of("", query.names, query.types)), "ORDER BY")
    items = [
        Item(name, Column(i, kind), node) for i, (name, kind) in enumerate(zip(query.names, query.types, strict=True))
    ]
    terms = bind_terms(order, items, context)
    keys = tuple([SortKey(term.expr, term.descending, term.nulls_first) for term in terms])
    return query._replace(relation=sorted_rows(query.relation, keys, rows))

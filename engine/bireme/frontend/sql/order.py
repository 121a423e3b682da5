"""ORDER BY: which output column or expression a key means."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import expressions as exp

from bireme.errors import ClauseFault, NameFault, QueryError, SyntaxFault
from bireme.frontend.sql.column_sets import bind_each, sets_in
from bireme.frontend.sql.context import Context, Item
from bireme.frontend.sql.grouping import constant_position
from bireme.frontend.sql.syntax import Node, check_arguments, is_all, located
from bireme.plan.expr import Expr
from bireme.records import dataclass


@dataclass(slots=True)
class Term:
    """One key of an order: an expression bound like the select list, and its direction."""

    expr: Expr
    descending: bool
    nulls_first: bool


def bind_terms(node: Node | None, items: Sequence[Item], context: Context) -> list[Term]:
    """The keys of ORDER BY: positions, names of the select list, or expressions; NULLs come last by default."""
    if node is None:
        return []
    check_arguments(node, {"expressions"})
    if not node.args["expressions"]:
        raise SyntaxFault("ORDER BY needs at least one key")
    terms: list[Term] = []
    for entry in node.args["expressions"]:
        check_arguments(entry, {"this", "desc", "nulls_first"})
        descending, nulls_first = bool(entry.args.get("desc")), bool(entry.args.get("nulls_first"))
        try:
            for expr in _meant(entry.args["this"], items, context):
                terms.append(Term(expr, descending, nulls_first))
        except QueryError as error:
            located(error, entry, context.statement.text)
            raise
    return terms


def _meant(node: Node, items: Sequence[Item], context: Context) -> list[Expr]:
    if is_all(node):
        return [item.expr for item in items]
    sets = sets_in(node, context)
    if sets:
        return [expr for _, expr in bind_each(node, sets, context)]
    return [output_or_expression(node, items, context)]


def output_or_expression(node: Node, items: Sequence[Item], context: Context) -> Expr:
    """What a key of ORDER BY or DISTINCT ON means: a position, an alias of the select list, or an expression."""
    position = _position(node)
    if position is not None:
        if not 1 <= position <= len(items):
            raise ClauseFault(f"{context.clause} {position}: the select list has {len(items)} columns")
        return items[position - 1].expr
    if node.__class__ is exp.Column and node.args.get("table") is None:
        name = node.args["this"].name.lower()
        meant = {item.expr for item in items if item.node.__class__ is exp.Alias and item.name.lower() == name}
        if len(meant) > 1:
            raise NameFault(f"{context.clause} '{name}' is ambiguous: the select list gives this name more than once")
        if meant:
            return meant.pop()
    if node.__class__ in (exp.Literal, exp.Boolean, exp.Null):
        raise ClauseFault(f"{context.clause} a constant has no effect; write the column's name without quotes")
    return context.bind(node)


def _position(node: Node) -> int | None:
    """The number of a column of the select list, which `#1` is here, too."""
    return constant_position(node.args["this"] if node.__class__ is exp.PositionalColumn else node)

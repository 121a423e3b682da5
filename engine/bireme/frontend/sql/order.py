"""ORDER BY, LIMIT, OFFSET and FETCH: which output column or expression a key means, and how many rows stay."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import expressions as exp

from bireme.errors import ClauseFault, NameFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.sql.column_sets import bind_each, sets_in
from bireme.frontend.sql.constants import row_count
from bireme.frontend.sql.context import Block, Context, Item
from bireme.frontend.sql.grouping import constant_position
from bireme.frontend.sql.samples import first_share, percentage
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan.expr import Expr, SortKey
from bireme.plan.relation import Limit, Rel, Sort
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
    position = constant_position(node)
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
    if node.__class__ is exp.Literal:
        raise ClauseFault(f"{context.clause} a constant has no effect; write the column's name without quotes")
    return context.bind(node)


def is_all(node: Node) -> bool:
    """Whether a node is the word ALL where it stands for everything."""
    return node.__class__ is exp.Var and node.name.upper() == "ALL"


@dataclass(frozen=True, slots=True)
class Range:
    """The rows that LIMIT and OFFSET leave."""

    limit: int | None
    offset: int
    percent: Decimal | None = None

    @property
    def is_all(self) -> bool:
        return self.limit is None and self.offset == 0 and self.percent is None


def bind_range(node: Node, block: Block) -> Range:
    """The constants of LIMIT or FETCH, and OFFSET, of a query."""
    limit: int | None = None
    percent: Decimal | None = None
    clause = node.args.get("limit")
    if clause is not None:
        if clause.__class__ is exp.Fetch:
            check_arguments(clause, {"direction", "count", "limit_options"})
            count = clause.args.get("count")
            limit = 1 if count is None else row_count(count, "FETCH", block)
            if _is_percent(clause.args.get("limit_options")):
                raise Unsupported("FETCH with PERCENT is not supported; write LIMIT n%")
        else:
            check_arguments(clause, {"expression", "limit_options"})
            expression = clause.args["expression"]
            if _is_percent(clause.args.get("limit_options")):
                percent = percentage(expression, "LIMIT", block)
            elif not is_all(expression):
                limit = row_count(expression, "LIMIT", block)
    offset = 0
    clause = node.args.get("offset")
    if clause is not None:
        check_arguments(clause, {"expression"})
        offset = row_count(clause.args["expression"], "OFFSET", block) or 0
    return Range(limit, offset, percent)


def _is_percent(options: Node | None) -> bool:
    """Whether LIMIT is of so many of a hundred rows."""
    if options is None:
        return False
    if options.__class__ is not exp.LimitOptions or options.args.get("with_ties"):
        raise Unsupported("LIMIT and FETCH WITH TIES are not supported; filter by rank() in QUALIFY")
    check_arguments(options, {"percent", "with_ties", "rows"})
    return bool(options.args.get("percent"))


def sorted_rows(relation: Rel, keys: Sequence[SortKey], rows: Range) -> Rel:
    """The rows in order, and only those that the range leaves."""
    if rows.percent is not None:
        return first_share(Sort(relation, tuple(keys)) if keys else relation, rows.percent, rows.offset)
    if keys:
        return Sort(relation, tuple(keys), rows.limit, rows.offset)
    return relation if rows.is_all else Limit(relation, rows.limit, rows.offset)

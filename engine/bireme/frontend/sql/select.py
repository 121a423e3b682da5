"""One SELECT: its clauses in the order in which SQL means them, each on top of the relation of the one before.

FROM, WHERE, GROUP BY with the aggregates of all clauses, HAVING, windows, QUALIFY, unnest, the select list, DISTINCT,
ORDER BY, LIMIT. Select list, HAVING, QUALIFY and ORDER BY are bound first, over the FROM clause, and then rewritten
over the groups and windows that they turned out to need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import INT64
from bireme.errors import ClauseFault, QueryError
from bireme.frontend.sql.column_sets import bind_condition, bind_each, name_given, sets_in
from bireme.frontend.sql.context import Block, Context, Item, StandIns
from bireme.frontend.sql.grouping import Keys, aggregate, bind_group, refuse_ungrouped, replacer
from bireme.frontend.sql.joins import from_clause
from bireme.frontend.sql.limits import Range, bind_range, sorted_rows
from bireme.frontend.sql.order import Term, bind_terms, output_or_expression
from bireme.frontend.sql.samples import sampled
from bireme.frontend.sql.stars import expand, star_of
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.frontend.sql.tables import Bound
from bireme.frontend.sql.windows import named_windows
from bireme.plan import functions, tree
from bireme.plan.expr import WHOLE_PARTITION, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Aggregate, Filter, Project, Rel, Unnest, Window
from bireme.records import dataclass

SELECT: Final = frozenset(
    {
        "with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify", "windows",
        "order", "limit", "offset", "sample",
    }
)  # fmt: skip


@dataclass(slots=True)
class Selection:
    """A SELECT under construction: what its clauses hold, and the relation so far."""

    relation: Rel
    items: list[Item]
    stand_ins: StandIns
    contexts: list[Context]
    having: Expr | None = None
    qualify: Expr | None = None
    terms: list[Term] = field(default_factory=list)
    distinct_on: list[Expr] | None = None

    def rewrite(self, change: Callable[[Expr], Expr]) -> None:
        """Applies `change` to everything above the groups."""
        for item in self.items:
            item.expr = change(item.expr)
        for term in self.terms:
            term.expr = change(term.expr)
        if self.having is not None:
            self.having = change(self.having)
        if self.qualify is not None:
            self.qualify = change(self.qualify)
        if self.distinct_on is not None:
            self.distinct_on = [change(expr) for expr in self.distinct_on]


def bind_select(node: Node, block: Block) -> Query:
    """Binds a SELECT whose WITH clause is in `block` already."""
    check_arguments(node, SELECT)
    bound = from_clause(node, block)
    sample = node.args.get("sample")
    if sample is not None:
        bound = bound._replace(relation=sampled(bound.relation, sample, block))
    aliases = _aliases(node)
    relation = bound.relation
    where = node.args.get("where")
    if where is not None:
        context = Context(block, bound.scope, "WHERE", aliases=aliases)
        relation = Filter(relation, _condition(where, context))
    selection, keys = _bind_clauses(node, Bound(relation, bound.scope), block, aliases)
    stand_ins = selection.stand_ins
    if keys is not None or selection.having is not None or stand_ins.aggregates or stand_ins.groupings:
        _group(selection, keys or Keys(()))
    if selection.stand_ins.windows:
        _windows(selection)
    if selection.qualify is not None:
        if not selection.stand_ins.windows:
            raise ClauseFault("QUALIFY needs a window function in the query; use WHERE or HAVING")
        selection.relation = Filter(selection.relation, selection.qualify)
    if selection.stand_ins.unnests:
        _unnests(selection)
    return _output(node, selection, block)


def _aliases(node: Node) -> dict[str, Node | None]:
    """The expressions of the select list that have a name of their own; None for a name given to several."""
    aliases: dict[str, Node | None] = {}
    for entry in node.args["expressions"]:
        if entry.__class__ is exp.Alias:
            name, this = entry.args["alias"].name.lower(), entry.args["this"]
            aliases[name] = this if aliases.get(name, this) == this else None
    return aliases


def _condition(node: Node, context: Context) -> Expr:
    """The condition of WHERE, HAVING or QUALIFY."""
    check_arguments(node, {"this"})
    inner = node.args["this"]
    try:
        if context.clause == "WHERE":
            return bind_condition(inner, context, "WHERE")
        return functions.truth(context.bind(inner), context.clause)
    except QueryError as error:
        located(error, inner, context.statement.text)
        raise


def _bind_clauses(
    node: Node, bound: Bound, block: Block, aliases: dict[str, Node | None]
) -> tuple[Selection, Keys | None]:
    stand_ins = StandIns()
    named = named_windows(node.args.get("windows") or [])

    def context(clause: str, *, windows: bool, given: dict[str, Node | None]) -> Context:
        return Context(
            block, bound.scope, clause, stand_ins, aggregates=True, windows=windows, aliases=given,
            named_windows=named, columns={},
        )  # fmt: skip

    select = context("SELECT", windows=True, given={})
    items = list(_items(node, select))
    if not items:
        raise ClauseFault("the select list is empty")
    keys: Keys | None = None
    group = node.args.get("group")
    if group is not None:
        keys = bind_group(group, items, Context(block, bound.scope, "GROUP BY", aliases=aliases))
    selection = Selection(bound.relation, items, stand_ins, [select])
    having, qualify = node.args.get("having"), node.args.get("qualify")
    if having is not None:
        inner = context("HAVING", windows=False, given=aliases)
        inner.preferred = frozenset(key for key in (keys.exprs if keys else ()) if isinstance(key, Column))
        selection.contexts.append(inner)
        selection.having = _condition(having, inner)
    if qualify is not None:
        inner = context("QUALIFY", windows=True, given=aliases)
        selection.contexts.append(inner)
        selection.qualify = _condition(qualify, inner)
    order, distinct = node.args.get("order"), node.args.get("distinct")
    if order is not None:
        inner = context("ORDER BY", windows=True, given=aliases)
        selection.contexts.append(inner)
        selection.terms = bind_terms(order, items, inner)
    if distinct is not None:
        _distinct_on(distinct, selection, context("DISTINCT ON", windows=True, given=aliases))
    return selection, keys


def _items(node: Node, context: Context) -> Iterator[Item]:
    text = context.statement.text
    for entry in node.args["expressions"]:
        kind = entry.__class__
        several = star_of(entry) is not None
        sets = [] if several else sets_in(entry, context)
        if several or sets:
            try:
                yield from _of_set(entry, sets, context) if sets else expand(entry, context)
            except QueryError as error:
                located(error, entry, text)
                raise
        elif kind is exp.Alias:
            check_arguments(entry, {"this", "alias"})
            name = entry.args["alias"].name
            yield Item(name, context.bind(entry.args["this"]), entry)
            context.aliases.setdefault(name.lower(), entry.args["this"])
        elif kind is exp.Aliases:
            raise located(ClauseFault("one alias for each column of the select list"), entry, text)
        else:
            expr = context.bind(entry)
            yield Item(_name(entry, expr, context), expr, entry)


def _of_set(entry: Node, sets: Sequence[Node], context: Context) -> Iterator[Item]:
    """The columns of an expression with COLUMNS in it, called as those are, or all by its alias."""
    if entry.__class__ is not exp.Alias:
        for name, expr in bind_each(entry, sets, context):
            yield Item(name, expr, entry)
        return
    check_arguments(entry, {"this", "alias"})
    alias = entry.args["alias"].name
    for name, expr in bind_each(entry.args["this"], sets, context):
        yield Item(name_given(alias, name, sets[0]), expr, entry)
    context.aliases[alias.lower()] = None


def _name(node: Node, expr: Expr, context: Context) -> str:
    """The name of an output column without an alias: the column's own, else what was written."""
    if node.__class__ in (exp.Column, exp.PositionalColumn) and expr.__class__ is Column:
        for source in context.scope.sources:
            position = expr.index - source.offset
            if 0 <= position < len(source.names):
                return source.names[position]
    if node.__class__ is exp.Column:
        return node.name
    return context.statement.written(node)


def _distinct_on(node: Node, selection: Selection, context: Context) -> None:
    check_arguments(node, {"on"})
    on = node.args.get("on")
    if on is None:
        return
    parts = on.args["expressions"] if on.__class__ is exp.Tuple else [on]
    selection.contexts.append(context)
    selection.distinct_on = []
    for part in parts:
        try:
            selection.distinct_on.append(output_or_expression(part, selection.items, context))
        except QueryError as error:
            located(error, part, context.statement.text)
            raise


def _group(selection: Selection, keys: Keys) -> None:
    """Puts the `Aggregate` on, and HAVING on it."""
    stand_ins = selection.stand_ins
    relation, replacements = aggregate(selection.relation, keys, stand_ins)
    missing = refuse_ungrouped(selection.contexts)
    change = replacer(replacements, stand_ins.correlated, missing)
    # A constant that is a key on its own may be NULL in a grouping set; inside an expression it stays a constant.
    selection.rewrite(lambda expr: replacements.get(expr) or change(expr))
    stand_ins.windows = {tree.map_operands(call, change): column for call, column in stand_ins.windows.items()}
    stand_ins.unnests = {change(each): column for each, column in stand_ins.unnests.items()}
    selection.relation = relation
    if selection.having is not None:
        selection.relation = Filter(relation, selection.having)


def _windows(selection: Selection) -> None:
    """Puts the `Window` with all window functions on."""
    stand_ins = selection.stand_ins
    width = len(selection.relation.schema.fields)
    calls: dict[WindowCall, int] = {}
    replacements: dict[Expr, Expr] = {}
    for call, stand_in in stand_ins.windows.items():
        replacements[stand_in] = Column(width + calls.setdefault(call, len(calls)), stand_in.type)
    names = tuple([f"window{index}" for index in range(len(calls))])
    selection.relation = Window(selection.relation, tuple(calls), names)
    change = replacer(replacements, correlated=False, missing=None)
    selection.rewrite(change)
    stand_ins.unnests = {change(each): column for each, column in stand_ins.unnests.items()}


def _unnests(selection: Selection) -> None:
    """Puts the `Unnest` of all lists on, whose elements stand beside each other."""
    unnests = selection.stand_ins.unnests
    width = len(selection.relation.schema.fields)
    names = tuple([f"list{index}" for index in range(len(unnests))])
    columns = tree.all_columns(selection.relation.schema)
    source = Project(selection.relation, (*columns, *unnests), (*selection.relation.schema.names, *names))
    places = tuple(range(width, width + len(unnests)))
    selection.relation = Unnest(source, tuple(range(width)), places, names)
    elements: dict[Expr, Expr] = {
        stand_in: Column(width + index, stand_in.type) for index, stand_in in enumerate(unnests.values())
    }
    selection.rewrite(replacer(elements, correlated=False, missing=None))


def _output(node: Node, selection: Selection, block: Block) -> Query:
    """The select list, DISTINCT, ORDER BY and LIMIT."""
    items = selection.items
    names = tuple([item.name for item in items])
    types = tuple([item.expr.type for item in items])
    rows = bind_range(node, block)
    outputs: dict[Expr, int] = {}
    for index, item in enumerate(items):
        outputs.setdefault(item.expr, index)
    distinct = node.args.get("distinct") is not None
    if distinct and selection.distinct_on is None:
        return _distinct(selection, outputs, Query(selection.relation, names, types), rows)
    exprs = [item.expr for item in items]

    def place(expr: Expr) -> Column:
        index = outputs.get(expr)
        if index is None:
            index = outputs[expr] = len(exprs)
            exprs.append(expr)
        return Column(index, expr.type)

    sort_keys = [SortKey(place(term.expr), term.descending, term.nulls_first) for term in selection.terms]
    first_of = [place(expr) for expr in selection.distinct_on or ()]
    hidden = tuple([f"hidden{index}" for index in range(len(exprs) - len(items))])
    relation: Rel = Project(selection.relation, tuple(exprs), names + hidden)
    if selection.distinct_on is not None:
        relation = _first_rows(relation, first_of, sort_keys, len(exprs))
    relation = sorted_rows(relation, sort_keys, rows)
    if hidden or selection.distinct_on is not None:
        relation = Project(relation, tuple([Column(index, kind) for index, kind in enumerate(types)]), names)
    return Query(relation, names, types)


def _distinct(selection: Selection, outputs: dict[Expr, int], query: Query, rows: Range) -> Query:
    columns = tuple([Column(index, kind) for index, kind in enumerate(query.types)])
    sort_keys = []
    for term in selection.terms:
        if term.expr not in outputs:
            raise ClauseFault("ORDER BY of a SELECT DISTINCT takes columns of the select list only")
        sort_keys.append(SortKey(columns[outputs[term.expr]], term.descending, term.nulls_first))
    relation: Rel = Project(query.relation, tuple([item.expr for item in selection.items]), query.names)
    relation = Aggregate(relation, columns, (), query.names)
    return query._replace(relation=sorted_rows(relation, sort_keys, rows))


def _first_rows(relation: Rel, keys: Sequence[Column], order: Sequence[SortKey], width: int) -> Rel:
    """DISTINCT ON: the first row, in the order of the query, of those with equal keys."""
    call = functions.window("row_number", ())
    number = WindowCall(call, tuple(keys), tuple(order), WHOLE_PARTITION)
    numbered = Window(relation, (number,), ("row_number",))
    first = functions.scalar("eq", (Column(width, call.type), Literal(1, INT64)))
    return Filter(numbered, first)

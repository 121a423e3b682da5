"""PIVOT and UNPIVOT, as statements and behind a relation of FROM.

PIVOT is a grouping, also by what becomes columns, whose rows are then spread over those: the grouping is spelled as a
SELECT and bound as one. What the values are is in `pivot_values`. UNPIVOT unnests lists of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from sqlglot import expressions as exp

from bireme.data.types import STRING
from bireme.errors import ClauseFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.sql.calls import call_name, read_call
from bireme.frontend.sql.column_sets import bind_each, sets_in
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.correlation import deepen
from bireme.frontend.sql.pivot_values import COLUMNS_MAX, as_text, parts_of, spread, too_many, values_of
from bireme.frontend.sql.stars import expand, is_star
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.subquery import QUERIES
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal, ScalarSubquery
from bireme.plan.relation import Filter, Project, Unnest
from bireme.plan.tree import columns_used, holds_subquery

_STATEMENT: Final = frozenset({"this", "expressions", "using", "group", "with_", "unpivot", "into", "include_nulls"})
# What the parser works out for other dialects, too.
_CLAUSE: Final = frozenset(
    {
        "expressions", "fields", "group", "alias", "unpivot", "include_nulls", "columns", "default_on_null",
        "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming", "value_columns_first",
    }
)  # fmt: skip


def statement(node: Node, block: Block) -> Query:
    """`PIVOT t ON … USING … GROUP BY …` and `UNPIVOT t ON … INTO NAME … VALUE …`."""
    check_arguments(node, _STATEMENT)
    args = node.args
    if not args.get("unpivot"):
        on, using, group = args.get("expressions"), args.get("using") or [], args.get("group")
        made = _pivot if on else _without_columns
        return made(args["this"], on or [], using, group, block)
    into = args.get("into")
    name = into.args["this"].name if into is not None else "name"
    values = [each.name for each in into.args["expressions"]] if into is not None else ["value"]
    return _unpivot(args["this"], args["expressions"] or [], name, values, bool(args.get("include_nulls")), block)


def clause(source: Node, node: Node, block: Block) -> Query:
    """`t PIVOT (…)` and `t UNPIVOT (…)`."""
    check_arguments(node, _CLAUSE)
    args = node.args
    fields = args.get("fields") or []
    if args.get("default_on_null"):
        raise Unsupported("DEFAULT ON NULL in PIVOT is not supported; use coalesce over its columns")
    if not args.get("unpivot"):
        return _pivot(source, fields, args["expressions"], args.get("group"), block)
    if len(fields) != 1 or len(args["expressions"]) != 1:
        raise SyntaxFault("UNPIVOT takes value FOR name IN (columns)")
    (value,), (field,) = args["expressions"], fields
    if field.args["this"].__class__ is exp.Tuple:
        raise SyntaxFault("UNPIVOT takes one name FOR what the columns are called")
    values = [each.name for each in value.args["expressions"]] if value.__class__ is exp.Tuple else [value.name]
    include = bool(args.get("include_nulls"))
    return _unpivot(source, field.args["expressions"], field.args["this"].name, values, include, block)


# -------------------------------------------------------------------------------------------------- pivot


def _pivot(source: Node, on: Sequence[Node], using: Sequence[Node], group: Node | None, block: Block) -> Query:
    calls = list(using) or [exp.Anonymous(this="count", expressions=[exp.Star()])]
    groups = _groups(source, [*on, *calls], group, block)
    values = [list(values_of(each, source, block)) for each in on]
    if prod(map(len, values)) * len(calls) > COLUMNS_MAX:
        raise _located(too_many(), exp.Tuple(expressions=list(on)), block)
    keys = [as_text(part) for each in on for part in parts_of(each)]
    inner = [_call(each, block) for each in calls]
    grouped = _grouped(source, [*groups, *keys, *inner], [*groups, *keys], block)
    nothing = [_over_nothing(each, source, block) for each in inner]
    labels = [_label(each, len(calls) > 1, block) for each in calls]
    columns = [
        (value, "_".join([each.name for each in combination]) + label, len(groups) + len(keys) + index, nothing[index])
        for combination in product(*values)
        for value in [tuple([text for each in combination for text in each.texts])]
        for index, label in enumerate(labels)
    ]
    return spread(grouped, len(groups), columns)


def _grouped(source: Node, items: Sequence[Node], groups: Sequence[Node], block: Block) -> Query:
    select = exp.Select(expressions=[each.copy() for each in items], from_=exp.From(this=source.copy()))
    if groups:
        select.set("group", exp.Group(expressions=[each.copy() for each in groups]))
    return block.statement.bind_query(select, block)


def _without_columns(
    source: Node, on: Sequence[Node], using: Sequence[Node], group: Node | None, block: Block
) -> Query:
    """PIVOT without ON: a grouping."""
    groups = [] if group is None else _written_groups(group)
    if not using and not groups:
        raise SyntaxFault("PIVOT needs ON, and what becomes columns")
    return _grouped(source, [*groups, *using], groups, block)


def _written_groups(group: Node) -> list[Node]:
    check_arguments(group, {"expressions"})
    return list(group.args["expressions"])


def _groups(source: Node, parts: Sequence[Node], group: Node | None, block: Block) -> list[Node]:
    """What is grouped by: what GROUP BY says, else the columns that PIVOT does not name."""
    if group is not None:
        return _written_groups(group)
    named = [part.args["this"] if part.__class__ is exp.In else part for part in parts]
    used = {column.name.lower() for part in named for column in part.find_all(exp.Column)}
    names = [name for name, _ in block.statement.bind_joins(source.copy(), block).scope.star()]
    return [exp.column(name, quoted=True) for name in names if name.lower() not in used]


def _call(node: Node, block: Block) -> Node:
    """An expression of USING without its alias, which must be of one aggregate."""
    inner: Node = node.args["this"] if node.__class__ is exp.Alias else node
    try:
        count = len(list(_aggregates(inner)))
        if count != 1:
            raise ClauseFault(f"PIVOT … USING takes expressions of one of the aggregates; this has {count}")
    except QueryError as error:
        raise _located(error, inner, block) from None
    return inner


def _label(node: Node, are_several: bool, block: Block) -> str:
    """What the names of columns have behind the value."""
    if node.__class__ is exp.Alias:
        return f"_{node.args['alias'].name}"
    return f"_{block.statement.written(node)}" if are_several else ""


# Aggregates that are not NULL over no row; what is made of an aggregate may be anything.
_COUNTS: Final = frozenset({"count", "count_if", "countif", "approx_count_distinct", "regr_count", "entropy"})


def _over_nothing(node: Node, source: Node, block: Block) -> Expr | None:
    """What an expression of USING is over no row; None for NULL."""
    (found,) = _aggregates(node)
    if found is node and read_call(node).name not in _COUNTS:
        return None
    select = exp.Select(expressions=[node.copy()], from_=exp.From(this=source.copy()))
    select.set("where", exp.Where(this=exp.false()))
    query = block.statement.bind_query(select, block)
    return ScalarSubquery(deepen(query.relation, 1), query.types[0])


def _aggregates(node: Node) -> Iterator[Node]:
    """The aggregates in an expression, with the clauses behind them."""
    if isinstance(node, QUERIES):
        return
    if node.__class__ is exp.Window:
        raise Unsupported("PIVOT … USING takes no window functions; compute them in a subquery")
    call = node
    while call.__class__ in _BEHIND_CALLS:
        call = call.args["this"]
    if call.__class__ is exp.Anonymous and functions.is_aggregate(call_name(call)):
        yield node
        return
    for part in node.iter_expressions():
        yield from _aggregates(part)


_BEHIND_CALLS: Final = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def _located(error: QueryError, node: Node, block: Block) -> QueryError:
    return located(error, node, block.statement.text)


# ------------------------------------------------------------------------------------------------ unpivot


class _Row(NamedTuple):
    """What one entry of UNPIVOT makes of a row: a name and its values."""

    name: str
    values: tuple[Expr, ...]


def _unpivot(source: Node, on: Sequence[Node], name: str, values: list[str], include: bool, block: Block) -> Query:
    bound = block.statement.bind_joins(source.copy(), block)
    context = Context(block, bound.scope, "UNPIVOT")
    rows = [row for entry in on for row in _rows(entry, len(values), context)]
    used = {index for row in rows for value in row.values for index in columns_used(value)}
    if not used:
        raise _located(ClauseFault("UNPIVOT needs at least one column to take apart"), source, block)
    kept = [(shown, Column(at, bound.scope.types[at])) for shown, at in bound.scope.star() if at not in used]
    try:
        typed = [functions.unify(each, "UNPIVOT") for each in zip(*[row.values for row in rows], strict=True)]
    except QueryError as error:
        raise _located(error, exp.Tuple(expressions=list(on)), block) from None
    names = tuple([Literal(row.name, STRING) for row in rows])
    lists = [functions.scalar("list_value", each) for each in (names, *typed)]
    shown = (*[each for each, _ in kept], name, *values)
    made = Project(bound.relation, (*[column for _, column in kept], *lists), shown)
    width = len(kept)
    relation = Unnest(made, tuple(range(width)), tuple(range(width, width + len(lists))), shown[width:])
    types = relation.schema.types
    if include:
        return Query(relation, shown, types)
    there = [functions.scalar("is_not_null", (Column(at, types[at]),)) for at in range(width + 1, len(types))]
    return Query(Filter(relation, functions.scalar("and", there)), shown, types)


def _rows(node: Node, width: int, context: Context) -> Iterator[_Row]:
    """The entries that one item of UNPIVOT stands for: an expression, several under a name, or a set of columns."""
    try:
        alias = node.args["alias"].name if node.__class__ in (exp.Alias, exp.PivotAlias) else None
        inner = node.args["this"] if alias is not None else node
        parts = inner.args["expressions"] if inner.__class__ is exp.Tuple else [inner]
        if width != len(parts):
            raise ClauseFault(f"UNPIVOT names {width} value columns; each entry must have as many")
        sets = sets_in(inner, context) if width == 1 else []
        if is_star(inner):
            yield from [_Row(item.name, (item.expr,)) for item in expand(inner, context)]
        elif sets:
            yield from [_Row(name, (expr,)) for name, expr in bind_each(inner, sets, context)]
        else:
            bound = tuple([context.bind(part) for part in parts])
            names = [_column_of(each, context) for each in bound]
            yield _Row(alias or "_".join(filter(None, names)), bound)
    except QueryError as error:
        located(error, node, context.statement.text)
        raise


def _column_of(value: Expr, context: Context) -> str:
    """The name of the column that a value is made of, as its table spells it; none for a constant."""
    if holds_subquery(value):
        raise Unsupported("UNPIVOT takes no subqueries; compute them in FROM")
    used = columns_used(value)
    if len(used) > 1:
        raise ClauseFault("UNPIVOT takes expressions of one column each; compute others in a subquery before it")
    return next((name for name, at in context.scope.star() if at in used), "")

"""PIVOT and UNPIVOT, as statements and behind a relation of FROM.

PIVOT is a grouping whose aggregates are filtered by each of the values in turn: it is spelled as a SELECT and bound as
one. The values are written in the query, since nothing runs while a query is planned. UNPIVOT unnests lists of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from sqlglot import expressions as exp

from bireme.data.types import STRING
from bireme.errors import ClauseFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.sql.column_sets import columns_of, is_set
from bireme.frontend.sql.context import Block, Context, Item
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.stars import expand, is_star
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.relation import Filter, Project, Unnest

_STATEMENT: Final = frozenset({"this", "expressions", "using", "group", "with_", "unpivot", "into", "include_nulls"})
# What the parser works out for other dialects, too.
_CLAUSE: Final = frozenset(
    {
        "expressions", "fields", "group", "alias", "unpivot", "include_nulls", "columns", "default_on_null",
        "identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming", "value_columns_first",
    }
)  # fmt: skip


class _Value(NamedTuple):
    """A value that becomes columns: the condition for its rows, and its name."""

    condition: Node
    name: str


def statement(node: Node, block: Block) -> Query:
    """`PIVOT t ON … USING … GROUP BY …` and `UNPIVOT t ON … INTO NAME … VALUE …`."""
    check_arguments(node, _STATEMENT)
    args = node.args
    if not args.get("unpivot"):
        return _pivot(args["this"], args["expressions"] or [], args.get("using") or [], args.get("group"), block)
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
    values = [each.name for each in value.args["expressions"]] if value.__class__ is exp.Tuple else [value.name]
    include = bool(args.get("include_nulls"))
    return _unpivot(source, field.args["expressions"], field.args["this"].name, values, include, block)


# -------------------------------------------------------------------------------------------------- pivot


def _pivot(source: Node, on: Sequence[Node], using: Sequence[Node], group: Node | None, block: Block) -> Query:
    if not on:
        raise SyntaxFault("PIVOT needs ON, and what becomes columns")
    calls = list(using) or [exp.Anonymous(this="count", expressions=[exp.Star()])]
    groups = _groups(source, [*on, *calls], group, block)
    values = [list(_values(each, block)) for each in on]
    items = [each.copy() for each in groups]
    for combination in product(*values):
        items += [_filtered(call, combination, len(calls) > 1, block) for call in calls]
    select = exp.Select(expressions=items, from_=exp.From(this=source.copy()))
    if groups:
        select.set("group", exp.Group(expressions=[each.copy() for each in groups]))
    return block.statement.bind_query(select, block)


def _groups(source: Node, parts: Sequence[Node], group: Node | None, block: Block) -> list[Node]:
    """What is grouped by: what GROUP BY says, else the columns that PIVOT does not name."""
    if group is not None:
        check_arguments(group, {"expressions"})
        return list(group.args["expressions"])
    used = {column.name.lower() for part in parts for column in part.find_all(exp.Column)}
    names = [name for name, _ in block.statement.bind_joins(source.copy(), block).scope.star()]
    return [exp.column(name, quoted=True) for name in names if name.lower() not in used]


def _values(node: Node, block: Block) -> Iterator[_Value]:
    """The values of `column IN (…)`."""
    if node.__class__ is not exp.In:
        raise _located(_no_values(node), node, block)
    items = node.args.get("expressions") or []
    if not items or any(isinstance(item, exp.Query) for item in items):
        raise _located(_no_values(node.args["this"]), node, block)
    check_arguments(node, {"this", "expressions"})
    if isinstance(node.args["this"], exp.Binary):
        # DuckDB takes all of `a || b IN (…)` for what becomes columns.
        raise _located(Unsupported("PIVOT ON of an operator: compute it in a subquery before"), node, block)
    for item in items:
        value, name = item, None
        if item.__class__ is exp.PivotAlias:
            value, name = item.args["this"], item.args["alias"].name
        equal = exp.NullSafeEQ(this=node.args["this"].copy(), expression=value.copy())
        yield _Value(equal, _name_of(value, block) if name is None else name)


def _no_values(node: Node) -> QueryError:
    what = node.sql(dialect="duckdb")
    return Unsupported(f"PIVOT ON {what} without its values is not supported; write ON {what} IN ('a', 'b', …)")


def _name_of(value: Node, block: Block) -> str:
    """A constant as the name of a column."""
    if value.__class__ is exp.Tuple:
        return "_".join(_name_of(part, block) for part in value.args["expressions"])
    if value.__class__ is exp.Column and value.args.get("table") is None:
        return value.name  # DuckDB takes a bare word for a text here
    bound = Context(block, Scope([], ()), "PIVOT").bind(value)
    text = functions.cast(bound, STRING)
    if not isinstance(text, Literal):
        raise Unsupported("the values of PIVOT … IN must be constants")
    return "NULL" if text.value is None else str(text.value)


def _filtered(call: Node, values: Sequence[_Value], are_several: bool, block: Block) -> Node:
    """An aggregate over the rows of some values, named by them."""
    alias = call.args["alias"].name if call.__class__ is exp.Alias else None
    inner = call.args["this"] if alias is not None else call
    name = "_".join(value.name for value in values)
    if alias is not None or are_several:
        name += f"_{block.statement.written(inner) if alias is None else alias}"
    conditions = [value.condition.copy() for value in values]
    if inner.__class__ is exp.Filter:
        conditions.append(inner.args["expression"].args["this"].copy())
        inner = inner.args["this"]
    together = conditions[0]
    for condition in conditions[1:]:
        together = exp.And(this=together, expression=condition)
    filtered = exp.Filter(this=inner.copy(), expression=exp.Where(this=together))
    return exp.Alias(this=filtered, alias=exp.to_identifier(name, quoted=True))


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
    if not rows:
        raise _located(ClauseFault("UNPIVOT needs at least one column to take apart"), source, block)
    used = {value.index for row in rows for value in row.values if isinstance(value, Column)}
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


def _spelling(node: Node, bound: Expr, context: Context) -> str:
    """The name of a column as its table spells it."""
    shown = {at: name for name, at in context.scope.star()}
    return shown.get(bound.index, node.name) if isinstance(bound, Column) else node.name


def _rows(node: Node, width: int, context: Context) -> Iterator[_Row]:
    """The entries that one item of UNPIVOT stands for: a column, several under a name, or a set of columns."""
    try:
        alias = node.args["alias"].name if node.__class__ in (exp.Alias, exp.PivotAlias) else None
        inner = node.args["this"] if alias is not None else node
        if width != (len(inner.args["expressions"]) if inner.__class__ is exp.Tuple else 1):
            raise ClauseFault(f"UNPIVOT names {width} value columns; each entry must have as many")
        if is_star(inner) or is_set(inner):
            items: list[Item] = list(expand(inner, context)) if is_star(inner) else columns_of(inner, context)
            for item in items:
                yield _Row(item.name, (item.expr,))
            return
        parts = inner.args["expressions"] if inner.__class__ is exp.Tuple else [inner]
        if any(part.__class__ is not exp.Column for part in parts):
            raise Unsupported("UNPIVOT takes columns; compute others in a subquery before it")
        bound = tuple([context.bind(part) for part in parts])
        spelled = [_spelling(part, each, context) for part, each in zip(parts, bound, strict=True)]
        yield _Row(alias or "_".join(spelled), bound)
    except QueryError as error:
        located(error, node, context.statement.text)
        raise

"""The values that PIVOT makes columns of: those that a query writes, and those that are looked up while it is bound.

A value stands for the rows of which the text of what PIVOT is ON is that of the value, as in DuckDB. What is not
written is asked of the catalog, which runs a query for it; as columns are made of the values, there may not be many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlglot import expressions as exp

from bireme.data.types import INT64, STRING
from bireme.errors import ClauseFault, QueryError, Unsupported
from bireme.frontend.sql.constants import looked_up
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.scope import Scope, told_apart
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.subquery import QUERIES
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions
from bireme.plan.expr import WHOLE_PARTITION, Aggregation, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Aggregate, Filter, Project, Rel, Sort, Window
from bireme.plan.tree import all_columns

COLUMNS_MAX: Final = 4096


class Value(NamedTuple):
    """A value that becomes columns: the texts of its parts, and its name."""

    texts: tuple[str | None, ...]
    name: str


def parts_of(node: Node) -> list[Node]:
    """What one entry of ON or FOR compares: `what` of `what IN (…)`, or its parts in parentheses."""
    what = node.args["this"] if node.__class__ is exp.In else node
    return list(what.args["expressions"]) if what.__class__ is exp.Tuple else [what]


def values_of(node: Node, source: Node, block: Block) -> Iterator[Value]:
    """The values of one entry of ON or FOR: `what IN (…)`, or `what` alone."""
    _check(node.args["this"] if node.__class__ is exp.In else node, block)
    if node.__class__ is not exp.In:
        yield from [Value((text,), text) for text in _looked_up(node, source, block)]
        return
    what, items = node.args["this"], node.args.get("expressions") or []
    if isinstance(what, exp.Binary):
        # DuckDB takes all of `a || b IN (…)` for what becomes columns.
        raise _at(node, Unsupported("PIVOT ON of an operator: compute it in a subquery before"), block)
    query = node.args.get("query") or (items[0] if len(items) == 1 and isinstance(items[0], QUERIES) else None)
    if query is not None:
        yield from [Value((text,), text) for text in _of_query(query, block)]
        return
    check_arguments(node, {"this", "expressions"})
    if not items:
        raise _at(node, Unsupported("PIVOT takes values in parentheses, and no type of enumerated values"), block)
    yield from _written(len(parts_of(node)), items, block)


def _check(what: Node, block: Block) -> None:
    if next(what.find_all(*QUERIES), None) is not None:
        raise _at(what, Unsupported("PIVOT ON a subquery is not supported; compute it in FROM"), block)
    if next(what.find_all(exp.Column, exp.PositionalColumn), None) is None:
        raise _at(what, ClauseFault("PIVOT ON a constant makes no columns; name a column"), block)


def _written(width: int, items: Sequence[Node], block: Block) -> Iterator[Value]:
    known: set[tuple[str | None, ...]] = set()
    for item in items:
        value = item.args["this"] if item.__class__ is exp.PivotAlias else item
        parts = value.args["expressions"] if value.__class__ is exp.Tuple else [value]
        texts = tuple([_text_of(part, block) for part in parts])
        if len(texts) != width:
            raise _at(value, ClauseFault(f"PIVOT compares a row of {width} with a row of {len(texts)}"), block)
        name = "_".join("NULL" if text is None else text for text in texts)
        if texts in known:
            raise _at(value, ClauseFault(f"PIVOT … IN names the value {name} twice"), block)
        known.add(texts)
        yield Value(texts, item.args["alias"].name if item is not value else name)


def _text_of(value: Node, block: Block) -> str | None:
    """The text of a constant; a bare word is one."""
    if value.__class__ is exp.Column and value.args.get("table") is None:
        return value.name
    text = functions.cast(Context(block, Scope([], ()), "PIVOT").bind(value), STRING)
    found = text.value if isinstance(text, Literal) else looked_up(text, "PIVOT … IN", block)
    return None if found is None else str(found)


def as_text(node: Node) -> Node:
    return exp.Cast(this=node.copy(), to=exp.DataType(this=exp.DType.TEXT))


# ------------------------------------------------------------------------------------------ columns

# Of a column: the texts of its value, its name, which column of the rows it is taken from, and what it is of no row.
Spread = tuple[tuple[str | None, ...], str, int, Expr | None]


def spread(rows: Query, groups: int, columns: Sequence[Spread]) -> Query:
    """Rows by their first columns, one a group, with the values of the others in columns; texts that tell which of
    those stand behind the groups.
    """
    known = all_columns(rows.relation.schema)
    keys, calls, values = known[:groups], list[Aggregation](), list[Expr]()
    for texts, _, source, nothing in columns:
        pairs = zip(known[groups : groups + len(texts)], [Literal(text, STRING) for text in texts], strict=True)
        here = functions.scalar("and", [functions.scalar("is_not_distinct", pair) for pair in pairs])
        calls.append(functions.aggregate("any_value", (known[source],), filter=here))
        value: Expr = Column(groups + len(calls) - 1, calls[-1].type)
        if nothing is not None:
            calls.append(functions.aggregate("count", (), filter=here))
            is_there = functions.scalar("gt", (Column(groups + len(calls) - 1, INT64), Literal(0, INT64)))
            value = functions.case([(is_there, value)], nothing)
        values.append(value)
    if not keys and not values:
        raise ClauseFault("PIVOT finds no values, and there is nothing to group by")
    names = told_apart([*rows.names[:groups], *[column[1] for column in columns]])
    parts = (*names[:groups], *[f"part{index}" for index in range(len(calls))])
    grouped = Aggregate(rows.relation, keys, tuple(calls), parts)
    exprs = (*all_columns(grouped.schema)[:groups], *values)
    return Query(Project(grouped, exprs, names), names, tuple([expr.type for expr in exprs]))


# ------------------------------------------------------------------------------------------- looked up


def _looked_up(what: Node, source: Node, block: Block) -> Sequence[str]:
    """The different texts of `what` in the rows of a relation, in order."""
    query = exp.Select(expressions=[what.copy()], from_=exp.From(this=source.copy()))
    rows = _texts(query, block)
    column = Column(0, STRING)
    texts = Aggregate(rows, (column,), (), ("text",))
    return _found(Sort(texts, (SortKey(column),), COLUMNS_MAX + 1), what, block)


def _of_query(query: Node, block: Block) -> Sequence[str]:
    """The different texts of a query with one column, in the order in which they first come."""
    rows = _texts(query, block)
    number = WindowCall(functions.window("row_number", ()), (), (), WHOLE_PARTITION)
    numbered = Window(rows, (number,), ("place",))
    text, place = Column(0, STRING), Column(1, number.call.type)
    first = Aggregate(numbered, (text,), (functions.aggregate("min", (place,)),), ("text", "place"))
    ordered = Sort(first, (SortKey(place),), COLUMNS_MAX + 1)
    return _found(Project(ordered, (text,), ("text",)), query, block)


def _texts(node: Node, block: Block) -> Rel:
    """The rows of a query that reads nothing around it, as texts that are not NULL."""
    inner = Block(block.statement, block.outer, block.tables)
    query: Query = block.statement.bind_query(node, inner)
    if inner.reach:
        raise _at(node, Unsupported("PIVOT without its values cannot read columns of a query around it"), block)
    if len(query.types) != 1:
        fault = ClauseFault(f"the values of PIVOT are those of one column, and this query has {len(query.types)}")
        raise _at(node, fault, block)
    text = functions.cast(Column(0, query.types[0]), STRING)
    rows = Project(query.relation, (text,), ("text",))
    return Filter(rows, functions.scalar("is_not_null", (Column(0, STRING),)))


def _found(plan: Rel, node: Node, block: Block) -> Sequence[str]:
    """The texts that a plan gives when it runs now."""
    try:
        found = [str(value) for value in block.statement.values(plan)]
    except QueryError as error:
        raise _at(node, error, block) from None
    if len(found) > COLUMNS_MAX:
        raise _at(node, too_many(), block)
    return found


def too_many() -> QueryError:
    return ClauseFault(f"PIVOT would make more than {COLUMNS_MAX} columns; name the values that are wanted with IN (…)")


def _at(node: Node, error: QueryError, block: Block) -> QueryError:
    return located(error, node, block.statement.text)

"""UNION, INTERSECT and EXCEPT: types made equal, and the last two as joins in which NULLs are equal.

DISTINCT forms remove repetitions with an `Aggregate`; ALL forms number the repetitions of each row on both sides, so
that a row is matched as often as it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import DataType
from bireme.errors import ClauseFault, NameFault
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.subquery import columns_made, with_types
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import WHOLE_PARTITION, Column, Expr, Literal, WindowCall
from bireme.plan.functions.untyped import closed, open_type
from bireme.plan.relation import Aggregate, Join, JoinKind, Project, Rel, Union, Window

SET_OPERATION: Final = frozenset({"this", "expression", "distinct", "by_name", "with_", "order", "limit", "offset"})


def bind_set_operation(node: Node, block: Block) -> Query:
    """The rows of a set operation, without its ORDER BY and LIMIT."""
    check_arguments(node, SET_OPERATION)
    bind = block.statement.bind_query
    if node.__class__ is not exp.Union:
        left, right = _aligned([bind(node.args["this"], block), bind(node.args["expression"], block)])
        distinct = bool(node.args.get("distinct"))
        if node.args.get("by_name"):
            raise ClauseFault("BY NAME goes with UNION only")
        kind = JoinKind.SEMI if node.__class__ is exp.Intersect else JoinKind.ANTI
        return left._replace(relation=_matched(left, right, kind, distinct))
    branches = [bind(branch, block) for branch in _branches(node)]
    aligned = _aligned(_by_name(branches) if node.args.get("by_name") else branches)
    first = aligned[0]
    relation: Rel = Union(tuple([query.relation for query in aligned]))
    return first._replace(relation=distinct_rows(relation, first) if node.args.get("distinct") else relation)


def _branches(node: Node) -> list[Node]:
    """The operands of a chain of equal UNIONs, which leans to the left and can be long."""
    distinct, by_name = node.args.get("distinct"), node.args.get("by_name")
    branches: list[Node] = []
    inner: Node = node
    while inner.__class__ is exp.Union and inner.args.get("distinct") == distinct:
        plain = all(inner.args.get(name) is None for name in ("with_", "order", "limit", "offset"))
        if inner.args.get("by_name") != by_name or not (plain or inner is node):
            break
        check_arguments(inner, SET_OPERATION)
        branches.append(inner.args["expression"])
        inner = inner.args["this"]
    return [inner, *reversed(branches)]


def _aligned(queries: Sequence[Query]) -> list[Query]:
    """The queries with equal column types; the names are the first one's."""
    first = queries[0]
    for query in queries[1:]:
        if len(query.types) != len(first.types):
            raise ClauseFault(
                f"the sides of a set operation have {len(first.types)} and {len(query.types)} columns; "
                "both need the same number"
            )
    opened = [open_types(query) for query in queries]
    kinds = [closed(functions.common_type(list(column))) for column in zip(*opened, strict=True)]
    return [Query(with_types(query, kinds), first.names, tuple(kinds)) for query in queries]


def open_types(query: Query) -> list[DataType]:
    """The types of a query's columns, open where it only makes lists without values (`functions.untyped`)."""
    made = columns_made(query.relation)
    return list(query.types) if made is None else [open_type(expr) for expr in made.exprs]


def _by_name(queries: Sequence[Query]) -> list[Query]:
    """The queries with the columns of all of them, in the order in which they first appear; missing ones are NULL."""
    names: dict[str, str] = {}
    for query in queries:
        lowered = [name.lower() for name in query.names]
        if len(set(lowered)) != len(lowered):
            raise NameFault("UNION BY NAME: a side has several columns of one name")
        for name in query.names:
            names.setdefault(name.lower(), name)
    return [_with_columns(query, names) for query in queries]


def _with_columns(query: Query, names: dict[str, str]) -> Query:
    own = {name.lower(): index for index, name in enumerate(query.names)}
    exprs: list[Expr] = []
    for lowered in names:
        index = own.get(lowered)
        missing = Literal(None, functions.common_type([]))
        exprs.append(missing if index is None else Column(index, query.types[index]))
    shown = tuple(names.values())
    return Query(Project(query.relation, tuple(exprs), shown), shown, tuple([expr.type for expr in exprs]))


def _columns(query: Query) -> tuple[Column, ...]:
    return tuple([Column(index, kind) for index, kind in enumerate(query.types)])


def distinct_rows(relation: Rel, query: Query) -> Rel:
    """Each row once."""
    return Aggregate(relation, _columns(query), (), query.names)


def _matched(left: Query, right: Query, kind: JoinKind, distinct: bool) -> Rel:
    keys: tuple[Expr, ...] = _columns(left)
    if distinct:
        rows = distinct_rows(left.relation, left)
        return Join(rows, right.relation, kind, keys, keys, null_equal_count=len(keys))
    lefts, number = _numbered(left)
    rights, _ = _numbered(right)
    keys = (*keys, number)
    matched = Join(lefts, rights, kind, keys, keys, null_equal_count=len(keys))
    return Project(matched, _columns(left), left.names)


def _numbered(query: Query) -> tuple[Rel, Column]:
    """The rows with a column that counts the repetitions of each."""
    call = functions.window("row_number", ())
    number = WindowCall(call, _columns(query), (), WHOLE_PARTITION)
    return Window(query.relation, (number,), ("row_number",)), Column(len(query.types), call.type)

"""Stars of a select list: `*` and `t.*` with EXCLUDE, REPLACE and RENAME, spelled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import expressions as exp

from bireme.data.types import Kind
from bireme.errors import ClauseFault, NameFault, TypeFault, Unsupported
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.grouping import Item
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Column, Expr
from bireme.plan.functions.structs import row_fields


def expand(node: Node, context: Context) -> Iterator[Item]:
    """The columns that a star stands for."""
    star = node
    if node.__class__ is exp.Column:
        check_arguments(node, {"this", "table"})
        star = node.args["this"]
    table = node.args.get("table") if node is not star else None
    if table is not None and context.scope.source(table.name.lower()) is None:
        value = context.known(table.name.lower(), None, exp.Column(this=table))
        if value is not None:
            yield from _fields(value, table.name, star, node)
            return
    columns = list(_columns(node, context))
    check_arguments(star, {"except_", "replace", "rename"})
    names = [name for name, _ in columns]
    excluded = {_known(name, names, "EXCLUDE") for name in _names(star.args.get("except_"))}
    replaced = {_known(new.lower(), names, "REPLACE"): part for new, part in _pairs(star, "replace")}
    renamed = {_known(_old(part), names, "RENAME"): new for new, part in _pairs(star, "rename")}
    for name, index in columns:
        lowered = name.lower()
        if lowered in excluded:
            continue
        if lowered in replaced:
            yield Item(name, context.bind(replaced[lowered]), node)
            continue
        column = Column(index, context.scope.types[index])
        if context.columns is not None:
            context.columns.setdefault(column, node)
        yield Item(renamed.get(lowered, name), column, node)


def _fields(value: Expr, name: str, star: Node, node: Node) -> Iterator[Item]:
    """The fields of a column that is a struct."""
    check_arguments(star, frozenset())
    if value.type.kind is not Kind.STRUCT:
        raise TypeFault(f"a star takes the fields of a struct, and '{name}' is {value.type}")
    for field, part in row_fields(value):
        yield Item(field, part, node)


def _columns(node: Node, context: Context) -> Iterator[tuple[str, int]]:
    scope = context.scope
    table = node.args.get("table") if node.__class__ is exp.Column else None
    if table is None:
        if not scope.sources:
            raise ClauseFault("SELECT * needs a FROM clause")
        yield from scope.star()
        return
    source = scope.source(table.name.lower())
    if source is None:
        hint = functions.suggest(table.name, [known.alias for known in scope.sources])
        raise NameFault(f"there is no relation '{table.name}' here{hint}")
    for index, name in enumerate(source.names):
        yield name, source.offset + index


def _names(nodes: Sequence[Any] | None) -> list[str]:
    names = []
    for node in nodes or ():
        if node.__class__ is exp.Column and node.args.get("table") is not None:
            raise Unsupported("EXCLUDE takes names without a table")
        names.append(node.name.lower())
    return names


def _pairs(star: Node, clause: str) -> list[tuple[str, Any]]:
    pairs = []
    for node in star.args.get(clause) or ():
        if node.__class__ is not exp.Alias:
            raise ClauseFault(f"{clause.upper()} takes … AS name")
        pairs.append((node.args["alias"].name, node.args["this"]))
    return pairs


def _old(node: Node) -> str:
    if node.__class__ is not exp.Column:
        raise ClauseFault("RENAME takes names of columns")
    return node.name.lower()


def _known(name: str, names: Sequence[str], clause: str) -> str:
    if all(name != known.lower() for known in names):
        raise NameFault(f"{clause}: there is no column '{name}'{functions.suggest(name, names)}")
    return name

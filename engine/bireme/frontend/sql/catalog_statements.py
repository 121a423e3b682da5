"""Statements that ask what tables and columns there are: DESCRIBE and SHOW TABLES, with constant answers; SUMMARIZE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.schema import Schema
from bireme.data.types import STRING, Field
from bireme.errors import Unsupported
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.summarize import summarize
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan.expr import Literal
from bireme.plan.functions.encodings import type_name
from bireme.plan.relation import Values

# The columns of DuckDB's answer. Keys, defaults and extras belong to tables that can be changed.
_COLUMNS: Final = ("column_name", "column_type", "null", "key", "default", "extra")


def describe(node: Node, block: Block) -> Query:
    """The names and types of a table's or query's columns, one a row."""
    check_arguments(node, {"this", "kind", "as_json"})
    if node.args.get("as_json"):
        raise Unsupported("DESCRIBE AS JSON is not supported")
    query = block.statement.bind_query(node.args["this"], block)
    # Of what a query computes nothing is declared.
    is_table = node.args["this"].__class__ is exp.Table and node.args["this"].name.lower() not in block.tables
    fields = zip(query.names, query.types, query.relation.schema.fields, strict=True)
    return _texts(
        _COLUMNS,
        [
            (name, type_name(kind), "NO" if is_table and not field.nullable else "YES", None, None, None)
            for name, kind, field in fields
        ],
    )


def show(node: Node, block: Block) -> Query:
    """The names of all tables."""
    check_arguments(node, {"this"})
    return _texts(("name",), [(name,) for name in sorted(block.statement.catalog.names())])


STATEMENTS: Final[Mapping[type[Node], Callable[[Node, Block], Query]]] = {
    exp.Describe: describe,
    exp.Show: show,
    exp.Summarize: summarize,
}


def _texts(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Query:
    schema = Schema(tuple([Field(name, STRING) for name in names]))
    values = Values(tuple([tuple([Literal(value, STRING) for value in row]) for row in rows]), schema)
    return Query(values, schema.names, schema.types)

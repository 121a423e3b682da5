"""The relations of a FROM clause: tables, common tables, derived tables and VALUES, with the names they give.

How they are joined is in `joins`; how queries are bound, in `query`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlglot import expressions as exp

from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.errors import ClauseFault, NameFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.files import READERS, files_named, stem
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.correlation import deepen
from bireme.frontend.sql.lexemes import plain_name
from bireme.frontend.sql.samples import sampled
from bireme.frontend.sql.scope import SCHEMAS, Scope, Source, told_apart
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.frontend.sql.table_functions import table_function, unnest
from bireme.plan import functions
from bireme.plan.expr import Column, Literal
from bireme.plan.relation import Project, Rel, Union, Values
from bireme.records import dataclass


class Bound(NamedTuple):
    """A relation of a FROM clause, or several joined, with the names it gives."""

    relation: Rel
    scope: Scope


@dataclass(slots=True)
class CommonTable:
    """A table of WITH: its query, the block that it is bound in, and the result once somebody has asked.

    A query that names it in vain (a recursive one, in itself) finds `recursive`.
    """

    name: str
    node: Node
    columns: tuple[str, ...]
    block: Block
    recursive: bool = False
    query: Query | None = None


ONE_ROW: Final = Values(((),), Schema(()))
_TABLE: Final = frozenset({"this", "alias", "joins", "db", "catalog"})
_ALIAS: Final = frozenset({"this", "columns"})


def relation(node: Node, block: Block) -> Bound:
    """Binds one relation of a FROM clause, joins inside parentheses included."""
    sample = node.args.get("sample")
    if sample is not None:
        whole = node.copy()
        whole.set("sample", None)
        return _sampled(relation(whole, block), sample, block)
    if node.args.get("pivots"):
        return _pivoted(node, block)
    try:
        kind = node.__class__
        if kind is exp.Table:
            check_arguments(node, _TABLE)
            return _named(node, block)
        if kind is exp.Subquery:
            return _parenthesized(node, block)
        if kind is exp.Values:
            check_arguments(node, {"expressions", "alias"})
            return _aliased(values(node, block), node.args.get("alias"))
        if kind is exp.Unnest:
            return _of_function(unnest(node, block), node.args.get("alias"), "unnest")
        if kind is exp.Lateral:
            check_arguments(node, {"this", "alias", "view", "outer", "ordinality"})
            if node.args.get("view") or node.args.get("outer"):
                raise Unsupported("LATERAL VIEW is not supported")
            if node.args.get("ordinality"):
                raise Unsupported("LATERAL WITH ORDINALITY is not supported; number the rows with row_number()")
            inner = node.args["this"]
            if inner.__class__ is exp.Unnest:
                return _of_function(unnest(inner, block), node.args.get("alias"), "unnest")
            if inner.__class__ is not exp.Subquery:
                raise Unsupported("LATERAL takes a query in parentheses")
            return _aliased(block.statement.bind_query(inner, block), node.args.get("alias"))
        raise Unsupported(f"{node.key.upper()} is not supported as a relation of FROM")
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def _pivoted(node: Node, block: Block) -> Bound:
    """A relation with PIVOT or UNPIVOT behind it, the last of them."""
    from bireme.frontend.sql.pivots import clause

    pivots = node.args["pivots"]
    try:
        whole = node.copy()
        whole.set("pivots", whole.args["pivots"][:-1] or None)
        return _aliased(clause(whole, pivots[-1], block), pivots[-1].args.get("alias"))
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def _sampled(bound: Bound, node: Node, block: Block) -> Bound:
    try:
        return bound._replace(relation=sampled(bound.relation, node, block))
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def _named(node: Node, block: Block) -> Bound:
    name_node, alias = node.args["this"], node.args.get("alias")
    if name_node.__class__ is exp.Values:
        return _aliased(values(name_node, block), alias)
    if name_node.__class__ is exp.Anonymous:
        function = plain_name(name_node.name)
        made = table_function(name_node, block)
        # The alias of a function that makes one column names that as well.
        return _aliased(made, alias, function) if function in READERS else _of_function(made, alias, function)
    if name_node.__class__ is not exp.Identifier:
        raise Unsupported(f"'{name_node.key}': this table function is not supported; register files as tables by name")
    name = name_node.args["this"]
    parts = [part.name for part in (node.args.get("catalog"), node.args.get("db")) if part is not None]
    common = block.tables.get(name.lower()) if not parts else None
    if common is not None:
        return _aliased(_common(common, block), alias, common.name)
    table = block.statement.table(".".join([*parts, name]))
    if table is None and tuple([part.lower() for part in parts]) in SCHEMAS:
        table = block.statement.table(name)
    if table is None:
        name = ".".join([*parts, name])
        known = [*[entry.name for entry in block.tables.values()], *block.statement.catalog.names()]
        raise NameFault(f"there is no table '{name}'{functions.suggest(name, known)}")
    schema = table.schema
    is_named = files_named(table.name) is None
    own_name = name_node.args["this"] if is_named else stem(table.name)
    return _aliased(Query(table.scan(), schema.names, schema.types), alias, own_name, is_named)


def _aliased(query: Query, alias: Node | None, name: str = "", is_table: bool = False) -> Bound:
    names = query.names
    if alias is not None:
        check_arguments(alias, _ALIAS)
        if alias.args.get("this") is not None:
            name, is_table = plain_name(alias.args["this"].name), False
        columns = alias.args.get("columns")
        if columns:
            try:
                names = renamed(names, tuple([column.name for column in columns]), name)
            except QueryError as error:
                located(error, alias, "")
                raise
    return Bound(query.relation, Scope.of(Source.of(name, told_apart(names), query.types, is_table)))


def _of_function(query: Query, alias: Node | None, name: str) -> Bound:
    """A function of FROM; where it has an alias, that names its one column, too."""
    if alias is not None and alias.args.get("this") is not None and not alias.args.get("columns"):
        query = query._replace(names=(plain_name(alias.args["this"].name), *query.names[1:]))
    return _aliased(query, alias, name)


def renamed(names: tuple[str, ...], given: tuple[str, ...], table: str) -> tuple[str, ...]:
    """`names` with the first of them replaced by those `given` behind an alias."""
    if len(given) > len(names):
        raise ClauseFault(f"'{table}' has {len(names)} columns, and {len(given)} names are given for them")
    return given + names[len(given) :]


def _parenthesized(node: Node, block: Block) -> Bound:
    """A derived table, or joins in parentheses."""
    inner = node.args["this"]
    while inner.__class__ is exp.Subquery and set(inner.args) == {"this"}:
        inner = inner.args["this"]
    is_joined = inner.__class__ is exp.Subquery and inner.args.get("joins")
    if inner.__class__ is not exp.Table and not is_joined:
        return _aliased(block.statement.bind_query(node, block), node.args.get("alias"))
    check_arguments(node, {"this", "alias"})
    bound = block.statement.bind_joins(inner, block)
    alias = node.args.get("alias")
    if alias is None:
        return bound
    return _aliased(starred(bound), alias)


def starred(bound: Bound) -> Query:
    """What a star gives of a relation, or of several joined."""
    shown = list(bound.scope.star())
    columns = tuple([Column(index, bound.scope.types[index]) for _, index in shown])
    names = tuple([name for name, _ in shown])
    return Query(Project(bound.relation, columns, names), names, tuple([column.type for column in columns]))


def _common(common: CommonTable, block: Block) -> Query:
    """The query of a common table, for use in `block`, which may be a subquery inside the one that defines it."""
    if common.recursive:
        raise Unsupported(
            f"WITH RECURSIVE is not supported: '{common.name}' reads itself; for numbers or points in time use range, "
            "for a known depth join as often, else run the query from your program until it adds no row"
        )
    query = _bind_common(common)
    if common.block.reach == 0:
        return query
    deeper = 0
    here: Block | None = block
    while here is not None and here.outer is not common.block.outer:
        here = here.outer.block if here.outer is not None else None
        deeper += 1
    block.extend_reach(common.block.reach + deeper)
    return query._replace(relation=deepen(query.relation, deeper))


def _bind_common(common: CommonTable) -> Query:
    if common.query is None:
        query = common.block.statement.bind_query(common.node, common.block)
        names = renamed(query.names, common.columns, common.name)
        common.query = Query(query.relation, names, query.types)
    return common.query


def bind_unused(block: Block, around: Block) -> None:
    """Binds the common tables of `block`'s own WITH that nobody has asked for, so that their faults are seen."""
    for name, common in block.tables.items():
        if around.tables.get(name) is not common and not common.recursive:
            _bind_common(common)


def with_tables(node: Node | None, block: Block) -> Block:
    """The block of a query that has the WITH clause `node`."""
    if node is None:
        return block
    check_arguments(node, {"expressions", "recursive"})
    tables = dict(block.tables)
    defined: set[str] = set()
    for entry in node.args["expressions"]:
        check_arguments(entry, {"this", "alias", "materialized"})
        alias = entry.args["alias"]
        check_arguments(alias, _ALIAS)
        name = plain_name(alias.args["this"].name)
        if name.lower() in defined:
            raise located(NameFault(f"WITH defines '{name}' twice"), alias, block.statement.text)
        defined.add(name.lower())
        visible = dict(tables)
        columns = tuple([column.name for column in alias.args.get("columns") or []])
        common = CommonTable(name, entry.args["this"], columns, Block(block.statement, block.outer, visible))
        if node.args.get("recursive"):
            visible[name.lower()] = CommonTable(name, entry, columns, block, recursive=True)
        tables[name.lower()] = common
    return Block(block.statement, block.outer, tables)


def values(node: Node, block: Block) -> Query:
    """The rows of VALUES, their columns called col0, col1, … as in DuckDB."""
    context = Context(block, Scope([], ()), "VALUES")
    rows = []
    for entry in node.args["expressions"]:
        check_arguments(entry, {"expressions"})
        rows.append([context.bind(cell) for cell in entry.args.get("expressions") or []])
    width = len(rows[0]) if rows else 0
    if width == 0:
        raise SyntaxFault("VALUES needs at least one value")
    if any(len(row) != width for row in rows):
        raise ClauseFault("the rows of VALUES have different numbers of values")
    columns = [functions.unify([row[index] for row in rows], "VALUES") for index in range(width)]
    types = tuple([column[0].type for column in columns])
    names = tuple([f"col{index}" for index in range(width)])
    typed = list(zip(*columns, strict=True))
    if all(cell.__class__ is Literal for row in typed for cell in row):
        fields = [
            Field(name, kind, any(row[index].value is None for row in typed))
            for index, (name, kind) in enumerate(zip(names, types, strict=True))
        ]
        return Query(Values(tuple(typed), Schema(tuple(fields))), names, types)
    sources = [Project(ONE_ROW, row, names) for row in typed]
    return Query(sources[0] if len(sources) == 1 else Union(tuple(sources)), names, types)

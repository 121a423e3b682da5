"""Where an expression is bound: in which clause of which query, over which columns, and what it may hold.

A `Block` is one query (one SELECT, or one subquery around it); a `Context` one clause of it. A column that a block does
not know is looked for in the context around the block and becomes an `OuterColumn`. How the types of syntax nodes are
bound is in `operators`, `literals`, `calls`, `windows` and `subquery`; what names a FROM clause gives, in `scope`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from bireme.data.types import STRING, DataType, Kind
from bireme.errors import ClauseFault, NameFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.sql.correlation import moved
from bireme.frontend.sql.scope import Scope, Source, schema_widths
from bireme.frontend.sql.statement import Statement
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions, tree
from bireme.plan.expr import Aggregation, Column, Expr, Literal, OuterColumn, Parameter, WindowCall
from bireme.records import dataclass

if TYPE_CHECKING:
    from bireme.frontend.sql.tables import CommonTable

# Stand-ins for aggregates, windows and grouping() are columns at positions that no relation has; `grouping` puts the
# real ones in their place when it is known what the query groups by.
STAND_INS: Final = 1 << 20


@dataclass(slots=True)
class Block:
    """One query under construction. `reach` says how far out its columns go: 0 when it is not correlated."""

    statement: Statement
    outer: Context | None
    tables: Mapping[str, CommonTable]
    reach: int = 0

    def extend_reach(self, depth: int) -> None:
        """Notes that something in this query reads a column `depth` queries further out."""
        block: Block | None = self
        while block is not None and depth > 0:
            block.reach = max(block.reach, depth)
            block = block.outer.block if block.outer is not None else None
            depth -= 1


@dataclass(slots=True)
class StandIns:
    """The aggregates, windows, grouping() and unnest() calls met in a query, each with the column that stands for it;
    those of unnest by the list.

    `correlated` tells whether a subquery beside them reads columns of the query.
    """

    aggregates: dict[Aggregation, Column] = field(default_factory=dict)
    windows: dict[WindowCall, Column] = field(default_factory=dict)
    groupings: dict[tuple[Expr, ...], Column] = field(default_factory=dict)
    unnests: dict[Expr, Column] = field(default_factory=dict)
    correlated: bool = False
    count: int = 0

    def column(self, type: DataType) -> Column:
        self.count += 1
        return Column(STAND_INS + self.count, type)


def is_stand_in(column: Column) -> bool:
    return column.index >= STAND_INS


@dataclass(slots=True)
class Item:
    """One output column of a select list, bound over the FROM clause and the stand-ins."""

    name: str
    expr: Expr
    node: Node


@dataclass(slots=True)
class Context:
    """One clause. `aggregates` and `windows` say whether it may hold them; `aliases` are the select list's.

    `preferred`, when given, are the columns that come before aliases (HAVING: what is grouped by); all other columns
    come after. `captured` tells whether a subquery in it reads its columns. `columns` remembers, where the query may be
    grouped, the node that each column came from. In the body of a lambda `parameters` come before all columns, `level`
    lambdas deep; None is one that cannot be read, since an aggregate or a window stands between. `around` is where the
    outermost lambda stands. `column_of_set` is the column that a COLUMNS(…) is at the moment. `named` are aliases that
    have been bound.
    """

    block: Block
    scope: Scope
    clause: str
    stand_ins: StandIns | None = None
    aggregates: bool = False
    windows: bool = False
    aliases: dict[str, Node | None] = field(default_factory=dict)
    preferred: frozenset[Column] | None = None
    pending: set[str] = field(default_factory=set)
    named_windows: Mapping[str, Node] = field(default_factory=dict)
    columns: dict[Column, Node] | None = None
    captured: bool = False
    inside: str = ""
    parameters: Mapping[str, Parameter | Literal | None] = field(default_factory=dict)
    level: int = 0
    around: Context | None = None
    column_of_set: Expr | None = None
    named: dict[str, Expr] = field(default_factory=dict)

    @property
    def statement(self) -> Statement:
        return self.block.statement

    def within(self, what: str) -> Context:
        """The same columns inside the arguments of an aggregate or a window, where the rules are tighter."""
        return Context(
            self.block,
            self.scope,
            self.clause,
            stand_ins=self.stand_ins,
            aggregates=what == "window",
            aliases=self.aliases,
            pending=self.pending,
            named_windows=self.named_windows,
            columns=self.columns if what == "window" else None,
            inside=what,
            parameters=dict.fromkeys(self.parameters),
            around=None if self.around is None else self.around.within(what),
            column_of_set=self.column_of_set,
        )

    def naming(self, constants: Mapping[str, Literal]) -> Context:
        """A context of these names alone, and of no columns."""
        return Context(self.block, Scope([], ()), "COLUMNS", parameters=constants)

    def in_lambda(self, parameters: Mapping[str, Parameter]) -> Context:
        """The same columns inside of a lambda."""
        known = {**self.parameters, **parameters}
        return replace(self, parameters=known, level=self.level + 1, around=self.around or self)

    def bind(self, node: Node | None) -> Expr:
        """Binds one syntax node to a typed expression over this context's columns."""
        if node is None:
            raise SyntaxFault("something is missing here")
        try:
            handler = self.block.statement.handlers.get(node.__class__)
            if handler is None:
                raise Unsupported(f"{_kind(node)} is not supported")
            function, known = handler
            if not known.issuperset(node.args):
                check_arguments(node, known)
            return function(node, self)
        except QueryError as error:
            located(error, node, self.block.statement.text)
            raise

    def column(self, name: str, table: str | None, node: Node) -> Expr:
        """The column called `name` (in lower case), or the whole row of a relation called so. Raises NameFault."""
        found = self.known(name, table, node)
        if found is None:
            raise self.refuse_name(name, table)
        return found

    def known(self, name: str, table: str | None, node: Node) -> Expr | None:
        """The parameter, column or row called `name`: here, among the aliases of the select list, or further out."""
        if table is None and name in self.parameters:
            return self._parameter(name)
        for depth, context in self.outwards():
            index = context._position(name, table)
            if index is not None and not (depth == 0 and table is None and self._is_behind_alias(name, index)):
                return self._read(_Place(depth, context, index), node)
            source = context.scope.source(name) if table is None else None
            if source is not None:
                return self._row(depth, context, source, node)
            if table is None and name in context.aliases:
                return self._alias(name, depth, context)
        return None

    def dotted(self, names: Sequence[str], node: Node) -> tuple[Expr, Sequence[str]]:
        """What `relation.column.field…` or `column.field…` begins with, and the fields that are left.

        Of each query, from the inside out, columns by their relation come first, then columns alone, then parameters,
        then aliases, also behind the word alias; a column without fields is passed over where some are left.
        """
        first = names[0].lower()
        without_fields: tuple[_Place, Sequence[str]] | None = None
        for place, rest in self._places(first, names):
            if place.depth and first in self.parameters:
                break
            if not rest or place.type.kind is Kind.STRUCT:
                return self._read(place, node), rest
            without_fields = without_fields or (place, rest)
        if first in self.parameters:
            return self._parameter(first), names[1:]
        for depth, context in self.outwards():
            if first in context.aliases:
                return self._alias(first, depth, context), names[1:]
            if first == "alias" and len(names) > 1 and names[1].lower() in context.aliases:
                return self._alias(names[1].lower(), depth, context), names[2:]
        if without_fields is not None:
            return self._read(without_fields[0], node), without_fields[1]
        raise self._refuse_dotted([name.lower() for name in names])

    def _places(self, first: str, names: Sequence[str]) -> Iterator[tuple[_Place, Sequence[str]]]:
        """The columns that a dotted name may begin with, and the names that are left of it."""
        lowered = [name.lower() for name in names]
        for depth, context in self.outwards():
            for width in schema_widths(lowered):
                source = context.scope.source(lowered[width])
                index = source.find(lowered[width + 1]) if source is not None and source.is_table else None
                if index is not None:
                    yield _Place(depth, context, index), names[width + 2 :]
            index = context._position(lowered[1], first)
            if index is not None:
                yield _Place(depth, context, index), names[2:]
            index = context.scope.find(first)
            if index is not None:
                yield _Place(depth, context, index), names[1:]

    def numbered(self, number: int, node: Node) -> Expr:
        """The column of that number in FROM, from 1."""
        width = sum([len(source.names) for source in self.scope.sources])
        if not 1 <= number <= width:
            raise NameFault(f"there is no column #{number}: FROM has {width} of them")
        return self._read(_Place(0, self, number - 1), node)

    def outwards(self) -> Iterator[tuple[int, Context]]:
        """This context and those of the queries around it, each with how far out it is."""
        context: Context | None = self
        depth = 0
        while context is not None:
            yield depth, context
            context = context.block.outer
            depth += 1

    def _position(self, name: str, table: str | None) -> int | None:
        if table is None:
            return self.scope.find(name)
        source = self.scope.source(table)
        return source.find(name) if source is not None else None

    def _is_behind_alias(self, name: str, index: int) -> bool:
        """Whether an alias comes before this column."""
        if self.preferred is None or self.inside or name not in self.aliases:
            return False
        return Column(index, self.scope.types[index]) not in self.preferred

    def _read(self, place: _Place, node: Node) -> Expr:
        context, index = place.context, place.position
        if context is self:
            found = Column(index, place.type)
            if self.columns is not None:
                self.columns.setdefault(found, node)
            return found
        context.captured = True
        if context.stand_ins is not None:
            context.stand_ins.correlated = True
        self.block.extend_reach(place.depth)
        return OuterColumn(place.depth, index, place.type)

    def _row(self, depth: int, context: Context, source: Source, node: Node) -> Expr:
        """A whole row of a relation, as a struct."""
        args: list[Expr] = []
        for name in source.names:
            index = source.find(name.lower())
            assert index is not None, f"a relation has no column '{name}' of its own"
            args += [Literal(name, STRING), self._read(_Place(depth, context, index), node)]
        return functions.scalar("struct_pack", args)

    def _parameter(self, name: str) -> Parameter | Literal:
        parameter = self.parameters[name]
        if parameter is None:
            what = _ARTICLES[self.inside]
            raise ClauseFault(f"{what} is computed before the lambda around it, so it cannot read parameter '{name}'")
        return parameter

    def _alias(self, name: str, depth: int, context: Context) -> Expr:
        """The expression that has a name in the select list of the query `depth` further out."""
        value = context._named(name)
        if depth == 0:
            return value
        stand_ins = context.stand_ins
        if stand_ins is not None:
            late = {*stand_ins.windows.values(), *stand_ins.unnests.values()}
            if any(part in late for part in tree.walk(value)):
                raise ClauseFault(f"'{name}' is a window function or unnest, which no subquery beside it can read")
            stand_ins.correlated = True
        self.block.extend_reach(depth + context.block.reach)
        return moved(value, depth)

    def _named(self, name: str) -> Expr:
        node = self.aliases[name]
        if node is None:
            raise NameFault(f"'{name}' is ambiguous: the select list gives this name more than once")
        known = self.named.get(name)
        if known is not None and self.column_of_set is None:
            return known
        if name in self.pending:
            raise NameFault(f"the alias '{name}' is defined by itself")
        self.pending.add(name)
        try:
            value = self.named[name] = (self.around or self).bind(node)
            return value
        finally:
            self.pending.discard(name)

    def _refuse_dotted(self, names: Sequence[str]) -> QueryError:
        """The error for a dotted name that begins with nothing visible."""
        first = names[0]
        if len(names) == 2 or any(context.scope.source(first) is not None for _, context in self.outwards()):
            return self.refuse_name(names[1], first)
        for width in schema_widths(names):
            table = names[width]
            sources = [context.scope.source(table) for _, context in self.outwards()]
            if any(source is not None and not source.is_table for source in sources):
                return NameFault(f"'{table}' is an alias here, which is in no schema; write {'.'.join(names[width:])}")
            return self.refuse_name(names[width + 1], table)
        return self.refuse_name(first, None)

    def refuse_name(self, name: str, table: str | None) -> QueryError:
        """The error for a column that nothing visible has, with the nearest names."""
        if table is not None:
            return self._refuse_qualified(name, table)
        names = list(self.aliases)
        for _, context in self.outwards():
            names += context.scope.column_names()
        if not names:
            return NameFault(f"there is no column '{name}': {self.clause} has no relation to take columns from")
        return NameFault(f"there is no column '{name}'{_hint(name, names)}")

    def _refuse_qualified(self, name: str, table: str) -> QueryError:
        aliases: list[str] = []
        for _, context in self.outwards():
            source = context.scope.source(table)
            if source is not None:
                return NameFault(f"'{source.alias}' has no column '{name}'{_hint(name, source.names)}")
            aliases += [source.alias for source in context.scope.sources if source.alias]
        return NameFault(f"there is no relation '{table}' here{_hint(table, aliases)}")

    def refuse_aggregate(self, name: str) -> QueryError:
        """The error for an aggregate where there can be none."""
        if self.inside == "aggregate":
            return ClauseFault(f"aggregate '{name}' inside an aggregate: compute the inner one in a subquery")
        return ClauseFault(f"aggregate '{name}' in {self.clause}: not allowed there{_INSTEAD.get(self.clause, '')}")

    def refuse_window(self, name: str) -> QueryError:
        """The error for a window function where there can be none."""
        if self.inside:
            return ClauseFault(f"window function '{name}' inside {_ARTICLES[self.inside]}: compute it in a subquery")
        return ClauseFault(f"window function '{name}' in {self.clause}: not allowed there; use QUALIFY or a subquery")


class _Place(NamedTuple):
    """A column of the query `depth` further out, whose context is given."""

    depth: int
    context: Context
    position: int

    @property
    def type(self) -> DataType:
        return self.context.scope.types[self.position]


def _kind(node: Node) -> str:
    """What a syntax node is called in a message: NullSafeEQ becomes NULL SAFE EQ."""
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z]+|[A-Z]+", node.__class__.__name__)
    return " ".join(words).upper()


_INSTEAD: Final = {"WHERE": "; use HAVING"}
_ARTICLES: Final = {"aggregate": "an aggregate", "window": "a window function"}


def _hint(name: str, candidates: Sequence[str]) -> str:
    return functions.suggest(name, list(dict.fromkeys(candidates)))

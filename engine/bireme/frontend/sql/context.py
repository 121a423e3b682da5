"""Where an expression is bound: in which clause of which query, over which columns, and what it may hold.

A `Block` is one query (one SELECT, or one subquery around it); a `Context` one clause of it. A column that a block does
not know is looked for in the context around the block and becomes an `OuterColumn`. How the types of syntax nodes are
bound is in `operators`, `literals`, `calls`, `windows` and `subquery`; what names a FROM clause gives, in `scope`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlglot.tokenizer_core import Token

from bireme.data.types import STRING, DataType
from bireme.errors import ArgumentFault, ClauseFault, NameFault, Position, QueryError, SyntaxFault, Unsupported
from bireme.frontend.catalog import Catalog, Table
from bireme.frontend.sql.lexemes import select_items
from bireme.frontend.sql.scope import Scope, Source
from bireme.frontend.sql.syntax import Node, check_arguments, located, span
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Column, Expr, Literal, OuterColumn, Parameter, WindowCall
from bireme.plan.relation import Rel
from bireme.records import dataclass

if TYPE_CHECKING:
    from bireme.frontend.sql.tables import Bound, CommonTable

# Stand-ins for aggregates, windows and grouping() are columns at positions that no relation has; `grouping` puts the
# real ones in their place when it is known what the query groups by.
STAND_INS: Final = 1 << 20

# How to bind one type of syntax node, and the arguments of the node that this reads.
Handler = tuple[Callable[[Any, "Context"], Expr], frozenset[str]]


@dataclass(slots=True)
class Statement:
    """The text being bound and what is the same everywhere in it.

    `handlers` (by type of syntax node), `bind_query` and `bind_joins` are given by `binder`, so that the modules that
    bind expressions, FROM clauses and queries need not import each other.
    """

    text: str
    tokens: Sequence[Token]
    catalog: Catalog
    handlers: Mapping[type[Node], Handler]
    bind_query: Callable[[Any, Block], Query]
    bind_joins: Callable[[Any, Block], Bound]
    parameters: Sequence[object] | Mapping[str, object] | None = None
    items: list[Position] | None = None
    parameters_read: int = 0
    tables: dict[str, Table | None] = field(default_factory=dict)
    # When it was first asked for the time, which then stands.
    moment: datetime.datetime | None = None

    def table(self, name: str) -> Table | None:
        """The table called `name`, as it was when the statement first named it."""
        if name not in self.tables:
            self.tables[name] = self.catalog.find(name)
        return self.tables[name]

    def now(self) -> datetime.datetime:
        """The time, the same wherever the statement asks for it."""
        if self.moment is None:
            self.moment = datetime.datetime.now(datetime.UTC)
        return self.moment

    def written(self, node: Node) -> str:
        """What was written for an item of a select list, in one line."""
        if self.items is None:
            self.items = list(select_items(self.tokens))
        place = span(node)
        if place is None:
            return node.sql(dialect="duckdb")
        around = [item for item in self.items if item.start <= place.start and place.end <= item.end]
        whole = min(around, key=lambda item: item.end - item.start, default=place)
        return " ".join(self.text[whole.start : whole.end].split())

    def parameter(self, name: str) -> object:
        """The value given for `$1` (which the n-th `?` is, too) or `$name`."""
        given = self.parameters
        if given is None:
            raise ArgumentFault("the query has parameters, and no values are given for them")
        if isinstance(given, Mapping):
            if name not in given:
                raise ArgumentFault(f"no value is given for the parameter '{name}'")
            return given[name]
        if not name.isdecimal():
            raise ArgumentFault(f"the parameter '{name}' takes its value from names, and a sequence is given")
        number = int(name) - 1
        if not 0 <= number < len(given):
            raise ArgumentFault(f"the query has a parameter {number + 1}, and {len(given)} values are given")
        self.parameters_read = max(self.parameters_read, number + 1)
        return given[number]

    def check_parameters(self) -> None:
        """Raises ArgumentFault if values were given that no parameter takes."""
        given = self.parameters
        if given is not None and not isinstance(given, Mapping) and len(given) > self.parameters_read:
            raise ArgumentFault(f"the query has {self.parameters_read} parameters, and {len(given)} values are given")


class Query(NamedTuple):
    """A bound query: its relation, and the names and types of its columns."""

    relation: Rel
    names: tuple[str, ...]
    types: tuple[DataType, ...]


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


@dataclass(slots=True)
class Context:
    """One clause. `aggregates` and `windows` say whether it may hold them; `aliases` are the select list's.

    `preferred`, when given, are the columns that come before aliases (HAVING: what is grouped by); all other columns
    come after. `captured` tells whether a subquery in it reads its columns. `columns` remembers, where the query may be
    grouped, the node that each column came from. In the body of a lambda `parameters` come before all columns, `level`
    lambdas deep; `around` is the context of the outermost one.
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
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    level: int = 0
    around: Context | None = None

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
        )

    def in_lambda(self, parameters: Mapping[str, Parameter]) -> Context:
        """The same columns inside of a lambda."""
        return Context(
            self.block,
            self.scope,
            self.clause,
            stand_ins=self.stand_ins,
            aggregates=self.aggregates,
            windows=self.windows,
            aliases=self.aliases,
            preferred=self.preferred,
            pending=self.pending,
            named_windows=self.named_windows,
            columns=self.columns,
            inside=self.inside,
            parameters={**self.parameters, **parameters},
            level=self.level + 1,
            around=self.around or self,
        )

    def bind(self, node: Node | None) -> Expr:
        """Binds one syntax node to a typed expression over this context's columns."""
        if node is None:
            raise SyntaxFault("something is missing here")
        try:
            handler = self.block.statement.handlers.get(node.__class__)
            if handler is None:
                raise Unsupported(f"{_kind(node)} is not supported")
            function, known = handler
            if not node.args.keys() <= known:
                check_arguments(node, known)
            return function(node, self)
        except QueryError as error:
            located(error, node, self.block.statement.text)
            raise

    def column(self, name: str, table: str | None, node: Node) -> Expr:
        """The column called `name` (in lower case): here, among the aliases of the select list, or further out."""
        index = self.scope.find(name) if table is None else self._position(name, table)
        if index is not None:
            found = Column(index, self.scope.types[index])
            known = self.preferred is None or found in self.preferred or bool(self.inside)
            if known or table is not None or name not in self.aliases:
                if self.columns is not None:
                    self.columns.setdefault(found, node)
                return found
        if table is None and name in self.aliases:
            return self._alias(name)
        outer = self._outer_column(name, table)
        if outer is not None:
            return outer
        source = self.scope.source(name) if table is None else None
        if source is None:
            raise self.refuse_name(name, table)
        return self._row(source, node)

    def _row(self, source: Source, node: Node) -> Expr:
        """A whole row of a relation, as a struct."""
        args: list[Expr] = []
        for column in source.names:
            args += [Literal(column, STRING), self.column(column.lower(), source.key, node)]
        return functions.scalar("struct_pack", args)

    def has_relation(self, alias: str) -> bool:
        """Whether a relation of this name is visible, here or further out."""
        context: Context | None = self
        while context is not None:
            if context.scope.source(alias) is not None:
                return True
            context = context.block.outer
        return False

    def has_column(self, name: str) -> bool:
        """Whether a name that stands alone is a column, here or further out, or an alias."""
        context: Context | None = self
        while context is not None:
            if name in context.aliases or any(name in source.lookup for source in context.scope.sources):
                return True
            context = context.block.outer
        return False

    def _alias(self, name: str) -> Expr:
        node = self.aliases[name]
        if node is None:
            raise NameFault(f"'{name}' is ambiguous: the select list gives this name more than once")
        if name in self.pending:
            raise NameFault(f"the alias '{name}' is defined by itself")
        self.pending.add(name)
        try:
            return (self.around or self).bind(node)
        finally:
            self.pending.discard(name)

    def _outer_column(self, name: str, table: str | None) -> Expr | None:
        depth = 1
        context = self.block.outer
        while context is not None:
            index = context._position(name, table)
            if index is not None:
                context.captured = True
                if context.stand_ins is not None:
                    context.stand_ins.correlated = True
                self.block.extend_reach(depth)
                return OuterColumn(depth, index, context.scope.types[index])
            context = context.block.outer
            depth += 1
        return None

    def _position(self, name: str, table: str | None) -> int | None:
        if table is None:
            return self.scope.find(name)
        source = self.scope.source(table)
        return source.find(name) if source is not None else None

    def refuse_name(self, name: str, table: str | None) -> QueryError:
        """The error for a column that nothing visible has, with the nearest names."""
        if table is not None:
            return self._refuse_qualified(name, table)
        names: list[str] = list(self.aliases)
        context: Context | None = self
        while context is not None:
            names += context.scope.column_names()
            context = context.block.outer
        if not names:
            return NameFault(f"there is no column '{name}': {self.clause} has no relation to take columns from")
        return NameFault(f"there is no column '{name}'{_hint(name, names)}")

    def _refuse_qualified(self, name: str, table: str) -> QueryError:
        aliases: list[str] = []
        context: Context | None = self
        while context is not None:
            source = context.scope.source(table)
            if source is not None:
                return NameFault(f"'{source.alias}' has no column '{name}'{_hint(name, source.names)}")
            aliases += [source.alias for source in context.scope.sources if source.alias]
            context = context.block.outer
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


def _kind(node: Node) -> str:
    """What a syntax node is called in a message: NullSafeEQ becomes NULL SAFE EQ."""
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z]|$)|[A-Z][a-z]+|[A-Z]+", node.__class__.__name__)
    return " ".join(words).upper()


_INSTEAD: Final = {"WHERE": "; use HAVING"}
_ARTICLES: Final = {"aggregate": "an aggregate", "window": "a window function"}


def _hint(name: str, candidates: Sequence[str]) -> str:
    return functions.suggest(name, list(dict.fromkeys(candidates)))

"""Where an expression is bound: in which clause of which query, over which columns, and what it may hold.

A `Block` is one query (one SELECT, or one subquery around it); a `Context` one clause of it. A column that a block does
not know is looked for in the context around the block and becomes an `OuterColumn`. How the types of syntax nodes are
bound is in `operators`, `literals`, `calls`, `windows` and `subquery`; what names a FROM clause gives, in `scope`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlglot.tokenizer_core import Token

from bireme.data.types import STRING, DataType, Kind
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
    lambdas deep; None is one that cannot be read, since an aggregate or a window stands between. `around` is where the
    outermost lambda stands.
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
    parameters: Mapping[str, Parameter | None] = field(default_factory=dict)
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
            parameters=dict.fromkeys(self.parameters),
            around=None if self.around is None else self.around.within(what),
        )

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
        for depth, context in self._outwards():
            index = context._position(name, table)
            if index is not None and not (depth == 0 and table is None and self._is_behind_alias(name, index)):
                return self._read(_Place(depth, context, index), node)
            source = context.scope.source(name) if table is None else None
            if source is not None:
                return self._row(depth, context, source, node)
            if depth == 0 and table is None and name in self.aliases:
                return self._alias(name)
        return None

    def dotted(self, names: Sequence[str], node: Node) -> tuple[Expr, Sequence[str]]:
        """What `relation.column.field…` or `column.field…` begins with, and the fields that are left.

        Of each query, from the inside out, columns by their relation come first, then columns alone, then parameters;
        a column without fields is passed over where some are left.
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
        if first in self.aliases:
            return self._alias(first), names[1:]
        if without_fields is not None:
            return self._read(without_fields[0], node), without_fields[1]
        if len(names) > 2 and all(context.scope.source(first) is None for _, context in self._outwards()):
            raise self.refuse_name(first, None)
        raise self.refuse_name(names[1].lower(), first)

    def _places(self, first: str, names: Sequence[str]) -> Iterator[tuple[_Place, Sequence[str]]]:
        """The columns that a dotted name may begin with, and the names that are left of it."""
        second = names[1].lower()
        for depth, context in self._outwards():
            index = context._position(second, first)
            if index is not None:
                yield _Place(depth, context, index), names[2:]
            index = context.scope.find(first)
            if index is not None:
                yield _Place(depth, context, index), names[1:]

    def _outwards(self) -> Iterator[tuple[int, Context]]:
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

    def _parameter(self, name: str) -> Parameter:
        parameter = self.parameters[name]
        if parameter is None:
            what = _ARTICLES[self.inside]
            raise ClauseFault(f"{what} is computed before the lambda around it, so it cannot read parameter '{name}'")
        return parameter

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

    def refuse_name(self, name: str, table: str | None) -> QueryError:
        """The error for a column that nothing visible has, with the nearest names."""
        if table is not None:
            return self._refuse_qualified(name, table)
        names = list(self.aliases)
        for _, context in self._outwards():
            names += context.scope.column_names()
        if not names:
            return NameFault(f"there is no column '{name}': {self.clause} has no relation to take columns from")
        return NameFault(f"there is no column '{name}'{_hint(name, names)}")

    def _refuse_qualified(self, name: str, table: str) -> QueryError:
        aliases: list[str] = []
        for _, context in self._outwards():
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

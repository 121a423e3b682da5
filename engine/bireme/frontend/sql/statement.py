"""The text being bound, and what is the same everywhere in it: its tables, its parameters, and its time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot.tokenizer_core import Token

from bireme.data.types import DataType
from bireme.errors import ArgumentFault, Position
from bireme.frontend.catalog import Catalog, Table
from bireme.frontend.sql.select_items import select_items
from bireme.frontend.sql.syntax import Node, closed, span
from bireme.plan.expr import Expr
from bireme.plan.relation import Rel
from bireme.records import dataclass

if TYPE_CHECKING:
    from bireme.frontend.sql.context import Block, Context
    from bireme.frontend.sql.tables import Bound

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
    looked_up: dict[Rel, Sequence[object]] = field(default_factory=dict)
    # When it was first asked for the time, which then stands.
    moment: datetime.datetime | None = None
    # Whether COLUMNS(…) may stand anywhere in it.
    may_have_columns: bool = False

    def __post_init__(self) -> None:
        self.may_have_columns = "columns" in self.text.lower()

    def table(self, name: str) -> Table | None:
        """The table called `name`, as it was when the statement first named it."""
        if name not in self.tables:
            self.tables[name] = self.catalog.find(name)
        return self.tables[name]

    def values(self, plan: Rel) -> Sequence[object]:
        """What the catalog finds when it runs a plan, the same wherever the statement asks for it."""
        if plan not in self.looked_up:
            self.looked_up[plan] = self.catalog.values(plan)
        return self.looked_up[plan]

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
        whole = min(around, key=lambda item: item.end - item.start, default=closed(place, self.text))
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

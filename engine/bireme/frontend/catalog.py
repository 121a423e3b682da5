"""What tables there are, as the front ends see them: a name gives a canonical name, a version and a schema.

What a table is made of (files, Arrow data, statistics) belongs to whoever implements `Catalog`; the session does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.errors import Unsupported
from bireme.frontend.series import series_named
from bireme.plan.relation import Rel, Scan

# Tables that are asked about all the time.
_TABLES_KEPT_MAX: Final = 256


class Table(NamedTuple):
    """A table as it was when it was looked up; `version` tells apart tables that had one name at different times."""

    name: str
    version: str
    schema: Schema

    def scan(self) -> Scan:
        """All its columns."""
        return _scan(self)


@lru_cache(_TABLES_KEPT_MAX)
def _scan(table: Table) -> Scan:
    return Scan(table.name, table.version, table.schema, tuple(range(len(table.schema.fields))))


class Catalog(Protocol):
    """Tables by name, compared without regard to case."""

    def find(self, name: str) -> Table | None:
        """The table called `name`, or None."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all tables, for hints in messages."""
        ...

    def values(self, plan: Rel) -> Sequence[object]:
        """The values of the only column of a plan, which runs for it; Unsupported where nothing can run."""
        ...


class TableCatalog:
    """A catalog of given schemas, without data."""

    def __init__(self, tables: Mapping[str, tuple[str, Schema]]) -> None:
        self._tables = {name.lower(): Table(name, version, schema) for name, (version, schema) in tables.items()}

    def find(self, name: str) -> Table | None:
        found = self._tables.get(name.lower())
        series = series_named(name) if found is None else None
        if series is None:
            return found
        return Table(name, "series", Schema((Field(series.column, INT64, False),)))

    def names(self) -> Iterable[str]:
        return [table.name for table in self._tables.values()]

    def values(self, plan: Rel) -> Sequence[object]:
        raise Unsupported("nothing can run here to look up a value that the query depends on; write it as a constant")

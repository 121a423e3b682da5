"""Names that are visible in a query: the relations of FROM with their columns, and how a name finds its column.

A `Scope` describes the columns of one relation being built, by position. What relations there are is in `tables`;
in which order scopes are searched (aliases, outer queries) in `context`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import lru_cache
from typing import Final

from bireme.data.types import DataType
from bireme.errors import NameFault
from bireme.plan import functions
from bireme.records import dataclass

# Lists of names of which it is kept where each name stands: those of the tables that are asked about.
_NAMES_KEPT_MAX: Final = 256


# What may stand before the name of a table: the schema, the catalog, or both. They are DuckDB's for what is in memory.
SCHEMAS: Final = frozenset({("memory", "main"), ("main",), ("memory",)})


def schema_widths(names: Sequence[str]) -> Iterator[int]:
    """How many of the lower-case names before that of a table and of its column may be a schema and its catalog."""
    for width in (2, 1):
        if len(names) >= width + 2 and tuple(names[:width]) in SCHEMAS:
            yield width


@dataclass(slots=True)
class Source:
    """One relation of a FROM clause: `alias` as written, and its columns, which start at `offset`.

    `is_table` says that it is a table under its own name, before which a schema may stand.
    """

    alias: str
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    offset: int
    key: str
    lookup: Mapping[str, int]
    repeated: Set[str]
    is_table: bool = False

    @classmethod
    def of(cls, alias: str, names: tuple[str, ...], types: tuple[DataType, ...], is_table: bool = False) -> Source:
        lookup, repeated = _places(names)
        return cls(alias, names, types, 0, alias.lower(), lookup, repeated, is_table)

    def at(self, offset: int) -> Source:
        """The same columns, further right."""
        return Source(self.alias, self.names, self.types, offset, self.key, self.lookup, self.repeated, self.is_table)

    def find(self, name: str) -> int | None:
        """The position, counted over the whole scope, of the column with the lower-case `name`."""
        index = self.lookup.get(name)
        if index is None:
            return None
        if name in self.repeated:
            raise NameFault(f"column '{name}' is ambiguous: '{self.alias}' has more than one column of that name")
        return self.offset + index


@lru_cache(_NAMES_KEPT_MAX)
def _places(names: tuple[str, ...]) -> tuple[Mapping[str, int], Set[str]]:
    """Where the lower-case names stand, the last of equal ones; and those that there are several of."""
    places = dict(zip(map(str.lower, names), range(len(names)), strict=True))
    if len(places) == len(names):
        return places, frozenset()
    return places, frozenset([name.lower() for index, name in enumerate(names) if places[name.lower()] != index])


@dataclass(slots=True)
class Scope:
    """The sources of a FROM clause as far as it has been read, over one relation.

    `merged` maps a column of USING to the position of its common value; `shown` says which position stands in a star
    for a column that was merged (None: it does not appear again).
    """

    sources: list[Source]
    types: tuple[DataType, ...]
    merged: dict[str, int] = field(default_factory=dict)
    shown: dict[int, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> Scope:
        return cls([source], source.types)

    @property
    def width(self) -> int:
        return len(self.types)

    def beside(self, other: Scope) -> Scope:
        """The scope of a join of this scope's relation with `other`'s, which comes to its right."""
        width = len(self.types)
        moved = [source.at(source.offset + width) for source in other.sources]
        self._refuse_repeated(moved)
        merged, shown = self.merged, self.shown
        if other.merged or other.shown:
            merged = {**merged, **{name: width + index for name, index in other.merged.items()}}
            shown = {**shown, **{width + k: None if v is None else width + v for k, v in other.shown.items()}}
        return Scope(self.sources + moved, self.types + other.types, merged, shown)

    def _refuse_repeated(self, added: Sequence[Source]) -> None:
        taken = {source.key for source in self.sources if source.key}
        for source in added:
            if source.key in taken:
                raise NameFault(f"two relations are called '{source.alias}' here; give one of them another alias")

    def find(self, name: str) -> int | None:
        """The position of the column with the lower-case `name`; NameFault when there are several."""
        merged = self.merged.get(name)
        if merged is not None:
            return merged
        found: int | None = None
        for source in self.sources:
            if name not in source.lookup:
                continue
            index = source.find(name)
            if found is not None:
                raise NameFault(f"column '{name}' is ambiguous: {self._candidates(name)}")
            found = index
        return found

    def _candidates(self, name: str) -> str:
        owners = [source.alias for source in self.sources if name in source.lookup]
        candidates = [f"{alias}.{name}" if alias else name for alias in owners]
        return f"it could be {' or '.join(candidates)}"

    def source(self, alias: str) -> Source | None:
        """The source with the lower-case `alias`."""
        for source in self.sources:
            if source.key == alias:
                return source
        return None

    def star(self) -> Iterator[tuple[str, int]]:
        """The columns of `*`: name and position, columns merged by USING once."""
        for name, _, position in self.star_places():
            if position is not None:
                yield name, position

    def star_places(self) -> Iterator[tuple[str, int, int | None]]:
        """The columns of all relations: name, own position, and the one in `*`, None where USING has merged it away."""
        for source in self.sources:
            for index, name in enumerate(source.names, start=source.offset):
                yield name, index, self.shown.get(index, index)

    def column_names(self) -> list[str]:
        """All column names, for hints."""
        return [name for source in self.sources for name in source.names]

    def hint(self, name: str) -> str:
        """A hint at the nearest name, or at the relation that has a column of that name."""
        return functions.suggest(name, self.column_names())


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with numbers behind those that stand before them already, whatever their capitals: a, A_1."""
    if len({name.lower() for name in names}) == len(names):
        return tuple(names)
    times: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        lowered, shown = name.lower(), name
        while shown.lower() in times:
            shown = f"{name}_{times[lowered]}"
            times[lowered] += 1
        times[shown.lower()] = 1
        found.append(shown)
    return tuple(found)

"""Ordered named columns.

Names may repeat (a join gives both sides' columns); positions are what plans refer to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bireme.data.node import Node, node, note, remember
from bireme.data.types import DataType, Field, field_to_arrow, from_arrow, to_result_arrow


@node
class Schema(Node):
    """The columns of a relation; equal schemas are the same object. It may have no columns at all."""

    fields: tuple[Field, ...]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Field:
        return self.fields[index]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.fields))}]"

    @property
    def names(self) -> tuple[str, ...]:
        try:
            return self._facts[0]  # type: ignore[no-any-return]
        except AttributeError:
            return self._columns()[0]

    @property
    def types(self) -> tuple[DataType, ...]:
        try:
            return self._facts[1]  # type: ignore[no-any-return]
        except AttributeError:
            return self._columns()[1]

    def _columns(self) -> tuple[tuple[str, ...], tuple[DataType, ...]]:
        found = tuple([field.name for field in self.fields]), tuple([field.type for field in self.fields])
        note(self, found)
        return found

    @property
    def row_bytes(self) -> int:
        """Usual bytes of one row in a batch, for estimates."""
        try:
            return self._memo  # type: ignore[no-any-return]
        except AttributeError:
            known = sum([field.type.width_bytes for field in self.fields])
            remember(self, known)
            return known

    def positions(self, name: str) -> list[int]:
        """All positions of the columns called `name`, compared without regard to case."""
        wanted = name.lower()
        return [index for index, field in enumerate(self.fields) if field.name.lower() == wanted]

    def select(self, positions: Iterable[int]) -> Schema:
        return Schema(tuple([self.fields[position] for position in positions]))

    def concat(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    def as_nullable(self) -> Schema:
        """The same columns, all nullable: what an outer join makes of its padded side."""
        return Schema(tuple([Field(field.name, field.type, True) for field in self.fields]))

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema of a batch inside the engine; every field is nullable there, so that batches concatenate."""
        return pa.schema([field_to_arrow(field) for field in self.fields])

    def to_result_arrow(self) -> pa.Schema:
        """The Arrow schema of results that leave the engine."""
        return pa.schema([pa.field(f.name, to_result_arrow(f.type)) for f in self.fields])

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """The schema of Arrow data that comes in; raises Unsupported, naming the type, for what is not carried."""
        return Schema(tuple([Field(field.name, from_arrow(field.type), field.nullable) for field in schema]))

"""What the planner asks of a table: its schema, its statistics, and a small sample.

Values only; reading files is in `storage`, which implements `TableSource`. Estimates made from this are in
`statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from bireme.data.schema import Schema
from bireme.plan.expr import Value
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column over a whole table; None where nothing is.

    `minimum` and `maximum` are bounds (every value lies within, they need not occur), in the form of
    `expr.Literal.value`. `distinct` is an estimate. `clustered` says that the ranges of row groups hardly overlap;
    `same_in_files`, that all rows of a file have one value.
    """

    minimum: Value = None
    maximum: Value = None
    null_count: int | None = None
    distinct: float | None = None
    mean_bytes: float | None = None
    clustered: bool = False
    same_in_files: bool = False


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What is known of a table: its exact row count and, per column of its schema, the column's statistics (which a
    source may work out when they are first looked at).
    """

    rows: int
    columns: Sequence[ColumnStatistics]


class TableSource(Protocol):
    """A table as the planner sees it. `version` changes when the data does."""

    @property
    def schema(self) -> Schema: ...

    @property
    def version(self) -> str: ...

    def statistics(self) -> TableStatistics:
        """Statistics from metadata alone; cached, cheap after the first call."""
        ...

    def sample(self, columns: Sequence[int]) -> pa.RecordBatch:
        """Up to a few thousand rows of the given columns, the same rows at each call; cached, reads little."""
        ...

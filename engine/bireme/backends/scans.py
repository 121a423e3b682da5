"""The part of the seam to kernels that scans are about: decoding as little as the rows need, and filters that say what
that is. The rest, and what all of it means, is in `base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from bireme.data.encoded import EncodedRows
from bireme.plan.expr import Expr


class KeyFilter(Protocol):
    """Which keys a build side may hold: a runtime filter. What it drops has no equal there; what it keeps may have."""

    @property
    def kind(self) -> str:
        """For explain and events: "range", "bitmap", "list" or "bloom"."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether all that it keeps has an equal row."""
        ...

    @property
    def nbytes(self) -> int: ...

    def range(self) -> tuple[int, int] | None:
        """The smallest and largest key where there is one key of integers, dates, times or short decimals, as Arrow
        stores them (low > high where there is none at all); else None.
        """
        ...


class ColumnFault(Exception):
    """A scanned column (by position in the scan) whose bytes are not what was said of them; for a scan's caller."""

    def __init__(self, column: int, story: str) -> None:
        super().__init__(story)
        self.column = column
        self.story = story


class ColumnUnread(Exception):
    """A scanned column that is stored in a way which the backend leaves to pyarrow; for a scan's caller."""

    def __init__(self, column: int, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


class ScanCounts(NamedTuple):
    """What one call of a scan did: rows it was asked for, rows dropped by what (the bound is that of a top-n), and
    pages that no row was wanted of.

    `bytes_held_max` is what decoded columns took at once.
    """

    rows_in: int
    dropped_by_conditions: int
    dropped_by_filters: int
    dropped_by_bound: int
    pages_skipped: int
    bytes_decompressed: int
    bytes_held_max: int

    def plus(self, other: ScanCounts) -> ScanCounts:
        """Both calls together; they did not run at once."""
        return ScanCounts(
            self.rows_in + other.rows_in,
            self.dropped_by_conditions + other.dropped_by_conditions,
            self.dropped_by_filters + other.dropped_by_filters,
            self.dropped_by_bound + other.dropped_by_bound,
            self.pages_skipped + other.pages_skipped,
            self.bytes_decompressed + other.bytes_decompressed,
            max(self.bytes_held_max, other.bytes_held_max),
        )


class RowFilter(NamedTuple):
    """A runtime filter over columns of a scan (positions); `label` names it in notes."""

    filter: KeyFilter
    columns: tuple[int, ...]
    label: str


class Scan(Protocol):
    """A compiled scan: decodes columns as far as rows need them, filters, and computes a projection."""

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What of it does not run in this backend's own kernels, and why, and which filters were switched off."""
        ...

    def run(
        self, rows: EncodedRows, buffers: Sequence[pa.Buffer], rows_max: int, bound: Expr | None = None
    ) -> tuple[list[pa.RecordBatch], ScanCounts]:
        """The rows that the predicate and the filters keep, with the expressions computed for them, in batches of at
        most `rows_max` rows. Rows of which `bound`, a condition that cannot fail, is not TRUE may be missing. Any
        number of threads at once.

        Raises ColumnFault, ColumnUnread, and DataError as `Program.run` does.
        """
        ...

    @property
    def takes_batches(self) -> bool:
        """Whether `run_batch` can be called: its columns must all be of types that this backend has kernels for."""
        ...

    def run_batch(self, batch: pa.RecordBatch, bound: Expr | None = None) -> tuple[list[pa.RecordBatch], ScanCounts]:
        """The same of rows that are decoded already. Raises DataError as `Program.run` does."""
        ...

"""The seam to columnar kernels: what every backend offers, in one meaning.

Batches are `pyarrow.RecordBatch` in the layouts of `data.types`; a STRING column may come dictionary-encoded. All calls
here block, release the GIL in their loops, and may be made from any thread, but one object by one thread at a time,
except `Program.run`, `Scan.run` and `JoinTable.match` and `contains`, which many threads may call at once. `reference`
is the meaning; the others must equal it (tests/conformance).

Meaning: NULL is three-valued in expressions, equal to itself in keys of groups and partitions. NaN equals NaN and is
greater than every other number, everywhere; -0.0 equals 0.0. Decimals are exact; a value that leaves its type is an
`Overflow`, never wrapped. Strings compare by bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from bireme.backends.joins import JoinBuild as JoinBuild
from bireme.backends.joins import JoinTable as JoinTable
from bireme.backends.joins import KeyFilterBuild as KeyFilterBuild
from bireme.backends.joins import ProbePlan as ProbePlan
from bireme.backends.joins import Prober as Prober
from bireme.backends.scans import ColumnFault as ColumnFault
from bireme.backends.scans import ColumnUnread as ColumnUnread
from bireme.backends.scans import KeyFilter as KeyFilter
from bireme.backends.scans import RowFilter as RowFilter
from bireme.backends.scans import Scan as Scan
from bireme.backends.scans import ScanCounts as ScanCounts
from bireme.data.hash_range import ALL_HASHES, HashRange
from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.plan.expr import Expr, WindowCall
from bireme.plan.physical import GroupSpec
from bireme.plan.states import avg_sum_type as avg_sum_type
from bireme.plan.states import state_types as state_types
from bireme.plan.top_per_key import TopPerKey


class Program(Protocol):
    """A compiled filter and projection."""

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What of it does not run in this backend's own kernels, and why: one line each."""
        ...

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `batch` where the predicate is TRUE, with the expressions computed for them.

        Raises DataError (Overflow, ConversionFault) only for values of rows that the predicate keeps.
        """
        ...


class Settled(NamedTuple):
    """Groups of which some are whole: `finals` are keys and results, `states` keys and states of the rest.

    `outside` counts the groups whose key is not where it was said to be.
    """

    finals: pa.RecordBatch
    states: pa.RecordBatch
    outside: int


class GroupTable(Protocol):
    """Groups and their aggregates, incremental."""

    # What of it runs in another backend, and why: one line each.
    fallbacks: tuple[str, ...]

    @property
    def groups(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def bytes_to_add(self, groups: int) -> int:
        """Bytes that room for so many more groups would take at once, beside `nbytes`: a look-up grows by leaps."""
        ...

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        """Takes rows: keys first, then arguments. `position` orders rows across batches, for first and last."""
        ...

    def merge(self, states: pa.RecordBatch) -> None:
        """Takes what `states` of any backend gave."""
        ...

    def states(self, partitions: int) -> list[pa.RecordBatch]:
        """Keys and states, split by `partition_of(hash of keys)` into `partitions` batches; empties the table. A call
        that runs out of memory has changed nothing.
        """
        ...

    def settle(self, key: int, stated: KeyRange, final: KeyRange) -> Settled:
        """Results of the groups whose key column `key`, an integer, date or short decimal, lies in `final`, and states
        of all others (NULL is never final), all of which should lie in `stated`; empties the table.
        """
        ...

    def finish(self) -> pa.RecordBatch:
        """Keys and results, one row a group (one row without keys even if nothing came); empties the table."""
        ...


class FirstValues(Protocol):
    """The first values of each key so far."""

    @property
    def keys(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def keep(self, batch: pa.RecordBatch) -> pa.Array:
        """The positions of rows that can be among the first of their key, of a batch of keys and then the leading key
        of the order: at least those that stand before, or beside, the last of the values so far.
        """
        ...


class WindowStream(Protocol):
    """Windows over the rows of some partitions, which come in window order. Calls come one at a time, but for `survey`.
    Where it `needs_surveys`, those of all batches are made first.
    """

    @property
    def needs_surveys(self) -> bool: ...

    @property
    def nbytes(self) -> int:
        """What it holds between two batches."""
        ...

    def survey(self, batch: pa.RecordBatch) -> Any:
        """What batches before this one, which has rows, have to know of it. Any thread."""
        ...

    def restart(self, surveys: Sequence[Any]) -> None:
        """New partitions begin."""
        ...

    def mark(self) -> Any:
        """Where it is, for `reset`."""
        ...

    def reset(self, mark: Any) -> None:
        """Goes back to where it was."""
        ...

    def add(self, batch: pa.RecordBatch, *, is_last: bool) -> tuple[pa.RecordBatch, list[pa.Array]]:
        """The next batch; gives the next rows whose values are known, maybe of batches before, with one array per call.
        A call that raises has changed nothing.
        """
        ...


class Kernels(Protocol):
    """One backend."""

    @property
    def name(self) -> str: ...

    def window_fallbacks(self, calls: Sequence[WindowCall]) -> tuple[str, ...]:
        """Which of these `window` leaves to another backend, where it does: one line."""
        ...

    @property
    def decodes(self) -> bool:
        """Whether it has scans of its own, which read parts of a row group at the cost of these parts."""
        ...

    def program(
        self, schema: Schema, *, predicate: Expr | None, exprs: Sequence[Expr], names: Sequence[str]
    ) -> Program:
        """Compiles for batches of `schema`. Raises Unsupported for what this backend and its fallback lack."""
        ...

    def scan(
        self,
        schema: Schema,
        *,
        predicate: Expr | None,
        exprs: Sequence[Expr],
        names: Sequence[str],
        filters: Sequence[RowFilter],
        is_late: bool,
        has_row_numbers: bool = False,
        bound_columns: Sequence[int] = (),
    ) -> Scan | None:
        """Compiles a scan of encoded columns of `schema`; None where this backend decodes nothing itself. The bounds of
        its calls are over `bound_columns`.

        With `has_row_numbers`, the last column is not stored: it is the number of each row in the table. With
        `is_late`, columns are decoded for the rows that the steps before have left, else for all.
        """
        ...

    # A table that `is_lean` takes little beside what its groups hold, and may be slower for it.
    def group_table(self, spec: GroupSpec, *, is_lean: bool = False) -> GroupTable: ...

    def merge_groups(
        self, spec: GroupSpec, batches: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Keys and results of all groups in `batches` (what `states` of any backend gave) and `rows` (input of a group
        table; with some, no aggregate may be a first or last), in batches; of no keys at least one.
        """
        ...

    def top_per_key(self, top: TopPerKey) -> FirstValues | None:
        """What remembers the first values of keys; None where this backend has none for their types."""
        ...

    def join_table(
        self, keys: pa.RecordBatch, *, null_equal_count: int, rows: pa.RecordBatch | None = None
    ) -> JoinTable:
        """Builds from all keys of the build side; the first `null_equal_count` columns match NULL with NULL. With the
        `rows` that the keys are of, probers can read them.
        """
        ...

    def join_build(self, key_types: Sequence[DataType], schema: Schema, *, null_equal_count: int) -> JoinBuild | None:
        """A build of a table for rows of `schema`, or None where this backend builds from all keys at once only."""
        ...

    def key_filter_build(self, nbytes: int) -> KeyFilterBuild | None:
        """A filter of at least so many bytes for keys to come, none of them NULL-equal; None without filters."""
        ...

    def prober(self, plan: ProbePlan, table: JoinTable) -> Prober | None:
        """Joins in one call a batch, with a table of this backend's own build; None where that cannot be done, and
        the caller is to go through pairs.
        """
        ...

    def hash_rows(self, batch: pa.RecordBatch, columns: Sequence[int]) -> pa.UInt64Array:
        """The engine's hash of each row's key: one algorithm, equal in every backend, equal for equal keys."""
        ...

    def partition(
        self, batch: pa.RecordBatch, columns: Sequence[int], partitions: int, within: HashRange = ALL_HASHES
    ) -> list[pa.RecordBatch]:
        """Splits rows by `partition_of` of their hash, keeping their order within a partition; all have a hash in
        `within`, which is what is split.
        """
        ...

    def split_by_ranges(
        self,
        batch: pa.RecordBatch,
        keys: pa.RecordBatch,
        splitters: pa.RecordBatch,
        *,
        descending: Sequence[bool],
        nulls_first: Sequence[bool],
    ) -> list[pa.RecordBatch]:
        """Splits the rows of `batch` by where their keys fall among `splitters`, which have the same columns and are in
        order: into those before the first, and for each splitter those from it on; keeping their order within a part.
        """
        ...

    def joined(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """All rows of at least one batch, in order, in one batch; copies unless there is only one."""
        ...

    def take(self, batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
        """The rows at the given positions; a NULL position gives a row of NULLs."""
        ...

    def sort_rows(
        self, keys: pa.RecordBatch, *, descending: Sequence[bool], nulls_first: Sequence[bool], limit: int | None
    ) -> pa.Int64Array:
        """The positions of rows in order, stable; with `limit` only the first that many."""
        ...

    def window(self, batch: pa.RecordBatch, schema: Schema, calls: Sequence[WindowCall]) -> list[pa.Array]:
        """One array per call, aligned with the rows of `batch`, which holds whole windows."""
        ...

    def window_stream(self, schema: Schema, calls: Sequence[WindowCall]) -> WindowStream | None:
        """The same over rows that come in the order of the calls, a batch at a time; None where they share no order, or
        one of them has to see all rows of a partition at once.
        """
        ...

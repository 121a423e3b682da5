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
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.data.encoded import EncodedRows
from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.plan.expr import Expr, WindowCall
from bireme.plan.physical import GroupSpec
from bireme.plan.relation import JoinKind
from bireme.plan.states import avg_sum_type as avg_sum_type
from bireme.plan.states import state_types as state_types


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

    def update(self, batch: pa.RecordBatch, position: int) -> None:
        """Takes rows: keys first, then arguments. `position` orders rows across batches, for first and last."""
        ...

    def merge(self, states: pa.RecordBatch) -> None:
        """Takes what `states` of any backend gave."""
        ...

    def states(self, partitions: int) -> list[pa.RecordBatch]:
        """Keys and states, split by `partition_of(hash of keys)` into `partitions` batches; empties the table."""
        ...

    def settle(self, key: int, stated: KeyRange, final: KeyRange) -> Settled:
        """Results of the groups whose key column `key`, an integer, date or short decimal, lies in `final`, and states
        of all others (NULL is never final), all of which should lie in `stated`; empties the table.
        """
        ...

    def finish(self) -> pa.RecordBatch:
        """Keys and results, one row a group (one row without keys even if nothing came); empties the table."""
        ...


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


class JoinTable(Protocol):
    """The build side's keys, to be looked up."""

    # What of it runs in another backend, and why: one line each.
    fallbacks: tuple[str, ...]

    @property
    def rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def has_null_key(self) -> bool:
        """Whether a build row has a NULL among its keys that are not null-equal."""
        ...

    @property
    def is_unique(self) -> bool:
        """Whether no key occurs twice, so that a row has one match at the most. False where that is not known."""
        ...

    @property
    def form(self) -> str:
        """How keys are found, in words, for explain."""
        ...

    def match(self, keys: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """All equal pairs as two int64 arrays (probe row, build row), in the order of probe rows, then build rows."""
        ...

    def contains(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        """For each probe row whether it has an equal build row; never NULL."""
        ...

    def key_filter(self) -> KeyFilter | None:
        """The filter for these keys, made by the first call (so not on the loop), or None where there can be none."""
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


class JoinBuild(Protocol):
    """A join table under construction, from parts that come in any order on many threads.

    All `add`s come before `start`. A call that raises MemoryError or OutOfRoom has changed nothing, or may be made
    again.
    """

    def add(self, sequence: int, keys: Sequence[pa.RecordBatch], columns: Sequence[pa.RecordBatch]) -> None:
        """Rows of the build side and their keys. What is built has rows in the order of their sequence numbers, and
        within one in the order in which they were added.
        """
        ...

    def give_back(self) -> list[tuple[int, pa.RecordBatch]]:
        """All rows that were added, with their sequence numbers; it is as new then."""
        ...

    def start(self, threads: int) -> int:
        """At least one batch has come, and so many threads may work; returns how many calls of `work` are of use."""
        ...

    def work(self) -> tuple[JoinTable, pa.RecordBatch] | None:
        """Works until nothing is left to begin. The one call that ends all gives the table and all rows."""
        ...


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """How a stream meets a join table: `plan.physical.ProbeStep` with everything resolved.

    `matched` has an entry per build row, which pairs set; None where nobody asks.
    """

    kind: JoinKind
    key_count: int
    null_equal_count: int
    null_aware: bool
    residual: Expr | None
    stream: Schema
    build: Schema
    left_output: tuple[int, ...]
    right_output: tuple[int, ...]
    names: tuple[str, ...]
    matched: npt.NDArray[np.bool_] | None


class Prober(Protocol):
    """A stream's way through a join. Many threads may call at once."""

    def run(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What the rows become, in their order, in pieces of bounded size."""
        ...

    def mark_matches(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> None:
        """Only sets the entries of `matched`."""
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

    def group_table(self, spec: GroupSpec) -> GroupTable: ...

    def merge_groups(
        self, spec: GroupSpec, batches: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Keys and results of all groups in `batches` (what `states` of any backend gave) and `rows` (input of a group
        table; with some, no aggregate may be a first or last), in batches; of no keys at least one.
        """
        ...

    def join_table(self, keys: pa.RecordBatch, *, null_equal_count: int) -> JoinTable:
        """Builds from all keys of the build side; the first `null_equal_count` columns match NULL with NULL."""
        ...

    def join_build(self, key_types: Sequence[DataType], schema: Schema, *, null_equal_count: int) -> JoinBuild | None:
        """A build of a table for rows of `schema`, or None where this backend builds from all keys at once only."""
        ...

    def prober(self, plan: ProbePlan, table: JoinTable) -> Prober | None:
        """Joins in one call a batch, with a table of this backend's own build; None where that cannot be done, and
        the caller is to go through pairs.
        """
        ...

    def hash_rows(self, batch: pa.RecordBatch, columns: Sequence[int]) -> pa.UInt64Array:
        """The engine's hash of each row's key: one algorithm, equal in every backend, equal for equal keys."""
        ...

    def partition(self, batch: pa.RecordBatch, columns: Sequence[int], partitions: int) -> list[pa.RecordBatch]:
        """Splits rows by `partition_of` of their hash, keeping their order within a partition."""
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


def partition_of(row_hash: int, partitions: int) -> int:
    """The partition of a hash: its upper 32 bits scaled to the number of partitions (Lemire 2019), so that the
    lower bits stay free for tables inside the partition.
    """
    return ((row_hash >> 32) * partitions) >> 32


def partitions_of(hashes: npt.NDArray[np.uint64], partitions: int) -> npt.NDArray[np.uint64]:
    """`partition_of` of many hashes. Partition p of n is partitions p * k to p * k + k - 1 of n * k."""
    chosen: npt.NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32)
    return chosen

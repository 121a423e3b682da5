"""The seam to storage: tables that give splits, ranged reads, and the spill store.

A scan is three things in three places: which splits and byte ranges survive pruning (`splits`, pure over cached
metadata), fetching the ranges (`ByteSource`; by Pre-Load on IO threads, or in the task where that waits for nothing),
and decoding (`Split.decode`, in a task).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from bireme.data.encoded import EncodedRows
from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.errors import BiremeError
from bireme.plan.expr import Expr
from bireme.plan.source import TableSource
from bireme.storage.prune import Bounds
from bireme.storage.spill_policy import NO_HINT, SpillHint, Verdict


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """`length` bytes at `offset` of the file or object called `path`.

    `version` is what identified its content when the range was planned ("" for any): a reader that finds another one
    there raises SourceChanged.
    """

    path: str
    offset: int
    length: int
    version: str = ""

    @property
    def end(self) -> int:
        return self.offset + self.length


class ChunkKey(NamedTuple):
    """Names the content of one column chunk: another one after the file was written anew. `made` says what was made of
    it, where it is not as the file has it; a `column` of -1 is none of the file's.
    """

    path: str
    version: str
    row_group: int
    column: int
    made: str = ""


class Split(Protocol):
    """A piece of a table that one task reads.

    `first_row` numbers its own first row in the table; `rows` is exact where metadata says so, else an estimate;
    `decoded_bytes` an estimate of what `decode` makes. `ranges` are the bytes it needs, in order of offset, coalesced;
    empty for data already in memory. Splits that need the same bytes, because they are parts of one whole, follow each
    other and give the same tuple; they are `sharers` in all. `chunk_keys` name its columns for a cache of what they
    decode to; empty where there is nothing to keep.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def first_row(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def decoded_bytes(self) -> int: ...

    @property
    def ranges(self) -> tuple[ByteRange, ...]: ...

    @property
    def sharers(self) -> int: ...

    @property
    def chunk_keys(self) -> tuple[ChunkKey, ...]: ...

    def part(self, columns: Sequence[int]) -> Split:
        """The same rows with only the columns at these positions."""
        ...

    def decode(self, buffers: Sequence[pa.Buffer]) -> Iterator[pa.RecordBatch]:
        """Batches of the scanned columns in engine layout, from the bytes of `ranges`, one buffer each.

        Blocks; runs on a compute thread. Batches have at most `BATCH_ROWS_MAX` rows. Raises SourceCorrupt, naming file,
        row group and column, for bytes that are not what the metadata says.
        """
        ...

    def encoded(self) -> EncodedRows | str:
        """The scanned columns as they lie in the bytes of `ranges`, for kernels that decode themselves; or why they are
        not offered so ("" where there is nothing to decode).
        """
        ...

    def damage(self, column: int, story: str) -> BiremeError:
        """The error to raise for bytes of a scanned column that are not what `encoded` said."""
        ...


class ScannableSource(TableSource, Protocol):
    """A table that can be read."""

    def are_splits_quick(self, columns: Sequence[int], bytes_max: int | None) -> bool:
        """Whether `splits` with this `bytes_max` reads nothing of the files and has not much to look at."""
        ...

    def splits(
        self,
        columns: Sequence[int],
        filters: Sequence[Expr],
        *,
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> Sequence[Split]:
        """The splits that may hold rows for which all `filters` (over the scanned columns) are TRUE, in row order.

        With `rows_max`, what is much larger and can be read in parts comes in parts of about that many rows; with
        `bytes_max` the same of what takes more memory, stored and decoded, as far as the file is laid out for that.
        """
        ...

    def key_ranges(self, column: int, splits: Sequence[Split]) -> list[KeyRange | None]:
        """For each of these splits of the table the range of `column` (a position in the table's schema) that metadata
        states: of integers, dates and short decimals, NULL aside; None where it states none.
        """
        ...

    def bounds(self, column: int, splits: Sequence[Split]) -> list[Bounds]:
        """What is proved about `column` (a position in the table's schema) in each of these splits of the table."""
        ...

    def split_count(self) -> int:
        """How many splits there are without filters."""
        ...


class ByteSource(Protocol):
    """Ranged reads. Any thread."""

    def read_all(self, ranges: Sequence[ByteRange]) -> list[pa.Buffer]:
        """Exactly the bytes asked for, one buffer each; SourceMissing, SourceChanged or StorageError otherwise.

        Blocks.
        """
        ...

    def is_resident(self, ranges: Sequence[ByteRange]) -> bool:
        """Whether reading them would wait for no device, as far as that can be told at once. Never blocks."""
        ...


@dataclass(frozen=True, slots=True)
class SpillTicket:
    """Where a spilled batch lies; only the store that gave it can read it. `stored` bytes of its medium hold it.

    `length` are those of the run that was written, `packed_length` those of the packed batch: the same, unless it was
    compressed, in `compress_seconds` of a processor. `verdict` says why.
    """

    segment: int
    offset: int
    length: int
    checksum: int
    stored: int
    packed_length: int
    verdict: Verdict = Verdict.OFF
    compress_seconds: float = 0.0

    @property
    def compressed(self) -> bool:
        return self.verdict is Verdict.COMPRESSED


class SpillStore(Protocol):
    """Keeps packed batches on disk. Blocking; called on IO threads. One batch a call, any thread.

    `write` raises SpillFailed and leaves nothing; `read` raises SpillCorrupt where the checksum does not match.
    `scratch_bytes` is the most memory that either takes beside the batch.
    """

    scratch_bytes: int

    def write(self, batch: pa.RecordBatch, hint: SpillHint = NO_HINT) -> SpillTicket: ...

    def read(self, ticket: SpillTicket) -> pa.RecordBatch: ...

    def drop(self, ticket: SpillTicket) -> None: ...

    def take_notes(self) -> list[str]:
        """What the store did on its own since it was last asked: fallbacks, folders passed over. Never blocks."""
        ...

    def close(self) -> None:
        """Drops everything and removes the store's own folders."""
        ...

    @property
    def bytes_used(self) -> int: ...


# A row group of the usual writers has about 120,000 rows: one batch, and a task of about a millisecond a column.
BATCH_ROWS_MAX = 131_072

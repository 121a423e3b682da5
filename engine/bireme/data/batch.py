"""A Batch: immutable rows resident on exactly one tier, with one identity wherever they lie.

Moving makes a new value with the same id (`moved`), so whoever holds the old one never sees it change. Who may hold
or move a batch is in `runtime.holder`; how the copy is made, in `runtime.memory.mover`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from bireme.data.ids import BatchId
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows on a tier.

    `body` is a RecordBatch on DEVICE, or a tuple of those whose rows it has, and what the tier's keeper gave elsewhere
    (pages, a spill ticket). `nbytes` is the size as that, the same on every tier, because it says what bringing the
    batch up will need.
    """

    id: BatchId
    rows: int
    nbytes: int
    tier: Tier
    body: Any

    @property
    def content(self) -> pa.RecordBatch:
        """The rows; only of a batch on DEVICE."""
        assert self.tier is Tier.DEVICE, f"{self} has no rows to compute on"
        assert not isinstance(self.body, tuple), f"{self} is in pieces"
        record_batch: pa.RecordBatch = self.body
        return record_batch

    @property
    def pieces(self) -> tuple[pa.RecordBatch, ...]:
        """The rows in order, in one record batch or several; only of a batch on DEVICE."""
        return self.body if isinstance(self.body, tuple) else (self.content,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns; only of a batch on DEVICE."""
        return tuple(self.pieces[0].schema.names)

    def moved(self, tier: Tier, body: Any) -> Batch:
        return Batch(self.id, self.rows, self.nbytes, tier, body)

    def __repr__(self) -> str:
        return f"<Batch {self.id}: {self.rows} rows, {self.nbytes} B on {self.tier.name}>"


def in_pieces(identity: BatchId, batches: Iterable[Batch]) -> Batch:
    """The rows of several batches on DEVICE, of columns of the same names, as one batch; copies nothing."""
    found = tuple(batches)
    kinds = {batch.names for batch in found}
    if len(kinds) > 1:
        raise EngineBug(f"batches with columns {' and '.join(map(str, sorted(kinds)))} cannot be one")
    pieces = tuple([piece for batch in found for piece in batch.pieces])
    rows, nbytes = sum([batch.rows for batch in found]), sum([batch.nbytes for batch in found])
    return Batch(identity, rows, nbytes, Tier.DEVICE, pieces)


# What Arrow keeps of a column beside its bytes, and the allocator beside each of its buffers; 560 to 1,150 bytes with
# pyarrow 26.
COLUMN_BYTES: Final = 1_024


def measure(batch: pa.RecordBatch, shared: set[int] | None = None) -> int:
    """Bytes that `batch` refers to: the parts of its buffers that its rows use, dictionaries whole; and what columns
    take whatever they hold, which is most of a short batch of many columns.

    With `shared`, the addresses of dictionaries that were counted already, a dictionary counts once: the partitions of
    one batch usually have theirs in common.

    Not exact as memory: a slice keeps its whole buffer alive, and two batches that share a buffer both count it. Each
    errs to one side; together they stay within what a limit needs.
    """
    try:
        nbytes = int(batch.nbytes + COLUMN_BYTES * batch.num_columns)
        return nbytes if shared is None else nbytes - _counted_before(batch, shared)
    except (pa.ArrowException, TypeError):
        # Layouts for which pyarrow cannot tell the used part.
        return int(batch.get_total_buffer_size())


def _counted_before(batch: pa.RecordBatch, shared: set[int]) -> int:
    counted = 0
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray):
            dictionary = column.dictionary
            address = next((buffer.address for buffer in dictionary.buffers()[1:] if buffer is not None), 0)
            if address in shared:
                counted += dictionary.nbytes
            elif address:
                shared.add(address)
    return counted

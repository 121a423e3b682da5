"""Reading splits of a table, with the filter and projection that follow.

Where the backend has a scan of its own and a split says how its columns are encoded, one call decodes as little as the
rows need; otherwise the split is decoded whole and a program does the rest. Both give the same rows; that the first was
not possible is noted. Runtime filters come from join tables that are built by now; a scan without them gives more rows,
not other answers. Where they name rows by their numbers, only these are read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.base import ColumnFault, ColumnUnread, Kernels, RowFilter, Scan, ScanCounts
from bireme.data import arrays
from bireme.data.encoded import EncodedRows
from bireme.data.record import halves, record_batch
from bireme.data.schema import Schema
from bireme.data.types import BOOL
from bireme.errors import TooMuchAtOnce
from bireme.operators.filter_project import IN_HALVES, FilterProject
from bireme.operators.states import QueryStates
from bireme.operators.top_bound import LiveBound
from bireme.plan.expr import Call, Column, Expr, Literal
from bireme.plan.physical import ProgramStep, ScanSource
from bireme.plan.tree import FALSE, all_columns, columns_used
from bireme.storage.base import BATCH_ROWS_MAX, Split
from bireme.storage.kept_split import KeptSplit
from bireme.storage.physical_value import count_decoder
from bireme.storage.split_run import SplitRun

# From the first so many rows of a scan a top-n learns a bound that is used for the others; a page has more.
_LEARNING_ROWS: Final = 8_192

# Ranges of rows: the first, and how many.
Ranges = tuple[tuple[int, int], ...]


class TableScan:
    """A `ScanSource` and the `ProgramStep` behind it (None: all columns as they are) at work. Any thread."""

    def __init__(
        self,
        source: ScanSource,
        step: ProgramStep | None,
        schema: Schema,
        kernels: Kernels,
        states: QueryStates,
        bound: LiveBound | None = None,
    ) -> None:
        taken = step if step is not None else ProgramStep(None, all_columns(schema), schema.names)
        self._step = taken
        self._schema = schema
        self._kernels = kernels
        self._states = states
        self._program: FilterProject | None = None
        self._reasons: dict[str, None] = {}
        for lookup in source.lookups:
            built = states.table(lookup.table)
            if built.away is not None and built.away.key_filter is None:
                self._reasons[f"no runtime filter by {lookup.table}, which is not whole in memory"] = None
        self._has_row_numbers = source.row_numbers
        self._wanted = wanted_rows(source, states)
        self._bound = bound
        self._scan: Scan | None = None
        self._scans_of_all: dict[Schema, Scan | None] = {}
        if source.columns and states.levers.native_scan:
            self._scan = kernels.scan(
                schema,
                predicate=None if taken.predicate is None else states.resolve(taken.predicate),
                exprs=[states.resolve(expr) for expr in taken.exprs],
                names=taken.names,
                filters=row_filters(source, states),
                is_late=states.levers.late_columns,
                has_row_numbers=source.row_numbers,
                bound_columns=() if bound is None else sorted(columns_used(bound.key.expr)),
            )

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What of it did not run natively so far, and why."""
        known = self._scan.fallbacks if self._scan is not None else ()
        further = self._program.fallbacks if self._program is not None else ()
        return (*self._reasons, *known, *further)

    def read(
        self, split: Split, buffers: Sequence[pa.Buffer], counts: list[ScanCounts], sequence: int
    ) -> Iterator[pa.RecordBatch]:
        """What is wanted of split number `sequence`, and into `counts` what was done to find it, where the backend
        tells.
        """
        if self._passes_over(split, counts, sequence, None):
            return
        if isinstance(split, SplitRun):
            for part, (piece, own) in enumerate(split.pieces(buffers)):
                if not self._passes_over(piece, counts, sequence, part):
                    yield from self._read_one(piece, own, counts, sequence)
        else:
            yield from self._read_one(split, buffers, counts, sequence)

    def _passes_over(self, split: Split, counts: list[ScanCounts], sequence: int, part: int | None) -> bool:
        if self._bound is None or not self._bound.passes_over(sequence, part):
            return False
        counts.append(ScanCounts(split.rows, 0, 0, split.rows, 0, 0, 0))
        return True

    def _within(self, sequence: int) -> Expr | None:
        """What rows of a split must fulfil by now to be of use to a top-n."""
        return None if self._bound is None else self._bound.condition(sequence)

    def _read_one(
        self, split: Split, buffers: Sequence[pa.Buffer], counts: list[ScanCounts], sequence: int
    ) -> Iterable[pa.RecordBatch]:
        if self._scan is None:
            return self._decoded(split, buffers)
        if isinstance(split, KeptSplit):
            split.complete(buffers, self._whole)
        encoded = split.encoded()
        if encoded == "" and self._scan.takes_batches:
            batches: Iterable[pa.RecordBatch] = split.decode(buffers)
            numbered = self._numbered(batches, split) if self._has_row_numbers else batches
            return self._of_batches(self._scan, numbered, counts, sequence)
        if isinstance(encoded, str):
            return self._decoded(split, buffers, encoded)
        if self._wanted is not None:
            encoded = encoded._replace(ranges=_wanted_ranges(encoded, self._wanted))
        # Rows that the split itself left out, by what its pages state.
        skipped = split.rows - sum([count for _, count in encoded.ranges])
        if skipped:
            counts.append(ScanCounts(skipped, skipped, 0, 0, 0, 0, 0))
        return self._of_encoded(self._scan, split, encoded, buffers, counts, sequence)

    def _of_encoded(
        self,
        scan: Scan,
        split: Split,
        encoded: EncodedRows,
        buffers: Sequence[pa.Buffer],
        counts: list[ScanCounts],
        sequence: int,
    ) -> Iterator[pa.RecordBatch]:
        learning = self._bound is not None and not self._bound.is_known
        left = deque(_cut(encoded.ranges, _LEARNING_ROWS) if learning else (encoded.ranges,))
        while left:
            part = encoded._replace(ranges=left.popleft())
            try:
                batches, done = scan.run(part, buffers, BATCH_ROWS_MAX, self._within(sequence))
            except ColumnUnread as unread:
                yield from self._decoded(split, buffers, unread.reason)
                return
            except ColumnFault as fault:
                raise split.damage(fault.column, fault.story) from fault
            except TooMuchAtOnce:
                rows = sum([count for _, count in part.ranges])
                if rows < 2:
                    raise
                self._reasons[IN_HALVES] = None
                left.extendleft(reversed(_cut(part.ranges, rows // 2)))
                continue
            counts.append(done)
            yield from batches

    def _of_batches(
        self, scan: Scan, batches: Iterable[pa.RecordBatch], counts: list[ScanCounts], sequence: int
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._of_batch(scan, batch, counts, sequence)

    def _of_batch(
        self, scan: Scan, batch: pa.RecordBatch, counts: list[ScanCounts], sequence: int
    ) -> Iterator[pa.RecordBatch]:
        left = deque([batch])
        while left:
            piece = left.popleft()
            try:
                made, done = scan.run_batch(piece, self._within(sequence))
            except TooMuchAtOnce:
                if piece.num_rows < 2:
                    raise
                self._reasons[IN_HALVES] = None
                left.extendleft(reversed(halves(piece)))
                continue
            counts.append(done)
            yield from made

    def _whole(self, split: Split, buffers: Sequence[pa.Buffer]) -> list[pa.RecordBatch]:
        """All rows of all columns of a split, to be kept."""
        encoded = split.encoded()
        if isinstance(encoded, str):
            return list(split.decode(buffers))
        scan = self._scans_of_all.get(split.schema)
        if scan is None:
            # Two threads may compile it at once; either will do.
            scan = self._scans_of_all[split.schema] = _scan_of_all(split.schema, self._kernels)
        try:
            return list(split.decode(buffers)) if scan is None else scan.run(encoded, buffers, BATCH_ROWS_MAX)[0]
        except ColumnUnread:
            return list(split.decode(buffers))
        except ColumnFault as fault:
            raise split.damage(fault.column, fault.story) from fault

    def _decoded(self, split: Split, buffers: Sequence[pa.Buffer], reason: str = "") -> Iterable[pa.RecordBatch]:
        if reason:
            self._reasons[reason] = None
        if self._program is None:
            # Two threads may compile it at once; either will do.
            self._program = FilterProject(self._step, self._schema, self._kernels, self._states)
        batches: Iterable[pa.RecordBatch] = split.decode(buffers)
        if self._has_row_numbers:
            batches = self._numbered(batches, split)
        program = self._program
        return (piece for batch in batches for piece in program.pieces(batch))

    def _numbered(self, batches: Iterable[pa.RecordBatch], split: Split) -> Iterator[pa.RecordBatch]:
        """The batches with the numbers of their rows; only the rows that are wanted."""
        first = split.first_row
        for batch in batches:
            numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
            first += batch.num_rows
            whole = record_batch([*batch.columns, arrays.from_numpy(numbers)], self._schema.names, batch.num_rows)
            if self._wanted is None:
                yield whole
            else:
                rows = np.flatnonzero(np.isin(numbers, self._wanted))
                yield self._kernels.take(whole, arrays.from_numpy(rows))


Rows = npt.NDArray[np.int64]


def wanted_rows(source: ScanSource, states: QueryStates) -> Rows | None:
    """The numbers of the rows that a scan may be asked for, ascending; None for any."""
    numbered = (len(source.columns),)
    for lookup in source.lookups if source.row_numbers else ():
        if lookup.columns == numbered:
            built = states.table(lookup.table)
            if built.key_columns[0] is not None and built.away is None:
                found: Rows = np.unique(arrays.to_numpy(built.batch.column(built.key_columns[0])))
                return found
    return None


def rows_within(wanted: Rows, split: Split) -> Rows:
    """Those of the rows that are in a split, counted from its first."""
    low, high = np.searchsorted(wanted, [split.first_row, split.first_row + split.rows])
    return wanted[low:high] - split.first_row


def _wanted_ranges(encoded: EncodedRows, wanted: Rows) -> tuple[tuple[int, int], ...]:
    """The ranges of rows that are both meant and wanted."""
    found: list[tuple[int, int]] = []
    rows = wanted - encoded.first_row
    for first, count in encoded.ranges:
        low, high = np.searchsorted(rows, [first, first + count])
        if low < high:
            run = rows[low:high]
            breaks = np.flatnonzero(np.diff(run) > 1) + 1
            found += [(int(part[0]), len(part)) for part in np.split(run, breaks)]
    return tuple(found)


def _cut(ranges: Ranges, room: int) -> list[Ranges]:
    """The first rows of some ranges, and the others, if there are any."""
    head: list[tuple[int, int]] = []
    tail: list[tuple[int, int]] = []
    for first, count in ranges:
        taken = min(count, room)
        room -= taken
        if taken:
            head.append((first, taken))
        if taken < count:
            tail.append((first + taken, count - taken))
    return [tuple(part) for part in (head, tail) if part]


def _scan_of_all(schema: Schema, kernels: Kernels) -> Scan | None:
    return kernels.scan(
        schema, predicate=None, exprs=all_columns(schema), names=schema.names, filters=(), is_late=False
    )


def total(counts: Sequence[ScanCounts]) -> ScanCounts | None:
    """What several calls did together, one after the other; None for no call."""
    return reduce(ScanCounts.plus, counts) if counts else None


def row_filters(source: ScanSource, states: QueryStates) -> list[RowFilter]:
    """The runtime filters of a scan, of tables that have one."""
    found: list[RowFilter] = []
    for lookup in source.lookups if states.levers.runtime_filters else ():
        if source.row_numbers and lookup.columns == (len(source.columns),):
            continue  # see `wanted_rows`
        built = states.table(lookup.table)
        key_filter = built.key_filter()
        if key_filter is not None:
            found.append(RowFilter(key_filter, lookup.columns, lookup.table))
    return found


def range_filters(source: ScanSource, states: QueryStates, schema: Schema) -> list[Expr]:
    """What the runtime filters of a scan say of single columns, as conditions that skip splits by their statistics."""
    conditions: list[Expr] = []
    for row_filter in row_filters(source, states):
        bounds = row_filter.filter.range()
        if bounds is None or len(row_filter.columns) != 1:
            continue
        low, high = bounds
        if low > high:  # the table is empty
            return [FALSE]
        column = Column(row_filter.columns[0], schema[row_filter.columns[0]].type)
        for function, count in (("ge", low), ("le", high)):
            decode = count_decoder(column.type)
            value = None if decode is None else decode(count)
            if value is not None:
                conditions.append(Call(function, (column, Literal(value, column.type)), BOOL))
    return conditions

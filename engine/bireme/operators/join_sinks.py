"""Making join tables, and marking the rows of one that a stream matches.

A build keeps what comes, in any order and on many threads; the parts of `finish` put it together, and the one that ends
last makes the table known. A table's rows are in the order of the pipeline's inputs, whatever the threads did; but
where memory was short, some of them are not in the table but on an aside edge (`spilled_build`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from bireme.backends.base import JoinBuild, JoinTable, Kernels
from bireme.data.batch import measure
from bireme.data.record import empty
from bireme.data.schema import Schema
from bireme.operators.base import NOTHING, Aside, Emission, Relievable, Unrelieved
from bireme.operators.build_table import STEP_BYTES, built_table, bytes_to_build, new_build, table_of
from bireme.operators.hash_join import Matcher
from bireme.operators.join_keys import BuildKeys
from bireme.operators.partial_join import PartialMatch
from bireme.operators.states import QueryStates
from bireme.plan.physical import BuildSink, MatchSink

if TYPE_CHECKING:
    from bireme.operators.away import Away
    from bireme.operators.spilled_build import SpilledBuild


class Match(Unrelieved):
    """Marks the build rows that what comes matches."""

    nbytes = 0
    fallbacks: tuple[str, ...] = ()

    def __init__(
        self, sink: MatchSink, schema: Schema, kernels: Kernels, states: QueryStates, waiting: Aside | None
    ) -> None:
        built = states.table(sink.table)
        self._matcher: Matcher | PartialMatch
        if built.away is None or waiting is None:
            self._matcher = Matcher(sink, built, schema, kernels, states)
        else:
            self._matcher = PartialMatch(sink, built, built.away, waiting, schema, kernels, states)
        self.fan_out = self._matcher.fan_out

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        aside: list[Emission] = []
        for batch in batches:
            self._matcher.run(batch, aside)
        return aside

    def finish_parts(self) -> int:
        return 0

    def finish(self, part: int) -> list[Emission]:
        return []


class Build(Unrelieved):
    """Makes a join table from all batches of the build side."""

    def __init__(
        self, sink: BuildSink, schema: Schema, kernels: Kernels, states: QueryStates, slots: int, bytes_expected: int
    ) -> None:
        self._sink = sink
        self._bytes_expected = bytes_expected
        self._schema = schema
        self._kernels = kernels
        self._states = states
        self._keys = BuildKeys(sink.keys, schema, kernels, states)
        self._build: JoinBuild = new_build(sink, schema, self._keys, kernels)
        self._spilled: SpilledBuild | None = None
        self._slots = slots
        # What is made and could not be made known for want of memory.
        self._made: deque[tuple[JoinTable, pa.RecordBatch]] = deque()
        self._kept_bytes = [0] * (slots + 1)
        self._kept_rows = [0] * (slots + 1)
        self.fallbacks: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of the table; before, those that it will take to put it together, so that there is room when it is."""
        built = self._states.tables.get(self._sink.table)
        if built is not None:
            return built.nbytes
        if self._spilled is not None:
            return self._spilled.nbytes
        return bytes_to_build(self._sink, sum(self._kept_bytes), sum(self._kept_rows))

    def absorb(self, batches: Iterable[pa.RecordBatch], sequence: int, slot: int) -> list[Emission]:
        # All rows of a task are kept at once or not at all, so that a task may run again.
        columns = [batch for batch in batches if batch.num_rows]
        if not columns:
            return []
        if self._spilled is not None:
            return self._spilled.take(sequence, columns)
        rows, nbytes = sum([batch.num_rows for batch in columns]), sum([measure(batch) for batch in columns])
        self._build.add(sequence, [self._keys.run(batch) for batch in columns], columns)
        self._kept_rows[slot] += rows
        self._kept_bytes[slot] += nbytes
        return []

    def relievable(self) -> Relievable:
        if self._sink.table in self._states.uses.in_order:
            return NOTHING
        if self._spilled is None:
            return Relievable(self.nbytes // 2, min(sum(self._kept_bytes), STEP_BYTES))
        kept = self._spilled.kept_count
        return Relievable(self._spilled.nbytes * (kept - kept // 2) // max(1, kept), 0)

    def relief_parts(self) -> int:
        if self._spilled is not None:
            return self._spilled.start_giving()
        from bireme.operators.spilled_build import SpilledBuild

        chunks = self._build.give_back()
        self._spilled = SpilledBuild(
            self._sink, self._schema, self._keys, self._kernels, self._states, chunks, self._bytes_expected
        )
        return self._spilled.group_count

    def relieve(self, part: int) -> list[Emission]:
        assert self._spilled is not None
        return self._spilled.relieve(part)

    def finish_parts(self) -> int:
        if self._spilled is not None:
            return 1
        if not any(self._kept_rows):
            nothing = empty(self._schema)
            self._build.add(0, [self._keys.run(nothing)], [nothing])
        return self._build.start(self._slots)

    def finish(self, part: int) -> list[Emission]:
        if self._spilled is not None:
            self._finish_spilled(self._spilled)
            return []
        try:
            made = self._made.pop()
        except IndexError:
            found = self._build.work()
            if found is None:
                return []
            made = found
        try:
            self._publish(*made, None)
        except BaseException:
            self._made.append(made)
            raise
        return []

    def _finish_spilled(self, spilled: SpilledBuild) -> None:
        away = spilled.away()
        table, batch = table_of(self._sink, self._schema, self._keys, self._kernels, spilled.kept_rows())
        self._publish(table, batch, away)
        spilled.forget()
        count = away.rows.partitions
        note = f"{self._sink.table} changed over: {away.kept} of {count} partitions are in memory"
        self.fallbacks = (*self.fallbacks, note)

    def _publish(self, table: JoinTable, batch: pa.RecordBatch, away: Away | None) -> None:
        if away is None and self._sink.table in self._states.uses.looked_up:
            table.key_filter()  # made here and not on the loop, where scans ask for it
        built = built_table(self._sink, self._schema, self._keys, table, batch, away, self._kernels, self._states)
        self._states.tables[self._sink.table] = built
        self.fallbacks = (*table.fallbacks, f"{self._sink.table} is {table.form}")

"""Rounds of a pipeline: what waited for a join table is joined partition by partition, and goes on from there.

A round has the build rows of one partition, or a block of them, in a table of its own, which lives from its LOAD to its
UNLOAD. What the calls mean is in `base`; when they come, and what is cut or done in blocks, the runtime decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data import arrays
from bireme.data.hash_range import HashRange
from bireme.data.record import record_batch, slices
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.operators.away import Away, Cutter
from bireme.operators.base import Aside, Emission, Postponed, Round, RoundCall
from bireme.operators.block_join import FRESH, BlockJoin
from bireme.operators.build_table import built_table, table_of
from bireme.operators.filter_project import KeyColumns
from bireme.operators.hash_join import HashJoin, Matcher
from bireme.operators.join_keys import BuildKeys
from bireme.operators.partial_join import InPart, part_join
from bireme.operators.parts import gathered
from bireme.operators.states import BuiltTable, QueryStates
from bireme.plan.expr import Expr
from bireme.plan.physical import BuildRows, MatchSink, Pipeline, ProbeStep, UnmatchedSource
from bireme.storage.base import BATCH_ROWS_MAX

# The step of what is left of a build side: rows that come before all steps.
REST: Final = -1


@dataclass(slots=True)
class _Loaded:
    """The table of a round, and who looks rows up in it."""

    built: BuiltTable
    join: HashJoin | InPart | BlockJoin | Matcher


@dataclass(slots=True)
class _Waiting:
    """What waits at one step, or for a MatchSink behind the last one."""

    away: Away
    stream: Aside
    keys: tuple[Expr, ...]
    schema: Schema
    is_tracked: bool


@dataclass(slots=True)
class JoinRounds:
    """The rounds of one stage, and their tables. Calls may come from many threads."""

    pipeline: Pipeline
    kernels: Kernels
    states: QueryStates
    _waiting: dict[int, _Waiting] = field(default_factory=dict)
    _loaded: dict[int, _Loaded] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables of rounds."""
        return sum([loaded.built.nbytes for loaded in tuple(self._loaded.values())])

    def aside_of(self, step: int) -> Aside | None:
        """Where rows wait that come to this step (or the sink behind the last), if some of the table is away."""
        reader = self._reader(step)
        if reader is None:
            return None
        away = self.states.table(reader.table).away
        if away is None:
            return None
        name = f"{self.pipeline.name}, {self.pipeline.id}: rows for {reader.table} at step {step}"
        stream = Aside(name, away.rows.partitions, (self.pipeline.id,))
        tracked = isinstance(reader, MatchSink) or reader.track_matches
        self._waiting[step] = _Waiting(away, stream, reader.keys, self.pipeline.schemas[step], tracked)
        return stream

    @property
    def are_due(self) -> bool:
        """Whether there will be rounds at some step of the pipeline."""
        return bool(self._waiting)

    def _reader(self, step: int) -> ProbeStep | MatchSink | None:
        steps = self.pipeline.steps
        reader = steps[step] if step < len(steps) else self.pipeline.sink
        return reader if isinstance(reader, ProbeStep | MatchSink) else None

    def postponed(self) -> list[Postponed]:
        """What waits, in the order of steps."""
        source = self.pipeline.source
        found: list[Postponed] = []
        if isinstance(source, UnmatchedSource):
            away = self.states.table(source.table).away
            if away is not None:
                found.append(Postponed(REST, self._rest(source.table)))
        for step, waiting in sorted(self._waiting.items()):
            away = waiting.away
            found.append(Postponed(step, waiting.stream, away.rows, waiting.is_tracked, away.can_cut))
        return found

    def _rest(self, table: str) -> Aside:
        return Aside(f"{table}: rows by whether they matched", 1, self.states.uses.readers_of_rest.get(table, ()))

    # ---------------------------------------------------------------------------------------------- calls

    def load(self, part: Round, batches: Sequence[pa.RecordBatch]) -> None:
        """Makes the table of a round."""
        waiting = self._waiting[part.postponed.step]
        away = waiting.away
        keys = BuildKeys(away.sink.keys, away.schema, self.kernels, self.states)
        table, batch = table_of(away.sink, away.schema, keys, self.kernels, list(enumerate(batches)))
        built = built_table(away.sink, away.schema, keys, table, batch, None, self.kernels, self.states)
        self._loaded[part.number] = _Loaded(built, self._joiner(part, built, away))

    def _joiner(self, part: Round, built: BuiltTable, away: Away) -> HashJoin | InPart | BlockJoin | Matcher:
        index = part.postponed.step
        reader, schemas = self._reader(index), self.pipeline.schemas
        if isinstance(reader, MatchSink):
            return Matcher(reader, built, schemas[index], self.kernels, self.states)
        assert reader is not None
        stream, output = schemas[index], schemas[index + 1]
        if part.is_loop:
            return BlockJoin(reader, built, away, part.after, stream, output, self.kernels, self.states)
        return part_join(reader, built, away, stream, output, self.kernels, self.states)

    def resume(self, part: Round, batch: pa.RecordBatch, seen: bool, aside: list[Emission]) -> Iterator[pa.RecordBatch]:
        """What rows of the stream become at their step; those that go on to another round are added to `aside`."""
        if part.postponed.step == REST:
            yield from self._of_rest(batch)
            return
        join = self._loaded[part.number].join
        if isinstance(join, Matcher):
            join.run(batch, aside)
            if part.after is not None:
                aside.append(Emission(part.after, FRESH, batch))
        elif isinstance(join, BlockJoin):
            yield from join.run(batch, seen, aside)
        else:
            yield from join.run(batch, aside)

    def _of_rest(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        source = self.pipeline.source
        assert isinstance(source, UnmatchedSource)
        names = self.pipeline.schemas[0].names
        yield wanted_rows(source.rows, batch.columns[:-1], arrays.is_true(batch.columns[-1]), names, self.kernels)

    def unload(self, part: Round) -> list[Emission]:
        """Gives the table up; its rows go on to the pipeline that tells by their marks which of them are wanted."""
        waiting, built = self._waiting[part.postponed.step], self._loaded[part.number].built
        emissions: list[Emission] = []
        if waiting.is_tracked and built.batch.num_rows:
            columns = [*built.batch.columns, arrays.from_numpy(built.matched)]
            marked = record_batch(columns, [*built.batch.schema.names, "matched"], built.batch.num_rows)
            rest = self._rest(waiting.away.sink.table)
            emissions = [Emission(rest, 0, piece) for piece in slices(marked, BATCH_ROWS_MAX)]
        del self._loaded[part.number]
        return emissions

    def cut(self, call: RoundCall, part: Round, batches: Sequence[pa.RecordBatch]) -> list[Emission]:
        """Rows of a partition by finer partitions."""
        if part.cut is None:
            raise EngineBug(f"{part} is to be cut into nothing")
        waiting = self._waiting[part.postponed.step]
        is_build = call is RoundCall.CUT_BUILD
        exprs, schema = (waiting.away.sink.keys, waiting.away.schema) if is_build else (waiting.keys, waiting.schema)
        target = part.cut.build if is_build else part.cut.stream
        made = BuildKeys if is_build else KeyColumns
        keys = made(exprs, schema, self.kernels, self.states)
        cutter, within = Cutter(exprs, waiting.away.hashed, self.kernels), HashRange(part.partition, part.partitions)
        pieces = (
            piece for batch in batches for piece in cutter.parts(batch, keys.run(batch), target.partitions, within)
        )
        return [Emission(target, index, piece) for index, piece in gathered(pieces, self.kernels)]


def past_step(batches: Iterable[pa.RecordBatch], aside: list[Emission]) -> Iterable[pa.RecordBatch]:
    """In place of a step that rounds are past, whose table may be gone."""
    raise EngineBug("rows came to a step that rounds are past")


def wanted_rows(
    rows: BuildRows, columns: Sequence[pa.Array], matched: arrays.Flags, names: Sequence[str], kernels: Kernels
) -> pa.RecordBatch:
    """The build rows that an `UnmatchedSource` gives; of MARK all, with the mark as one more column."""
    if rows is BuildRows.MARK:
        return record_batch([*columns, arrays.from_numpy(matched)], names, len(matched))
    chosen = matched if rows is BuildRows.MATCHED else ~matched
    batch = record_batch(columns, names, len(matched))
    return kernels.take(batch, arrays.from_numpy(np.flatnonzero(chosen)))

"""A pipeline at work: its source's batches through its steps into its sink.

What a stage promises the runtime is in `base`; what steps and sinks do, in the modules named after them. Programs are
compiled in `open`, when the scalars and tables that they read are known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from bireme.backends.base import Kernels, ScanCounts
from bireme.data.hash_range import HashRange
from bireme.data.record import longer
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.operators.assume import assumed
from bireme.operators.base import NOTHING, Emission, Output, Postponed, Relievable, Round, RoundCall
from bireme.operators.filter_project import FilterProject
from bireme.operators.group import Group
from bireme.operators.hash_join import HashJoin
from bireme.operators.join_rounds import JoinRounds, past_step, wanted_rows
from bireme.operators.join_sinks import Build, Match
from bireme.operators.key_ranges import RangeCuts
from bireme.operators.limit import Limit
from bireme.operators.merge_groups import MergeGroups
from bireme.operators.order import Order
from bireme.operators.partial_join import PartialJoin
from bireme.operators.ranges import NotedRows, Ranges, Sample
from bireme.operators.ranked_stage import RankedCalls, ranked_calls
from bireme.operators.scalar_value import literal_batch
from bireme.operators.scan import TableScan, total
from bireme.operators.sinks import Emit, KeepScalar, LiveSink, Top
from bireme.operators.states import QueryStates
from bireme.operators.top_bound import LiveBound
from bireme.operators.top_per_key import DropBeyondTop
from bireme.operators.unnest import unnested
from bireme.operators.windows import OrderedWindows, Windows, resolved_call
from bireme.plan.physical import (
    AssumeStep,
    BuildSink,
    EdgeSource,
    EmitSink,
    EncodeStep,
    GroupSink,
    LimitStep,
    MatchSink,
    MergeGroupsStep,
    Pipeline,
    ProbeStep,
    ProgramStep,
    RangeSink,
    SampleSink,
    ScalarSink,
    ScanSource,
    SortStep,
    Step,
    TopSink,
    UnmatchedSource,
    UnnestStep,
    ValuesSource,
    WindowStep,
)
from bireme.plan.tree import map_operands
from bireme.plan.window_order import NotedKeys
from bireme.storage.base import Split

# A step at work: takes the batches of a task, gives others, and adds rows that have to wait to the emissions.
Move = Callable[[Iterable[pa.RecordBatch], list[Emission]], Iterable[pa.RecordBatch]]


class PipelineStage:
    """The `Stage` of a real pipeline."""

    def __init__(self, pipeline: Pipeline, partitions: int, kernels: Kernels, states: QueryStates) -> None:
        self._pipeline = pipeline
        self._partitions = partitions
        self._kernels = kernels
        self._states = states
        self._moves: list[Move] = []
        self._sink: LiveSink | None = None
        self._limit: Limit | None = None
        self._merge: MergeGroups | None = None
        self._cuts: MergeGroups | RangeCuts | Windows | None = None
        self._windows: Windows | None = None
        self._ranked: RankedCalls | None = None
        self._programs: list[FilterProject] = []
        self._scan: TableScan | None = None
        self._bound: LiveBound | None = None
        self._rounds = JoinRounds(pipeline, kernels, states)
        self._first_move = 0
        self._notes: list[str] = []
        self._noted: set[str] = set()
        self._unended: deque[int] | None = None  # of `end`: the parts that are left, and what the others gave
        self._ended: list[Emission] = []
        self._fan_out = 1
        self._has_unknown_rows = False
        self._is_slow = False

    @property
    def pipeline(self) -> Pipeline:
        return self._pipeline

    def open(self, slots: int) -> None:
        schemas, steps = self._pipeline.schemas, self._pipeline.steps
        taken = 0
        if isinstance(self._pipeline.source, ScanSource):
            first = steps[0] if steps and isinstance(steps[0], ProgramStep) else None
            self._first_move = taken = 0 if first is None else 1
            self._bound = self._learning(self._pipeline.source, slots)
            self._scan = TableScan(self._pipeline.source, first, schemas[0], self._kernels, self._states, self._bound)
        for index in range(taken, len(steps)):
            self._moves.append(self._move(steps[index], index))
        self._sink = self._live_sink(schemas[-1], slots)
        if isinstance(self._sink, Match):
            self._fan_out *= self._sink.fan_out
        self._is_slow |= bool(self._notes or any(program.fallbacks for program in self._programs))

    def rows_out_max(self, rows: int) -> int | None:
        return None if self._is_slow or self._has_unknown_rows else rows * self._fan_out

    def run_split(self, split: Split, buffers: Sequence[pa.Buffer], sequence: int, slot: int) -> Output:
        assert self._scan is not None, f"pipeline {self._pipeline.name} reads no table"
        self._states.check()
        counts: list[ScanCounts] = []
        place = sequence if self._bound is None else self._bound.place(sequence)
        batches: Iterable[pa.RecordBatch] = self._scan.read(split, buffers, counts, sequence)
        if self._bound is None and self._limit is None:
            # Nothing that becomes of a batch would save reading the next one.
            batches = longer(batches)
        output = self._run_from(0, batches, [], place, slot)
        output.scanned = total(counts)
        return output

    def passes_over(self, sequence: int) -> bool:
        return self._bound is not None and self._bound.passes_over(sequence)

    def _learning(self, source: ScanSource, slots: int) -> LiveBound | None:
        if source.bound is None:
            return None
        key = map_operands(source.bound.key, self._states.resolve)
        bound = self._states.bounds[self._pipeline.id] = LiveBound(source.bound, key, slots + 1)
        return bound

    def run_batches(self, batches: Sequence[pa.RecordBatch], sequence: int, slot: int) -> Output:
        source = self._pipeline.source
        if isinstance(source, ValuesSource):
            batches = [literal_batch(source.rows, self._pipeline.schemas[0])]
        elif isinstance(source, UnmatchedSource):
            batches = [self._build_rows(source)]
        joins = len(batches) > 1 and self._goes_batch_by_batch
        return self._run_from(0, longer(batches) if joins else batches, [], sequence, slot)

    def can_cut(self) -> bool:
        return self._cuts is not None and self._cuts.can_cut

    def can_take_bits(self) -> bool:
        return self._merge is not None and self._merge.can_take_bits

    def cut(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        assert self._cuts is not None, f"pipeline {self._pipeline.name} takes partitions whole"
        return self._back(self._cuts.cut(batches, within, into))

    def can_order(self) -> bool:
        return self._windows is not None and self._windows.ordered is not None

    def cut_in_order(self, batches: Sequence[pa.RecordBatch], within: HashRange, into: int, slot: int) -> Output:
        return self._back(self._ordered_windows().cut(batches, within, into))

    def arrange(self, batches: Sequence[pa.RecordBatch], number: int, are_alike: bool, slot: int) -> Output:
        arranged = self._ordered_windows().arrange(batches, number, are_alike=are_alike)
        return self._back((0, batch) for batch in arranged)

    def ranked(self) -> RankedCalls | None:
        return self._ranked

    def _ordered_windows(self) -> OrderedWindows:
        ordered = None if self._windows is None else self._windows.ordered
        assert ordered is not None, f"pipeline {self._pipeline.name} has no windows of one order"
        return ordered

    def _back(self, parts: Iterable[tuple[int, pa.RecordBatch]]) -> Output:
        """Batches for the edge that they come from."""
        assert isinstance(self._pipeline.source, EdgeSource)
        edge = self._pipeline.source.edge
        return self._output([Emission(edge, part, batch) for part, batch in parts])

    def run_bit(self, batches: Sequence[pa.RecordBatch], sequence: int, is_last: bool, slot: int) -> Output:
        if self._windows is not None:
            return self._run_in_order(batches, sequence, is_last, slot)
        assert self._merge is not None, f"pipeline {self._pipeline.name} takes partitions whole"
        self._merge.add(batches, sequence)
        return self._run_from(1, self._merge.end(sequence), [], sequence, slot) if is_last else self._output([])

    def _run_groups(self, groups: Iterable[pa.RecordBatch], sequence: int, slot: int) -> Output:
        return self._run_from(1, groups, [], sequence, slot)

    def _run_in_order(self, batches: Sequence[pa.RecordBatch], sequence: int, is_last: bool, slot: int) -> Output:
        windows = self._ordered_windows()
        mark = windows.mark()
        try:
            return self._run_from(1, windows.add(batches, is_last=is_last), [], sequence, slot)
        except BaseException:
            windows.reset(mark)
            raise

    @property
    def _goes_batch_by_batch(self) -> bool:
        """Whether what comes first does some work for each batch, however short."""
        steps = self._pipeline.steps
        return not steps or not isinstance(steps[0], MergeGroupsStep | SortStep | WindowStep)

    def _run_from(
        self, move: int, batches: Iterable[pa.RecordBatch], aside: list[Emission], sequence: int, slot: int
    ) -> Output:
        """Takes batches through the moves from number `move` on into the sink."""
        for each in self._moves[move:]:
            batches = each(batches, aside)
        emissions = self._opened_sink().absorb(self._wanted(batches), sequence, slot)
        return self._output([*emissions, *aside] if aside else emissions)

    def _output(self, emissions: list[Emission]) -> Output:
        """What a task reports: its batches, and what the stage now holds."""
        sink = self._opened_sink()
        merging = 0 if self._merge is None else self._merge.nbytes
        held = 0 if self._windows is None else self._windows.nbytes
        return Output(emissions, sink.nbytes + self._rounds.nbytes + merging + held, self._take_notes(sink))

    def postponed(self) -> Sequence[Postponed]:
        return self._rounds.postponed()

    def leave(self, step: int) -> None:
        last = step - self._first_move
        self._moves = [past_step if place <= last else move for place, move in enumerate(self._moves)]

    def run_round(
        self, call: RoundCall, part: Round, batches: Sequence[pa.RecordBatch], sequence: int, slot: int, *, seen: bool
    ) -> Output:
        self._states.check()
        match call:
            case RoundCall.LOAD:
                self._rounds.load(part, batches)
                return self._output([])
            case RoundCall.UNLOAD:
                return self._output(self._rounds.unload(part))
            case RoundCall.CUT_BUILD | RoundCall.CUT_STREAM:
                return self._output(self._rounds.cut(call, part, batches))
        aside: list[Emission] = []
        joined = (piece for batch in longer(batches) for piece in self._rounds.resume(part, batch, seen, aside))
        if part.postponed.step >= len(self._pipeline.steps):
            # A MatchSink has marked all that came, so nothing is left for the sink.
            assert not list(joined)
            return self._output(aside)
        return self._run_from(part.postponed.step + 1 - self._first_move, joined, aside, sequence, slot)

    def _wanted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._states.check()
            if batch.num_rows:
                yield batch

    def _take_notes(self, sink: LiveSink) -> list[str]:
        """What this task was the first to do in another backend."""
        notes = [note for program in self._programs for note in program.fallbacks]
        scan = self._scan.fallbacks if self._scan is not None else ()
        new = [n for n in dict.fromkeys([*self._notes, *scan, *notes, *sink.fallbacks]) if n not in self._noted]
        self._noted.update(new)
        return new

    def enough(self) -> bool:
        return self._limit is not None and self._limit.reached

    def relievable(self) -> Relievable:
        return NOTHING if self._sink is None else self._sink.relievable()

    def relief_parts(self) -> int:
        return self._opened_sink().relief_parts()

    def relieve(self, part: int, slot: int) -> Output:
        return self._output(self._opened_sink().relieve(part))

    def finish_parts(self) -> int:
        return self._opened_sink().finish_parts()

    def finish(self, part: int, slot: int) -> Output:
        return self._output(self._opened_sink().finish(part))

    def end(self, bytes_max: int, slot: int) -> Output | None:
        sink = self._opened_sink()
        if self._unended is None:
            if sink.nbytes > bytes_max or self._rounds.postponed():
                return None
            self._unended = deque(range(sink.finish_parts()))
        while self._unended:
            self._ended += sink.finish(self._unended[0])
            self._unended.popleft()
        return self._output(self._ended)

    def close(self) -> None:
        self._moves.clear()
        self._scan = None
        self._sink = None

    def _opened_sink(self) -> LiveSink:
        if self._sink is None:
            raise EngineBug(f"pipeline {self._pipeline.name} runs before it is open or after it is closed")
        return self._sink

    def _build_rows(self, source: UnmatchedSource) -> pa.RecordBatch:
        built = self._states.table(source.table)
        names = self._pipeline.schemas[0].names
        return wanted_rows(source.rows, built.batch.columns, built.matched, names, self._kernels)

    # ------------------------------------------------------------------------------------------------ parts

    def _live_sink(self, schema: Schema, slots: int) -> LiveSink:
        match self._pipeline.sink:
            case EmitSink() as sink:
                drop, noted = self._drop(sink, schema, slots), self._note(sink.noted, schema, slots)
                return Emit(sink, self._partitions, self._kernels, drop, noted, self._states.memory_bytes)
            case SampleSink() as sink:
                return Sample(sink, schema, self._kernels, self._states)
            case RangeSink() as sink:
                return Ranges(sink, self._partitions, schema, self._kernels, self._states, slots)
            case GroupSink() as sink:
                if self._rounds.are_due:
                    # Rows of a group may come in a round, whatever the splits say.
                    sink = GroupSink(sink.edge, sink.spec, None, sink.noted)
                rows, noted = self._pipeline.hint.rows_expected, self._note(sink.noted, schema, slots)
                return Group(sink, self._partitions, self._kernels, self._states, slots, rows, noted)
            case TopSink() as sink:
                return Top(sink, schema, self._kernels, self._states, slots, self._bound)
            case MatchSink() as sink:
                waiting = self._rounds.aside_of(len(self._pipeline.steps))
                return Match(sink, schema, self._kernels, self._states, waiting)
            case BuildSink() as sink:
                return Build(sink, schema, self._kernels, self._states, slots, self._pipeline.hint.bytes_expected)
            case ScalarSink() as sink:
                return KeepScalar(sink, schema, self._states)

    def _note(self, noted: NotedKeys | None, schema: Schema, slots: int) -> NotedRows | None:
        return None if noted is None else NotedRows(noted, schema, self._kernels, self._states, slots)

    def _drop(self, sink: EmitSink, schema: Schema, slots: int) -> DropBeyondTop | None:
        if sink.top is None:
            return None
        rows = self._pipeline.hint.rows_expected
        return DropBeyondTop(sink.top, schema, self._kernels, self._states, slots, rows)

    def _move(self, step: Step, index: int) -> Move:
        schema, output = self._pipeline.schemas[index : index + 2]
        match step:
            case ProgramStep():
                program = FilterProject(step, schema, self._kernels, self._states)
                self._programs.append(program)
                return lambda batches, _: (piece for batch in batches for piece in program.pieces(batch))
            case ProbeStep():
                join = self._join(step, index, schema, output)
                self._fan_out *= join.fan_out
                return lambda batches, aside: (piece for batch in batches for piece in join.run(batch, aside))
            case LimitStep():
                limit = self._limit = Limit(step)
                return lambda batches, _: limit.run(batches)
            case MergeGroupsStep():
                merge = self._merge = self._cuts = MergeGroups(step, schema, self._kernels, self._states)
                self._ranked = ranked_calls(merge, self._back, self._run_groups)
                return lambda batches, _: merge.run(batches)
            case SortStep():
                order = Order(step.keys, schema, self._kernels, self._states)
                if step.sample is not None:
                    sample = self._states.sample(step.sample)
                    self._cuts = RangeCuts(step.keys, sample, schema, self._kernels, self._states)
                return lambda batches, _: order.in_pieces(list(batches), step.limit, step.offset)
            case UnnestStep():
                self._has_unknown_rows = True
                names = output.names
                return lambda batches, _: (part for batch in batches for part in unnested(step, names, batch))
            case AssumeStep():
                return lambda batches, _: assumed(step, schema, batches)
            case EncodeStep():
                # It loads pyarrow's writer, which takes longer than a small query.
                from bireme.operators.encode import Encode

                encode = Encode(step.schema, output.names, self._kernels, self._states)
                self._is_slow = True
                return lambda batches, _: encode.run(batches)
            case WindowStep():
                resolved = [resolved_call(call, self._states) for call in step.calls]
                self._notes += self._kernels.window_fallbacks(resolved)
                windows = self._windows = self._cuts = Windows(step, resolved, schema, self._kernels, self._states)
                return lambda batches, _: windows.run(batches)

    def _join(self, step: ProbeStep, index: int, stream: Schema, output: Schema) -> HashJoin | PartialJoin:
        built = self._states.table(step.table)
        waiting = self._rounds.aside_of(index)
        if built.away is None or waiting is None:
            return HashJoin(step, built, stream, output, self._kernels, self._states)
        return PartialJoin(step, built, built.away, waiting, stream, output, self._kernels, self._states)

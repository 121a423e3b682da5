"""The stages of one query, and where their tables come from.

The composition of stages is here and only here; the runtime knows `base.StageSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from bireme.backends.base import Kernels
from bireme.config import Levers
from bireme.data.ids import PipelineId
from bireme.data.key_range import EMPTY, KeyRange, exclusive
from bireme.errors import EngineBug
from bireme.operators.scan import range_filters, rows_within, wanted_rows
from bireme.operators.stage import PipelineStage
from bireme.operators.states import Cluster, QueryStates, TableUses
from bireme.operators.top_bound import reading_order
from bireme.plan.physical import (
    Dag,
    EmitSink,
    GroupSink,
    MatchSink,
    Pipeline,
    ProbeStep,
    RangeSink,
    ScanSource,
    SortStep,
    TopSink,
    UnmatchedSource,
)
from bireme.plan.top_bound import is_scanned
from bireme.plan.tree import columns_used
from bireme.storage.base import BATCH_ROWS_MAX, ScannableSource, Split
from bireme.storage.split_run import RunLimits, hulls, in_runs, run_lengths
from bireme.units import MIB

# Where less of all ranges than this belongs to one split alone, telling whole groups apart gains nothing.
_FINAL_SHARE_MIN: Final = 0.5
# A split may take this part of the memory of its slot, stored and decoded: one is read while another is ahead, and what
# is made of it waits beside them.
_SPLITS_IN_MEMORY: Final = 8
# Smaller splits would spare less than what each task takes whatever its rows, and have groups leave memory after some
# hundreds of rows.
_SPLIT_BYTES_MIN: Final = MIB


def clusters(ranges: Sequence[KeyRange | None]) -> list[Cluster]:
    """What each split of a scan states of a key, and what it alone can hold; empty where that is little."""
    stated = [EMPTY if found is None else found for found in ranges]
    final = exclusive(ranges)
    if sum(map(_width, final)) < _FINAL_SHARE_MIN * sum(map(_width, stated)):
        return []
    return list(map(Cluster, stated, final))


def _width(found: KeyRange) -> int:
    return 0 if found.is_empty else found.high - found.low + 1


def _spread(splits: Sequence[Split], count_max: int | None) -> Sequence[Split]:
    """So many of the splits, from all parts of the table."""
    if count_max is None or len(splits) <= count_max:
        return splits
    return [splits[(2 * at + 1) * len(splits) // (2 * count_max)] for at in range(count_max)]


def _scan_of(pipeline: Pipeline) -> ScanSource:
    if not isinstance(pipeline.source, ScanSource):
        raise EngineBug(f"pipeline {pipeline.name} reads no table")
    return pipeline.source


def _nothing_is_kept(_: str) -> bool:
    return False


def table_uses(dag: Dag, *, has_filters: bool) -> TableUses:
    """Who reads which join table."""
    looked_up: set[str] = set()
    probers: dict[str, list[PipelineId]] = {}
    of_rest: dict[str, list[PipelineId]] = {}
    in_order: set[str] = set()
    for pipeline in dag.pipelines:
        if isinstance(pipeline.source, ScanSource) and has_filters:
            looked_up.update([lookup.table for lookup in pipeline.source.lookups])
        if isinstance(pipeline.source, UnmatchedSource):
            of_rest.setdefault(pipeline.source.table, []).append(pipeline.id)
        is_sorted = False
        for step in (*pipeline.steps, pipeline.sink):
            is_sorted |= isinstance(step, SortStep) and step.limit is not None
            if isinstance(step, ProbeStep | MatchSink) and pipeline.id not in probers.setdefault(step.table, []):
                probers[step.table].append(pipeline.id)
            if isinstance(step, ProbeStep) and is_sorted:
                in_order.add(step.table)
    return TableUses(
        frozenset(looked_up),
        {table: tuple(found) for table, found in probers.items()},
        {table: tuple(found) for table, found in of_rest.items()},
        frozenset(in_order),
    )


class PipelineStages:
    """The `StageSet` of a Dag; `source` gives the table that a scan names, `is_kept` tells whether to cache it."""

    def __init__(
        self,
        dag: Dag,
        kernels: Kernels,
        source: Callable[[str, str], ScannableSource],
        levers: Levers,
        limits: RunLimits,
        is_kept: Callable[[str], bool] = _nothing_is_kept,
    ) -> None:
        self._dag = dag
        self._kernels = kernels
        self._source = source
        self._limits = limits
        self._is_kept = is_kept
        self._states = QueryStates(levers, table_uses(dag, has_filters=levers.runtime_filters), limits.memory_bytes)

    def stage(self, pipeline: Pipeline) -> PipelineStage:
        return PipelineStage(pipeline, self._output_partitions(pipeline), self._kernels, self._states)

    def _output_partitions(self, pipeline: Pipeline) -> int:
        if not isinstance(pipeline.sink, EmitSink | RangeSink | GroupSink | TopSink):
            return 1
        return self._dag.edges[pipeline.sink.edge].partitions

    def are_splits_quick(self, pipeline: Pipeline) -> bool:
        scan = _scan_of(pipeline)
        return self._source(scan.table, scan.version).are_splits_quick(scan.columns, self._split_bytes_max(scan))

    def splits(self, pipeline: Pipeline) -> Sequence[Split]:
        scan = _scan_of(pipeline)
        filters = [self._states.resolve(each) for each in scan.filters]
        filters += range_filters(scan, self._states, pipeline.schemas[0])
        source = self._source(scan.table, scan.version)
        wanted = wanted_rows(scan, self._states)
        rows_max = None if self._is_whole(scan) or wanted is not None else BATCH_ROWS_MAX
        splits = source.splits(scan.columns, filters, rows_max=rows_max, bytes_max=self._split_bytes_max(scan))
        if wanted is not None:
            splits = [split for split in splits if len(rows_within(wanted, split))]
        finals = pipeline.sink.finals if isinstance(pipeline.sink, GroupSink) else None
        # The groups of one task are in a table of their own.
        lengths = run_lengths(splits, self._limits, keeps_rows=finals is not None)
        if finals is not None:
            ranges = source.key_ranges(finals.column, splits)
            self._states.clusters[finals.edge] = clusters(hulls(ranges, lengths))
        return _spread(self._in_reading_order(pipeline, source, splits, lengths), scan.splits_max)

    def _is_whole(self, scan: ScanSource) -> bool:
        """Whether splits are whole row groups: what is kept is kept by them, and other decoders know no others."""
        return self._is_kept(scan.table) or not (self._states.levers.native_scan and self._kernels.decodes)

    def _split_bytes_max(self, scan: ScanSource) -> int | None:
        if self._is_whole(scan):
            return None
        share = self._limits.memory_bytes // (_SPLITS_IN_MEMORY * self._limits.slots)
        return max(_SPLIT_BYTES_MIN, share)

    def _in_reading_order(
        self, pipeline: Pipeline, source: ScannableSource, splits: Sequence[Split], lengths: Sequence[int]
    ) -> Sequence[Split]:
        """The splits in runs; where a top-n is to learn a bound, those first that may hold the first rows."""
        runs = in_runs(splits, lengths)
        scan, bound = pipeline.source, self._states.bounds.get(pipeline.id)
        if bound is None or not isinstance(scan, ScanSource) or not is_scanned(bound.key.expr, scan):
            return runs
        (column,) = columns_used(bound.key.expr)
        stated = iter(source.bounds(scan.columns[column], splits))
        bounds = [tuple(islice(stated, length)) for length in lengths]
        order = reading_order(bound.key, bounds)
        bound.expect(order, [bounds[index] for index in order])
        return [runs[index] for index in order]

    def is_kept(self, table: str) -> bool:
        return self._is_kept(table)

    def free_table(self, table: str) -> None:
        self._states.tables.pop(table, None)

    def stop(self) -> None:
        self._states.stopped = True

    def close(self) -> None:
        self._states.close()

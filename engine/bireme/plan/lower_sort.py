"""Sorts to pipelines: all rows at once, the first few, or range by range.

Many rows are cut into ranges of their order, by keys of a sample of them. Where they would fit in memory the sample is
taken while they are gathered. Where they would not, and come from a table, a few splits of it are read before, for
their keys alone, so that rows are written and read once only; a sample that is wrong makes ranges that are cut again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bireme.data.schema import Schema
from bireme.data.types import INT64, Field
from bireme.plan.draft import Opened
from bireme.plan.expr import Column, Expr, SortKey
from bireme.plan.physical import EmitSink, ProgramStep, RangeSink, SampleSink, ScanSource, SortStep, Take, TopSink
from bireme.plan.relation import Sort
from bireme.plan.tree import all_columns, columns_in, mask_of, remap, substitute
from bireme.units import MIB

if TYPE_CHECKING:
    from bireme.plan.lower import Lowering

# Above this many rows a top-n keeps so much per slot that sorting everything once is as good.
_TOP_ROWS_MAX: Final = 65_536
# Sorting fewer rows takes a few milliseconds.
_ROWS_PER_RANGE: Final = 131_072
_RANGES_MAX: Final = 512
# Smaller ranges are nearer to the caches; of more than so many ranges the pieces of a batch become short.
_RANGES_IN_MEMORY_MAX: Final = 16
_KEPT_BYTES_MAX: Final = 128 * MIB
# Gathered rows and ranges together take less than all memory as long as the rows have no more shares than this.
_SHARES_IN_MEMORY: Final = 6
# Splits that are read before for their keys: enough to see how a table that is in some order goes on.
_SAMPLED_SPLITS: Final = 32


def lower_sort(lowering: Lowering, rel: Sort) -> Opened:
    """All rows in order, or the first after an offset."""
    opened = lowering.open(rel.input)
    keys = tuple([SortKey(lowering.bind(key.expr, opened), key.descending, key.nulls_first) for key in rel.keys])
    if rel.limit is not None and rel.limit + rel.offset <= _TOP_ROWS_MAX:
        return _top(lowering, rel, opened, keys, rel.limit)
    partitions = _ranges(lowering, opened) if rel.limit is None and not rel.offset else 1
    if partitions > 1:
        return _by_ranges(lowering, opened, keys, partitions)
    edge = lowering.draft.edge("sort", opened.schema, opened.rows)
    lowering.draft.close(opened, EmitSink(edge))
    ordered = lowering.draft.from_edge(edge, Take.PARTITION, "sort")
    ordered.add(SortStep(keys, rel.limit, rel.offset), rel.schema)
    return ordered


def _shares(lowering: Lowering, opened: Opened) -> float:
    """How many partitions the rows would fill."""
    return opened.rows * opened.schema.row_bytes / lowering.partition_bytes_max


def _ranges(lowering: Lowering, opened: Opened) -> int:
    """In how many ranges to sort: enough for all slots, and none too large for its share of memory."""
    in_memory = min(max(lowering.partitions_max, _RANGES_IN_MEMORY_MAX), opened.rows / _ROWS_PER_RANGE)
    wanted = max(opened.rows * opened.schema.row_bytes / lowering.range_bytes_max, in_memory)
    return int(min(wanted, _RANGES_MAX)) if wanted >= 2 else 1


def _by_ranges(lowering: Lowering, opened: Opened, keys: tuple[SortKey, ...], partitions: int) -> Opened:
    """Rows are cut into ranges that a sample of them tells apart, and each range is sorted alone."""
    schema, sample = opened.schema, lowering.sample_name()
    positioned = Schema((*schema.fields, Field("position", INT64, False)))
    before = _keys_before(opened, keys) if _shares(lowering, opened) > _SHARES_IN_MEMORY else None
    if before is not None:
        chosen = tuple(
            [SortKey(Column(at, key.expr.type), key.descending, key.nulls_first) for at, key in enumerate(keys)]
        )
        opened.after.add(lowering.draft.close(before, SampleSink(None, chosen, sample)))
        cut = opened
    else:
        gathered = lowering.draft.edge("unsorted", schema, opened.rows)
        cut = lowering.draft.from_edge(gathered, Take.STREAM, "ranges")
        cut.after.add(lowering.draft.close(opened, SampleSink(gathered, keys, sample)))
    edge = lowering.draft.edge("sort", positioned, opened.rows, partitions)
    lowering.draft.close(cut, RangeSink(edge, keys, sample, min(2 * lowering.range_bytes_max // 3, _KEPT_BYTES_MAX)))
    ordered = lowering.draft.from_edge(edge, Take.PARTITION, "sort")
    ordered.add(SortStep((*keys, SortKey(Column(len(schema), INT64))), None, 0, sample), positioned)
    ordered.project(all_columns(schema), schema.names, schema)
    return ordered


def _keys_before(opened: Opened, keys: tuple[SortKey, ...]) -> Opened | None:
    """A pipeline that reads the keys of some splits; None where rows are not merely those of a table."""
    source, steps = opened.source, opened.steps
    if not isinstance(source, ScanSource) or source.row_numbers or len(steps) > 1:
        return None
    predicate: Expr | None = None
    exprs = tuple([key.expr for key in keys])
    if steps:
        step = steps[0]
        if not isinstance(step, ProgramStep):
            return None
        predicate, exprs = step.predicate, substitute(exprs, step.exprs)
    read = columns_in(mask_of(exprs if predicate is None else (predicate, *exprs)))
    if not read:
        return None
    places = {old: new for new, old in enumerate(read)}
    filters = [remap(each, places) for each in source.filters if set(columns_in(mask_of([each]))) <= set(read)]
    columns = tuple([source.columns[at] for at in read])
    scan = ScanSource(source.table, source.version, columns, tuple(filters), splits_max=_SAMPLED_SPLITS)
    sampled = Opened("sample", scan, [opened.schemas[0].select(read)], after=set(opened.after), rows=opened.rows)
    names = tuple([f"k{at}" for at in range(len(keys))])
    schema = Schema(tuple([Field(name, key.expr.type) for name, key in zip(names, keys, strict=True)]))
    computed = remap(exprs, places)
    sampled.add(ProgramStep(None if predicate is None else remap(predicate, places), computed, names), schema)
    return sampled


def _top(lowering: Lowering, rel: Sort, opened: Opened, keys: tuple[SortKey, ...], limit: int) -> Opened:
    """Each slot keeps the first rows; the position that the sink appends makes the order total, so stable."""
    schema = Schema((*opened.schema.fields, Field("position", INT64, False)))
    total = (*keys, SortKey(Column(len(opened.schema), INT64)))
    edge = lowering.draft.edge("top", schema, min(opened.rows, float(limit + rel.offset)))
    lowering.draft.close(opened, TopSink(edge, total, limit + rel.offset))
    ordered = lowering.draft.from_edge(edge, Take.PARTITION, "top")
    ordered.add(SortStep(total, limit, rel.offset), schema)
    ordered.project(all_columns(rel.schema), rel.schema.names, rel.schema)
    return ordered

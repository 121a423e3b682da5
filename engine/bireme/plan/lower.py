"""Relations to pipelines: picks algorithms, cuts big operators at their edges, fuses the rest.

Which aggregates are partitioned, what a sort keeps and which shared relations run once is decided here, from row
estimates handed in; joins are in `lower_join`, aggregates in
`lower_group`, windows in `lower_window`. What the estimates are is in `statistics`, what the runtime is told in
`placement`. The input is an optimized plan: no correlated subqueries, no distinct or filtered aggregates, no grouping
sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from bireme.config import Levers
from bireme.data.ids import EdgeId, PipelineId
from bireme.data.types import BOOL
from bireme.plan import lower_join
from bireme.plan.draft import Draft, Opened, is_identity
from bireme.plan.expr import Call, Expr, ScalarSubquery
from bireme.plan.lookups import with_lookups
from bireme.plan.lower_group import arrange_finals, lower_aggregate
from bireme.plan.lower_sort import lower_sort
from bireme.plan.lower_window import lower_window
from bireme.plan.membership import Member, MemberEstimates, Memberships
from bireme.plan.physical import (
    AssumeStep,
    BuildSink,
    Dag,
    EmitSink,
    LimitStep,
    ProgramStep,
    Scalar,
    ScalarSink,
    ScanSource,
    Take,
    UnnestStep,
    ValuesSource,
)
from bireme.plan.placement import place
from bireme.plan.range_keys import RangeKeys
from bireme.plan.relation import (
    Aggregate,
    Assume,
    Filter,
    Join,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.share_filtered import share_filtered
from bireme.plan.share_scans import share_scans
from bireme.plan.statistics.estimator import Estimator
from bireme.plan.statistics.matching import covered
from bireme.plan.top_bound import with_bounds
from bireme.plan.top_per_key import wanted_of_keys
from bireme.plan.tree import all_columns, column, columns_in, holds_subquery, map_expr, mask_of, remap
from bireme.units import GIB

# What bringing a row into order takes beside it: its codes and its place, twice.
_ORDERED_ROW_BYTES: Final = 40
# Partitions of windows. In memory so many keep all slots busy and each near to the caches.
_PARTITIONS_IN_MEMORY_MAX: Final = 16
_ROWS_PER_PARTITION: Final = 131_072
_PARTITIONS_MAX: Final = 512
_ALL_LEVERS: Final = Levers()
_NO_ROWS: Final = ValuesSource(())


def lower(
    plan: Rel,
    *,
    estimates: Estimator,
    shared: Collection[Rel],
    partitions_max: int,
    partition_bytes_max: int = GIB,
    range_bytes_max: int = GIB,
    levers: Levers = _ALL_LEVERS,
) -> Dag:
    """The Dag that computes `plan`.

    `estimates` are of the run that made `plan`, `shared` are the relations to run once although read more than once,
    `partitions_max` limits the partitions of one edge (a small multiple of the compute slots is right) where none of
    them is expected to be larger than `partition_bytes_max`; ranges of a sort are up to `range_bytes_max` large.
    """
    lowering = Lowering(estimates, shared, partitions_max, partition_bytes_max, range_bytes_max, levers)
    opened = lowering.open(plan)
    result = lowering.draft.edge("result", opened.schema, opened.rows)
    lowering.draft.close(opened, EmitSink(result))
    dag = arrange_finals(lowering.draft.dag(result, plan.schema))
    if levers.runtime_filters:
        dag = _with_runtime_filters(dag, lowering.member_estimates())
    return place(with_bounds(dag) if levers.top_bounds else dag)


def _with_runtime_filters(dag: Dag, estimates: MemberEstimates) -> Dag:
    if not any(isinstance(pipeline.sink, BuildSink) for pipeline in dag.pipelines):
        return share_filtered(dag, estimates)
    memberships = Memberships(dag)
    shared = share_filtered(share_scans(dag, memberships, estimates), estimates)
    return with_lookups(shared, memberships if shared is dag else Memberships(shared), estimates)


class Lowering:
    """One run of `lower`: the draft so far, and what has been lowered once already."""

    def __init__(
        self,
        estimates: Estimator,
        shared: Collection[Rel],
        partitions_max: int,
        partition_bytes_max: int,
        range_bytes_max: int,
        levers: Levers,
    ) -> None:
        self.draft = Draft()
        self.estimates = estimates
        self.rows = estimates.rows
        self.levers = levers
        self._shared = frozenset(shared)
        self.partitions_max = partitions_max
        self.partition_bytes_max = partition_bytes_max
        self.range_bytes_max = range_bytes_max
        self._materialised: dict[Rel, EdgeId] = {}
        self._scalars: dict[ScalarSubquery, tuple[Scalar, PipelineId]] = {}
        # The join tables that further joins may use, by what they are made of.
        self.built: dict[tuple[Rel, tuple[Expr, ...], int, bool, bool, RangeKeys | None], tuple[str, PipelineId]] = {}
        self._tables: dict[str, tuple[Rel, tuple[Expr, ...]]] = {}
        self._scans: dict[tuple[str, str], Scan] = {}
        self._samples = 0
        self._unordered: set[Window] = set()

    def open(self, rel: Rel) -> Opened:
        """A pipeline that gives the rows of `rel`, without a sink."""
        if rel in self._shared:
            return self._open_shared(rel)
        return self._open_fresh(rel)

    def _open_fresh(self, rel: Rel) -> Opened:
        opened = _LOWER[type(rel)](self, rel)
        opened.rows = self.rows(rel)
        return opened

    def _open_shared(self, rel: Rel) -> Opened:
        edge = self._materialised.get(rel)
        if edge is None:
            opened = self._open_fresh(rel)
            edge = self.draft.edge("shared", opened.schema, opened.rows)
            self.draft.close(opened, EmitSink(edge))
            self._materialised[rel] = edge
        return self.draft.from_edge(edge, Take.STREAM, "shared")

    def is_shared(self, rel: Rel) -> bool:
        return rel in self._shared

    def table_name(self, side: Rel, keys: tuple[Expr, ...]) -> str:
        """A fresh name for a join table of `side`."""
        name = f"table{len(self._tables)}"
        self._tables[name] = (side, keys)
        return name

    def scan_source(self, rel: Scan, opened: Opened) -> ScanSource:
        """What a pipeline that scans `rel` reads."""
        self._scans[rel.table, rel.version] = rel
        return ScanSource(rel.table, rel.version, rel.columns, self.bind_all(rel.filters, opened))

    def member_estimates(self) -> MemberEstimates:
        """Estimates of scans and join tables of the Dag, for the choice of lookups."""

        def scan_of(source: ScanSource) -> Scan:
            schema = self._scans[source.table, source.version].table_schema
            return Scan(source.table, source.version, schema, source.columns)

        def read(source: ScanSource) -> Rel:
            return RowNumbers(scan_of(source)) if source.row_numbers else scan_of(source)

        def kept(source: ScanSource, member: Member) -> float:
            side, keys = self._tables[member.table]
            scan = read(source)
            columns = [column(scan.schema, index) for index in member.columns]
            return covered(self.estimates, scan, side, columns, keys, 1.0)

        def fulfilling(source: ScanSource, condition: Expr) -> float:
            scan = scan_of(source)
            return self.rows(Filter(scan, condition)) / max(1.0, self.rows(scan))

        return MemberEstimates(
            scanned=lambda source: self.rows(scan_of(source)),
            built=lambda table: self.rows(self._tables[table][0]),
            kept=kept,
            fulfilling=fulfilling,
        )

    def bind(self, expr: Expr, opened: Opened) -> Expr:
        """The expression with scalar subqueries replaced by the scalars they become; `opened` waits for those."""
        if not holds_subquery(expr):
            return expr

        def replace(node: Expr) -> Expr:
            if not isinstance(node, ScalarSubquery):
                return node
            scalar, pipeline = self._scalar(node)
            opened.after.add(pipeline)
            return scalar

        return map_expr(expr, replace)

    def bind_all(self, exprs: tuple[Expr, ...], opened: Opened) -> tuple[Expr, ...]:
        return tuple([self.bind(expr, opened) for expr in exprs]) if any(map(holds_subquery, exprs)) else exprs

    def _scalar(self, subquery: ScalarSubquery) -> tuple[Scalar, PipelineId]:
        known = self._scalars.get(subquery)
        if known is None:
            assert isinstance(subquery.plan, Rel)
            opened = self.open(subquery.plan)
            scalar = Scalar(f"scalar{len(self._scalars)}", subquery.type)
            known = (scalar, self.draft.close(opened, ScalarSink(scalar.scalar)))
            self._scalars[subquery] = known
        return known

    def sample_name(self) -> str:
        """A fresh name for a sample of keys."""
        self._samples += 1
        return f"sample{self._samples - 1}"

    def note_unordered(self, rel: Rel) -> None:
        """Whoever reads the rows of `rel` does not see in which order they come."""
        while isinstance(rel, Project | Filter) and not self.is_shared(rel):
            rel = rel.input
        if isinstance(rel, Window) and not self.is_shared(rel):
            self._unordered.add(rel)

    def window_partitions(self, rel: Window, opened: Opened) -> int:
        """In how many partitions to compute windows. They do not keep the order of rows, so where that is seen there is
        one as long as it fits.
        """
        if rel in self._unordered:
            return self.row_partitions(opened)
        fitting = self.partitions_that_fit(opened)
        return int(min(fitting, _PARTITIONS_MAX)) if fitting > self.partitions_max else 1

    def row_partitions(self, opened: Opened) -> int:
        """In how many partitions to take rows whole, where the order in which they came is not seen."""
        fitting = max(
            self.partitions_that_fit(opened), min(_PARTITIONS_IN_MEMORY_MAX, opened.rows / _ROWS_PER_PARTITION)
        )
        return max(1, int(min(fitting, _PARTITIONS_MAX)))

    def partitions_that_fit(self, opened: Opened) -> float:
        """How many partitions there have to be, so that each fits in memory with what bringing it into order takes."""
        return opened.rows * (opened.schema.row_bytes + _ORDERED_ROW_BYTES) / (2 * self.partition_bytes_max)


# ------------------------------------------------------------------------------------------- streaming relations


def _scan(lowering: Lowering, rel: Scan) -> Opened:
    opened = Opened(f"scan {rel.table}", _NO_ROWS, [rel.schema])
    opened.source = lowering.scan_source(rel, opened)
    return opened


def _row_numbers(lowering: Lowering, rel: RowNumbers) -> Opened:
    opened = Opened(f"scan {rel.input.table}", _NO_ROWS, [rel.schema])
    source = lowering.scan_source(rel.input, opened)
    opened.source = ScanSource(source.table, source.version, source.columns, source.filters, (), True)
    return opened


def _assume(lowering: Lowering, rel: Assume) -> Opened:
    opened = lowering.open(rel.input)
    opened.add(AssumeStep(rel.one, rel.other), rel.schema)
    return opened


def _values(lowering: Lowering, rel: Values) -> Opened:
    return Opened("values", ValuesSource(rel.rows), [rel.schema])


def _filter(lowering: Lowering, rel: Filter) -> Opened:
    if isinstance(rel.input, Window) and not lowering.is_shared(rel.input):
        opened = lower_window(lowering, rel.input, wanted_of_keys(rel, rel.input))
        opened.rows = lowering.rows(rel.input)
    else:
        opened = lowering.open(rel.input)
    predicate = lowering.bind(rel.predicate, opened)
    last = opened.steps[-1] if opened.steps else None
    if isinstance(last, ProgramStep) and is_identity(last.exprs, opened.schemas[-2]):
        # The earlier predicate guards the later one, so it comes first.
        joined = predicate if last.predicate is None else Call("and", (last.predicate, predicate), BOOL)
        opened.replace_last(ProgramStep(joined, last.exprs, last.names), opened.schema)
    else:
        opened.add(ProgramStep(predicate, all_columns(opened.schema), opened.schema.names), opened.schema)
    return opened


def _project(lowering: Lowering, rel: Project) -> Opened:
    if isinstance(rel.input, Join) and not lowering.is_shared(rel.input):
        # The join gathers only what is read of it.
        wanted = columns_in(mask_of(rel.exprs))
        opened = lower_join.lower_join(lowering, rel.input, wanted)
        opened.rows = lowering.rows(rel.input)
        places = {old: new for new, old in enumerate(wanted)}
        exprs = remap(rel.exprs, places)
    else:
        opened = lowering.open(rel.input)
        exprs = rel.exprs
    opened.project(lowering.bind_all(exprs, opened), rel.names, rel.schema)
    return opened


def _union(lowering: Lowering, rel: Union) -> Opened:
    edge = lowering.draft.edge("union", rel.schema, lowering.rows(rel))
    for source in rel.sources:
        lowering.draft.close(lowering.open(source), EmitSink(edge))
    return lowering.draft.from_edge(edge, Take.STREAM, "union")


def _unnest(lowering: Lowering, rel: Unnest) -> Opened:
    opened = lowering.open(rel.input)
    opened.add(UnnestStep(rel.kept, rel.lists, rel.keeps_empty, rel.has_ordinality), rel.schema)
    return opened


def _limit(lowering: Lowering, rel: Limit) -> Opened:
    if isinstance(rel.input, Sort) and rel.input.limit is None and not lowering.is_shared(rel.input):
        return lower_sort(lowering, Sort(rel.input.input, rel.input.keys, rel.limit, rel.offset))
    opened = lowering.open(rel.input)
    edge = lowering.draft.edge("limit", opened.schema, opened.rows)
    lowering.draft.close(opened, EmitSink(edge))
    limited = lowering.draft.from_edge(edge, Take.SERIAL, "limit")
    limited.add(LimitStep(rel.limit, rel.offset), rel.schema)
    return limited


def _join(lowering: Lowering, rel: Join) -> Opened:
    return lower_join.lower_join(lowering, rel, list(range(len(rel.schema))))


_LOWER: Final[dict[type[Rel], Callable[[Lowering, Any], Opened]]] = {
    Scan: _scan,
    RowNumbers: _row_numbers,
    Assume: _assume,
    Values: _values,
    Filter: _filter,
    Project: _project,
    Union: _union,
    Unnest: _unnest,
    Limit: _limit,
    Join: _join,
    Aggregate: lower_aggregate,
    Sort: lower_sort,
    Window: lower_window,
}

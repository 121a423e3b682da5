"""The physical plan: a Dag of pipelines joined by edges.

A pipeline is source → steps → sink. A task is one pipeline over one input. Pipelines meet only in edges (live: Batch
Holders) and in named states (join tables, scalars) that one pipeline makes and later ones read. Big operators are cut
into pipelines at their edges: an aggregate is a partial grouping that emits partitions, and a merge of each
partition; a sort gathers; a join is a build and a probe. That cut is what gives holders something to spill.
Lowering from relations is in `lower`; running, in `operators` (what a task does) and `runtime` (when and where).
"""

from __future__ import annotations

from bireme.data.choice import Choice
from bireme.data.ids import EdgeId, PipelineId
from bireme.data.node import Node, node
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.plan.expr import Expr, Literal, SortKey, WindowCall
from bireme.plan.hint import NO_HINT, Hint
from bireme.plan.range_keys import RangeBounds, RangeKeys
from bireme.plan.relation import JoinKind
from bireme.plan.top_per_key import TopPerKey
from bireme.plan.window_order import NotedKeys

# ---------------------------------------------------------------------------------------------- sources


@node
class Lookup(Node):
    """A runtime filter: rows whose `columns` (positions in the scan) equal no build row of `table` may be dropped.

    `table` is a join table that is built before the scan's pipeline starts; the columns stand for its keys, in their
    order. It promises nothing: whoever needs the rows gone probes the table as well. `kept` is the share of the rows
    that are expected to remain.
    """

    table: str
    columns: tuple[int, ...]
    kept: float = 1.0


@node
class TopBound(Node):
    """A runtime filter: rows may be dropped that come after as many others as the pipeline's TopSink keeps.

    `key` is the first key of the sink's order, over the columns of the scan. Where it `is_sole`, the place of a row
    decides between equal keys, so that of rows further on equal ones may be dropped too. It promises nothing.
    """

    key: SortKey
    is_sole: bool


@node
class ScanSource(Node):
    """Reads a table: one task per split (a row group, say). `filters`, `lookups` and `bound` may skip splits and rows;
    they promise nothing. Lookups come in the order in which they are best asked. With `row_numbers`, the number of each
    row in the table (INT64, from 0) follows the columns. With a `bound`, splits are read in the order of its key, as
    far as their statistics tell it. With `splits_max` only so many splits are read, spread over the table: a sample.
    """

    table: str
    version: str
    columns: tuple[int, ...]
    filters: tuple[Expr, ...]
    lookups: tuple[Lookup, ...] = ()
    row_numbers: bool = False
    bound: TopBound | None = None
    splits_max: int | None = None


@node
class ValuesSource(Node):
    """Literal rows, in one task."""

    rows: tuple[tuple[Literal, ...], ...]


class Take(Choice):
    """How a pipeline takes from its edge.

    STREAM: a task per batch, as batches come, in any number at once. SERIAL: a task per batch, one at a time, in the
    order of the edge. PARTITION: once all producers are done, a task a partition, over all its batches (in order), even
    where it has none. RUNS: a task per run of batches that follow each other and make a row group of a file, in any
    number at once. SERIAL and RUNS need an ordered edge.
    """

    STREAM = "stream"
    SERIAL = "serial"
    PARTITION = "partition"
    RUNS = "in runs"


@node
class EdgeSource(Node):
    """Takes batches from an edge; a run of them has about `run_bytes_max` bytes at most."""

    edge: EdgeId
    take: Take
    run_bytes_max: int = 0


class BuildRows(Choice):
    """Which rows of a join table an UnmatchedSource gives: MARK all, with a BOOL column whether each was matched."""

    UNMATCHED = "unmatched"
    MATCHED = "matched"
    MARK = "mark"


@node
class UnmatchedSource(Node):
    """Rows of the build side by whether a probe matched them, in one task, in the order they were built in.

    So RIGHT and FULL joins give unmatched rows, and SEMI, ANTI and MARK joins whose left side was built, their result.
    """

    table: str
    rows: BuildRows = BuildRows.UNMATCHED


Source = ScanSource | ValuesSource | EdgeSource | UnmatchedSource

# ------------------------------------------------------------------------------------------------ steps


@node
class ProgramStep(Node):
    """Keeps the rows where `predicate` is TRUE (None: all) and computes `exprs` for them."""

    predicate: Expr | None
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]


@node
class ProbeStep(Node):
    """Looks rows up in the join table called `table`.

    The stream is the left side. Output columns: `left_output` positions of the stream, then `right_output` positions
    of the build side, or the mark. Meanings are those of `relation.Join`; `residual` is over all stream columns
    followed by all build columns; a table with ranges answers `bounds`, part of it, by the order of its rows. With
    `track_matches`, the table remembers which rows were matched (RIGHT, FULL).
    """

    table: str
    kind: JoinKind
    keys: tuple[Expr, ...]
    residual: Expr | None
    null_equal_count: int
    null_aware: bool
    track_matches: bool
    left_output: tuple[int, ...]
    right_output: tuple[int, ...]
    bounds: RangeBounds | None = None


@node
class LimitStep(Node):
    """Skips `offset` rows and passes `limit` (None: all); only in SERIAL pipelines."""

    limit: int | None
    offset: int


@node
class MergeGroupsStep(Node):
    """First step of a PARTITION pipeline: merges group states and ungrouped rows. `sample` is one of a GroupSink."""

    spec: GroupSpec
    names: tuple[str, ...]
    sample: str | None = None


@node
class SortStep(Node):
    """First step of a PARTITION pipeline: rows in order, or `limit` after `offset`. `sample` is a RangeSink's."""

    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int
    sample: str | None = None


@node
class WindowStep(Node):
    """First step of a PARTITION pipeline: appends window functions; all rows of a window are in one partition. One that
    is too large can be cut by the columns `keys`, by which all windows are partitioned, or, with a `sample`, by order.
    """

    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]
    keys: tuple[int, ...] = ()
    sample: str | None = None


@node
class UnnestStep(Node):
    """Gives the elements of the columns `lists`, one a row; meanings are those of `relation.Unnest`."""

    kept: tuple[int, ...]
    lists: tuple[int, ...]
    keeps_empty: bool
    has_ordinality: bool


@node
class AssumeStep(Node):
    """Passes rows; one of which the columns `one` and `other` differ is a SourceMisstated."""

    one: int
    other: int


@node
class EncodeStep(Node):
    """Only step of a RUNS pipeline: rows of `schema` become row groups of a Parquet file, a row of output each."""

    schema: Schema


WholeStep = MergeGroupsStep | SortStep | WindowStep
Step = ProgramStep | ProbeStep | LimitStep | WholeStep | UnnestStep | AssumeStep | EncodeStep

# ------------------------------------------------------------------------------------------------ sinks


@node
class AggregateStep(Node):
    """One aggregate: `arg` is a position in a group table's input, None for count_star; quantiles have a `fraction`."""

    function: str
    arg: int | None
    arg_type: DataType | None
    type: DataType
    fraction: float = 0.0


@node
class GroupSpec(Node):
    """A grouping: batches have keys, then arguments. Without keys there is one group, also over no input."""

    key_types: tuple[DataType, ...]
    aggregates: tuple[AggregateStep, ...]


@node
class EmitSink(Node):
    """Puts batches, but for rows that `top` does not want, on an edge, by hash of `partition_keys` over partitions."""

    edge: EdgeId
    partition_keys: tuple[int, ...] = ()
    top: TopPerKey | None = None
    noted: NotedKeys | None = None


@node
class SampleSink(Node):
    """Keeps the keys of a share of the rows as the sample `sample`; puts batches on an edge, if any, as they come."""

    edge: EdgeId | None
    keys: tuple[SortKey, ...]
    sample: str


@node
class RangeSink(Node):
    """Appends each row's position (INT64) and splits rows over the partitions of an edge: each has a range of the order
    `keys`, as the sample `sample` tells ranges of about equal size apart. Partitions that are sorted one by one, by the
    keys and the position, follow each other in order. A slot keeps up to `kept_bytes_max` of small pieces back.
    """

    edge: EdgeId
    keys: tuple[SortKey, ...]
    sample: str
    kept_bytes_max: int


@node
class Finals(Node):
    """Groups that are whole as soon as their split has passed go straight on, to `edge`, with their results.

    Key number `key` is the scanned table's `column` in every row, and splits state ranges of it that hardly overlap: a
    group whose key no other split can hold is final. `steps` are run over the results; `schemas` are those before and
    after each. A key outside of its split's stated range is a SourceMisstated.
    """

    edge: EdgeId
    key: int
    column: int
    steps: tuple[ProgramStep, ...]
    schemas: tuple[Schema, ...]


@node
class GroupSink(Node):
    """Groups what comes, per compute slot; at the end puts the states on an edge, by partition of the keys. Where that
    hardly makes rows fewer, they go there as they came (`states.is_input` tells them from states).
    """

    edge: EdgeId
    spec: GroupSpec
    finals: Finals | None = None
    noted: NotedKeys | None = None


@node
class TopSink(Node):
    """Appends each row's position (INT64) and keeps the first `limit` rows by `keys` per compute slot; at the end puts
    them on an edge. The last key is the position.
    """

    edge: EdgeId
    keys: tuple[SortKey, ...]
    limit: int


@node
class MatchSink(Node):
    """Marks the rows of the join table that what comes matches, found as by a ProbeStep. See `UnmatchedSource`."""

    table: str
    keys: tuple[Expr, ...]
    residual: Expr | None
    null_equal_count: int
    bounds: RangeBounds | None = None


@node
class BuildSink(Node):
    """Makes the join table `table` of what comes, in the order of inputs; of null-aware probes all `has_residual`."""

    table: str
    keys: tuple[Expr, ...]
    null_equal_count: int
    null_aware: bool
    has_residual: bool = False
    ranges: RangeKeys | None = None


@node
class ScalarSink(Node):
    """Keeps the one value that comes as the scalar `scalar`: NULL for no row, CardinalityFault for two."""

    scalar: str


Sink = EmitSink | SampleSink | RangeSink | GroupSink | TopSink | MatchSink | BuildSink | ScalarSink


@node
class Scalar(Expr):
    """The value that a ScalarSink kept, as an expression; a constant by the time the pipeline that holds it starts."""

    scalar: str
    type: DataType


# --------------------------------------------------------------------------------------------- the Dag


@node
class Pipeline(Node):
    """One pipeline. It may start when all in `after` are done; `schemas` are those after its source and each step."""

    id: PipelineId
    name: str
    source: Source
    steps: tuple[Step, ...]
    sink: Sink
    after: tuple[PipelineId, ...]
    schemas: tuple[Schema, ...]
    hint: Hint = NO_HINT


@node
class Edge(Node):
    """Where batches wait between pipelines.

    `producers` in the order in which their batches count (a union's inputs); `consumers` each read every batch. An
    `ordered` edge gives its batches in the order of producers, of their inputs, and of their outputs.
    """

    id: EdgeId
    name: str
    schema: Schema
    producers: tuple[PipelineId, ...]
    consumers: tuple[PipelineId, ...]
    partitions: int = 1
    ordered: bool = False
    hint: Hint = NO_HINT


@node
class Dag(Node):
    """What a worker runs, pipelines after those they need. `result`, an ordered edge, is read by the caller alone."""

    pipelines: tuple[Pipeline, ...]
    edges: tuple[Edge, ...]
    result: EdgeId
    schema: Schema

"""A Dag whose result is to be a Parquet file: a last pipeline encodes runs of its rows, on all slots.

What it gives are row groups, in the order of the rows; `storage.parquet_row_groups` puts them together. So encoding is
work like any other: it runs as room is there, waits for a caller who is slow, and ends with its query.
"""

from __future__ import annotations

from typing import Final

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.node import replaced
from bireme.data.schema import Schema
from bireme.data.types import BINARY, INT64, Field
from bireme.plan.hint import Hint
from bireme.plan.physical import Dag, Edge, EdgeSource, EmitSink, EncodeStep, Pipeline, Take
from bireme.plan.placement import place
from bireme.units import MIB

ROW_GROUPS: Final = Schema(
    (Field("chunks", BINARY, False), Field("metadata", BINARY, False), Field("rows", INT64, False))
)
# How many times its bytes encoding nested values takes beside them, and which part of the memory one row group of them
# may be for that.
NESTED_COPIES: Final = 5
_NESTED_IN_MEMORY: Final = 24
_NESTED_BYTES_MIN: Final = 2 * MIB
# What encoded rows take of their bytes, roughly.
_ENCODED_SHARE: Final = 0.4


def nested_bytes_max(memory_bytes: int) -> int:
    """How many bytes of rows with nested values make a row group."""
    return max(_NESTED_BYTES_MIN, memory_bytes // _NESTED_IN_MEMORY)


def as_parquet(dag: Dag, *, run_bytes_max: int) -> Dag:
    """The same Dag, with the row groups of a file as its result (`ROW_GROUPS`); a task encodes up to so many bytes."""
    edge, pipeline = EdgeId(len(dag.edges)), PipelineId(len(dag.pipelines))
    rows = dag.edges[dag.result]
    hint = Hint(rows_expected=1, bytes_expected=int(_ENCODED_SHARE * rows.hint.bytes_expected))
    encoding = Pipeline(
        pipeline,
        "encode",
        EdgeSource(rows.id, Take.RUNS, run_bytes_max),
        (EncodeStep(dag.schema),),
        EmitSink(edge),
        (),
        (rows.schema, ROW_GROUPS),
        hint,
    )
    edges = [replaced(each, consumers=(pipeline,)) if each.id == rows.id else each for each in dag.edges]
    result = Edge(edge, "file", ROW_GROUPS, (pipeline,), (), 1, True, hint)
    return place(Dag((*dag.pipelines, encoding), (*edges, result), edge, ROW_GROUPS))

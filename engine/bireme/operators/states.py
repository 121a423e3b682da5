"""What one pipeline of a query leaves for later ones: join tables and scalars.

Written by the sink that makes them, in the task that makes them; read only by pipelines that the Dag starts after it.
So nothing here is locked. Tables go when the last pipeline that reads them has ended, everything when the query ends.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.base import JoinTable, KeyFilter
from bireme.config import Levers
from bireme.data.batch import measure
from bireme.data.ids import EdgeId, PipelineId
from bireme.data.key_range import KeyRange
from bireme.data.schema import Schema
from bireme.errors import Cancelled, DataError, EngineBug
from bireme.operators.top_bound import LiveBound
from bireme.plan.expr import Expr, Literal
from bireme.plan.physical import Scalar
from bireme.plan.tree import map_expr

if TYPE_CHECKING:
    import numpy.typing as npt

    from bireme.operators.away import Away


@dataclass(slots=True)
class BuiltTable:
    """A finished build side: all its rows in one batch, their keys where NULLs among them will be looked at one by
    one, and the table to look them up in.

    `key_columns` are the positions in `batch` of keys that are columns, None for others. `matched` has an entry per row
    when some probe tracks matches. Probes on many threads set entries to True and nobody reads before all probes are
    done, so the order of writes does not matter. `away` tells which rows of the build side are not here, if some are;
    `fault` is of a key that could not be computed.
    """

    batch: pa.RecordBatch
    schema: Schema
    keys: pa.RecordBatch | None
    table: JoinTable
    matched: npt.NDArray[np.bool_]
    key_columns: tuple[int | None, ...] = ()
    away: Away | None = None
    fault: DataError | None = None

    def key_filter(self) -> KeyFilter | None:
        """Which keys the whole build side may hold; None where that is not known."""
        if self.fault is not None:
            return None
        # A filter of the rows that are here would drop rows that match the others.
        return self.table.key_filter() if self.away is None else self.away.key_filter

    @property
    def nbytes(self) -> int:
        keys = 0 if self.keys is None else measure(self.keys)
        return int(measure(self.batch) + keys + self.table.nbytes + self.matched.nbytes)


class Cluster(NamedTuple):
    """The range of a key that a split states, and the part of it that no other split of the scan touches."""

    stated: KeyRange
    final: KeyRange


@dataclass(frozen=True, slots=True)
class TableUses:
    """Who reads the join tables of a query: scans those `looked_up`, as runtime filters; pipelines that probe or match
    them, and those that read their rows afterwards, by table. Past the tables `in_order` comes a stream whose order has
    to stay, so all of their rows are there at once.
    """

    looked_up: frozenset[str] = frozenset()
    probers: Mapping[str, tuple[PipelineId, ...]] = field(default_factory=dict)
    readers_of_rest: Mapping[str, tuple[PipelineId, ...]] = field(default_factory=dict)
    in_order: frozenset[str] = frozenset()


@dataclass(slots=True)
class KeySample:
    """Keys of a share of the rows that came to a sort. Any slot adds to it, in any order.

    `placed` are those of rows that were cut into ranges at `splitters`, with their positions.
    """

    keys: list[pa.RecordBatch] = field(default_factory=list)
    placed: list[pa.RecordBatch] = field(default_factory=list)
    splitters: pa.RecordBatch | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class QueryStates:
    """The named states of one query, which levers it may use, and the memory that all of the worker may use."""

    levers: Levers
    uses: TableUses = field(default_factory=TableUses)
    memory_bytes: int = 1 << 40
    tables: dict[str, BuiltTable] = field(default_factory=dict)
    scalars: dict[str, Literal] = field(default_factory=dict)
    clusters: dict[EdgeId, list[Cluster]] = field(default_factory=dict)
    bounds: dict[PipelineId, LiveBound] = field(default_factory=dict)
    samples: dict[str, KeySample] = field(default_factory=dict)
    stopped: bool = False

    def check(self) -> None:
        """Raises Cancelled once nobody wants what runs; long calls ask between their pieces."""
        if self.stopped:
            raise Cancelled("the query was cancelled")

    def table(self, name: str) -> BuiltTable:
        try:
            return self.tables[name]
        except KeyError:
            raise EngineBug(f"the join table {name} is read before it is built") from None

    def sample(self, name: str) -> KeySample:
        """The sample of that name; whoever comes first makes it."""
        return self.samples.setdefault(name, KeySample())

    def resolve(self, expr: Expr) -> Expr:
        """The expression with the scalars of finished pipelines in place of their names."""

        def constant(node: Expr) -> Expr:
            if not isinstance(node, Scalar):
                return node
            try:
                return self.scalars[node.scalar]
            except KeyError:
                raise EngineBug(f"the scalar {node.scalar} is read before it is known") from None

        return map_expr(expr, constant)

    def close(self) -> None:
        self.tables.clear()
        self.scalars.clear()
        self.clusters.clear()
        self.bounds.clear()
        self.samples.clear()

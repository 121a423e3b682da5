"""From a bound plan to a Dag: rules, estimates, lowering, with what the session's tables know.

Decides nothing itself; the rules are in `plan.optimize`, algorithms in `plan.lower`.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Final

import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.collector import collector_at_rest
from bireme.config import Config, Levers
from bireme.data.schema import Schema
from bireme.plan.context import PlanContext
from bireme.plan.expr import Expr
from bireme.plan.file_result import as_parquet
from bireme.plan.lower import lower
from bireme.plan.optimize import optimize
from bireme.plan.physical import Dag, ScanSource
from bireme.plan.relation import Rel
from bireme.plan.rules.share import shared
from bireme.plan.statistics import StatisticsCache
from bireme.session.tables import SessionTables
from bireme.units import MIB

# Plans hold no data; the limit keeps a session that never repeats itself from growing.
_PLANS_KEPT_MAX: Final = 64
# Two partitions per compute slot even out their sizes; more only cut them smaller.
_PARTITIONS_PER_SLOT: Final = 2
# A task that sorts a range needs about twice its bytes. With more threads more of them are to run at once.
_RANGE_SHARES: Final = 2.75
# A task that sorts a partition holds it, its keys and what it gives; another one waits behind it.
_MEMORY_SHARES: Final = 8


class Planner:
    """Plans the queries of a session."""

    def __init__(self, tables: SessionTables, kernels: Kernels, config: Config) -> None:
        self._tables = tables
        self._kernels = kernels
        self._partitions_max = max(4, _PARTITIONS_PER_SLOT * config.threads)
        self._partition_bytes_max = max(MIB, config.memory_bytes_max // (_MEMORY_SHARES * config.threads))
        self._range_bytes_max = max(MIB, int(config.memory_bytes_max / (_RANGE_SHARES * max(2, config.threads))))
        self._levers = config.levers
        self._cache = StatisticsCache()
        self._planned: dict[Rel, tuple[Rel, Dag]] = {}
        self._lock = threading.Lock()

    def optimize(self, plan: Rel) -> Rel:
        """The plan after all rules."""
        return optimize(plan, self.context())

    def plan(self, plan: Rel) -> tuple[Rel, Dag]:
        """The plan after all rules, and its pipelines; both from the same estimates.

        Plans of equal queries are one object, and scans name the version of their table, so what was planned once for
        the same object is still right.
        """
        with self._lock:
            known = self._planned.pop(plan, None)
            if known is not None:
                self._planned[plan] = known  # now the most recent
        if known is None:
            with collector_at_rest():
                known = self._plan(plan, self._levers)
            with self._lock:
                self._planned[plan] = known
                while len(self._planned) > _PLANS_KEPT_MAX:
                    del self._planned[next(iter(self._planned))]
        return known

    def replan(self, plan: Rel) -> tuple[Rel, Dag]:
        """As `plan`, from now on without what only holds where statistics do."""
        planned = self._plan(plan, replace(self._levers, clustering=False, late_columns=False))
        with self._lock:
            self._planned[plan] = planned
        return planned

    def as_parquet(self, dag: Dag) -> Dag:
        """The same Dag with row groups of a Parquet file as its result."""
        return as_parquet(dag, run_bytes_max=self._partition_bytes_max)

    def forget(self) -> None:
        """Forgets the plans of recent queries; what was learned of tables stays."""
        with self._lock:
            self._planned.clear()

    def _plan(self, plan: Rel, levers: Levers) -> tuple[Rel, Dag]:
        context = replace(self.context(), levers=levers)
        optimized = optimize(plan, context)
        dag = lower(
            optimized,
            estimates=context.estimates,
            shared=shared(optimized),
            partitions_max=self._partitions_max,
            partition_bytes_max=self._partition_bytes_max,
            range_bytes_max=self._range_bytes_max,
            levers=levers,
        )
        return optimized, dag

    def context(self) -> PlanContext:
        """What a planning run may ask of the session."""
        return PlanContext(source=self._tables.source, evaluate=self._evaluate, cache=self._cache, levers=self._levers)

    def _evaluate(self, predicate: Expr, batch: pa.RecordBatch, schema: Schema) -> pa.BooleanArray:
        program = self._kernels.program(schema, predicate=None, exprs=[predicate], names=["predicate"])
        return program.run(batch).column(0)


def scanned(dag: Dag) -> set[str]:
    """The names of the tables that a Dag reads, in lower case."""
    return {pipeline.source.table.lower() for pipeline in dag.pipelines if isinstance(pipeline.source, ScanSource)}

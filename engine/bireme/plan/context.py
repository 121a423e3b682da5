"""What rules may ask about the world outside the plan: tables, and the value of a predicate on a sample.

Rules that need neither ignore it. Who builds a context is the session; the figures made from it are in `statistics`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import pyarrow as pa

from bireme.config import Levers
from bireme.data.schema import Schema
from bireme.plan.expr import Expr
from bireme.plan.source import TableSource
from bireme.plan.statistics.bounds import Bounds
from bireme.plan.statistics.cache import StatisticsCache
from bireme.plan.statistics.estimator import Estimator
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The outside world of one planning run.

    `source(table, version)` finds the table of a `Scan`. `evaluate(predicate, batch, schema)` gives a predicate's
    value for every row of a batch with the columns of `schema` (NULL for unknown); it may raise DataError or
    Unsupported, which a caller that only estimates takes for «not known».
    `cache` keeps what samples told across the queries of a session; `estimates` and `bounds` are this run's. `levers`
    say what may be used.
    """

    source: Callable[[str, str], TableSource]
    evaluate: Callable[[Expr, pa.RecordBatch, Schema], pa.BooleanArray]
    cache: StatisticsCache = field(default_factory=StatisticsCache)
    levers: Levers = field(default_factory=Levers)
    estimates: Estimator = field(init=False)
    bounds: Bounds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimates", Estimator(self.source, self.evaluate, self.cache))
        object.__setattr__(self, "bounds", Bounds(self.estimates.samples.statistics, self.cache))

"""A planner's context over given tables, with predicates evaluated by the reference kernels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bireme.backends.reference import ReferenceKernels
from bireme.frontend.catalog import TableCatalog
from bireme.plan.context import PlanContext
from bireme.plan.source import TableSource
from bireme.plan.statistics import StatisticsCache
from bireme.storage.parquet import open_parquet
from support.tpc_data import tables


def context_over(sources: Mapping[str, TableSource], cache: StatisticsCache | None = None) -> PlanContext:
    """What rules may ask of these tables."""
    kernels = ReferenceKernels()

    def evaluate(predicate, batch, schema):
        program = kernels.program(schema, predicate=None, exprs=[predicate], names=["predicate"])
        return program.run(batch).column(0)

    return PlanContext(lambda table, _: sources[table], evaluate, StatisticsCache() if cache is None else cache)


def parquet_tables(folder: Path) -> dict[str, TableSource]:
    """The tables of a folder, by name."""
    return {name: open_parquet(path) for name, path in tables(folder).items()}


def catalog_of(sources: Mapping[str, TableSource]) -> TableCatalog:
    """A catalog whose versions are those of the sources."""
    return TableCatalog({name: (source.version, source.schema) for name, source in sources.items()})

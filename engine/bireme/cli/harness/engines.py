"""The engines of the harness behind one small protocol. Each is imported only in the process that runs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from bireme.errors import ConfigError
from bireme.units import parse_bytes


@dataclass(frozen=True, slots=True)
class Opening:
    """What an engine is opened with. `hot` loads the tables into the engine's own memory, `cache` is bireme's alone."""

    tables: dict[str, Path]
    threads: int
    memory_limit: str | None
    hot: bool
    cache: bool
    levers: str


class Engine(Protocol):
    """Runs SQL over tables."""

    def run(self, sql: str) -> pa.Table: ...


def open_engine(name: str, opening: Opening) -> Engine:
    """The engine called `name`, after one small query, so that no measured one pays for loading the engine's parts.

    Raises ConfigError where it is not installed.
    """
    try:
        engine = _MAKERS[name](opening)
    except ImportError as error:
        raise ConfigError(f"the engine {name} is not installed ({error}); run: pip install 'bireme[bench]'") from error
    smallest = min(opening.tables, key=lambda table: opening.tables[table].stat().st_size)
    engine.run(f"select count(*) as total from {smallest}")
    return engine


class _Bireme:
    def __init__(self, opening: Opening) -> None:
        from bireme.session import connect

        self._session = connect(
            threads=opening.threads, memory_limit=opening.memory_limit, levers=opening.levers or None
        )
        for table, path in opening.tables.items():
            self._session.register(table, path)
            if opening.hot or opening.cache:
                self._session.table(table).cache()

    def run(self, sql: str) -> pa.Table:
        return self._session.sql(sql).collect()


class _DuckDB:
    def __init__(self, opening: Opening) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": opening.threads})
        if opening.memory_limit is not None:
            self._connection.execute(f"set memory_limit = '{parse_bytes(opening.memory_limit)}B'")
        kind = "table" if opening.hot else "view"
        for table, file in opening.tables.items():
            path = str(file).replace("'", "''")
            self._connection.execute(f"create {kind} {table} as select * from read_parquet('{path}')")

    def run(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table()


class _Polars:
    def __init__(self, opening: Opening) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(opening.threads)
        import polars

        self._context = polars.SQLContext()
        for table, path in opening.tables.items():
            frame = polars.read_parquet(path).lazy() if opening.hot else polars.scan_parquet(path)
            self._context.register(table, frame)

    def run(self, sql: str) -> pa.Table:
        frame = self._context.execute(sql.strip().rstrip(";"), eager=False)
        return frame.collect(engine="streaming").to_arrow()


class _DataFusion:
    def __init__(self, opening: Opening) -> None:
        import datafusion

        if opening.hot:
            raise ConfigError("tables in memory are not offered for datafusion; leave --hot or the engine out")
        config = datafusion.SessionConfig().with_target_partitions(opening.threads)
        runtime = datafusion.RuntimeEnvBuilder()
        if opening.memory_limit is not None:
            runtime = runtime.with_fair_spill_pool(parse_bytes(opening.memory_limit))
        self._context = datafusion.SessionContext(config, runtime)
        for table, path in opening.tables.items():
            self._context.register_parquet(table, str(path))

    def run(self, sql: str) -> pa.Table:
        return self._context.sql(sql).to_arrow_table()


_MAKERS: Final[dict[str, Callable[[Opening], Engine]]] = {
    "bireme": _Bireme,
    "duckdb": _DuckDB,
    "polars": _Polars,
    "datafusion": _DataFusion,
}

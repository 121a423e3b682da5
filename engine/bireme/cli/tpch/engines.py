"""The engines of the harness behind one small protocol. Each is imported only in the process that runs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from bireme.cli.tpch.data import TABLES
from bireme.errors import ConfigError
from bireme.units import parse_bytes


class Engine(Protocol):
    """Runs SQL over the tables of a folder."""

    def run(self, sql: str) -> pa.Table: ...


def open_engine(name: str, folder: Path, threads: int, memory_limit: str | None) -> Engine:
    """The engine called `name`, after one small query, so that no measured one pays for loading the engine's parts.

    Raises ConfigError where it is not installed.
    """
    try:
        engine = _MAKERS[name](folder, threads, memory_limit)
        engine.run("select count(*) as nations from nation")
        return engine
    except ImportError as error:
        raise ConfigError(f"the engine {name} is not installed ({error}); run: pip install 'bireme[bench]'") from error


class _Bireme:
    def __init__(self, folder: Path, threads: int, memory_limit: str | None) -> None:
        from bireme.session import connect

        self._session = connect(threads=threads, memory_limit=memory_limit)
        for table in TABLES:
            self._session.register(table, folder / f"{table}.parquet")

    def run(self, sql: str) -> pa.Table:
        return self._session.sql(sql).collect()


class _DuckDB:
    def __init__(self, folder: Path, threads: int, memory_limit: str | None) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": threads})
        if memory_limit is not None:
            self._connection.execute(f"set memory_limit = '{parse_bytes(memory_limit)}B'")
        for table in TABLES:
            path = str(folder / f"{table}.parquet").replace("'", "''")
            self._connection.execute(f"create view {table} as select * from read_parquet('{path}')")

    def run(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table()


class _Polars:
    def __init__(self, folder: Path, threads: int, memory_limit: str | None) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars

        self._context = polars.SQLContext()
        for table in TABLES:
            self._context.register(table, polars.scan_parquet(folder / f"{table}.parquet"))

    def run(self, sql: str) -> pa.Table:
        frame = self._context.execute(sql.strip().rstrip(";"), eager=False)
        return frame.collect(engine="streaming").to_arrow()


class _DataFusion:
    def __init__(self, folder: Path, threads: int, memory_limit: str | None) -> None:
        import datafusion

        config = datafusion.SessionConfig().with_target_partitions(threads)
        runtime = datafusion.RuntimeEnvBuilder()
        if memory_limit is not None:
            runtime = runtime.with_fair_spill_pool(parse_bytes(memory_limit))
        self._context = datafusion.SessionContext(config, runtime)
        for table in TABLES:
            self._context.register_parquet(table, str(folder / f"{table}.parquet"))

    def run(self, sql: str) -> pa.Table:
        return self._context.sql(sql).to_arrow_table()


_MAKERS: Final[dict[str, Callable[[Path, int, str | None], Engine]]] = {
    "bireme": _Bireme,
    "duckdb": _DuckDB,
    "polars": _Polars,
    "datafusion": _DataFusion,
}

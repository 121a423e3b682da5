"""The 22 TPC-H queries on generated Parquet files equal DuckDB's answers, by SQL and by DataFrame, in every setting."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import duckdb
import pyarrow as pa
import pytest
from support.tpc_data import tpch_folder

import bireme as bm
from bireme.cli.harness.answers import difference, order_columns
from bireme.cli.tpch.data import TABLES
from bireme.cli.tpch.selection import query_text

QUERIES = Path(__file__).resolve().parents[2] / "queries"
# The reference kernels are slow on purpose; two threads and a small budget are for the scheduler.
SETTINGS = {
    "native": {"backend": "native", "threads": 2, "memory_limit": "1GiB"},
    "native, one thread": {"backend": "native", "threads": 1, "memory_limit": "1GiB"},
    "reference": {"backend": "reference", "threads": 2, "memory_limit": "1GiB"},
}


def _frames() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tpch_frames", QUERIES / "tpch" / "frames.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FRAMES = _frames().QUERIES


@pytest.fixture(scope="module")
def folder() -> Path:
    return tpch_folder()


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[Callable[[int], pa.Table]]:
    answers: dict[int, pa.Table] = {}
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.execute(f"create view {table} as select * from read_parquet('{folder / table}.parquet')")

        def answer(query: int) -> pa.Table:
            if query not in answers:
                answers[query] = connection.sql(query_text(query)).to_arrow_table()
            return answers[query]

        yield answer


@pytest.fixture(scope="module", params=SETTINGS)
def session(request: pytest.FixtureRequest, folder: Path) -> Iterator[bm.Session]:
    with bm.connect(**SETTINGS[request.param]) as session:
        for table in TABLES:
            session.register(table, folder / f"{table}.parquet")
        yield session


@pytest.mark.parametrize("query", range(1, 23))
def test_sql(query: int, session: bm.Session, oracle: Callable[[int], pa.Table]) -> None:
    frame = session.sql(query_text(query))
    answer = frame.collect()
    assert answer.schema.equals(frame.schema)
    assert difference(answer, oracle(query), order_columns(query_text(query))) is None


@pytest.mark.parametrize("query", FRAMES)
def test_frame(query: int, session: bm.Session, oracle: Callable[[int], pa.Table]) -> None:
    answer = FRAMES[query](session).collect()
    assert difference(answer, oracle(query), order_columns(query_text(query))) is None

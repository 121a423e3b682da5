"""Joins in less memory than their build sides take, on real threads and files: the answers of a roomy session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.join_cases import rows_of

import bireme
from bireme.units import MIB

_ROWS = 300_000
_QUERIES = (
    "select a.v % 7 as g, count(*) as n, sum(b.w) as s from a join b on a.k = b.k group by 1",
    "select count(*) as n, count(b.w) as m, sum(a.v) as s from a left join b on a.k = b.k and a.v < b.w",
    "select count(*) as n, count(a.v) as m, sum(b.w) as s from a full join b on a.k = b.k",
    "select count(*) as n, sum(v) as s from a where exists (select 1 from b where a.k = b.k)",
    "select count(*) as n, sum(v) as s from a where k not in (select k from b where k is not null)",
    "select count(*) as n, min(a.t) as t from a join b on a.t = b.t",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables of about 10 MB of keys that repeat, hardly match, are NULL, and of one key that is everywhere."""
    path = tmp_path_factory.mktemp("joins")
    places = range(_ROWS)
    a = {"k": [n * 7 % 400_000 for n in places], "v": [n % 1_000 for n in places], "t": [f"t{n}" for n in places]}
    giant = [None if n % 50 == 0 else 7 if n % 300 == 0 else n * 11 % 500_000 for n in places]
    b = {"k": giant, "w": [n % 900 for n in places], "t": [f"t{n * 3}" for n in places]}
    pq.write_table(pa.table(a), path / "a.parquet", row_group_size=20_000)
    pq.write_table(pa.table(b), path / "b.parquet", row_group_size=20_000)
    return path


def session_of(folder: Path, spill: Path, memory_limit: int) -> bireme.Session:
    session = bireme.connect(threads=2, memory_limit=memory_limit, spill_folder=spill)
    for name in ("a", "b"):
        session.register(name, folder / f"{name}.parquet")
    return session


@pytest.mark.parametrize("query", _QUERIES)
def test_little_memory_changes_no_answer(folder: Path, tmp_path: Path, query: str) -> None:
    with session_of(folder, tmp_path / "roomy", 1 << 30) as roomy, session_of(folder, tmp_path / "s", 8 * MIB) as short:
        assert rows_of(short.sql(query).collect()) == rows_of(roomy.sql(query).collect())


def test_what_changed_over_is_shown(folder: Path, tmp_path: Path) -> None:
    with session_of(folder, tmp_path / "s", 8 * MIB) as short:
        told = short.sql(_QUERIES[0]).explain(analyze=True)
    assert "partitions are in memory" in told
    assert "rows that waited for join tables" in told
    with session_of(folder, tmp_path / "roomy", 1 << 30) as roomy:
        assert "waited for join" not in roomy.sql(_QUERIES[0]).explain(analyze=True)

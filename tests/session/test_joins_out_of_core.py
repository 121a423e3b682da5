"""Joins in less memory than their build sides take, on real threads and files: the answers of a roomy session."""

from __future__ import annotations

from pathlib import Path

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
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


def test_a_build_that_changed_over_still_tells_scans_which_keys_it_has(tmp_path: Path) -> None:
    places = np.arange(_ROWS)
    few = pa.table({"k": 1_000_000 + places * 3 % 90_000, "w": [f"a wide text {n}" for n in places]})
    many = pa.table({"k": places * 20, "v": places})
    pq.write_table(few, tmp_path / "b.parquet", row_group_size=20_000)
    pq.write_table(many, tmp_path / "a.parquet", row_group_size=20_000)
    query = "select count(*) as n, count(distinct b.w) as w, sum(a.v) as s from a join b on a.k = b.k"
    with session_of(tmp_path, tmp_path / "s", 8 * MIB) as short:
        told = short.sql(query).explain(analyze=True)
        got = short.sql(query).collect()
    right = duckdb.sql(
        query.replace("join b", f"join '{tmp_path}/b.parquet' b").replace("from a", f"from '{tmp_path}/a.parquet' a")
    )
    assert rows_of(got) == {right.fetchall()[0]: 1}
    assert "partitions are in memory" in told
    assert "no runtime filter" not in told
    scanned = next(line for line in told.splitlines() if line.startswith("scan a"))
    assert "300 k →" not in scanned, scanned


_KINDS = (
    "select {a}.v, {b}.v as w, {b}.t from {a} join {b} on {on}",
    "select {a}.v, {b}.v as w from {a} left join {b} on {on}",
    "select {a}.v, {b}.v as w from {a} right join {b} on {on}",
    "select {a}.v, {b}.v as w, {b}.t from {a} full join {b} on {on}",
    "select v, t from {a} where exists (select 1 from {b} where {on})",
    "select v, t from {a} where not exists (select 1 from {b} where {on})",
    "select v, exists (select 1 from {b} where {on}) as m from {a}",
    "select v from {a} where k in (select k from {b} where {b}.t is not distinct from {a}.t)",
    "select v, k in (select k from {b}) as m from {a}",
    "select v from {a} where k not in (select k from {b} where {b}.t = {a}.t)",
    "select v, k in (select k from {b} where {b}.t = {a}.t) as m from {a}",
)
_ON = ("{a}.k = {b}.k", "{a}.t = {b}.t", "{a}.k = {b}.k and {a}.g = {b}.g")
_RESIDUALS = ("", " and {a}.v < {b}.v", " and {a}.v % 3 + {b}.v % 2 = 2")


def drawn(seed: int, rows: int, giant: int, has_nulls: bool) -> pa.Table:
    """Rows with keys of which one has `giant` rows; the others repeat a few times, some are NULL."""
    random = np.random.default_rng(seed)
    keys = random.integers(1, rows, rows)
    keys[random.permutation(rows)[:giant]] = 0
    mask = random.random(rows) < 0.02 if has_nulls else np.zeros(rows, bool)
    return pa.table(
        {
            "k": pa.array(keys, mask=mask),
            "t": pa.array([f"a text that takes some room: {key}" for key in keys], mask=mask),
            "g": keys % 5,
            "v": np.arange(rows),
        }
    )


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(_KINDS), on=st.sampled_from(_ON), residual=st.sampled_from(_RESIDUALS),
    seed=st.integers(0, 1 << 20), giants=st.sampled_from([(0, 0), (60, 3_000), (400, 200)]), nulls=st.booleans(),
    limit=st.sampled_from([2, 4]),
)  # fmt: skip
def test_drawn_joins_in_the_memory_of_a_few_batches(
    spill_folder: Path, kind: str, on: str, residual: str, seed: int, giants: tuple[int, int],
    nulls: bool, limit: int,
) -> None:  # fmt: skip
    tables = {"a": drawn(seed, 15_000, giants[0], nulls), "b": drawn(seed + 1, 25_000, giants[1], nulls)}
    query = kind.replace("{on}", on + residual).replace("{a}", "a").replace("{b}", "b")
    with (
        duckdb.connect(config={"threads": 1}) as connection,
        bireme.connect(threads=2, memory_limit=limit * MIB, spill_folder=spill_folder) as session,
    ):
        for name, table in tables.items():
            connection.register(name, table)
            session.register(name, table)
        assert rows_of(session.sql(query).collect()) == rows_of(connection.sql(query).to_arrow_table())

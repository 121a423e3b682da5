"""Joins by inequalities, of every kind, against DuckDB: drawn conditions, in little memory, and what explain says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import drawn
from support.join_cases import rows_of
from support.two_engines import check

import bireme as bm
from bireme.units import MIB

# Types by how one of their values comes from a small number.
_TYPES = {
    "bigint": "{0}",
    "smallint": "cast({0} as smallint)",
    "utinyint": "cast({0} + 100 as utinyint)",
    "double": "case when {0} % 13 = 0 then 'nan'::double when {0} % 7 = 0 then -0.0::double else {0} / 4.0 end",
    "float": "cast({0} / 4.0 as float)",
    "decimal(9,2)": "cast({0} / 4.0 as decimal(9,2))",
    "decimal(30,4)": "cast({0} / 4.0 as decimal(30,4)) + 12345678901234567890",
    "date": "date '2020-01-01' + cast({0} as integer)",
    "timestamp": "timestamp '2020-01-01' + to_hours({0})",
    "varchar": "'a text that takes some room ' || {0}",
    "boolean": "{0} % 2 = 0",
    "integer[]": "[1, cast({0} as integer)]",
}
# No ANTI JOIN, which DuckDB 2.0.1 answers otherwise than NOT EXISTS where a condition follows two ranges.
_KINDS = (
    "select a.id, b.id as other from a join b on {0}",
    "select a.id, a.t, b.id as other from a left join b on {0}",
    "select a.id, b.id as other, b.t from a right join b on {0}",
    "select a.id, a.t, b.id as other, b.t as text from a full join b on {0}",
    "select id from a where exists (select 1 from b where {0})",
    "select id from b where not exists (select 1 from a where {0})",
    "select id, exists (select 1 from b where {0}) as mark from a",
    "select id, exists (select 1 from a where {0}) as mark from b",
    "select count(*) as n, count(b.id) as m, sum(a.id) as total from a left join b on {0}",
)
_COLUMNS = ("s", "e", "x")


def _inequality(parts: tuple[str, str, str]) -> str:
    left, sign, right = parts
    return f"a.{left} {sign} b.{right}"


_INEQUALITIES = st.tuples(
    st.sampled_from(_COLUMNS), st.sampled_from(("<", "<=", ">", ">=")), st.sampled_from(_COLUMNS)
).map(_inequality)
_SHAPES = st.sampled_from(
    (
        "a.s < b.e and b.s < a.e",
        "a.s <= b.e and b.s <= a.e",
        "a.x between b.s and b.e",
        "b.x between a.s and a.e",
        "a.x between b.s and b.e and b.x between a.s and a.e",
        "a.s < b.s and b.e < a.e",
    )
)
_RANGES = st.one_of(_SHAPES, st.lists(_INEQUALITIES, min_size=1, max_size=4).map(" and ".join))
_BESIDE = (
    "", "", " and a.k = b.k", " and a.k is not distinct from b.k", " and (a.k + b.k) % 3 <> 1", " and a.k <> b.k",
    " and a.k > 1", " and a.k = b.k and a.t <= b.t and (a.k is null or b.id % 3 = 1)", " and a.id % 2 < b.k",
)  # fmt: skip


def _raw(rng: np.random.Generator, rows: int, spread: int, *, has_nulls: bool) -> pa.Table:
    """Rows with numbers that are to become values of some type: s mostly before e, and x; a key k, and a text t."""
    starts = rng.integers(-40, spread, rows)
    numbers = {"s": starts, "e": starts + rng.integers(-2, 1 + spread // 4, rows), "x": rng.integers(-40, spread, rows)}
    numbers["k"] = rng.integers(0, 4, rows)
    made = {
        name: pa.array(np.clip(values, -99, 150), mask=rng.random(rows) < 0.08 if has_nulls else None)
        for name, values in numbers.items()
    }
    return pa.table(
        {"id": np.arange(rows), **made, "t": pa.array([f"t{number % 11}" for number in range(rows)], pa.string())}
    )


def _tables(seed: int, rows: tuple[int, int], kind: str, spread: int, *, nulls: bool) -> duckdb.DuckDBPyConnection:
    rng = np.random.default_rng(seed)
    connection = duckdb.connect(config={"threads": 1})
    for name, count in zip("ab", rows, strict=True):
        connection.register("raw", _raw(rng, count, spread, has_nulls=nulls))
        columns = ", ".join([f"{_TYPES[kind].format(column)} as {column}" for column in _COLUMNS])
        connection.execute(f"create table {name} as select id, k, t, {columns} from raw")
        connection.unregister("raw")
    return connection


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[bm.Session]:
    with bm.connect(backend=request.param, threads=2, memory_limit="256MiB") as made:
        yield made


@drawn(60)
@given(
    kind=st.sampled_from(_KINDS), ranges=_RANGES, beside=st.sampled_from(_BESIDE), type_=st.sampled_from(tuple(_TYPES)),
    rows=st.tuples(st.sampled_from((0, 1, 70, 300)), st.sampled_from((0, 5, 90, 400))), seed=st.integers(0, 1 << 20),
    spread=st.sampled_from((20, 140)), nulls=st.booleans(),
)  # fmt: skip
def test_drawn_joins(
    session: bm.Session, kind: str, ranges: str, beside: str, type_: str, rows: tuple[int, int], seed: int,
    spread: int, nulls: bool,
) -> None:  # fmt: skip
    with _tables(seed, rows, type_, spread, nulls=nulls) as connection:
        for name in "ab":
            session.register(name, connection.sql(f"from {name}").to_arrow_table())
        check(kind.format(ranges + beside), session, connection)


_LARGE = 12_000


def _large(seed: int, rows: int, *, reach: int) -> pa.Table:
    """Rows of some hundred bytes, with intervals that few others meet."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 40 * _LARGE, rows)
    mask = rng.random(rows) < 0.01
    return pa.table(
        {
            "id": np.arange(rows),
            "k": rng.integers(0, 3, rows),
            "s": pa.array(starts, mask=mask),
            "e": starts + rng.integers(0, reach, rows),
            "x": pa.array(rng.integers(0, 40 * _LARGE, rows), mask=rng.random(rows) < 0.01),
            "t": [f"{number}: a text that takes so much room that it does not all fit" * 4 for number in range(rows)],
        }
    )


@drawn(8)
@given(
    kind=st.sampled_from(_KINDS), limit=st.sampled_from((2, 4)), seed=st.integers(0, 1 << 20),
    condition=st.sampled_from(
        (
            "a.s < b.e and b.s < a.e",
            "a.x between b.s and b.e",
            "b.x >= a.s and b.x < a.e and a.id % 3 < b.id % 5",
            "a.s < b.e and b.s < a.e and a.k = b.k",
        )
    ),
)  # fmt: skip
def test_joins_of_sides_larger_than_memory(
    spill_folder: Path, kind: str, limit: int, seed: int, condition: str
) -> None:
    tables = {"a": _large(seed, _LARGE, reach=90), "b": _large(seed + 1, _LARGE // 2, reach=60)}
    with (
        duckdb.connect(config={"threads": 1}) as connection,
        bm.connect(threads=2, memory_limit=limit * MIB, spill_folder=spill_folder) as session,
    ):
        for name, table in tables.items():
            connection.register(name, table)
            session.register(name, table)
        query = kind.format(condition)
        assert rows_of(session.sql(query).collect()) == rows_of(connection.sql(query).to_arrow_table())


def test_a_row_may_match_millions() -> None:
    numbers = pa.table({"n": np.arange(3_000_000)})
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        session.register("few", pa.table({"lo": [0, 10, None], "hi": [2_999_999, 20, 5]}))
        session.register("many", numbers)
        query = "select count(*) as n, sum(n) as total from few {0} join many on many.n between few.lo and few.hi"
        expected = [(3_000_011, sum(range(3_000_000)) + sum(range(10, 21)))]
        assert [*zip(*session.sql(query.format("")).collect().to_pydict().values(), strict=True)] == expected
        left = session.sql(query.format("left")).collect().to_pydict()
        assert left["n"] == [3_000_012]


def test_explain_shows_what_answers_the_condition() -> None:
    numbers = pa.table({"s": np.arange(100), "e": np.arange(100) + 3, "k": np.arange(100) // 50})
    unique = pa.table({"k": np.arange(100), "s": np.arange(100)})
    with bm.connect(threads=2) as session:
        for name, table in {"a": numbers, "b": numbers, "c": unique}.items():
            session.register(name, table)
        overlap = session.sql("select count(*) as n from a join b on a.s < b.e and b.s < a.e and a.k <> b.k")
        told = overlap.explain(analyze=True)
        assert "in the order of" in told
        keyed = session.sql("select count(*) as n from a join b on a.k = b.k and a.s < b.s").explain(physical=True)
        assert "within (first" in keyed
        one_each = session.sql("select count(*) as n from a join c on a.k = c.k and a.s < c.s").explain(physical=True)
        assert "within" not in one_each

"""Joins of every kind over small drawn tables with NULLs and keys that most rows share, and DuckDB's answers."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa

QUERIES = (
    "select a.k, a.v, b.v as w, b.s from a join b on a.k = b.k",
    "select a.k, b.v as w from a join b on a.k = b.k and a.v < b.v",
    "select a.k, a.v, b.v as w from a left join b on a.k = b.k",
    "select a.k, a.v, b.v as w from a left join b on a.k = b.k and a.v < b.v",
    "select a.k, a.v, b.v as w from a right join b on a.k = b.k",
    "select a.k, a.v, b.v as w from a right join b on a.k = b.k and a.v < b.v",
    "select a.k, a.v, b.v as w, b.k as l from a full join b on a.k = b.k",
    "select a.k, a.v, b.v as w, b.k as l from a full join b on a.k = b.k and a.v < b.v",
    "select a.k, a.v from a where exists (select 1 from b where a.k = b.k)",
    "select a.k, a.v from a where exists (select 1 from b where a.k = b.k and a.v < b.v)",
    "select a.k, a.v from a where not exists (select 1 from b where a.k = b.k)",
    "select a.k, a.v from a where not exists (select 1 from b where a.k = b.k and a.v < b.v)",
    "select a.k, a.v from a where a.k in (select k from b)",
    "select a.k, a.v from a where a.k not in (select k from b)",
    "select a.k, a.v from a where a.k not in (select k from b where k is not null)",
    "select a.k, a.v, a.k in (select k from b) as m from a",
    "select a.k, a.v, a.k in (select k from b where k is not null) as m from a",
    "select a.k, a.v, a.k in (select k from b where b.s = a.s) as m from a",
    "select a.k, a.v from a where a.k not in (select k from b where b.s = a.s)",
    "select a.k, a.v, a.k in (select k from b where b.v > a.v) as m from a",
    "select a.k, a.v from a where (a.k, a.v) not in (select k, v from b)",
    "select a.k, a.v, exists (select 1 from b where a.k = b.k) as m from a",
    "select a.k, a.v, b.v as w from a join b on a.v < b.v and a.k > b.k + 10",
    "select a.s, a.v, b.v as w from a join b on a.s = b.s and a.k is not distinct from b.k",
    "select a.k, b.k as l, c.k as m from a join b on a.k = b.k join c on a.s = c.s",
    "select a.k, count(b.v) as n from a left join b on a.k = b.k left join c on a.s = c.s group by a.k",
    "select a.k, (select max(v) from b where b.k = a.k) as m from a",
    "select a.k, a.v, (select distinct c.k from c where c.k = a.k) as m from a",
    "select count(*) as n from a join b on a.k = b.k join c on b.s = c.s",
    "select a.k, b.v from a join b on a.k = b.k order by a.k desc, b.v, a.v limit 7",
)

_SIZES = {"a": (0, 1, 60, 300), "b": (0, 5, 400, 1_200, 1_200), "c": (50,)}


def drawn_tables(rng: random.Random) -> dict[str, pa.Table]:
    """The tables a, b and c, each in chunks of a drawn length."""
    return {name: _table(rng, rng.choice(sizes)) for name, sizes in _SIZES.items()}


def _table(rng: random.Random, rows: int) -> pa.Table:
    keys, nulls, giant = rng.choice((3, 40, 1_000)), rng.choice((0.0, 0.0, 0.05)), rng.choice((0.0, 0.3, 0.9))

    def key() -> int | None:
        if rng.random() < nulls:
            return None
        return 0 if rng.random() < giant else rng.randrange(keys)

    texts = [None if rng.random() < nulls else f"text {rng.randrange(keys)}" for _ in range(rows)]
    whole = pa.table(
        {
            "k": pa.array([key() for _ in range(rows)], pa.int64()),
            "s": pa.array(texts, pa.string()),
            "v": pa.array([rng.randrange(100) for _ in range(rows)], pa.int64()),
        }
    )
    step = rng.choice((13, 70, 1_000))
    return pa.concat_tables([whole.slice(start, step) for start in range(0, max(1, rows), step)])


def expected(tables: dict[str, pa.Table], query: str) -> Counter[tuple[Any, ...]]:
    """DuckDB's rows."""
    connection = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        connection.register(name, table)
    return Counter(connection.execute(query).fetchall())


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of an answer, in any order."""
    return Counter(zip(*[column.to_pylist() for column in table.columns], strict=True))

"""Lists and structs as keys of groups, joins and windows that do not fit in memory: the same answers as DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.duck import rows_of

import bireme as bm

ROWS = (
    "select i, [i % 3000, i % 7] as l, {'a': i % 2000, 'b': 'x' || (i % 50)} as s, i % 11 as v from range(60000) r(i)"
)
QUERIES = [
    "select l, count(*), sum(v) from t group by l order by l",
    "select s, count(*), min(i) from t group by s order by min(i)",
    "select l, median(v), quantile_disc(i, 0.9) from t group by l order by l",
    "select count(distinct l), count(distinct s) from t",
    "select count(*), sum(a.v * b.i) from t a join (select * from t where i % 5 = 0) b on a.l = b.l",
    "select count(*), sum(i) from t where s in (select s from t where v < 3)",
    "select sum(n), max(n) from (select row_number() over (partition by l order by i) as n from t)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_nested_keys_in_little_memory(query: str, tmp_path: Path) -> None:
    with duckdb.connect() as made, bm.connect(threads=2, memory_limit="4MiB", spill_folder=tmp_path) as session:
        made.execute(f"create table t as {ROWS}")
        session.register("t", made.sql("from t").to_arrow_table())
        found = session.sql(query).collect()
        assert rows_of(found.columns) == rows_of(made.sql(query).to_arrow_table().columns)

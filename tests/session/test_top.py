"""The first rows of many: as after a whole sort, whatever order they come in, with NULLs, NaNs and ties."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import bireme as bm

ROWS = 300_000


def values_of(kind: str, rng: random.Random) -> pa.Array:
    draws = {
        "int": lambda: rng.randint(-(10**6), 10**6),
        "few": lambda: rng.randint(0, 3),
        "float": lambda: rng.choice([math.nan, math.inf, -0.0, rng.uniform(-9, 9), rng.uniform(-9, 9)]),
        "string": lambda: f"{rng.randint(0, 10**6):x}",
        "date": lambda: rng.randint(0, 20_000),
        "bool": lambda: rng.random() < 0.5,
    }
    types = {"int": pa.int64(), "few": pa.int8(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
    values = [None if rng.random() < 0.001 else draws[kind]() for _ in range(ROWS)]
    return pa.array(values, pa.int32()).cast(pa.date32()) if kind == "date" else pa.array(values, types[kind])


def rank(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


@pytest.mark.parametrize(
    ("kind", "arrival"),
    [
        *[(kind, "random") for kind in ("int", "few", "float", "string", "date", "bool")],
        *[("int", arrival) for arrival in ("ascending", "descending")],
    ],
)
def test_first_rows(kind: str, arrival: str) -> None:
    array = values_of(kind, random.Random(kind))
    if arrival != "random":
        array = array.take(pa.compute.array_sort_indices(array, order=arrival))
    values = array.to_pylist()
    with bm.connect(threads=2) as session:
        session.register("t", pa.table({"v": array, "row": pa.array(range(ROWS), pa.int64())}))
        for descending in (False, True):
            for nulls_first in (False, True):
                order = f"v {'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
                got = session.sql(f"select row from t order by {order} limit 500 offset 3").collect()
                nulls = [row for row, value in enumerate(values) if value is None]
                rest = [row for row, value in enumerate(values) if value is not None]
                rest.sort(key=lambda row: rank(values[row]), reverse=descending)
                wanted = (nulls + rest if nulls_first else rest + nulls)[3:503]
                assert got.column("row").to_pylist() == wanted


def test_keys_that_are_computed() -> None:
    rng = random.Random(3)
    table = pa.table({"a": [rng.randint(-999, 999) for _ in range(ROWS)], "row": list(range(ROWS))})
    with bm.connect(threads=2) as session:
        session.register("t", table)
        got = session.sql("select row from t order by abs(a) desc, row desc limit 7").collect().column(0).to_pylist()
    keys = [(-abs(a), -row) for a, row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    assert got == sorted(range(ROWS), key=lambda row: keys[row])[:7]

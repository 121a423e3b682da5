"""Functions of lists over drawn lists of every type of element, against DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given
from support.drawn import drawn
from support.duck import difference, values_of

import bireme as bm

_LARGE = [Decimal(text) for text in ("-9.99", "0.00", "0.01", "123456789012345678901234567890.12")]
NUMBERS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bigint": (pa.int64(), st.sampled_from([-(2**63), -2, 0, 1, 7, 2**53 + 1, 2**63 - 1])),
    "ubigint": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "double": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 0.25, 7.0, 1e18])),
    "decimal": (pa.decimal128(9, 2), st.sampled_from(_LARGE[:3])),
}
ELEMENTS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **NUMBERS,
    "any double": (pa.float64(), st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1e300, math.inf, math.nan])),
    "long decimal": (pa.decimal128(38, 2), st.sampled_from(_LARGE)),
    "text": (pa.string(), st.sampled_from(["", "a", "é", "a\x00b", "B"])),
    "date": (pa.date32(), st.dates(date(1969, 12, 30), date(1970, 1, 2))),
    "bool": (pa.bool_(), st.booleans()),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 2), max_size=2)),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 1), "b": st.sampled_from([None, "x", "xy"])}),
    ),
}
# Where the order of a result is DuckDB's own, it is sorted.
OF_ANY = (
    "list_sort(list_distinct(l))", "list_unique(l)", "list_reverse(l)", "list_min(l)", "list_max(l)", "list_first(l)",
    "list_last(l)", "list_count(l)", "list_contains(l, e)", "list_position(l, e)", "list_concat(l, m, l)", "l || m",
    "list_has_any(l, m)", "list_has_all(l, m)", "list_sort(list_intersect(l, m))", "l[i]", "l[i:j]", "l[i:j:2]",
    "l[j:i:-1]", "l[i:j:k]", "flatten([l, m, l])", "list_sort(l)", "list_reverse_sort(l)", "list_grade_up(l)",
    "list_sort(l, 'DESC', 'NULLS FIRST')", "list_any_value(l)", "list_append(l, e)", "list_mode(l)",
)  # fmt: skip
OF_SOME = {
    "text": ("array_to_string(l, '|')", "list_string_agg(l)"),
    "bool": ("list_bool_and(l)", "list_bool_or(l)"),
    **dict.fromkeys(
        NUMBERS,
        (
            "list_sum(l)", "list_avg(l)", "list_median(l)", "list_var_samp(l)", "list_stddev_pop(l)", "list_sem(l)",
            "list_product(l)",
        ),
    ),
}  # fmt: skip


def tables(kind: pa.DataType, elements: st.SearchStrategy[Any]) -> st.SearchStrategy[pa.Table]:
    lists = st.none() | st.lists(st.none() | elements, max_size=6)
    place = st.none() | st.integers(-7, 7)
    step = st.integers(-3, 3).filter(bool)
    rows = st.lists(st.tuples(lists, lists, st.none() | elements, place, place, step), min_size=1, max_size=20)
    kinds = [pa.list_(kind), pa.list_(kind), kind, pa.int64(), pa.int64(), pa.int64()]
    return rows.map(
        lambda drawn: pa.table(
            [pa.array(list(column), of) for column, of in zip(zip(*drawn, strict=True), kinds, strict=True)],
            names=["l", "m", "e", "i", "j", "k"],
        )
    )


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("name", ELEMENTS)
@drawn(3)
@given(data=st.data())
def test_functions_of_lists_as_in_duckdb(data: st.DataObject, name: str, oracle: duckdb.DuckDBPyConnection) -> None:
    table = data.draw(tables(*ELEMENTS[name]))
    functions = [*OF_ANY, *OF_SOME.get(name, ())]
    query = f"select {', '.join(f'{function} as c{place}' for place, function in enumerate(functions))} from t"
    oracle.register("t", table)
    with bm.connect(threads=1) as session:
        session.register("t", table)
        found, wanted = session.sql(query).collect(), oracle.sql(query).to_arrow_table()
    for function, column, other in zip(functions, found.columns, wanted.columns, strict=True):
        differs = difference(values_of(column), values_of(other), 1e-9)
        assert not differs, f"{function}: {differs} in {table.to_pylist()}"

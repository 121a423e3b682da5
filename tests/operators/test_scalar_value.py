"""Nested values as constants: hashable, and the same values again in a batch."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import bireme as bm
from bireme.data.schema import Schema
from bireme.data.types import Field, from_arrow, to_arrow
from bireme.errors import ConversionFault
from bireme.operators.scalar_value import literal_batch, literal_of

PAIR = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
NANOSECONDS = pa.struct([("t", pa.timestamp("ns")), ("d", pa.duration("ns")), ("c", pa.time64("ns"))])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "lists of lists": (pa.list_(pa.list_(pa.int64())), [[[1], None, []], [], [[None, 2]]]),
    "structs": (PAIR, [{"a": 1, "b": ["x", None]}, {"a": None, "b": None}]),
    "maps": (pa.map_(pa.string(), pa.int64()), [[("x", 1), ("y", None)], []]),
    "maps of lists": (pa.map_(pa.string(), pa.list_(pa.int64())), [[("x", [1, 2]), ("y", None)], [("z", [])]]),
    "maps of structs": (pa.map_(pa.int64(), PAIR), [[(1, {"a": 2, "b": ["z"]}), (2, None)]]),
    "maps by structs": (pa.map_(PAIR, pa.string()), [[({"a": 2, "b": ["z"]}, "v")]]),
    "maps of maps": (pa.map_(pa.int64(), pa.map_(pa.int64(), pa.list_(pa.string()))), [[(1, [(2, ["a"])]), (3, [])]]),
    "structs of maps": (pa.struct([("m", pa.map_(pa.int64(), PAIR))]), [{"m": [(1, {"a": 2, "b": []})]}]),
    "structs of nanoseconds": (
        NANOSECONDS,
        [{"t": 1_234_567_891, "d": 77, "c": 99}, {"t": None, "d": None, "c": None}],
    ),
    "maps of nanoseconds": (pa.map_(pa.string(), pa.timestamp("ns")), [[("x", 1_234_567_891), ("y", None)]]),
    "lists of decimals": (pa.list_(pa.decimal128(20, 2)), [[Decimal("1.25"), None]]),
    "lists of intervals": (pa.list_(pa.month_day_nano_interval()), [[pa.MonthDayNano((1, 2, 3)), None]]),
}


@pytest.mark.parametrize("name", VALUES)
def test_nested_values_and_back(name: str) -> None:
    arrow, values = VALUES[name]
    kind = from_arrow(arrow)
    column = pa.array([*values, None], arrow)
    literals = [literal_of(column, row, kind) for row in range(len(column))]
    assert len({hash(literal.value) for literal in literals}) == len(literals)
    made = literal_batch([[literal] for literal in literals], Schema((Field("c", kind),))).column(0)
    assert made.type == to_arrow(kind)
    assert made.cast(arrow).equals(column)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("name", VALUES)
def test_nested_values_of_subqueries(name: str, backend: str) -> None:
    arrow, values = VALUES[name]
    column = pa.array([*values, None], arrow)
    with bm.connect(threads=1, backend=backend) as session:
        session.register("t", pa.table({"k": range(len(column)), "c": column}))
        for row in range(len(column)):
            found = session.sql(f"select (select c from t where k = {row}) as d from t").collect().column("d")
            assert found.cast(arrow).combine_chunks().equals(pa.concat_arrays([column.slice(row, 1)] * len(column)))


LATE = pa.array([2**62, 1, None, 2**61], pa.timestamp("us"))
INEXPRESSIBLE = {
    "timestamps": LATE,
    "lists of timestamps": pa.array([[2**62], [], None, [1]], pa.list_(pa.timestamp("us"))),
    "dates": pa.array([2**30, 5, None, -(2**30)], pa.int32()).cast(pa.date32()),
    "seconds": pa.array([2**50, 1], pa.timestamp("s")),
    "fields of one name": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
}


@pytest.mark.parametrize("name", INEXPRESSIBLE)
def test_values_that_cannot_become_constants(name: str) -> None:
    column = INEXPRESSIBLE[name]
    with pytest.raises(ConversionFault, match="cannot become a constant"):
        literal_of(column, 0, from_arrow(column.type))


@pytest.mark.parametrize("name", ["timestamps", "dates", "seconds"])
@pytest.mark.parametrize("order", ["c", "c desc"])
def test_the_first_rows_by_values_that_cannot_become_constants(name: str, order: str) -> None:
    column = INEXPRESSIBLE[name]
    with bm.connect(threads=1) as session:
        session.register("t", pa.table({"c": column}))
        first = session.sql(f"select c from t order by {order} limit 1").collect().column("c")
    assert first.combine_chunks().equals(column.drop_null().sort("descending" if "desc" in order else "ascending")[:1])

"""Tables made from Arrow data of any origin, and bringing Arrow layouts into the engine's own."""

import datetime
import random
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.parquet_files import read_rows, table_of

from bireme.data.layout import narrow_decimal, to_engine
from bireme.data.types import BOOL, FLOAT64, INT64, STRING, decimal, from_arrow, to_arrow
from bireme.errors import ArgumentFault, ConversionFault, Unsupported
from bireme.plan.expr import Call, Column, Literal
from bireme.storage.arrow_table import open_arrow
from bireme.storage.base import BATCH_ROWS_MAX

ROWS = [(1, "x"), (None, None), (3, "z")]
TABLE = pa.table({"n": [1, None, 3], "s": ["x", None, "z"]})


class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class Array:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


ORIGINS = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "batches": lambda: [TABLE.slice(0, 1).to_batches()[0], TABLE.slice(1).to_batches()[0]],
    "reader": lambda: TABLE.to_reader(),
    "polars": lambda: pl.DataFrame({"n": [1, None, 3], "s": ["x", None, "z"]}),
    "pandas": lambda: pd.DataFrame(
        {"n": pd.array([1, None, 3], dtype="Int64"), "s": ["x", None, "z"]}, index=["a", "b", "c"]
    ),
    "stream": Stream,
    "array": Array,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_any_origin_gives_the_same_table(origin):
    table = open_arrow(ORIGINS[origin]())
    assert table.schema.names == ("n", "s")
    assert table.schema.types == (INT64, STRING)
    assert read_rows(table, [0, 1]) == ROWS
    assert read_rows(table, [1]) == [row[1:] for row in ROWS]
    assert table.statistics().rows == 3
    assert open_arrow(ORIGINS[origin]()).version != table.version


@pytest.mark.parametrize("seed", range(6))
def test_every_type_keeps_its_values(seed):
    rng = random.Random(seed)
    table = table_of(40, rng)
    chunks = pa.Table.from_batches(table.to_batches(max_chunksize=rng.choice([1, 7, 40])))
    source = open_arrow(chunks)
    expected = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert str(read_rows(source, range(table.num_columns))) == str(expected)
    for split in source.splits(range(table.num_columns), []):
        for batch in split.decode([]):
            assert batch.schema.types == source.schema.to_arrow().types


LAYOUTS = [
    pa.array(["a", None, "bb"], pa.large_string()),
    pa.array(["a", None, "bb"], pa.string_view()),
    pa.array([b"a", None], pa.binary_view()),
    pa.array([b"aa", None], pa.binary(2)),
    pa.array([1.5, None], pa.float16()),
    pa.array([datetime.date(1960, 1, 1), None], pa.date64()),
    pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal128(9, 1)),
    pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal32(9, 1)),
    pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal256(30, 1)),
    pa.array([[1, None], None], pa.large_list(pa.int16())),
    pa.array([[1, 2], None], pa.list_(pa.int16(), 2)),
    pa.array([["a"], None], pa.list_(pa.string_view())),
    pa.array([1, None, 1], pa.int32()).dictionary_encode(),
    pa.array(["a", None, "b"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.large_string())),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.uint32()), pa.array(["a", None])),
]


@pytest.mark.parametrize("array", LAYOUTS, ids=lambda array: str(array.type))
@pytest.mark.parametrize("cut", [0, 1])
def test_layouts_are_brought_into_one(array, cut):
    array = array.slice(cut)
    kind = from_arrow(array.type)
    found = to_engine(array, kind)
    found.validate(full=True)
    assert found.to_pylist() == array.to_pylist()
    assert found.type in (to_arrow(kind), pa.dictionary(pa.int32(), pa.string()))
    assert to_engine(found, kind) is found


@pytest.mark.parametrize("rows", [0, 1, 3, 8, 9, 64, 100])
def test_narrow_decimals_of_slices_with_nulls(rows):
    rng = random.Random(rows)
    edge = 10**18 - 1
    values = [
        None if rng.random() < 0.3 else Decimal(rng.choice([edge, -edge, 0, -1, 1, rng.randint(-99, 99)]))
        for _ in range(rows + 5)
    ]
    array = pa.array(values, pa.decimal128(18, 0))
    for start in (0, 1, 3):
        piece = array.slice(start, rows)
        found = narrow_decimal(piece, pa.decimal64(18, 0))
        found.validate(full=True)
        assert found.to_pylist() == piece.to_pylist()
        assert found.null_count == piece.null_count


def test_a_decimal_with_too_many_digits_is_a_fault_and_garbage_under_a_null_is_not():
    words = np.array([5, 0, 7, 99, -1, -1], dtype=np.int64)  # 5; garbage; -1
    bad = pa.Array.from_buffers(pa.decimal128(9, 0), 3, [None, pa.py_buffer(words)])
    with pytest.raises(ConversionFault, match="more digits"):
        narrow_decimal(bad, pa.decimal64(9, 0))
    hidden = pa.Array.from_buffers(pa.decimal128(9, 0), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(words)])
    assert narrow_decimal(hidden, pa.decimal64(9, 0)).to_pylist() == [Decimal(5), None, Decimal(-1)]


def test_splits_are_slices_that_fit():
    rows = 2 * BATCH_ROWS_MAX + 9
    source = open_arrow(pa.table({"n": range(rows)}))
    splits = source.splits([0], [])
    assert [split.rows for split in splits] == [BATCH_ROWS_MAX, BATCH_ROWS_MAX, 9]
    assert [split.ranges for split in splits] == [(), (), ()]
    (last,) = splits[2].decode([])
    assert last.column(0).to_pylist() == list(range(rows - 9, rows))


def test_many_small_batches_become_few():
    word = pa.array(["x"]).dictionary_encode()
    source = open_arrow([pa.record_batch({"s": [f"{i}"], "d": word}) for i in range(500)])
    assert source.split_count() == 1
    assert read_rows(source, [0, 1])[498:] == [("498", "x"), ("499", "x")]


def test_dictionaries_of_batches_that_differ():
    columns = (["a", "b"], ["c", None], ["a"])
    batches = [pa.record_batch({"d": pa.array(words).dictionary_encode()}) for words in columns]
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["z", None]))
    source = open_arrow([*batches, pa.record_batch({"d": odd})])
    assert read_rows(source, [0]) == [("a",), ("b",), ("c",), (None,), ("a",), ("z",), (None,)]


def test_columns_of_no_rows_rows_of_no_columns_and_equal_names():
    assert read_rows(open_arrow(pa.table({"n": pa.array([], pa.int8())})), [0]) == []
    assert open_arrow(pa.table({"n": pa.array([], pa.int8())})).sample([0]).num_rows == 0
    counted = open_arrow(TABLE).splits([], [])
    assert [batch.num_rows for split in counted for batch in split.decode([])] == [3]
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert read_rows(open_arrow(twice), [1, 0, 1]) == [(2, 1, 2)]
    nothing = open_arrow(pa.table({}))
    assert (len(nothing.schema), nothing.statistics().rows) == (0, 0)


def test_statistics_and_pruning():
    rows = 3 * BATCH_ROWS_MAX
    table = pa.table(
        {
            "n": range(rows),
            "money": pa.array(range(rows), pa.int64()).cast(pa.decimal128(21, 2)).cast(pa.decimal128(18, 2)),
            "x": pa.array(np.arange(rows, dtype=np.float64)),
            "few": [("a", "b", None)[i % 3] for i in range(rows)],
        }
    )
    table = table.set_column(3, "few", table.column("few").combine_chunks().dictionary_encode())
    source = open_arrow(table)
    number, money, ratio, few = source.statistics().columns
    assert (number.minimum, number.maximum, number.null_count, number.clustered) == (0, rows - 1, 0, True)
    assert (money.minimum, money.maximum) == (Decimal("0.00"), Decimal(rows - 1))
    assert (ratio.minimum, ratio.maximum) == (0.0, None)
    assert (few.minimum, few.maximum, few.null_count, few.clustered) == ("a", "b", rows // 3, False)
    late = Call("ge", (Column(0, INT64), Literal(2 * BATCH_ROWS_MAX, INT64)), BOOL)
    assert len(source.splits([0], [late])) == 1
    dear = Call("lt", (Column(0, decimal(18, 2)), Literal(Decimal("1.5"), decimal(18, 2))), BOOL)
    assert len(source.splits([1], [dear])) == 1
    assert source.splits([2], [Call("lt", (Column(0, FLOAT64), Literal(0.0, FLOAT64)), BOOL)]) == []
    assert source.splits([3], [Call("eq", (Column(0, STRING), Literal("c", STRING)), BOOL)]) == []


def test_samples_are_aligned_and_small():
    rows = 4 * BATCH_ROWS_MAX
    source = open_arrow(pa.table({"a": range(rows), "b": [-i for i in range(rows)]}))
    sample = source.sample([0, 1])
    assert 2000 <= sample.num_rows <= 2048
    assert sample.column(0).to_pylist() == [-value for value in sample.column(1).to_pylist()]
    assert source.sample([1]).column(0).equals(sample.column(1))


NO_TABLES = [None, 3, "text", [1, 2], {"a": [1]}, [], pl.Series([1]), pd.DataFrame({"a": [1, "x"]})]


@pytest.mark.parametrize("wrong", NO_TABLES, ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_table_is_refused(wrong):
    with pytest.raises(ArgumentFault, match="cannot be read as Arrow data"):
        open_arrow(wrong)


@pytest.mark.parametrize("kind", [pa.decimal256(60, 2), pa.dense_union([pa.field("a", pa.int8())])], ids=str)
def test_types_that_are_not_carried_are_named(kind):
    with pytest.raises(Unsupported, match="'odd'"):
        open_arrow(pa.RecordBatchReader.from_batches(pa.schema({"fine": pa.int8(), "odd": kind}), []))


def test_a_stream_that_breaks_is_our_error():
    def batches():
        yield TABLE.to_batches()[0]
        raise ValueError("the source broke")

    with pytest.raises(ArgumentFault, match="the source broke"):
        open_arrow(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))


def test_structurally_broken_arrays_are_refused():
    words = pa.array(["a", "b"])
    for code in (2, -1):
        broken = pa.DictionaryArray.from_arrays(pa.array([0, code], pa.int32()), words, safe=False)
        with pytest.raises(ConversionFault, match=f"'s'.*code {code} "):
            open_arrow(pa.RecordBatch.from_arrays([broken], names=["s"]))

"""Hash, partition, take and sort of every backend: against the hash's definition and DuckDB's ORDER BY."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import EVERY_TYPE, KEY_TYPES, batches, corner_batch
from support.drawn import drawn
from support.duck import Duck, difference, rows_of

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.hash_range import HashRange, partition_of
from bireme.data.record import plain, record_batch
from bireme.data.types import DataType
from bireme.errors import EngineBug

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
SORTED = (*KEY_TYPES, t.TIME, t.FLOAT32, t.INTERVAL, t.BINARY)


# --------------------------------------------------------------------- the hash, written down a second time


def _mix(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD & _MASK
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33


def _word(value: int) -> int:
    return _mix((value & _MASK) ^ _GOLDEN)


@pytest.mark.parametrize("value", [0, 1, -1, 7, -(1 << 63), (1 << 63) - 1])
def test_hash_of_a_number_is_its_definition(backend: Kernels, value: int) -> None:
    batch = pa.record_batch([pa.array([value], pa.int64()), pa.array([value], pa.decimal128(38, 0))], names=["a", "b"])
    assert backend.hash_rows(batch, [0]).to_pylist() == backend.hash_rows(batch, [1]).to_pylist() == [_word(value)]


def test_hash_of_a_wide_decimal_mixes_both_halves(backend: Kernels) -> None:
    value = 10**37
    batch = pa.record_batch([pa.array([value], pa.decimal128(38, 0))], names=["a"])
    assert backend.hash_rows(batch, [0]).to_pylist() == [_mix(_word(value) ^ (value >> 64))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hash_of_a_text_is_xxh64(backend: Kernels, text: str, wanted: int) -> None:
    """The vectors are those of the algorithm's own tests."""
    batch = pa.record_batch([pa.array([text]), pa.array([text]).dictionary_encode()], names=["a", "b"])
    assert backend.hash_rows(batch, [0]).to_pylist() == backend.hash_rows(batch, [1]).to_pylist() == [wanted]


def test_hash_of_columns_depends_on_their_order(backend: Kernels) -> None:
    batch = pa.record_batch([pa.array([1], pa.int32()), pa.array([2], pa.int32())], names=["a", "b"])
    first, second = _word(1), _word(2)
    rotated = (first << 23 | first >> 41) & _MASK
    assert backend.hash_rows(batch, [0, 1]).to_pylist() == [(rotated + second) * _GOLDEN & _MASK]
    assert backend.hash_rows(batch, [1, 0]) != backend.hash_rows(batch, [0, 1])
    assert backend.hash_rows(batch, []).to_pylist() == [0]


def test_equal_floats_hash_alike(backend: Kernels) -> None:
    zeros = pa.record_batch([pa.array([0.0, -0.0, float("nan"), -float("nan"), None])], names=["a"])
    hashes = backend.hash_rows(zeros, [0]).to_pylist()
    assert hashes[0] == hashes[1] == _word(0)
    assert hashes[2] == hashes[3] == _word(0x7FF8000000000000)
    assert hashes[4] == 0x6A09E667F3BCC908
    narrow = pa.record_batch([zeros.column(0).cast(pa.float32())], names=["a"])
    assert backend.hash_rows(narrow, [0]).to_pylist() == hashes


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE])
def test_hashes_of_corners_agree(other: Kernels, reference: ReferenceKernels, kind: DataType) -> None:
    batch = corner_batch([kind])
    assert other.hash_rows(batch, [0]) == reference.hash_rows(batch, [0])
    assert other.hash_rows(batch.slice(3), [0]) == other.hash_rows(batch, [0]).slice(3)


@drawn(30)
@given(data=st.data())
def test_hashes_of_drawn_batches_agree(other: Kernels, reference: ReferenceKernels, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(KEY_TYPES), max_size=3))
    batch = data.draw(batches([*types, t.STRING], rows_max=60))
    columns = data.draw(st.lists(st.integers(0, len(types)), max_size=4))
    assert other.hash_rows(batch, columns) == reference.hash_rows(batch, columns)


# ------------------------------------------------------------------------------------- partition and take


@drawn(30)
@given(data=st.data())
def test_partitions_hold_every_row_once_in_order(backend: Kernels, data: st.DataObject) -> None:
    batch = data.draw(batches([t.INT64, t.STRING, t.decimal(15, 2)], few=True))
    partitions = data.draw(st.integers(1, 7))
    columns = data.draw(st.sampled_from(([0], [1], [0, 2])))
    hashes = backend.hash_rows(batch, columns).to_pylist()
    parts = backend.partition(batch, columns, partitions)
    rows = rows_of([plain(column) for column in batch.columns])
    assert len(parts) == partitions
    for index, part in enumerate(parts):
        wanted = [row for row, hashed in zip(rows, hashes, strict=True) if partition_of(hashed, partitions) == index]
        assert rows_of([plain(column) for column in part.columns]) == wanted
        assert part.schema.names == batch.schema.names


@drawn(30)
@given(data=st.data())
def test_a_partition_is_split_as_all_rows_are_into_finer_ones(backend: Kernels, data: st.DataObject) -> None:
    batch = data.draw(batches([t.INT64, t.STRING, t.decimal(15, 2)], few=True))
    columns = data.draw(st.sampled_from(([0], [1], [0, 2])))
    total, into = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 9))
    finer = backend.partition(batch, columns, total * into)
    for number, part in enumerate(backend.partition(batch, columns, total)):
        within = HashRange(number, total)
        parts = backend.partition(part, columns, into, within)
        for one, wanted in zip(parts, finer[number * into :][:into], strict=True):
            assert rows_of([plain(column) for column in one.columns]) == rows_of(
                [plain(column) for column in wanted.columns]
            )
        assert [within.part(place, into) for place in range(into)] == [
            HashRange(number * into + place, total * into) for place in range(into)
        ]


def test_rows_outside_of_a_range_are_not_lost(backend: Kernels) -> None:
    batch = record_batch([pa.array(range(100), pa.int64())], ["k"], 100)
    with pytest.raises(EngineBug, match="outside of the range"):
        backend.partition(batch, [0], 2, HashRange(0, 4))


def test_partition_without_columns_counts_rows(backend: Kernels) -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 5, pa.struct([])))
    assert [part.num_rows for part in backend.partition(batch, [], 3)] == [5, 0, 0]


@drawn(30)
@given(data=st.data())
def test_take_by_position(backend: Kernels, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(EVERY_TYPE), min_size=1, max_size=4))
    batch = data.draw(batches(types, rows_min=1))
    place = st.none() | st.integers(0, batch.num_rows - 1)
    positions = data.draw(st.lists(place, max_size=40))
    taken = backend.take(batch, pa.array(positions, pa.int64()))
    taken.validate(full=True)
    assert taken.schema.names == batch.schema.names
    for column, source in zip(taken.columns, batch.columns, strict=True):
        assert plain(column).type == plain(source).type
        values = plain(source).to_pylist()
        wanted = [None if position is None else values[position] for position in positions]
        assert repr(plain(column).to_pylist()) == repr(wanted)


def test_take_from_a_batch_without_columns(backend: Kernels) -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 5, pa.struct([])))
    assert backend.take(batch, pa.array([0, 4, 4], pa.int64())).num_rows == 3


# --------------------------------------------------------------------------------------------------- sort


def _sorted_by_duck(duck: Duck, batch: pa.RecordBatch, descending: list[bool], nulls_first: list[bool]) -> list[Any]:
    keys = [
        f"c{index} {'desc' if down else 'asc'} nulls {'first' if first else 'last'}"
        for index, (down, first) in enumerate(zip(descending, nulls_first, strict=True))
    ]
    sql = f"select rn - 1 from (select *, row_number() over () as rn from t) order by {', '.join([*keys, 'rn'])}"
    return [row[0] for row in duck.query(sql, batch)]


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in SORTED])
@pytest.mark.parametrize(("down", "first"), [(False, False), (True, True), (False, True), (True, False)])
def test_sort_of_corners_as_in_duckdb(backend: Kernels, duck: Duck, kind: DataType, down: bool, first: bool) -> None:
    batch = corner_batch([kind])
    order = backend.sort_rows(batch, descending=[down], nulls_first=[first], limit=None)
    assert order.type == pa.int64()
    wanted = _sorted_by_duck(duck, batch, [down], [first])
    assert order.to_pylist() == wanted


@drawn(30)
@given(data=st.data())
def test_sort_of_drawn_batches_as_in_duckdb(backend: Kernels, duck: Duck, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(SORTED), min_size=1, max_size=3))
    batch = data.draw(batches(types, few=data.draw(st.booleans())))
    flags = st.lists(st.booleans(), min_size=len(types), max_size=len(types))
    descending, nulls_first = data.draw(flags), data.draw(flags)
    limit = data.draw(st.none() | st.integers(0, 10))
    order = backend.sort_rows(batch, descending=descending, nulls_first=nulls_first, limit=limit)
    wanted = _sorted_by_duck(duck, batch, descending, nulls_first)[:limit]
    assert not difference(order.to_pylist(), wanted)


def test_sort_without_keys_keeps_the_order(backend: Kernels) -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * 4, pa.struct([])))
    assert backend.sort_rows(batch, descending=[], nulls_first=[], limit=2).to_pylist() == [0, 1]


# ------------------------------------------------------------------------------------------------- ranges


@drawn(40)
@given(data=st.data())
def test_ranges_are_those_between_the_splitters(backend: Kernels, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(SORTED), min_size=1, max_size=3))
    keys = data.draw(batches(types, few=data.draw(st.booleans())))
    flags = st.lists(st.booleans(), min_size=len(types), max_size=len(types))
    descending, nulls_first = data.draw(flags), data.draw(flags)
    order = backend.sort_rows(keys, descending=descending, nulls_first=nulls_first, limit=None)
    places = data.draw(st.lists(st.integers(0, max(0, keys.num_rows - 1)), max_size=4 if keys.num_rows else 0))
    splitters = backend.take(keys, order.take(pa.array(sorted(places), pa.int64())))
    parts = backend.split_by_ranges(keys, keys, splitters, descending=descending, nulls_first=nulls_first)
    wanted = ReferenceKernels().split_by_ranges(keys, keys, splitters, descending=descending, nulls_first=nulls_first)
    assert len(parts) == len(places) + 1
    for part, expected in zip(parts, wanted, strict=True):
        assert repr([plain(c).to_pylist() for c in part.columns]) == repr(
            [plain(c).to_pylist() for c in expected.columns]
        )
    # Sorted one by one, they are sorted as a whole.
    whole = backend.take(keys, order)
    pieces = [
        backend.take(part, backend.sort_rows(part, descending=descending, nulls_first=nulls_first, limit=None))
        for part in parts
    ]
    for index in range(len(types)):
        joined = [value for piece in pieces for value in plain(piece.column(index)).to_pylist()]
        assert repr(joined) == repr(plain(whole.column(index)).to_pylist())

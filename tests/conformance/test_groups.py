"""Group tables of every backend: against DuckDB, split and merged in any way, with states of other backends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import KEY_TYPES, batches, corner_batch
from support.drawn import drawn
from support.duck import Duck, rows_of, same

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.key_range import KeyRange
from bireme.data.record import plain
from bireme.data.types import DataType, to_arrow
from bireme.errors import Overflow
from bireme.plan import functions
from bireme.plan.expr import Column
from bireme.plan.physical import AggregateStep, GroupSpec

ERROR_MAX = 1e-9
SUMMED = (t.INT8, t.INT32, t.INT64, t.UINT64, t.FLOAT64, t.decimal(15, 2), t.decimal(30, 6), t.BOOL)
AVERAGED = (t.INT32, t.INT64, t.FLOAT64, t.decimal(15, 2), t.decimal(18, 4))
ORDERED = (
    t.BOOL,
    t.INT8,
    t.INT64,
    t.FLOAT64,
    t.FLOAT32,
    t.decimal(15, 2),
    t.decimal(30, 6),
    t.STRING,
    t.DATE,
    t.TIMESTAMP,
)
AGGREGATES = [
    *[("sum", kind) for kind in SUMMED],
    *[("avg", kind) for kind in AVERAGED],
    *[(name, kind) for name in ("min", "max") for kind in ORDERED],
    *[("count", kind) for kind in (t.INT32, t.STRING, t.FLOAT64)],
    *[(name, kind) for name in ("first", "last", "any_value") for kind in (t.INT32, t.STRING, t.decimal(30, 6))],
    ("bool_and", t.BOOL),
    ("bool_or", t.BOOL),
    *[(name, t.INT32) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")],
]
EVERY = [pytest.param(name, kind, id=f"{name}-{kind}") for name, kind in AGGREGATES]


def step_of(name: str, kind: DataType, position: int) -> AggregateStep:
    """The step of an aggregate of a column; its argument has the type that binding gives it."""
    bound = functions.aggregate(name, [Column(position, kind)])
    return AggregateStep(bound.function, position, bound.args[0].type, bound.type)


def spec_of(keys: Sequence[DataType], aggregates: Sequence[tuple[str, DataType]]) -> GroupSpec:
    """Keys, then one argument for each aggregate, then count(*)."""
    steps = [step_of(name, kind, len(keys) + index) for index, (name, kind) in enumerate(aggregates)]
    return GroupSpec(tuple(keys), (*steps, AggregateStep("count_star", None, None, t.INT64)))


def input_of(batch: pa.RecordBatch, spec: GroupSpec) -> pa.RecordBatch:
    """The batch with arguments in the types that the steps take (as a program before the table gives them)."""
    columns = list(batch.columns)
    for step in spec.aggregates:
        if step.arg is not None and step.arg_type is not None and not pa.types.is_dictionary(columns[step.arg].type):
            columns[step.arg] = columns[step.arg].cast(to_arrow(step.arg_type))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def grouped_by_duck(duck: Duck, batch: pa.RecordBatch, spec: GroupSpec, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The groups in order of first appearance, as the oracle computes them."""
    keys = [f"c{index}" for index in range(len(spec.key_types))]
    calls = [
        f"{name}(c{len(keys) + index} order by rn)"
        if name in ("first", "last", "any_value")
        else f"{name}(c{len(keys) + index})"
        for index, name in enumerate(names)
    ]
    by = f"group by {', '.join(keys)} order by min(rn)" if keys else ""
    sql = f"select {', '.join([*keys, *calls, 'count(*)'])} from (select *, row_number() over () as rn from t) {by}"
    return duck.query(sql, batch)


def finished(table: Any, spec: GroupSpec) -> list[tuple[Any, ...]]:
    answer = table.finish()
    types = [*spec.key_types, *(step.type for step in spec.aggregates)]
    columns = [plain(column) for column in answer.columns]
    assert [column.type for column in columns] == [to_arrow(kind) for kind in types]
    return rows_of(columns)


def order_of(rows: list[tuple[Any, ...]], keys: int) -> list[tuple[Any, ...]]:
    """Groups sorted by their keys, so that tables may give them in any order."""
    return sorted(rows, key=lambda row: repr([0.0 if value == 0 else value for value in row[:keys]]))


def assert_same(
    got: list[tuple[Any, ...]],
    wanted: list[tuple[Any, ...]],
    keys: int,
    errors: Mapping[int, Callable[[Any], float]] | None = None,
) -> None:
    """`errors` gives, by column, how large an error the order of rows alone can make in a wanted result; an infinite
    one where a sum may leave the range of doubles in one order and not in another.
    """
    errors = errors or {}
    got, wanted = order_of(got, keys), order_of(wanted, keys)
    assert len(got) == len(wanted), f"{len(got)} groups, not {len(wanted)}"
    for one, other in zip(got, wanted, strict=True):
        pairs = zip(one, other, strict=True)
        is_near = all(
            same(mine, its, ERROR_MAX) or _near(mine, its, errors.get(at)) for at, (mine, its) in enumerate(pairs)
        )
        assert is_near, f"{one}, not {other}"


def _near(mine: Any, its: Any, error_of: Callable[[Any], float] | None) -> bool:
    if error_of is None or not isinstance(mine, float) or not isinstance(its, float):
        return False
    error = error_of(its)
    return math.isinf(error) or abs(mine - its) <= error


def error_of_sums(values: Sequence[pa.Array]) -> Callable[[Any], float]:
    """Sums of doubles that may leave their range on the way are infinite or NaN in some orders only."""
    numbers = [abs(value) for array in values for value in plain(array).to_pylist() if value is not None]
    total = sum(number for number in numbers if math.isfinite(number))
    size = max([number for number in numbers if math.isfinite(number)], default=0.0)
    error = len(numbers) * size * float(np.finfo(np.float64).eps)
    return lambda _: error if math.isfinite(total) else math.inf


def error_of_moments(name: str, values: Sequence[pa.Array]) -> Callable[[Any], float]:
    """Variances of numbers far from 0 that lie close together lose digits with the mean, of which they are taken."""
    if not name.startswith(("var", "stddev")):
        return lambda _: 0.0
    numbers = [abs(float(value)) for array in values for value in plain(array).to_pylist() if value is not None]
    ulp = 16 * max([number for number in numbers if math.isfinite(number)], default=0.0) * np.finfo(np.float64).eps
    if name.startswith("stddev"):
        return lambda _: ulp
    return lambda variance: ulp * (math.sqrt(abs(variance)) + ulp) if math.isfinite(variance) else 0.0


@pytest.mark.parametrize(("name", "kind"), EVERY)
@drawn(5)
@given(data=st.data())
def test_aggregate_by_key_as_in_duckdb(
    backend: Kernels, duck: Duck, name: str, kind: DataType, data: st.DataObject
) -> None:
    few = data.draw(st.booleans())
    batch = data.draw(batches([t.INT8, kind], few=few))
    spec = spec_of([t.INT8], [(name, kind)])
    wanted = _or_error(duck, batch, spec, [name])
    table = backend.group_table(spec)
    table.update(input_of(batch, spec), 0)
    if wanted is None:
        with pytest.raises(Overflow):
            table.finish()
        return
    assert_same(finished(table, spec), wanted, 1)


def _or_error(duck: Duck, batch: pa.RecordBatch, spec: GroupSpec, names: Sequence[str]) -> list[tuple[Any, ...]] | None:
    import duckdb

    try:
        return grouped_by_duck(duck, batch, spec, names)
    except duckdb.OutOfRangeException:
        return None


@pytest.mark.parametrize("key", [pytest.param(kind, id=str(kind)) for kind in KEY_TYPES])
def test_every_key_value_is_a_group_of_its_own(backend: Kernels, duck: Duck, key: DataType) -> None:
    batch = corner_batch([key, t.INT8])
    spec = spec_of([key], [("count", t.INT8)])
    table = backend.group_table(spec)
    table.update(batch, 0)
    assert_same(finished(table, spec), grouped_by_duck(duck, batch, spec, ["count"]), 1)


@pytest.mark.parametrize("key", [t.INT8, t.INT64, t.UINT32, t.DATE, t.decimal(15, 2), t.TIMESTAMP], ids=str)
@drawn(8)
@given(data=st.data())
def test_settling_gives_whole_groups_and_keeps_the_rest(backend: Kernels, key: DataType, data: st.DataObject) -> None:
    batch = data.draw(batches([key, t.STRING, t.INT32], few=data.draw(st.booleans())))
    spec = spec_of([key, t.STRING], [("sum", t.INT32)])
    values = [None if each is None else stored(each) for each in plain(batch.column(0))]
    known = sorted(value for value in values if value is not None) or [0]
    low, high = data.draw(st.sampled_from(known)), data.draw(st.sampled_from(known))
    table, whole = backend.group_table(spec), ReferenceKernels().group_table(spec)
    table.update(input_of(batch, spec), 0)
    whole.update(input_of(batch, spec), 0)
    finals, states, outside = table.settle(0, KeyRange(known[0], high), KeyRange(low, high))
    inside = [value is not None and low <= value <= high for value in map(stored, plain(finals.column(0)))]
    assert all(inside)
    rest = [stored(value) for value in plain(states.column(0))]
    assert not any(value is not None and low <= value <= high for value in rest)
    assert outside == sum(value is not None and value > high for value in rest)
    assert table.groups == 0
    table.merge(states)
    everything = order_of(rows_of([plain(column) for column in finals.columns]) + finished(table, spec), 2)
    assert_same(everything, finished(whole, spec), 2)


@pytest.mark.parametrize(("name", "kind"), [each for each in AGGREGATES if each[0] not in ("first", "last")], ids=str)
@drawn(3)
@given(data=st.data())
def test_merging_states_and_rows(backend: Kernels, name: str, kind: DataType, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=2))
    spec = spec_of(keys, [(name, kind)])
    whole = ReferenceKernels().group_table(spec)
    states, rows, values = [], [], []
    for number in range(3):
        batch = input_of(data.draw(batches([*keys, kind], few=True)), spec)
        whole.update(batch, 0)
        values.append(batch.column(len(keys)))
        if number:
            rows.append(batch)
        else:
            table = backend.group_table(spec)
            table.update(batch, 0)
            states = table.states(2)
    try:
        wanted = finished(whole, spec)
    except Overflow:
        with pytest.raises(Overflow):
            list(backend.merge_groups(spec, states, rows))
        return
    if name == "any_value":
        return
    merged = list(backend.merge_groups(spec, states, rows))
    got = [row for batch in merged for row in rows_of([plain(column) for column in batch.columns])]
    assert_same(got, wanted, len(keys), {len(keys): error_of_moments(name, values)})


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("groups", [7, 30_000, 90_000])
def test_a_merge_in_many_parts(backend: Kernels, groups: int, encoded: bool) -> None:
    """More than fits into one part; dictionaries longer and shorter than the pieces that batches are cut into."""
    rng = np.random.default_rng(groups)
    spec = spec_of([t.INT64, t.STRING], [("sum", t.INT32), ("max", t.STRING)])
    parts = []
    for _ in range(3):
        numbers = rng.integers(0, groups, 40_000)
        names = pa.array([None if number % 11 == 0 else f"name {number}" for number in numbers])
        values = pa.array(rng.integers(-9, 9, 40_000), pa.int32())
        texts = pa.array([f"{value:x}" for value in rng.integers(0, 1 << 40, 40_000)])
        columns = [pa.array(numbers * 1_000_003), names.dictionary_encode() if encoded else names, values, texts]
        parts.append(input_of(pa.RecordBatch.from_arrays(columns, ["a", "b", "c", "d"]), spec))
    table = backend.group_table(spec)
    table.update(parts[0], 0)
    whole = pa.Table.from_batches([part.set_column(1, "b", plain(part.column(1))) for part in parts])
    wanted = whole.group_by(["a", "b"], use_threads=False).aggregate([("c", "sum"), ("d", "max"), ("a", "count")])
    merged = list(backend.merge_groups(spec, table.states(1), parts[1:]))
    got = [row for batch in merged for row in rows_of([plain(column) for column in batch.columns])]
    assert sorted(got, key=repr) == sorted(rows_of(wanted.combine_chunks().columns), key=repr)


def stored(value: pa.Scalar) -> int | None:
    """The integer that a value is stored as."""
    if not value.is_valid:
        return None
    raw = pa.array([value.as_py()], value.type)
    integers = raw if pa.types.is_integer(raw.type) else raw.view(f"int{raw.type.bit_width}")
    return int(integers[0].as_py())


@drawn(8)
@given(data=st.data())
def test_several_keys(backend: Kernels, duck: Duck, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=3))
    batch = data.draw(batches([*keys, t.INT32, t.STRING], few=True))
    spec = spec_of(keys, [("sum", t.INT32), ("max", t.STRING)])
    table = backend.group_table(spec)
    table.update(batch, 0)
    assert_same(finished(table, spec), grouped_by_duck(duck, batch, spec, ["sum", "max"]), len(keys))


MANY: tuple[tuple[str, DataType], ...] = (
    ("sum", t.INT64),
    ("avg", t.decimal(15, 2)),
    ("min", t.STRING),
    ("max", t.FLOAT64),
    ("stddev_samp", t.INT32),
    ("first", t.STRING),
    ("last", t.INT32),
    ("bool_or", t.BOOL),
    ("any_value", t.INT64),
    ("count", t.DATE),
    ("sum", t.decimal(15, 2)),
    ("avg", t.FLOAT64),
)


def _many(keys: Sequence[DataType]) -> st.SearchStrategy[pa.RecordBatch]:
    return batches([*keys, *(kind for _, kind in MANY)], few=True)


@pytest.mark.parametrize("keys", [(), (t.STRING,), (t.INT64, t.FLOAT64)], ids=["none", "text", "two"])
@drawn(8)
@given(data=st.data())
def test_split_and_merged_states_give_the_same(
    backend: Kernels, keys: tuple[DataType, ...], data: st.DataObject
) -> None:
    """Rows in two tables, states in any number of partitions merged into a third: as in one table."""
    spec = spec_of(keys, MANY)
    batch = input_of(data.draw(_many(keys)), spec)
    cut = data.draw(st.integers(0, batch.num_rows))
    partitions = data.draw(st.integers(1, 4))
    one = backend.group_table(spec)
    one.update(batch, 0)
    wanted = finished(one, spec)
    again: list[tuple[Any, ...]] = []
    parts = []
    for start, piece in ((0, batch.slice(0, cut)), (cut, batch.slice(cut))):
        table = backend.group_table(spec)
        table.update(piece, start)
        parts.append(table.states(partitions))
        assert table.groups == 0
    for index in range(partitions):
        merged = backend.group_table(spec)
        for states in parts:
            assert len(states) == partitions
            merged.merge(states[index])
        if keys or index == 0:
            again += finished(merged, spec)
    columns = [len(keys) + index for index, _ in enumerate(MANY)]
    moments, sums = (columns[MANY.index(each)] for each in (("stddev_samp", t.INT32), ("avg", t.FLOAT64)))
    errors = {
        moments: error_of_moments("stddev_samp", [batch.column(moments)]),
        sums: error_of_sums([batch.column(sums)]),
    }
    assert_same(again, wanted, len(keys), errors)


@drawn(8)
@given(data=st.data())
def test_states_travel_between_backends(backend: Kernels, reference: ReferenceKernels, data: st.DataObject) -> None:
    keys = (t.STRING, t.INT32)
    spec = spec_of(keys, MANY)
    batch = input_of(data.draw(_many(keys)), spec)
    own, other = backend.group_table(spec), reference.group_table(spec)
    own.update(batch, 0)
    other.update(batch, 0)
    mine, theirs = own.states(2), other.states(2)
    for one, two in zip(mine, theirs, strict=True):
        assert [plain(c).type for c in one.columns] == [plain(c).type for c in two.columns]
        swapped, native = reference.group_table(spec), backend.group_table(spec)
        swapped.merge(one)
        native.merge(two)
        assert_same(finished(native, spec), finished(swapped, spec), len(keys))


def test_no_rows_and_no_keys_is_one_group(backend: Kernels) -> None:
    spec = spec_of(
        (), [("sum", t.INT32), ("min", t.STRING), ("avg", t.FLOAT64), ("var_samp", t.INT32), ("count", t.INT32)]
    )
    table = backend.group_table(spec)
    assert finished(table, spec) == [(None, None, None, None, 0, 0)]


def test_no_rows_and_a_key_is_no_group(backend: Kernels) -> None:
    spec = spec_of((t.INT32,), [("sum", t.INT32)])
    assert finished(backend.group_table(spec), spec) == []


def test_a_batch_without_columns_is_counted(backend: Kernels) -> None:
    spec = GroupSpec((), (AggregateStep("count_star", None, None, t.INT64),))
    table = backend.group_table(spec)
    for _ in range(2):
        table.update(pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([]))), 0)
    assert finished(table, spec) == [(6,)]


def test_a_sum_of_38_digits_that_overflows_is_an_error(backend: Kernels) -> None:
    from decimal import Decimal

    spec = spec_of((), [("sum", t.HUGEINT)])
    table = backend.group_table(spec)
    values = pa.array([Decimal(10**38 - 1)] * 2, pa.decimal128(38, 0))

    def run() -> None:
        table.update(pa.record_batch([values], names=["x"]), 0)
        table.finish()

    with pytest.raises(Overflow, match="sum"):
        run()


def test_first_and_last_follow_positions_not_calls(backend: Kernels) -> None:
    spec = spec_of((), [("first", t.INT32), ("last", t.INT32)])
    table = backend.group_table(spec)
    for position, value in ((100, 2), (0, 1), (200, 3)):
        column = pa.array([value], pa.int32())
        table.update(pa.record_batch([column, column], names=["a", "b"]), position)
    assert finished(table, spec) == [(1, 3, 3)]


@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_of_encoded_texts_of_all_rows(backend: Kernels, name: str) -> None:
    """Every batch has a dictionary of its own, in which codes mean something else; some entries are NULL."""
    spec = spec_of([], [(name, t.STRING)])
    table = backend.group_table(spec)
    rng = np.random.default_rng(3)
    seen: list[str] = []
    for size in (3, 50, 1, 7, 400, 5_000):
        entries = [f"{text:06x}" for text in rng.integers(0, 1 << 24, size)]
        codes = pa.array(rng.integers(-1, size + 1, 3_000), pa.int32(), mask=rng.random(3_000) < 0.1)
        codes = pa.array([code if code is not None and code >= 0 else None for code in codes.to_pylist()], pa.int32())
        column = pa.DictionaryArray.from_arrays(codes, pa.array([*entries, None]))
        table.update(pa.RecordBatch.from_arrays([column], ["c0"]), 0)
        seen += [text for text in column.to_pylist() if text is not None]
    assert finished(table, spec) == [(min(seen) if name == "min" else max(seen), 6 * 3_000)]


@pytest.mark.parametrize("width", [1, 2])
def test_more_keys_than_stay_in_the_cache(backend: Kernels, width: int) -> None:
    """Keys are looked for ahead of their rows then: short and long texts, and pairs of numbers, some new, some not."""
    rng = np.random.default_rng(width)
    kinds = [t.STRING] if width == 1 else [t.INT64, t.FLOAT64]
    spec = spec_of(kinds, [("sum", t.INT32)])
    table = backend.group_table(spec)
    parts = []
    for numbers in (np.arange(17_000), rng.integers(0, 24_000, 6_000)):
        if width == 1:
            columns = [pa.array([str(n) if n % 2 else f"a text that is long {n}" for n in numbers])]
        else:
            columns = [pa.array(numbers * 999_983), pa.array(numbers % 17 / 4)]
        values = pa.array(rng.integers(-5, 6, len(numbers)), pa.int32())
        names = [f"c{place}" for place in range(width + 1)]
        parts.append(input_of(pa.RecordBatch.from_arrays([*columns, values], names), spec))
        table.update(parts[-1], 0)
    grouped = pa.Table.from_batches(parts).group_by(names[:width], use_threads=False)
    wanted = grouped.aggregate([(names[width], "sum"), (names[0], "count")]).combine_chunks()
    assert sorted(finished(table, spec)) == sorted(rows_of(wanted.columns))

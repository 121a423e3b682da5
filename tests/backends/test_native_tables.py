"""Native group tables, joins, sorts and takes against DuckDB, pyarrow and plain Python, on random rows of every type.

The conformance kit holds native and reference kernels to each other; here are the shapes that only native code tells
apart: dense and sparse keys and the way between them, dictionaries, wide and serialized keys, vectors and borders.
"""

import math
from decimal import Decimal
from itertools import pairwise
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bireme.backends.native import joins, tables
from bireme.backends.native import rows as rows_module
from bireme.data import record
from bireme.data.types import (
    BINARY,
    BOOL,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    UINT8,
    UINT64,
    DataType,
    decimal,
    to_arrow,
)  # fmt: skip
from bireme.errors import EngineBug, Overflow, Unsupported
from bireme.plan.physical import AggregateStep, GroupSpec

KEY_TYPES = (
    BOOL, INT8, INT16, INT32, INT64, UINT8, UINT64, FLOAT32, FLOAT64, decimal(9, 2), decimal(30, 4), DATE, TIMESTAMP,
    STRING, BINARY,
)  # fmt: skip


def value(rng: Random, kind: DataType, spread: int) -> object:
    number = rng.randrange(spread)
    arrow = to_arrow(kind)
    if kind is BOOL:
        return number % 2 == 0
    if kind.is_float:
        return rng.choice([float(number) / 4, -0.0, 0.0, math.nan, math.inf, -1.5 * number])
    if pa.types.is_decimal(arrow):
        wide = 10**20 if kind.precision > 18 else 1
        return Decimal((number - spread // 2) * wide).scaleb(-kind.scale)
    if kind in (STRING, BINARY):
        text = ("é" * (number % 3)) + "prefix shared by many"[: number % 22] + str(number)
        return text if kind is STRING else text.encode()
    if kind.is_integer:
        if kind.is_signed:
            return number % (1 << (kind.bits - 1)) * rng.choice([1, -1])
        return (number << 55 if kind is UINT64 else number) % (1 << kind.bits)
    return number


def column(rng: Random, kind: DataType, rows: int, spread: int = 40, nulls: float = 0.1) -> pa.Array:
    values = [None if rng.random() < nulls else value(rng, kind, spread) for _ in range(rows)]
    arrow = to_arrow(kind)
    if pa.types.is_date(arrow) or pa.types.is_timestamp(arrow):
        array = pa.array(values, pa.int32() if kind is DATE else pa.int64()).cast(arrow)
    else:
        array = pa.array(values, arrow)
    if kind is STRING and rng.random() < 0.5:
        array = array.dictionary_encode()
    return array


def batch(arrays: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def pieces(whole: pa.RecordBatch, rng: Random) -> list[pa.RecordBatch]:
    """The batch in slices, so that offsets are odd and dictionaries are met again."""
    cuts = sorted(rng.randrange(whole.num_rows + 1) for _ in range(rng.randrange(4)))
    edges = [0, *cuts, whole.num_rows]
    return [whole.slice(low, high - low) for low, high in pairwise(edges)]


def canonical(item: object) -> object:
    if isinstance(item, float):
        return "nan" if math.isnan(item) else item + 0.0
    return item


def of_values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def rows_of(whole: pa.RecordBatch) -> list[tuple[object, ...]]:
    columns = [[canonical(item) for item in array.to_pylist()] for array in whole.columns]
    return list(zip(*columns, strict=True))


def step(function: str, arg: int | None, kind: DataType | None) -> AggregateStep:
    if function in ("count", "count_star"):
        return AggregateStep(function, arg, kind, INT64)
    assert kind is not None
    if function == "sum":
        result = FLOAT64 if kind.is_float else decimal(38, kind.scale)
        return AggregateStep(function, arg, kind, result)
    if function in ("min", "max", "any_value", "first", "last", "bool_and", "bool_or"):
        return AggregateStep(function, arg, kind, kind)
    return AggregateStep(function, arg, kind, FLOAT64)


def expected(function: str, values: list[object], kind: DataType | None) -> object:
    """The aggregate in plain Python."""
    given = [item for item in values if item is not None]
    ordered = sorted(given, key=lambda item: (isinstance(item, float) and math.isnan(item), item))  # type: ignore[type-var]
    match function:
        case "count_star":
            return len(values)
        case "count":
            return len(given)
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "any_value":
            return given[0] if given else None
    if not given:
        return None
    match function:
        case "sum":
            return sum(given, start=type(given[0])())
        case "min" | "bool_and":
            return ordered[0]
        case "max" | "bool_or":
            return ordered[-1]
    numbers = [float(item) for item in given]  # type: ignore[arg-type]
    mean = math.fsum(numbers) / len(numbers)
    if function == "avg":
        return mean
    divisor = len(numbers) - (1 if function.endswith("samp") else 0)
    if divisor == 0:
        return None
    variance = math.fsum((number - mean) ** 2 for number in numbers) / divisor
    return math.sqrt(variance) if function.startswith("stddev") else variance


def check(found: object, wanted: object) -> None:
    found, wanted = canonical(found), canonical(wanted)
    if isinstance(wanted, float) and math.isfinite(wanted):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    else:
        assert found == wanted


FUNCTIONS = (
    "count_star", "count", "sum", "avg", "min", "max", "any_value", "first", "last", "var_samp", "var_pop",
    "stddev_samp", "stddev_pop",
)  # fmt: skip


def functions_of(kind: DataType) -> list[str]:
    if kind.is_integer or (not kind.is_float and kind.is_numeric):
        return list(FUNCTIONS)
    if kind.is_float:  # infinities and NaN make sums and moments meaningless here; they have a test of their own
        return ["count_star", "count", "min", "max", "any_value", "first", "last"]
    if kind is BOOL:
        return ["count", "bool_and", "bool_or", "first", "last"]
    return ["count_star", "count", "min", "max", "any_value", "first", "last"]


@pytest.mark.parametrize("seed", range(60))
def test_groups_equal_plain_python(seed: int) -> None:
    rng = Random(seed)
    key_types = tuple(rng.choice(KEY_TYPES) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3, 5, 7, 9])))
    kind = rng.choice(KEY_TYPES)
    rows = rng.choice([0, 1, 7, 300, 2500])
    spread = rng.choice([2, 40, 5000])
    names = rng.sample(functions_of(kind), k=min(5, len(functions_of(kind))))
    steps = tuple(step(name, None if name == "count_star" else len(key_types), kind) for name in names)
    nulls = rng.choice([0.0, 0.2, 0.9])
    keys = [column(rng, key, rows, spread, nulls) for key in key_types]
    whole = batch([*keys, column(rng, kind, rows, spread, rng.choice([0.0, 0.3]))])
    spec = GroupSpec(key_types, steps)

    groups: dict[tuple[object, ...], list[object]] = {}
    for row in rows_of(whole):
        groups.setdefault(row[:-1], []).append(row[-1])
    if not key_types:
        groups.setdefault((), [])
    parts = pieces(whole, rng)
    direct = tables.NativeGroupTable(spec)
    merged = tables.NativeGroupTable(spec)
    position = 0
    partials = []
    for part in parts:
        direct.update(part, position)
        partial = tables.NativeGroupTable(spec)
        partial.update(part, position)
        partials += partial.states(rng.choice([1, 3, 8]))
        position += part.num_rows
    rng.shuffle(partials)
    for states in partials:
        merged.merge(states)
    for table in (direct, merged):
        assert table.nbytes > 0 or not rows
        result = table.finish()
        found = rows_of(result)
        assert len(found) == len(groups)
        for row in found:
            values = groups[row[: len(key_types)]]
            for name, item in zip(names, row[len(key_types) :], strict=True):
                if name == "any_value":
                    assert item in [canonical(v) for v in values if v is not None] or all(v is None for v in values)
                elif name in ("first", "last") and not values:
                    assert item is None
                elif not (name == "sum" and kind is BOOL):
                    check(item, expected(name, [v if v != "nan" else math.nan for v in values], kind))
        assert [of_values(kind) for kind in result.schema.types] == [to_arrow(t) for t in key_types] + [
            to_arrow(s.type) for s in steps
        ]
        assert direct.groups in (len(groups), 0, 1)


@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_text_keys_that_repeat_leave_as_codes(nulls: float) -> None:
    rng = Random(7)
    texts, numbers = column(rng, STRING, 3_000, 9, nulls), pa.array(range(3_000), pa.int64())
    spec = GroupSpec((STRING, INT64), (step("count_star", None, None),))
    wanted = sorted((text or "", text is None, number, 1) for text, number in rows_of(batch([texts, numbers])))

    def sorted_of(found: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
        rows = [row for groups in found for row in rows_of(groups)]
        return sorted((text or "", text is None, number, count) for text, number, count in rows)

    table, again = tables.NativeGroupTable(spec), tables.NativeGroupTable(spec)
    table.update(batch([texts, numbers]), 0)
    states = table.states(3)
    for part in states:
        assert pa.types.is_dictionary(part.column(0).type)
        again.merge(part)
    assert sorted_of(states) == sorted_of([again.finish()]) == wanted
    # Tables that met the texts in another order put them into the same partitions.
    backwards = tables.NativeGroupTable(spec)
    backwards.update(batch([array.take(pa.array(range(2_999, -1, -1))) for array in (texts, numbers)]), 0)
    for part, same in zip(states, backwards.states(3), strict=True):
        assert sorted_of([part]) == sorted_of([same])
    merged = list(tables.merge_groups(spec, states, [], lambda: pytest.fail("native merges take all of this")))
    assert sorted_of(merged) == wanted
    few = GroupSpec((STRING, INT64), ())
    table = tables.NativeGroupTable(few)
    table.update(batch([texts, pa.array([1] * 3_000)]), 0)
    assert not pa.types.is_dictionary(table.finish().column(0).type)


def grouped(keys: np.ndarray, values: np.ndarray, *, cut: int) -> dict[int, int]:
    spec = GroupSpec((INT64,), (step("sum", 1, INT64),))
    table = tables.NativeGroupTable(spec)
    whole = batch([pa.array(keys), pa.array(values)])
    for start in range(0, len(keys), cut):
        table.update(whole.slice(start, cut), start)
    result = table.finish()
    return dict(zip(result.column(0).to_pylist(), [int(v) for v in result.column(1).to_pylist()], strict=True))


@pytest.mark.parametrize(
    "shape", ["ascending", "descending", "dense", "sparse", "dense_then_sparse", "sparse_then_dense", "extremes"]
)
def test_integer_keys_of_every_density(shape: str) -> None:
    rng = np.random.default_rng(7)
    count = 200_000
    keys = {
        "ascending": lambda: np.arange(count) // 3,
        "descending": lambda: -np.arange(count) // 2,
        "dense": lambda: rng.integers(0, 150_000, count),
        "sparse": lambda: rng.integers(-(2**63), 2**63 - 1, 40_000)[rng.integers(0, 40_000, count)],
        "dense_then_sparse": lambda: np.concatenate([np.arange(count // 2), rng.integers(-(2**60), 2**60, count // 2)]),
        "sparse_then_dense": lambda: np.concatenate([[2**40], rng.permutation(count - 1) * 5]),
        "extremes": lambda: rng.choice(np.array([-(2**63), 2**63 - 1, 0, -1]), count),
    }[shape]().astype(np.int64)
    values = rng.integers(-(2**40), 2**40, count)
    found = grouped(keys, values, cut=30_000)
    unique, inverse = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, inverse, values)
    assert found == dict(zip(unique.tolist(), sums.tolist(), strict=True))


def test_sums_beyond_64_bits_are_exact() -> None:
    biggest = 10**18 - 1
    kind = decimal(18, 0)
    for keys in ([1] * 40, list(range(40)) * 20):
        values = [Decimal(biggest)] * len(keys)
        table = tables.NativeGroupTable(GroupSpec((INT64,), (step("sum", 1, kind),)))
        whole = batch([pa.array(keys, pa.int64()), pa.array(values, to_arrow(kind))])
        table.update(whole, 0)
        total = sum(int(v) for v in table.finish().column(1).to_pylist())
        assert total == biggest * len(keys)
    unsigned = tables.NativeGroupTable(GroupSpec((), (step("sum", 0, UINT64), step("avg", 0, UINT64))))
    unsigned.update(batch([pa.array([2**64 - 1] * 5, pa.uint64())]), 0)
    assert unsigned.finish().to_pylist() == [{"c0": Decimal(5 * (2**64 - 1)), "c1": float(2**64 - 1)}]


def test_a_sum_that_leaves_its_type_is_an_overflow() -> None:
    narrow = AggregateStep("sum", 0, decimal(18, 0), decimal(18, 0))
    table = tables.NativeGroupTable(GroupSpec((), (narrow,)))
    table.update(batch([pa.array([Decimal(10**18 - 1), Decimal(1)], to_arrow(decimal(18, 0)))]), 0)
    with pytest.raises(Overflow, match=r"decimal\(18,0\)"):
        table.finish()
    wide = tables.NativeGroupTable(GroupSpec((), (step("sum", 0, decimal(38, 0)),)))
    wide.update(batch([pa.array([Decimal(10**37 * 6)] * 2, to_arrow(decimal(38, 0)))]), 0)
    with pytest.raises(Overflow, match=r"decimal\(38,0\)"):
        wide.finish()
    beyond = tables.NativeGroupTable(GroupSpec((), (step("sum", 0, decimal(38, 0)),)))
    with pytest.raises(Overflow):
        beyond.update(batch([pa.array([Decimal(10**38 - 1)] * 2, to_arrow(decimal(38, 0)))]), 0)
    with pytest.raises(EngineBug, match="failed"):
        beyond.finish()


def test_sums_of_floats_follow_their_values() -> None:
    table = tables.NativeGroupTable(GroupSpec((INT64,), tuple(step(f, 1, FLOAT64) for f in ("sum", "avg", "var_pop"))))
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 100, 10_000), rng.normal(1e6, 1.0, 10_000)
    table.update(batch([pa.array(keys), pa.array(values)]), 0)
    for row in table.finish().to_pylist():
        mine = values[keys == row["c0"]]
        assert row["c1"] == pytest.approx(mine.sum(), rel=1e-12)
        assert row["c2"] == pytest.approx(mine.mean(), rel=1e-12)
        assert row["c3"] == pytest.approx(mine.var(), rel=1e-8)
    special = tables.NativeGroupTable(GroupSpec((), (step("sum", 0, FLOAT64), step("max", 0, FLOAT64))))
    special.update(batch([pa.array([1.0, math.nan, math.inf])]), 0)
    assert all(math.isnan(item) for item in special.finish().to_pylist()[0].values())


def test_types_without_native_tables_are_named() -> None:
    with pytest.raises(Unsupported, match="keys"):
        tables.NativeGroupTable(GroupSpec((DataType(TIMESTAMP.kind.INTERVAL),), ()))
    with pytest.raises(Unsupported, match="aggregate"):
        tables.NativeGroupTable(GroupSpec((), (step("median", 0, INT64),)))


# ------------------------------------------------------------------------------------------------------- joins


def pairs_of(build: pa.RecordBatch, probe: pa.RecordBatch, null_equal: int) -> list[tuple[int, int]]:
    def key(row: tuple[object, ...]) -> tuple[object, ...] | None:
        return None if any(item is None for item in row[null_equal:]) else row

    places: dict[tuple[object, ...], list[int]] = {}
    for index, row in enumerate(rows_of(build)):
        if key(row) is not None:
            places.setdefault(row, []).append(index)
    return [(index, at) for index, row in enumerate(rows_of(probe)) if key(row) for at in places.get(row, [])]


@pytest.mark.parametrize("seed", range(60))
def test_matches_equal_plain_python(seed: int) -> None:
    rng = Random(seed)
    kinds = [rng.choice(KEY_TYPES) for _ in range(rng.choice([1, 1, 1, 2, 3, 5]))]
    spread = rng.choice([3, 60, 3000])
    nulls = rng.choice([0.0, 0.2])
    build = batch([column(rng, kind, rng.choice([0, 5, 1500]) if kinds else 0, spread, nulls) for kind in kinds[:1]])
    build = batch([build.column(0), *(column(rng, kind, build.num_rows, spread, nulls) for kind in kinds[1:])])
    rows = rng.choice([0, 3, 2100])
    probe = batch([column(rng, kind, rows, spread, nulls) for kind in kinds])
    null_equal = rng.randrange(len(kinds) + 1)
    table = joins.NativeJoinTable.of_keys(build, null_equal_count=null_equal)
    wanted = pairs_of(build, probe, null_equal)
    assert table.rows == build.num_rows
    assert table.has_null_key == any(None in row[null_equal:] for row in rows_of(build))
    found: list[tuple[int, int]] = []
    hits: list[bool] = []
    start = 0
    for piece in pieces(probe, rng):
        probe_rows, build_rows = table.match(piece)
        found += zip((probe_rows.to_numpy() + start).tolist(), build_rows.to_pylist(), strict=True)
        hits += table.contains(piece).to_pylist()
        start += piece.num_rows
    assert found == wanted
    matched = {row for row, _ in wanted}
    assert hits == [row in matched for row in range(probe.num_rows)]


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_a_large_integer_join_equals_duckdb(unique: bool, dense: bool) -> None:
    rng = np.random.default_rng(11)
    keys = rng.permutation(80_000) if unique else rng.integers(0, 30_000, 80_000)
    keys = keys if dense else keys * 1_000_003_000_001
    probe_keys = rng.choice(keys, 100_000) + rng.integers(0, 2, 100_000)
    build = pa.table({"k": keys, "r": np.arange(len(keys))})
    probe = pa.table({"k": probe_keys, "r": np.arange(len(probe_keys))})
    table = joins.NativeJoinTable.of_keys(batch([pa.array(keys)]), null_equal_count=0)
    found = table.match(batch([pa.array(probe_keys)]))
    wanted = duckdb.sql("select p.r as a, b.r as b from probe p join build b using (k) order by 1, 2").to_arrow_table()
    assert build.num_rows == table.rows
    assert probe.num_rows == len(probe_keys)
    assert found[0].equals(wanted.column(0).combine_chunks())
    assert found[1].equals(wanted.column(1).combine_chunks())


# ------------------------------------------------------------------------------------------------ sort and take


def order_key(item: object) -> tuple[object, ...]:
    if item == "nan":
        return (1, 0.0)
    if isinstance(item, str):
        return (0, item.encode())
    return (0, item)


def sorted_rows(rows: list[tuple[object, ...]], descending: list[bool], nulls_first: list[bool]) -> list[int]:
    order = list(range(len(rows)))
    for index in reversed(range(len(descending))):
        nulls = [at for at in order if rows[at][index] is None]
        others = [at for at in order if rows[at][index] is not None]
        # reverse=True keeps equal ones in order, as a stable descending sort must.
        others.sort(key=lambda at: order_key(rows[at][index]), reverse=descending[index])
        order = nulls + others if nulls_first[index] else others + nulls
    return order


@pytest.mark.parametrize("seed", range(80))
def test_sorts_equal_plain_python(seed: int) -> None:
    rng = Random(seed)
    kinds = [rng.choice(KEY_TYPES) for _ in range(rng.choice([1, 1, 2, 3]))]
    rows = rng.choice([0, 1, 2, 100, 2000])
    whole = batch(
        [column(rng, kind, rows, rng.choice([3, 50, 100_000]), rng.choice([0.0, 0.2, 1.0])) for kind in kinds]
    )
    cut = rng.randrange(rows + 1)
    whole = whole.slice(cut)
    descending = [rng.random() < 0.5 for _ in kinds]
    nulls_first = [rng.random() < 0.5 for _ in kinds]
    wanted = sorted_rows(rows_of(whole), descending, nulls_first)
    for limit in (None, 0, 1, 10, whole.num_rows // 3, whole.num_rows + 5):
        found = tables.sort_rows(whole, descending, nulls_first, limit, None)  # type: ignore[arg-type]
        assert found.to_pylist() == (wanted if limit is None else wanted[:limit])


@pytest.mark.parametrize("limit", [None, 20])
def test_long_strings_sort_by_bytes(limit: int | None) -> None:
    rng = Random(5)
    texts = [f"Customer#{rng.randrange(10**9):09d}" + "x" * rng.randrange(3) for _ in range(3000)]
    texts += ["same first bytes, other end " + str(rng.randrange(50)) for _ in range(3000)]
    texts += ["a", "a\0", "", "é", "\U0001f600"]
    whole = batch([pa.array(texts)])
    found = tables.sort_rows(whole, [False], [False], limit, None)  # type: ignore[arg-type]
    assert found.to_pylist() == sorted_rows([(text,) for text in texts], [False], [False])[:limit]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("index_type", [pa.int32(), pa.int64()])
def test_takes_equal_pyarrow(seed: int, index_type: pa.DataType) -> None:
    rng = Random(seed)
    rows = rng.choice([1, 50, 1300])
    nested = [pa.array([[i, None] if i % 3 else None for i in range(rows)], pa.list_(pa.int64()))]
    whole = batch(
        [column(rng, kind, rows, nulls=rng.choice([0.0, 0.3])) for kind in KEY_TYPES] + [pa.nulls(rows)] + nested
    )
    whole = whole.slice(rng.randrange(rows))
    count = rng.choice([0, 1, 900])
    share = rng.choice([0.0, 0.4])
    positions = [None if rng.random() < share else rng.randrange(whole.num_rows) for _ in range(count)]
    taken = tables.take(whole, pa.array(positions, index_type))
    taken.validate(full=True)
    assert taken.schema.types == whole.schema.types
    for mine, original in zip(taken.columns, whole.columns, strict=True):
        assert repr(mine.to_pylist()) == repr(pc.take(original, pa.array(positions, pa.int64())).to_pylist())


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_many_batches_in_one(seed: int) -> None:
    rng = Random(seed)
    kinds = rng.sample(KEY_TYPES, 6)
    names = [f"c{place}" for place in range(len(kinds))]
    batches = []
    for rows in (0, 1, 700, 0, 13, 90):
        columns = []
        for kind in kinds:
            values = [None if rng.random() < 0.2 else value(rng, kind, 50) for _ in range(rows)]
            column = pa.array(values, to_arrow(kind))
            columns.append(column.dictionary_encode() if kind is STRING and rng.random() < 0.6 else column)
        batches.append(pa.RecordBatch.from_arrays(columns, names).slice(rng.randrange(2)))
    made, right = rows_module.joined(batches), record.joined(batches)
    assert made.schema.names == names
    for column, expected in zip(made.columns, right.columns, strict=True):
        assert repr(column.to_pylist()) == repr(expected.to_pylist())
    assert rows_module.joined(batches[2:3]) is batches[2]


def test_rows_without_columns_or_with_nested_ones_in_one() -> None:
    bare = record.record_batch([], [], 3)
    assert rows_module.joined([bare, bare]).num_rows == 6
    nested = pa.record_batch([pa.array([[1], None, []])], names=["l"])
    assert rows_module.joined([nested, nested]).column(0).to_pylist() == [[1], None, []] * 2

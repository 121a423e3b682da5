"""Native programs against the reference: whole filters and projections, drawn at random, over awkward batches.

Single functions are in tests/conformance; here it is how parts come together: conjuncts, selections, CASE that must
stay lazy, dictionaries, slices, detours through the reference, and errors that only rows that count may raise.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from bireme.backends.native import NativeKernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.record import plain
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.errors import ConversionFault, DataError, DomainFault, Overflow
from bireme.plan import functions
from bireme.plan.expr import Case, Column, Expr, InList, Interval, Literal

NATIVE, REFERENCE = NativeKernels(), ReferenceKernels()
D12, D18, D30 = t.decimal(12, 2), t.decimal(18, 4), t.decimal(30, 6)
COLUMNS: tuple[DataType, ...] = (
    t.INT32, t.INT64, t.FLOAT64, D12, D18, D30, t.STRING, t.STRING, t.DATE, t.BOOL, t.UINT8, t.TIMESTAMP,
)  # fmt: skip
ENCODED = 7  # the position of the dictionary-encoded column
WORDS = ("", "a", "ab", "abc", "PROMO steel", "special requests", "MAIL", "ünï", "b%", "Brand#12")


def draw_value(random: Random, kind: DataType) -> object:
    match kind:
        case t.INT32 | t.INT64:
            return random.choice((0, 1, -1, 7, random.randint(-1000, 1000), (1 << kind.bits - 1) - 1))
        case t.UINT8:
            return random.choice((0, 1, 255, random.randint(0, 255)))
        case t.FLOAT64:
            return random.choice((0.0, -0.0, 1.5, float("nan"), float("inf"), random.uniform(-100, 100)))
        case t.STRING:
            return random.choice(WORDS)
        case t.DATE:
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=random.randint(-30_000, 30_000))
        case t.TIMESTAMP:
            return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=random.randint(-(10**15), 10**15))
        case t.BOOL:
            return random.random() < 0.5
        case _:
            digits = random.choice((1, 3, 6, kind.precision))
            return Decimal(random.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-kind.scale)


def draw_array(random: Random, kind: DataType, rows: int) -> pa.Array:
    nulls = random.choice((0.0, 0.0, 0.2, 1.0 if rows < 50 else 0.3))
    values = [None if random.random() < nulls else draw_value(random, kind) for _ in range(rows)]
    return pa.array(values, t.to_arrow(kind))


def draw_batch(random: Random) -> pa.RecordBatch:
    """Sometimes a slice, whose columns start in the middle of a byte of bits; one column is dictionary-encoded."""
    rows = random.choice((0, 1, 9, 100, 1024, 1500, 2100))
    arrays = [draw_array(random, kind, rows + 5) for kind in COLUMNS]
    encoded = arrays[ENCODED].dictionary_encode()
    arrays[ENCODED] = encoded.cast(pa.dictionary(pa.int32(), pa.string()))
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{index}" for index in range(len(arrays))])
    return batch.slice(random.randint(0, 5), rows)


class Drawer:
    """Draws expressions; `safe` ones cannot fail, whatever the values."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def leaf(self, kind: DataType) -> Expr:
        places = [index for index, have in enumerate(COLUMNS) if have is kind]
        if places and self.random.random() < 0.75:
            return Column(self.random.choice(places), kind)
        return Literal(None if self.random.random() < 0.1 else draw_value(self.random, kind), kind)  # type: ignore[arg-type]

    def of(self, kind: DataType, depth: int, *, safe: bool) -> Expr:
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        makers = [*self._makers(kind, depth - 1, safe), lambda: self.choice(kind, depth - 1, safe=safe)]
        return functions.cast(self.random.choice(makers)(), kind) if not safe else self._typed(makers, kind)

    def _typed(self, makers: list[Callable[[], Expr]], kind: DataType) -> Expr:
        made = self.random.choice(makers)()
        return made if made.type is kind else self.leaf(kind)

    def choice(self, kind: DataType, depth: int, *, safe: bool) -> Expr:
        branches = tuple(
            [
                (self.of(t.BOOL, depth, safe=safe), self.of(kind, depth, safe=safe))
                for _ in range(self.random.randint(1, 2))
            ]
        )
        return Case(branches, self.of(kind, depth, safe=safe), kind)

    def _makers(self, kind: DataType, depth: int, safe: bool) -> list[Callable[[], Expr]]:
        def call(name: str, *kinds: DataType) -> Callable[[], Expr]:
            return lambda: functions.scalar(name, [self.of(each, depth, safe=safe) for each in kinds])

        shared = [call("coalesce", kind, kind), call("greatest", kind, kind)]
        match kind:
            case t.BOOL:
                compared = self.random.choice(COLUMNS)
                test = self.random.choice(("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"))
                pattern = Literal(
                    self.random.choice(("%a%", "a%", "%C", "_b%", "%special%req%", "%", "", "ü__")), t.STRING
                )
                return [
                    *shared, call("and", kind, kind), call("or", kind, kind, kind), call("not", kind),
                    call("is_true", kind), call("is_null", compared), call(test, compared, compared),
                    call("eq", D12, D30), call("lt", D18, D12),
                    lambda: functions.scalar("like", [self.of(t.STRING, depth, safe=safe), pattern]),
                    lambda: functions.scalar("ilike", [self.of(t.STRING, depth, safe=safe), pattern]),
                    lambda: self._in_list(compared, depth, safe),
                    call("contains", t.STRING, t.STRING), call("starts_with", t.STRING, t.STRING),
                ]  # fmt: skip
            case t.STRING:
                return [
                    *shared, call("lower", kind), call("upper", kind), call("concat", kind, kind),
                    call("concat_op", kind, kind),
                    call("substring", kind, t.INT64, t.INT64), call("trim", kind), call("reverse", kind),
                ]  # fmt: skip
            case t.INT64:
                return [*shared, call("year", t.DATE), call("length", t.STRING), *self._risky(kind, depth, safe)]
            case t.DATE | t.TIMESTAMP if not safe:
                span = Literal(Interval(self.random.randint(-20, 20), self.random.randint(-40, 40), 1_000), t.INTERVAL)
                moved = functions.scalar("add", [self.of(kind, depth, safe=safe), span])
                return [
                    *shared,
                    lambda: moved,
                    lambda: functions.scalar("date_trunc", [Literal("month", t.STRING), moved]),
                ]
            case _:
                return [*shared, *self._risky(kind, depth, safe)]

    def _risky(self, kind: DataType, depth: int, safe: bool) -> list[Callable[[], Expr]]:
        if safe or not kind.is_numeric:
            return []

        def call(name: str, *kinds: DataType) -> Callable[[], Expr]:
            return lambda: functions.scalar(name, [self.of(each, depth, safe=safe) for each in kinds])

        other = D12 if kind.kind is t.Kind.DECIMAL else kind
        return [
            call("add", kind, other), call("subtract", other, kind), call("multiply", other, other),
            call("negate", kind),
            call("abs", kind), call("modulo", kind, kind), call("round", kind),
        ]  # fmt: skip

    def _in_list(self, kind: DataType, depth: int, safe: bool) -> Expr:
        items = [
            None if self.random.random() < 0.1 else draw_value(self.random, kind)
            for _ in range(self.random.choice((1, 3, 20)))
        ]
        literals = tuple(dict.fromkeys(Literal(item, kind) for item in items))  # type: ignore[arg-type]
        return InList(self.of(kind, depth, safe=safe), literals)


def outcome(
    kernels: NativeKernels | ReferenceKernels, batch: pa.RecordBatch, predicate: Expr | None, exprs: list[Expr]
) -> object:
    """The rows, or that there was an error (where several are due, which comes first is left open); the text keeps
    what `==` would not: NaN and the sign of zero.
    """
    schema = Schema.from_arrow(batch.schema)
    names = [f"x{index}" for index in range(len(exprs))]
    program = kernels.program(schema, predicate=predicate, exprs=exprs, names=names)
    try:
        result = program.run(batch)
    except DataError:
        return DataError
    result.validate(full=True)
    arrays = [plain(column) for column in result.columns]
    assert [array.type for array in arrays] == [t.to_arrow(expr.type) for expr in exprs]
    return result.num_rows, [repr(array.to_pylist()) for array in arrays]


@pytest.mark.parametrize("seed", range(60))
def test_filters_and_projections_as_in_the_reference(seed: int) -> None:
    random = Random(seed)
    drawer = Drawer(random)
    batch = draw_batch(random)
    parts = [drawer.of(t.BOOL, random.randint(1, 3), safe=True) for _ in range(random.randint(0, 3))]
    predicate = functions.conjunction(parts) if parts else None
    # One output a program: with several, backends may come upon different errors first.
    for _ in range(4):
        expr = drawer.of(random.choice(COLUMNS), random.randint(1, 3), safe=random.random() < 0.5)
        exprs = [expr, Column(ENCODED, t.STRING), Column(4, D18)]
        assert outcome(NATIVE, batch, predicate, exprs) == outcome(REFERENCE, batch, predicate, exprs)


def one_row(kind: DataType, *values: object) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, t.to_arrow(kind))], ["c0"])


def run(batch: pa.RecordBatch, expr: Expr, predicate: Expr | None = None) -> list[object]:
    program = NATIVE.program(Schema.from_arrow(batch.schema), predicate=predicate, exprs=[expr], names=["x"])
    return plain(program.run(batch).column(0)).to_pylist()


def test_rows_that_do_not_count_raise_nothing() -> None:
    number = Column(0, t.INT64)
    batch = one_row(t.INT64, 5, (1 << 63) - 1, 0, None)
    small = functions.scalar("lt", [number, Literal(100, t.INT64)])
    doubled = functions.scalar("add", [number, number])
    assert run(batch, doubled, small) == [10, 0]
    with pytest.raises(Overflow, match="9223372036854775807"):
        run(batch, doubled)
    with pytest.raises(DomainFault):
        run(batch, functions.scalar("modulo", [Literal(7, t.INT64), number]))


def test_case_computes_a_branch_only_where_it_is_reached() -> None:
    number = Column(0, t.INT64)
    batch = one_row(t.INT64, 0, 2, None)
    divided = functions.scalar("int_divide", [Literal(8, t.INT64), number])
    is_zero = functions.scalar("eq", [number, Literal(0, t.INT64)])
    assert run(batch, Case(((is_zero, Literal(-1, t.INT64)),), divided, t.INT64)) == [-1, 4, None]


def test_bytes_under_null_raise_nothing() -> None:
    garbage = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(b"\xff" * 7 + b"\x7f" + bytes(8))]
    )
    batch = pa.record_batch([garbage], ["c0"])
    number = Column(0, t.INT64)
    assert run(batch, functions.scalar("multiply", [number, number])) == [None, 0]
    assert run(batch, functions.cast(number, t.INT8)) == [None, 0]


def test_an_unused_entry_of_a_dictionary_raises_nothing() -> None:
    codes = pa.array([0, None, 0], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["12", "no number"]))
    batch = pa.record_batch([column], ["c0"])
    assert run(batch, functions.cast(Column(0, t.STRING), t.INT32)) == [12, None, 12]
    with pytest.raises(ConversionFault):
        run(one_row(t.STRING, "no number"), functions.cast(Column(0, t.STRING), t.INT32))


def test_detours_are_listed() -> None:
    schema = Schema.from_arrow(one_row(t.STRING, "a").schema)
    text = Column(0, t.STRING)
    native = NATIVE.program(schema, predicate=None, exprs=[functions.scalar("lower", [text])], names=["x"])
    assert native.fallbacks == ()
    native.run(one_row(t.STRING, "A"))
    assert native.fallbacks == ()
    assert native.run(one_row(t.STRING, "Ä")).column(0).to_pylist() == ["ä"]
    assert len(native.fallbacks) == 1
    detour = NATIVE.program(schema, predicate=None, exprs=[functions.scalar("parse_filename", [text])], names=["x"])
    assert len(detour.fallbacks) == 1
    assert "parse_filename" in detour.fallbacks[0]


def test_carried_columns_and_batches_without_columns() -> None:
    nested = pa.record_batch([pa.array([[1], None, [2, 3]]), pa.array([1, 2, 3])], ["l", "n"])
    schema = Schema.from_arrow(nested.schema)
    few = functions.scalar("gt", [Column(1, t.INT64), Literal(1, t.INT64)])
    kept = NATIVE.program(schema, predicate=few, exprs=[Column(0, schema[0].type)], names=["l"]).run(nested)
    assert kept.column(0).to_pylist() == [None, [2, 3]]
    counted = NATIVE.program(schema, predicate=few, exprs=[], names=[]).run(nested)
    assert (counted.num_rows, counted.num_columns) == (2, 0)
    constant = NATIVE.program(schema, predicate=None, exprs=[Literal("x", t.STRING)], names=["c"]).run(nested)
    assert constant.column(0).to_pylist() == ["x", "x", "x"]


@pytest.mark.parametrize("partitions", [2, 7, 64])
def test_partitions_as_in_the_reference(partitions: int) -> None:
    batch = draw_batch(Random(5))
    for keys in ([0], [ENCODED, 3], [2, 6, 8]):
        native = NATIVE.partition(batch, keys, partitions)
        reference = REFERENCE.partition(batch, keys, partitions)
        assert [part.num_rows for part in native] == [part.num_rows for part in reference]
        for one, other in zip(native, reference, strict=True):
            for left, right in zip(one.columns, other.columns, strict=True):
                assert repr(plain(left).to_pylist()) == repr(plain(right).to_pylist())
        assert NATIVE.hash_rows(batch, keys).equals(REFERENCE.hash_rows(batch, keys))


def test_a_column_without_vectors_may_be_used_many_times() -> None:
    """Every use but the first was looked for inside what already went to the reference."""
    spans = pa.array([None, (1, 0, 0), (0, 31, 0)], pa.month_day_nano_interval())
    batch = pa.record_batch([spans, pa.array([1, 2, 3], pa.int32())], names=["i", "n"])
    span, number = Column(0, t.INTERVAL), Column(1, t.INT32)
    longer = functions.scalar(">", [span, Literal(Interval(0, 30, 0), t.INTERVAL)])
    missing = functions.scalar("is_null", [span])
    expr = functions.scalar("or", [longer, missing, functions.scalar("=", [number, Literal(2, t.INT32)])])
    schema = Schema.from_arrow(batch.schema)
    program = NATIVE.program(schema, predicate=None, exprs=[expr, longer, missing], names=["a", "b", "c"])
    assert program.run(batch).to_pydict() == {
        "a": [True, True, True],
        "b": [None, False, True],
        "c": [True, False, False],
    }

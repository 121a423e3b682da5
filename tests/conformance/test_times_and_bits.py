"""Kernels of points in time and of bits against the reference backend: far dates, drawn texts, errors."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batches, column, schema_of
from support.drawn import drawn
from support.duck import Duck
from support.evaluation import check_against_backend, check_against_duck, columns_of

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.record import record_batch
from bireme.data.types import DataType
from bireme.errors import DataError
from bireme.plan import functions
from bireme.plan.expr import Expr, Interval, Literal

DAY = 86_400_000_000
NANOSECONDS = t.timestamp("ns")
UNITS = ("millennium", "decade", "year", "isoyear", "quarter", "month", "week", "day", "hour", "second", "microsecond")
WIDTHS = (
    Interval(1, 0, 0),
    Interval(5, 0, 0),
    Interval(1200, 0, 0),
    Interval(0, 1, 0),
    Interval(0, 7, 0),
    Interval(0, 0, 3_600_000_000_000),
    Interval(0, 3, 90_000_001_000),
)
FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%c.%f",
    "%a %A %b %h %B %j %-j %U %W %V %G %u %w",
    "%d.%m.%y %-d/%-m/%-y, %I %p %-I:%-M:%-S %-H %g %n %%",
    "日%Y %x %X %T %z%Z",
    "no specifier",
    "",
)
TEXT_FORMATS = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y%j",
    "%H%M%S %d%m%y",
    "%d %b %Y %I:%M %p",
    "%A, %d. %B %Y",
    "%a %h %d %T.%g %Y",
    "%c.%f",
    "  %x %X ",
    "%Y年%m月 %d %n",
    "%Y-%m-%d %H:%M:%S%z",
    "%j %Y %%",
    "%m/%Y",
    "%-d.%-m.%Y",
)


def constant(value: object) -> Literal:
    kinds = {int: t.INT32, float: t.FLOAT64, str: t.STRING, Interval: t.INTERVAL}
    return Literal(value, kinds[type(value)])  # type: ignore[arg-type]


def call(name: str, types: Sequence[DataType], before: Sequence[object] = (), after: Sequence[object] = ()) -> Expr:
    columns: list[Expr] = list(columns_of(schema_of(types)))
    return functions.scalar(name, [*map(constant, before), *columns, *map(constant, after)])


def cases() -> dict[str, tuple[Expr, tuple[DataType, ...]]]:
    """Expressions over columns of some types, by name: all are computed by kernels."""
    found: dict[str, tuple[Expr, tuple[DataType, ...]]] = {}

    def add(
        name: str, types: tuple[DataType, ...], before: Sequence[object] = (), after: Sequence[object] = ()
    ) -> None:
        shown = [*map(str, before), *map(str, types), *map(repr, after)]
        found[f"{name}({', '.join(shown)})"] = call(name, types, before, after), types

    for kind in (t.DATE, t.TIMESTAMP):
        for unit in UNITS:
            for name in ("date_sub", "date_diff"):
                if (name, unit) != ("date_diff", "isoyear"):
                    add(name, (kind, kind), [unit])
        for width in WIDTHS:
            add("time_bucket", (kind,), [width])
        for name in ("last_day", "dayname", "monthname", "yearweek", "decade", "century", "millennium"):
            add(name, (kind,))
    for kind in (t.DATE, t.TIMESTAMP, NANOSECONDS):
        for template in FORMATS:
            add("strftime", (kind,), after=[template])
    for name in ("epoch_ms", "epoch_us", "epoch_ns", "julian", "epoch"):
        add(name, (t.TIMESTAMP,))
    for name in ("julian", "epoch"):
        add(name, (t.DATE,))
    add("epoch", (t.TIME,))
    add("epoch_ns", (NANOSECONDS,))
    add("to_timestamp", (t.FLOAT64,))
    add("add", (t.TIME,), after=[Interval(1, 2, -3_600_000_001_500)])
    add("make_date", (t.INT64,) * 3)
    add("make_time", (t.INT64, t.INT64, t.FLOAT64))
    add("make_timestamp", (*(t.INT64,) * 5, t.FLOAT64))
    for kind in (t.INT8, t.INT16, t.INT32, t.INT64, t.UINT8, t.UINT16, t.UINT32, t.UINT64):
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"):
            add(name, (kind, kind))
            add(name, (kind,), after=[3])
        for name in ("bitwise_not", "hex", "bin"):
            add(name, (kind,))
        if kind.is_signed:
            add("bit_count", (kind,))
    for name in ("gcd", "lcm"):
        add(name, (t.INT64, t.INT64))
        add(name, (t.INT64,), after=[12])
    add("factorial", (t.INT32,))
    return found


CASES = cases()


def far(random: Random, kind: DataType) -> int:
    """A day or moment of any year, most of them near to what people have; or a time of day."""
    if kind is t.TIME:
        return random.randrange(DAY)
    bits = 31 if kind is t.DATE else 63
    day = 1 if kind is t.DATE else DAY if kind is t.TIMESTAMP else 1000 * DAY
    days = random.choice((30_000, 30_000, 30_000, 100_000 if kind is NANOSECONDS else 3_000_000))
    moment = random.randint(-days, days) * day + random.choice((0, random.randrange(day)))
    return random.choice((moment, moment, moment, random.randint(-(1 << bits) + 2, (1 << bits) - 2)))


def small(random: Random) -> Any:
    """A number that is often a day, month, hour, minute, second or year."""
    return random.randint(*random.choice([(-1, 70), (1, 28), (0, 12), (0, 3000)]))


def drawn_column(random: Random, kind: DataType, rows: int) -> pa.Array:
    if kind.is_temporal:
        counts = [None if random.random() < 0.1 else far(random, kind) for _ in range(rows)]
        width = pa.int32() if kind is t.DATE else pa.int64()
        return pa.array(counts, width).view(t.to_arrow(kind))
    numbers = [None if random.random() < 0.1 else small(random) for _ in range(rows)]
    if kind is t.FLOAT64:
        numbers = [None if number is None else number + random.choice([0.0, 0.5, 0.9999999]) for number in numbers]
    return pa.array(numbers, t.to_arrow(kind))


def drawn_batch(seed: int, types: Sequence[DataType], rows: int) -> pa.RecordBatch:
    random = Random(seed)
    return record_batch([drawn_column(random, kind, rows) for kind in types], schema_of(types).names, rows)


@pytest.mark.parametrize("name", CASES)
def test_there_are_kernels(other: Kernels, name: str) -> None:
    expr, types = CASES[name]
    program = other.program(schema_of(types), predicate=None, exprs=[expr], names=["x"])
    assert program.fallbacks == ()


@pytest.mark.parametrize("name", CASES)
@drawn(6)
@given(data=st.data())
def test_drawn_values_agree(other: Kernels, reference: ReferenceKernels, name: str, data: st.DataObject) -> None:
    expr, types = CASES[name]
    check_against_backend(other, reference, expr, data.draw(batches(types)))
    if not all(kind.is_integer for kind in types) or name.startswith("make"):
        check_against_backend(other, reference, expr, drawn_batch(data.draw(st.integers(0, 1 << 32)), types, 24))


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("make_date(bigint, bigint, bigint)", (2021, 2, 29)),
        ("make_date(bigint, bigint, bigint)", (-400_000, 1, 1)),
        ("make_time(bigint, bigint, double)", (24, 0, 0.0)),
        ("make_timestamp(bigint, bigint, bigint, bigint, bigint, double)", (2021, 1, 1, 24, 0, 0.5)),
        ("make_timestamp(bigint, bigint, bigint, bigint, bigint, double)", (299_999, 1, 1, 0, 0, 0.0)),
        ("shift_left(tinyint, tinyint)", (-1, 2)),
        ("shift_left(tinyint, tinyint)", (1, -2)),
        ("shift_left(tinyint, tinyint)", (65, 1)),
        ("shift_left(uinteger, uinteger)", (1, 32)),
        ("lcm(bigint, bigint)", ((1 << 62) + 1, 3)),
        ("gcd(bigint, bigint)", (-(1 << 63), 0)),
        ("factorial(integer)", (34,)),
        ("factorial(integer)", (-1,)),
        ("to_timestamp(double)", (1e13,)),
    ],
)
def test_errors_are_those_of_the_reference(
    other: Kernels, reference: ReferenceKernels, name: str, row: tuple[Any, ...]
) -> None:
    expr, types = CASES[name]
    batch = record_batch(
        [column([value, None], kind) for value, kind in zip(row, types, strict=True)], ["a"] * len(row), 2
    )
    errors = [failure(backend, expr, types, batch) for backend in (other, reference)]
    assert errors[0] == errors[1]


def failure(backend: Kernels, expr: Expr, types: Sequence[DataType], batch: pa.RecordBatch) -> tuple[type, str]:
    program = backend.program(schema_of(types), predicate=None, exprs=[expr], names=["x"])
    with pytest.raises(DataError) as raised:
        program.run(batch)
    return type(raised.value), str(raised.value)


# --------------------------------------------------------------------------------------- texts of moments

PIECES = (
    "2024",
    "1999",
    "12",
    "7",
    "31",
    "0",
    "PM",
    "am",
    "Jan",
    "february",
    "Mon",
    "Sunday",
    ":",
    "-",
    " ",
    "\u00a0",
    ".5",
)


def drawn_texts(other: Kernels, random: Random, template: str, rows: int) -> list[str | None]:
    """Moments as the format writes them, some of them with a piece changed."""
    moments = pa.array([random.randint(-(10**15), 5 * 10**15) for _ in range(rows)], pa.int64()).view(
        pa.timestamp("us")
    )
    program = other.program(
        schema_of([t.TIMESTAMP]), predicate=None, exprs=[call("strftime", [t.TIMESTAMP], after=[template])], names=["x"]
    )
    written = program.run(record_batch([moments], ["c0"], rows)).column(0).to_pylist()
    return [random.choice([text, text, changed(random, text), None]) for text in written]


def changed(random: Random, text: str) -> str:
    start = random.randint(0, len(text))
    end = min(len(text), start + random.choice([0, 1, 2, 4]))
    return text[:start] + random.choice(PIECES) + text[end:]


@pytest.mark.parametrize("function", ["strptime", "try_strptime"])
@pytest.mark.parametrize("template", TEXT_FORMATS)
@drawn(8)
@given(seed=st.integers(0, 1 << 32), encoded=st.booleans())
def test_texts_are_read_as_by_the_reference(
    other: Kernels, reference: ReferenceKernels, function: str, template: str, seed: int, encoded: bool
) -> None:
    random = Random(seed)
    texts = column(drawn_texts(other, random, template, 40), t.STRING, encoded)
    expr = call(function, [t.STRING], after=[template])
    assert other.program(schema_of([t.STRING]), predicate=None, exprs=[expr], names=["x"]).fallbacks == ()
    check_against_backend(other, reference, expr, record_batch([texts], ["c0"], 40))


ODD_FORMATS = ("%Y %Q", "%", " ", None, "%G-W%V-%u")


@pytest.mark.parametrize("kind", [t.DATE, t.TIMESTAMP, NANOSECONDS])
@drawn(10)
@given(data=st.data())
def test_moments_are_written_by_the_formats_of_their_rows(
    other: Kernels, reference: ReferenceKernels, kind: DataType, data: st.DataObject
) -> None:
    moments = data.draw(batches((kind,), rows_min=1))
    forms = data.draw(st.lists(st.sampled_from((*FORMATS, *ODD_FORMATS)), min_size=moments.num_rows))
    forms = forms[: moments.num_rows]
    batch = record_batch([*moments.columns, column(forms, t.STRING)], ["c0", "c1"], moments.num_rows)
    expr = call("strftime", [kind, t.STRING])
    assert other.program(schema_of([kind, t.STRING]), predicate=None, exprs=[expr], names=["x"]).fallbacks == ()
    check_against_backend(other, reference, expr, batch)


@drawn(10)
@given(seed=st.integers(0, 1 << 32), encoded=st.booleans(), odd=st.booleans())
def test_texts_are_read_by_the_formats_of_their_rows(
    other: Kernels, reference: ReferenceKernels, seed: int, encoded: bool, odd: bool
) -> None:
    random = Random(seed)
    forms = [random.choice(TEXT_FORMATS) for _ in range(40)]
    texts = [drawn_texts(other, random, form, 1)[0] for form in forms]
    written = [random.choice(ODD_FORMATS) if odd and random.random() < 0.2 else form for form in forms]
    batch = record_batch([column(texts, t.STRING, encoded), column(written, t.STRING, encoded)], ["c0", "c1"], 40)
    expr = call("strptime", [t.STRING, t.STRING])
    assert other.program(schema_of([t.STRING] * 2), predicate=None, exprs=[expr], names=["x"]).fallbacks == ()
    check_against_backend(other, reference, expr, batch)


@pytest.mark.parametrize("template", ["%Y-%m-%d %H:%M:%S", "%d %b %Y %I:%M %p", "%c.%f"])
def test_texts_are_read_as_by_duckdb(backend: Kernels, duck: Duck, template: str) -> None:
    texts = ["2024-02-29 23:59:59", "1999-12-31 0:0:0", "29 Feb 2024 12:30 AM", "1 dec 1999 01:05 pm", "x", None]
    texts += ["2024-02-29 23:59:59.5", "2023-02-29 00:00:00", "2024-02-29 24:00:00", " 2024-02-29 23:59:59 "]
    batch = record_batch([column(texts, t.STRING)], ["c0"], len(texts))
    expr = call("try_strptime", [t.STRING], after=[template])
    check_against_duck(backend, duck, expr, f"try_strptime(c0, '{template}')", batch)


UNKNOWN: list[tuple[str, DataType, str]] = [
    ("strftime", t.TIMESTAMP, "%Y %Q"),
    ("strftime", t.TIMESTAMP, "%"),
    ("strptime", t.STRING, "%Y %Q"),
    ("strptime", t.STRING, " "),
]


@pytest.mark.parametrize(("name", "kind", "template"), UNKNOWN)
def test_formats_that_are_not_known_fail_as_in_the_reference(
    other: Kernels, reference: ReferenceKernels, name: str, kind: DataType, template: str
) -> None:
    expr = call(name, [kind], after=[template])
    source = {t.TIMESTAMP: pa.array([0], pa.timestamp("us")), t.STRING: pa.array(["2020"])}[kind]
    batch = record_batch([source], ["c0"], 1)
    assert failure(other, expr, [kind], batch) == failure(reference, expr, [kind], batch)


@pytest.mark.parametrize("template", ["%G-W%V-%u", "%U %w %Y", "%Y-%m-%d %Z"])
def test_formats_of_weeks_and_zones_are_read_by_the_reference(
    other: Kernels, reference: ReferenceKernels, template: str
) -> None:
    texts = column(["2024-W07-3", "07 3 2024", "2024-02-29 Europe/Berlin", None], t.STRING)
    expr = call("try_strptime", [t.STRING], after=[template])
    check_against_backend(other, reference, expr, record_batch([texts], ["c0"], 4))
    assert other.program(schema_of([t.STRING]), predicate=None, exprs=[expr], names=["x"]).fallbacks


@pytest.mark.parametrize(
    ("width", "span"),
    [
        ("5 months", Interval(5, 0, 0)),
        ("3 days", Interval(0, 3, 0)),
        ("90 minutes", Interval(0, 0, 5_400_000_000_000)),
    ],
)
def test_buckets_as_in_duckdb(backend: Kernels, duck: Duck, width: str, span: Interval) -> None:
    random = Random(7)
    moments = [random.randint(-(10**15), 4 * 10**15) for _ in range(50)] + [0, -1, 947_462_400_000_000]
    batch = record_batch([pa.array(moments, pa.int64()).view(pa.timestamp("us"))], ["c0"], len(moments))
    expr = call("time_bucket", [t.TIMESTAMP], [span])
    check_against_duck(backend, duck, expr, f"time_bucket(interval '{width}', c0)", batch)

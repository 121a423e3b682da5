"""Functions of lists by places and masks, of lists as vectors, and texts of nested values: whole columns against one
row at a time in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batch_of, schema_of
from support.drawn import drawn
from support.evaluation import columns_of

from bireme.backends import allowance
from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.types import DataType, Field, Kind
from bireme.errors import DomainFault, OutOfRoom, TooMuchAtOnce
from bireme.plan import functions
from bireme.plan.expr import Expr, Interval
from bireme.plan.functions.conversion import texts_of

NUMBERS, DOUBLES = t.list_of(t.INT32), t.list_of(t.FLOAT64)
_LISTS = st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=5)
_PLACES = st.none() | st.lists(st.integers(-2, 7), max_size=5)
_MASKS = st.none() | st.lists(st.booleans(), max_size=7)


def _column(backend: Kernels, expr: Expr, rows: list[tuple[Any, ...]], types: list[DataType]) -> list[Any]:
    """The values of one expression over rows, also where these are a slice of a longer batch."""
    batch = batch_of(list(zip(*rows, strict=True)), types, len(rows))
    program = backend.program(schema_of(types), predicate=None, exprs=[expr], names=["x"])
    array = program.run(batch).column(0)
    array.validate(full=True)
    assert program.run(batch.slice(len(rows) // 2)).column(0).to_pylist() == array.to_pylist()[len(rows) // 2 :]
    return array.to_pylist()


def _call(name: str, types: list[DataType]) -> Expr:
    return functions.scalar(name, columns_of(schema_of(types)))


def _at(values: list[Any], place: int) -> Any:
    return values[place] if 0 <= place < len(values) else None


@drawn(40)
@given(rows=st.lists(st.tuples(_LISTS, _PLACES, _MASKS, st.none() | st.integers(0, 7), st.integers(7, 9)), min_size=1))
def test_elements_by_places_masks_and_lengths(reference: ReferenceKernels, rows: list[tuple[Any, ...]]) -> None:
    lists, places, masks, lengths, fillings = zip(*rows, strict=True)
    types = [NUMBERS, t.list_of(t.INT64)]
    found = _column(reference, _call("list_select", types), list(zip(lists, places, strict=True)), types)
    pairs = zip(lists, places, strict=True)
    assert found == [None if None in pair else [_at(pair[0], each - 1) for each in pair[1]] for pair in pairs]

    types = [NUMBERS, t.list_of(t.BOOL)]
    found = _column(reference, _call("list_where", types), list(zip(lists, masks, strict=True)), types)
    pairs = zip(lists, masks, strict=True)
    assert found == [
        None if None in pair else [_at(pair[0], place) for place, chosen in enumerate(pair[1]) if chosen]
        for pair in pairs
    ]

    types = [NUMBERS, t.INT64, t.INT32]
    found = _column(reference, _call("list_resize", types), list(zip(lists, lengths, fillings, strict=True)), types)
    assert found == [
        None if values is None else [*values, *[filling] * 7][: length or 0] if (length or 0) > len(values)
        else values[: length or 0]
        for values, length, filling in zip(lists, lengths, fillings, strict=True)
    ]  # fmt: skip


def _cosine(one: list[float], other: list[float]) -> float | None:
    if not one:
        return None
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else math.nan


VECTORS: list[tuple[str, Callable[[list[float], list[float]], float | None]]] = [
    ("list_distance", math.dist),
    ("list_inner_product", lambda one, other: math.fsum(a * b for a, b in zip(one, other, strict=True))),
    ("list_negative_inner_product", lambda one, other: -math.fsum(a * b for a, b in zip(one, other, strict=True))),
    ("list_cosine_similarity", _cosine),
    ("list_cosine_distance", lambda one, other: None if not one else 1 - (_cosine(one, other) or 0.0)),
]


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[list[float] | None, list[float] | None]:
    size = draw(st.integers(0, 6))
    numbers = st.lists(st.integers(-50, 50).map(lambda each: each / 4), min_size=size, max_size=size)
    return draw(st.none() | numbers), draw(st.none() | numbers)


@pytest.mark.parametrize(("name", "compute"), VECTORS, ids=[name for name, _ in VECTORS])
@drawn(30)
@given(rows=st.lists(_pairs(), min_size=1, max_size=20))
def test_vectors(reference: ReferenceKernels, name: str, compute: Callable[..., Any], rows: list[Any]) -> None:
    types = [DOUBLES, DOUBLES]
    batch = batch_of(list(zip(*rows, strict=True)), types, len(rows))
    program = reference.program(schema_of(types), predicate=None, exprs=[_call(name, types)], names=["x"])
    wanted = [None if None in pair else compute(*pair) for pair in rows]
    for found, value in zip(program.run(batch).column(0).to_pylist(), wanted, strict=True):
        if value is None or math.isnan(value):
            continue  # of no numbers, and of none but zeros
        assert found == pytest.approx(value, abs=1e-9), rows


@pytest.mark.parametrize(
    ("one", "other", "why"), [([1.0], [1.0, 2.0], "1 and 2"), ([1.0], [None], "no NULL"), ([None], [1.0], "no NULL")]
)
def test_pairs_that_are_no_vectors(reference: ReferenceKernels, one: list[Any], other: list[Any], why: str) -> None:
    types = [DOUBLES, DOUBLES]
    program = reference.program(schema_of(types), predicate=None, exprs=[_call("list_distance", types)], names=["x"])
    with pytest.raises(DomainFault, match=why):
        program.run(batch_of([[[1.0], one], [[2.0], other]], types, 2))
    # Beside a list that is NULL nobody looks.
    assert program.run(batch_of([[one, None], [None, other]], types, 2)).column(0).to_pylist() == [None, None]


# ------------------------------------------------------------------------------------------------------ room


def test_lists_are_refused_before_they_are_made(reference: ReferenceKernels) -> None:
    types = [NUMBERS, t.INT64, t.INT32]
    resized = reference.program(schema_of(types), predicate=None, exprs=[_call("list_resize", types)], names=["x"])
    numbers = reference.program(schema_of([t.INT64]), predicate=None, exprs=[_call("range", [t.INT64])], names=["x"])
    asked: list[int] = []

    def has_little(nbytes: int) -> bool:
        asked.append(nbytes)
        return nbytes < 1 << 20

    allowance.count_by(has_little)
    try:
        with pytest.raises(TooMuchAtOnce, match=r"list_resize.*no room"):
            resized.run(batch_of([[[1]] * 3, [1_000_000] * 3, [0] * 3], types, 3))
        with pytest.raises(TooMuchAtOnce, match=r"range.*no room"):
            numbers.run(batch_of([[1_000_000]], [t.INT64], 1))
        assert all(each >= 8_000_000 for each in asked)
        assert numbers.run(batch_of([[2]], [t.INT64], 1)).column(0).to_pylist() == [[0, 1]]
    finally:
        allowance.count_no_more(has_little)
    with pytest.raises(OutOfRoom, match="0 to 16777216 elements here, not 16777217"):
        resized.run(batch_of([[[1]], [(1 << 24) + 1], [0]], types, 1))
    with pytest.raises(TooMuchAtOnce, match="elements, and Arrow has room"):
        numbers.run(batch_of([[1 << 24] * 129], [t.INT64], 129))


# ------------------------------------------------------------------------------------------------------ texts

_ODD = ("", "null", "NULL", "NulL", "nulls", " a", "a\u00a0", "\x1c", "\u2028b", "a b", "it's", '"', "\\", "a,b", "x:y")
_TEXTS = st.sampled_from((*_ODD, "(", "]", "{", "=", "é", "\u200b", "-1", "a;b", "\x0b", "\x85z", "n\n", "日本"))
_SPANS = st.builds(
    Interval,
    st.integers(-(2**31), 2**31 - 1) | st.integers(-25, 25),
    st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**13), 10**13) | st.just(0),
)
_STRUCT = DataType(Kind.STRUCT, children=(Field("a", t.STRING), Field("b'c", NUMBERS), Field("d", t.FLOAT64)))
_ROW = DataType(Kind.STRUCT, children=(Field("element1", t.INT8), Field("element2", t.TIME)))
_CLOCKS = st.times()
NESTED: list[tuple[DataType, st.SearchStrategy[Any]]] = [
    (t.list_of(t.STRING), st.lists(st.none() | _TEXTS, max_size=4)),
    (NUMBERS, st.lists(st.none() | st.integers(-9, 9), max_size=4)),
    (t.list_of(t.UINT64), st.lists(st.integers(2**63, 2**64 - 1), max_size=2)),
    (t.list_of(t.BOOL), st.lists(st.none() | st.booleans(), max_size=3)),
    (DOUBLES, st.lists(st.floats(), max_size=3)),
    (t.list_of(t.FLOAT32), st.lists(st.floats(width=32), max_size=3)),
    (t.list_of(t.DATE), st.lists(st.dates(), max_size=3)),
    (t.list_of(t.TIMESTAMP), st.lists(st.none() | st.datetimes(), max_size=3)),
    (t.list_of(t.decimal(9, 2)), st.lists(st.decimals(-999, 999, places=2), max_size=3)),
    (t.list_of(t.BINARY), st.lists(st.binary(max_size=4), max_size=3)),
    (t.list_of(NUMBERS), st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=2), max_size=3)),
    (t.list_of(t.INTERVAL), st.lists(st.none() | _SPANS, max_size=2)),
    (
        _STRUCT,
        st.fixed_dictionaries(
            {"a": st.none() | _TEXTS, "b'c": st.none() | st.lists(st.integers(0, 3)), "d": st.none() | st.floats()}
        ),
    ),
    (_ROW, st.fixed_dictionaries({"element1": st.none() | st.integers(-9, 9), "element2": st.none() | _CLOCKS})),
    (t.list_of(_ROW), st.lists(st.fixed_dictionaries({"element1": st.integers(0, 9), "element2": _CLOCKS}))),
    (t.INTERVAL, _SPANS),
]


@pytest.mark.parametrize("kind_and_values", NESTED, ids=[str(kind) for kind, _ in NESTED])
@drawn(30)
@given(data=st.data())
def test_texts_of_nested_values(backend: Kernels, kind_and_values: tuple[DataType, Any], data: st.DataObject) -> None:
    kind, values = kind_and_values
    drawn_values = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    (column,) = columns_of(schema_of([kind]))
    for safe in (False, True):
        found = _column(backend, functions.cast(column, t.STRING, safe), [(each,) for each in drawn_values], [kind])
        assert found == [None if each is None else texts_of(each, kind) for each in drawn_values]


def test_texts_of_intervals_at_the_ends_of_their_range(reference: ReferenceKernels) -> None:
    spans = [Interval(-(2**31), 2**31 - 1, -(2**63)), Interval(2**31 - 1, -(2**31), 2**63 - 1), Interval(0, 0, -1)]
    (column,) = columns_of(schema_of([t.INTERVAL]))
    found = _column(reference, functions.cast(column, t.STRING), [(each,) for each in spans], [t.INTERVAL])
    assert found == [texts_of(each, t.INTERVAL) for each in spans]
    assert pa.array(found).null_count == 0

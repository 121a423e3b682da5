"""Lists made of parts of texts, of numbers and of other lists: whole columns against DuckDB, and against one row at a
time in Python.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batch_of, batches, corner_batch, corner_values, schema_of
from support.drawn import drawn
from support.duck import Duck
from support.evaluation import check_against_duck, columns_of, evaluate

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels, pattern_parts
from bireme.data import types as t
from bireme.errors import OutOfRoom
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal

INT64_MAX = (1 << 63) - 1


def call_of(function: str, types: tuple[t.DataType, ...], *constants: object) -> Expr:
    given = [Literal(value, t.STRING if isinstance(value, str) else t.INT64) for value in constants]
    return functions.scalar(function, [*columns_of(schema_of(types)), *given])


@pytest.mark.parametrize("separator", [",", "ab", "ä", "", " ", "aa", "日本"])
def test_splits_as_in_duckdb(backend: Kernels, duck: Duck, separator: str) -> None:
    expr = call_of("string_split", (t.STRING,), separator)
    check_against_duck(backend, duck, expr, f"string_split(c0, '{separator}')", corner_batch((t.STRING,)))


def test_splits_at_any_separator_as_in_duckdb(backend: Kernels, duck: Duck) -> None:
    """A separator that is NULL gives NULL here, and the whole text there."""
    types = (t.STRING, t.STRING)
    batch = corner_batch(types, rows_max=600)
    batch = batch.filter(batch.column(1).is_valid())
    check_against_duck(backend, duck, call_of("string_split", types), "string_split(c0, c1)", batch)


PATTERNS = (
    "[,b]+",
    "a",
    "a|b",
    "ab?",
    "x*",
    "^a",
    "[^a]",
    "\\b",
    "(?i)B",
    "(?i)[k-s]+",
    "a$",
    "[a-c]",
    ".",
    "日|ä",
    "\\w+",
    "",
    "\\Q,\\E",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["string_split_regex", "regexp_extract_all"])
@drawn(6)
@given(data=st.data())
def test_expressions_as_one_row_at_a_time(
    reference: ReferenceKernels, name: str, pattern: str, data: st.DataObject
) -> None:
    for batch in (data.draw(batches((t.STRING,))), corner_batch((t.STRING,))):
        texts = [pa.scalar(value).as_py() for value in batch.column(0).to_pylist()]
        wanted = [None if text is None else one_row(name, text, pattern) for text in texts]
        assert evaluate(reference, call_of(name, (t.STRING,), pattern), batch).values == wanted


def one_row(name: str, text: str, pattern: str) -> list[Any]:
    split = name == "string_split_regex"
    return pattern_parts.split(text, pattern) if split else pattern_parts.all_matches(text, pattern, 0)


def test_case_is_that_of_ascii(reference: ReferenceKernels) -> None:
    batch = batch_of([["kelvin \u212a", "\u017f s S"]], [t.STRING], 2)
    assert evaluate(reference, call_of("regexp_extract_all", (t.STRING,), "(?i)[ks]"), batch).values == [
        ["k"],
        ["s", "S"],
    ]


def test_matches_in_texts_with_every_mark(reference: ReferenceKernels) -> None:
    batch = batch_of([["a\x1db\x1eab", "\x1f\x02", "\x1dab\x1d", None]], [t.STRING], 4)
    found = evaluate(reference, call_of("regexp_extract_all", (t.STRING,), "[ab]+"), batch).values
    assert found == [["a", "b", "ab"], [], ["ab"], None]


BOUNDS = [0, 1, -1, 3, -7, 10, INT64_MAX, -INT64_MAX - 1, INT64_MAX - 2, -INT64_MAX + 1, None]


@pytest.mark.parametrize("name", ["range", "generate_series"])
def test_series_as_pythons_ranges(reference: ReferenceKernels, name: str) -> None:
    rows = [
        (start, stop, step)
        for start in BOUNDS
        for stop in BOUNDS
        for step in (1, 2, -1, -3, 0, INT64_MAX, None)
        if None in (start, stop, step) or len(numbers(name, start, stop, step)) < 100
    ]
    batch = batch_of(list(zip(*rows, strict=True)), [t.INT64] * 3, len(rows))
    wanted = [None if None in row else list(numbers(name, *row)) for row in rows]
    assert evaluate(reference, call_of(name, (t.INT64,) * 3), batch).values == wanted


def numbers(name: str, start: int, stop: int, step: int) -> range:
    if step == 0:
        return range(0)
    span = range(start, stop if name == "range" else stop + (1 if step > 0 else -1), step)
    return span if (span.stop - span.start) // step < 1 << 40 else range(1000)


def test_a_series_too_long_is_named(reference: ReferenceKernels) -> None:
    program = reference.program(schema_of([t.INT64]), predicate=None, exprs=[call_of("range", (t.INT64,))], names=["x"])
    with pytest.raises(OutOfRoom, match="more than 16777216 numbers"):
        program.run(batch_of([[3, INT64_MAX]], [t.INT64], 2))
    assert program.run(batch_of([[3, None]], [t.INT64], 2)).column(0).to_pylist() == [[0, 1, 2], None]


def test_zipped_lists_as_in_duckdb(backend: Kernels, duck: Duck) -> None:
    types = (t.list_of(t.INT32), t.list_of(t.STRING), t.BOOL)
    numbers_ = [[1, 2], None, [], [None, 5, 6], [7]]
    texts = [["a"], ["b", "c"], None, ["d", None], []]
    rows = [(one, other, flag) for one in numbers_ for other in texts for flag in corner_values(t.BOOL)]
    batch = batch_of(list(zip(*rows, strict=True)), types, len(rows))
    check_against_duck(backend, duck, call_of("list_zip", types), "list_zip(c0, c1, c2)", batch)

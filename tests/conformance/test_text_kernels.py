"""Kernels of texts against the reference backend, which says what they mean: over corners, and over drawn batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batch_of, batches, corner_batch, schema_of
from support.drawn import drawn
from support.evaluation import check_against_backend, columns_of

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.types import DataType
from bireme.errors import DataError
from bireme.plan import functions
from bireme.plan.expr import Case, Expr, Literal

S, N, L, F = t.STRING, t.INT32, t.INT64, t.FLOAT64


@dataclass(frozen=True)
class Kernel:
    """A function over columns of some types, and the constants behind them, or before them."""

    function: str
    types: tuple[DataType, ...]
    constants: tuple[object, ...] = ()
    constants_first: bool = False

    def build(self) -> Expr:
        columns: tuple[Expr, ...] = tuple(columns_of(schema_of(self.types)))
        constants = tuple([Literal(value, S if isinstance(value, str) else L) for value in self.constants])
        args = (*constants, *columns) if self.constants_first else (*columns, *constants)
        return functions.scalar(self.function, args)

    def __str__(self) -> str:
        return f"{self.function}({', '.join([*map(str, self.types), *map(repr, self.constants)])})"


def of_columns(function: str, *types: DataType) -> Kernel:
    return Kernel(function, types)


def of_one(function: str, *constants: object) -> Kernel:
    return Kernel(function, (S,), constants)


def written(function: str, template: str, *types: DataType) -> Kernel:
    return Kernel(function, types, (template,), constants_first=True)


COLUMNS = [
    *[of_columns(name, S) for name in ("reverse", "ascii", "unicode", "bit_length", "encode", "unhex", "from_base64")],
    *[of_columns(name, kind) for name in ("md5", "sha1", "sha256", "hex", "bin") for kind in (S, t.BINARY)],
    *[of_columns(name, kind) for name in ("hex", "bin") for kind in (N, L, t.UINT64, t.INT8)],
    *[of_columns(name, S) for name in ("strip_accents", "nfc_normalize", "regexp_escape", "url_encode", "url_decode")],
    of_columns("decode", t.BINARY),
    *[of_columns(name, S, S) for name in ("damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity")],
    *[of_columns(name, S, S, F) for name in ("jaro_similarity", "jaro_winkler_similarity")],
    of_columns("list_slice", S, t.INT8, t.INT8),
    of_columns("list_slice", S, L, L),
    *[of_columns("hash", kind) for kind in (S, t.BINARY, t.BOOL, t.INT8, t.UINT8, L, t.UINT64, F, t.FLOAT32, t.DATE)],
    *[of_columns("hash", kind) for kind in (t.TIME, t.TIMESTAMP, t.decimal(15, 2), t.decimal(30, 6), t.HUGEINT)],
    of_columns("hash", S, N, t.BOOL),
    of_columns("to_base64", t.BINARY),
    of_columns("chr", N),
    *[of_columns(name, S, S) for name in ("levenshtein", "hamming", "jaccard", "trim", "ltrim", "rtrim")],
    *[of_columns(name, S, S, S) for name in ("replace", "translate", "concat_ws")],
    *[of_columns("concat_ws", *([S] * count)) for count in (2, 4)],
    of_columns("split_part", S, S, N),
    of_columns("split_part", S, S, L),
    *[of_columns(name, S, t.INT8, S) for name in ("lpad", "rpad")],
    of_columns("lpad", S, L, S),
    of_columns("repeat", S, t.INT8),
    of_columns("repeat", S, L),
]
CONSTANTS = [
    *[of_one("repeat", count) for count in (0, 1, 3, 70, -1, 1 << 40)],
    *[
        of_one(name, length, pad)
        for name in ("lpad", "rpad")
        for length in (0, 1, 5, 33, -2)
        for pad in ("*", "xä", "日")
    ],
    of_one("lpad", 3, ""),
    *[of_one("replace", old, by) for old in ("a", "ab", "ä", "", "xxx") for by in ("", "b", "日本", "a,a")],
    *[of_one("split_part", by, number) for by in (",", "b,", "", "ä", "xx") for number in (1, 2, 3, 0, -1, -2, -9, 40)],
    *[of_one("split_part", ",", number) for number in ((1 << 63) - 1, -(1 << 63))],
    *[of_one("translate", *pair) for pair in (("abc", "x"), ("aab", "123"), ("ä日", "a"), ("ab", "日é"), ("", "x"))],
    *[of_one(name, "ab ") for name in ("trim", "ltrim", "rtrim")],
    *[of_one(name, "日ä\n") for name in ("trim", "ltrim", "rtrim")],
    *[
        of_one(name, text)
        for name in ("levenshtein", "hamming", "jaccard")
        for text in ("abc", "äb", "x" * 40, "y" * 70)
    ],
    of_one("levenshtein", ""),
    of_one("jaccard", ""),
    *[
        of_one("glob", pattern)
        for pattern in ("a*", "*b*", "?", "*", "", "a?c", "ä*", "a\\*", "*\\", "%", "a_c", "日??")
    ],
]
WRITTEN = [
    *[written("format", template, N, S) for template in ("{}-{}", "{1} {0}", "{{{}}} {}", "{:5}|{:5}|", "{:<5}{:>5}")],
    *[written("format", template, N, S) for template in ("{:^7}|{:*^9}", "{:+d} {:s}", "{:05d}{}", "{:x} {:.2}", "x")],
    *[written("format", template, F) for template in ("{}", "{:.2f}", "{:10.3e}|", "{:<12g}|", "{:+.1f}", "{:012.3f}")],
    *[written("format", "{} {}", *kinds) for kinds in ((L, t.UINT64), (t.HUGEINT, t.INT8), (t.FLOAT32, S))],
    *[written("printf", template, N, S) for template in ("%d-%s", "%5d|%-7s|", "%05d %.2s", "%+d%% %s", "% x %10s")],
    *[written("printf", template, F) for template in ("%f", "%.2f", "%10.3e|", "%-12g|", "%+.0f", "%012.3f", "%G")],
    written("printf", "%X %i", L, t.HUGEINT),
]
EVERY = [pytest.param(example, id=str(example)) for example in (*COLUMNS, *CONSTANTS, *WRITTEN)]


@pytest.mark.parametrize("example", EVERY)
def test_corners_as_in_the_reference(other: Kernels, reference: ReferenceKernels, example: Kernel) -> None:
    check_against_backend(other, reference, example.build(), corner_batch(example.types))


@pytest.mark.parametrize("example", EVERY)
@drawn(4)
@given(data=st.data())
def test_drawn_values_as_in_the_reference(
    other: Kernels, reference: ReferenceKernels, example: Kernel, data: st.DataObject
) -> None:
    check_against_backend(other, reference, example.build(), data.draw(batches(example.types)))


@pytest.mark.parametrize("example", EVERY)
def test_nothing_of_it_runs_in_the_reference(other: Kernels, example: Kernel) -> None:
    schema = schema_of(example.types)
    program = other.program(schema, predicate=None, exprs=[example.build()], names=["x"])
    assert program.fallbacks == ()


SIZES = (0, 1, 7, 8, 9, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000, 70_000)


@pytest.mark.parametrize("function", ["md5", "sha1", "sha256", "to_base64", "hex", "reverse"])
def test_texts_of_any_size(other: Kernels, reference: ReferenceKernels, function: str) -> None:
    """Digests take blocks of 64 bytes, and texts are made in pieces of the arena."""
    kind = t.BINARY if function == "to_base64" else S
    texts = [("abcdefghijk" * (size // 11 + 1))[:size] for size in SIZES]
    batch = batch_of([[text.encode() if kind is t.BINARY else text for text in texts]], [kind], len(texts))
    expr = functions.scalar(function, columns_of(schema_of([kind])))
    check_against_backend(other, reference, expr, batch)


def test_spellings_of_numbers(other: Kernels, reference: ReferenceKernels) -> None:
    """Digits in both cases, blanks between them and what is no digit; the same for base 64."""
    texts = ["0aF", "0A0b", "61 62", "6", "", "xy", "YWI=", "YQ==", "YWJj", "Y===", "====", "YW=j", "Y WI", "YR==", "ä"]
    for function in ("unhex", "from_base64"):
        expr = functions.scalar(function, columns_of(schema_of([S])))
        check_against_backend(other, reference, expr, batch_of([texts], [S], len(texts)))


def test_characters_of_every_width(other: Kernels, reference: ReferenceKernels) -> None:
    codes = [0, 65, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF, 0x110000, -1]
    expr = functions.scalar("chr", columns_of(schema_of([N])))
    check_against_backend(other, reference, expr, batch_of([codes], [N], len(codes)))


LATIN = [*range(1, 0x300)]
KNOWN = [*range(1, 0x530), *range(0x1E00, 0x1F00), *range(0x2010, 0x2028), 0x20AC, 0x3400, 0x4E00, 0x9FFF, 0x1F600]


@pytest.mark.parametrize(
    ("function", "codes", "behind"),
    [("strip_accents", KNOWN, "\u0301e"), ("nfc_normalize", LATIN, "e"), ("url_encode", KNOWN, "\u0301e")],
)
def test_every_letter_of_some_alphabets(
    other: Kernels, reference: ReferenceKernels, function: str, codes: list[int], behind: str
) -> None:
    """One after another and next to each other, with a mark behind some; all of it by the kernel."""
    letters = [chr(code) for code in codes]
    texts = letters + [f"{one}{two}{behind}" for one, two in pairwise(letters)]
    schema, batch = schema_of([S]), batch_of([texts], [S], len(texts))
    programs = [
        kernels.program(schema, predicate=None, exprs=[functions.scalar(function, columns_of(schema))], names=["x"])
        for kernels in (other, reference)
    ]
    found, wanted = (program.run(batch).column(0).to_pylist() for program in programs)
    assert found == wanted
    assert programs[0].fallbacks == ()


def test_latin_texts_lose_accents_without_the_reference(other: Kernels) -> None:
    schema = schema_of([S])
    plain = functions.scalar("strip_accents", columns_of(schema))
    program = other.program(schema, predicate=None, exprs=[plain], names=["x"])
    found = program.run(batch_of([["Müßiggang à la carte", "Ελλάδα", "йод 日本", None]], [S], 4))
    assert found.column(0).to_pylist() == ["Mußiggang a la carte", "Ελλαδα", "иод 日本", None]
    assert program.fallbacks == ()


def test_codes_of_urls(other: Kernels, reference: ReferenceKernels) -> None:
    texts = ["%41%zz%", "a%2", "%C3%A4", "%ff", "%e4%bd%A0x", "", "%%41", "+ %20"]
    expr = functions.scalar("url_decode", columns_of(schema_of([S])))
    check_against_backend(other, reference, expr, batch_of([texts], [S], len(texts)))


FAILING = [
    (of_one("lpad", 9, ""), ["abc"]),
    (of_one("rpad", 1 << 40, "x"), ["abc"]),
    (of_one("repeat", 1 << 40), ["abc"]),
    (of_one("hamming", "ab"), ["ab", "abc"]),
    (of_one("jaccard", "ab"), ["ab", ""]),
    (of_columns("chr", N), [65, -1]),
    (of_columns("unhex", S), ["00", "0g"]),
    (of_columns("from_base64", S), ["AAAA", "A"]),
    (of_columns("url_decode", S), ["%41", "%ff"]),
    (of_columns("decode", t.BINARY), [b"a", b"\xff"]),
]


@pytest.mark.parametrize(("example", "values"), FAILING, ids=str)
def test_rows_that_fail_say_why_as_in_the_reference(
    other: Kernels, reference: ReferenceKernels, example: Kernel, values: list[object]
) -> None:
    said = []
    for kernels in (other, reference):
        program = kernels.program(schema_of(example.types), predicate=None, exprs=[example.build()], names=["x"])
        with pytest.raises(DataError) as failure:
            program.run(batch_of([values], example.types, len(values)))
        said.append((type(failure.value), str(failure.value)))
    assert said[0] == said[1]


def test_rows_of_a_branch_not_taken_do_not_fail(other: Kernels) -> None:
    schema = schema_of([N])
    (code,) = columns_of(schema)
    fits = functions.scalar("ge", [code, Literal(0, N)])
    letter = Case(((fits, functions.scalar("chr", [code])),), Literal("?", S), S)
    program = other.program(schema, predicate=None, exprs=[letter], names=["x"])
    assert program.run(batch_of([[65, -1, None]], [N], 3)).column(0).to_pylist() == ["A", "?", "?"]
    assert program.fallbacks == ()


SIZES = (1, 2, 40, 63, 64, 65, 127, 128, 129, 150)


@pytest.mark.parametrize("function", ["levenshtein", "damerau_levenshtein"])
@drawn(12)
@given(data=st.data())
def test_changes_of_longer_texts_as_in_the_reference(
    other: Kernels, reference: ReferenceKernels, function: str, data: st.DataObject
) -> None:
    """Texts of few characters, of which one is made of the other by some changes, on both sides of a word's bits."""
    letters = data.draw(st.sampled_from(("ab", "abä", "日本語x")))
    rows: list[tuple[str, str]] = []
    for _ in range(4):
        size = data.draw(st.sampled_from(SIZES))
        text = "".join(data.draw(st.lists(st.sampled_from(letters), min_size=size, max_size=size)))
        changed = text
        for _ in range(data.draw(st.integers(0, 6))):
            place = data.draw(st.integers(0, len(changed)))
            piece = data.draw(st.sampled_from(("", letters[0], letters[1] * 2, changed[place : place + 2][::-1])))
            changed = changed[:place] + piece + changed[place + data.draw(st.integers(0, 3)) :]
        rows.append((text, changed))
    batch = batch_of(list(zip(*rows, strict=True)), (S, S), len(rows))
    check_against_backend(other, reference, of_columns(function, S, S).build(), batch)

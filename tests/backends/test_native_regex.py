"""Regular expressions in C++ against RE2, over drawn patterns and texts: most is taken, and gives the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bireme.backends.native import _kernels
from bireme.backends.native.lowering import _REGEX_OPTIONS, Lowering, Missing
from bireme.backends.reference import patterns
from bireme.data.types import BOOL, INT32, STRING
from bireme.plan.expr import Call, Column, Literal

ATOMS = [
    "a", "b", "c", "é", "漢", ".", "[ab]", "[^a]", "[^/]", "\\d", "\\w", "\\W", "\\S", "[a-cé]", "/", "\\.", "0", "k",
    "^", "$", "\\s", "[é-漢]", "(?:a|b)", "(?:ab|a)", "-", "K", "\\x4b", "\\z", "[]a]", "[^-b]",
]  # fmt: skip
TIMES = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}", "{0,2}?"]
LETTERS = ["a", "b", "c", "é", "漢", "/", ".", "0", "k", "K", "\u212a", "\n", " ", "-", "ab", "😀"]
REPLACEMENTS = ["x", "<\\1>", "\\1", "\\0\\0", "", "[\\2\\\\]"]


def drawn_pattern(draw: random.Random, depth: int = 0) -> str:
    form = draw.random()
    if depth > 3 or form < 0.35:
        return draw.choice(ATOMS)
    first = drawn_pattern(draw, depth + 1)
    if form < 0.6:
        return first + drawn_pattern(draw, depth + 1)
    if form < 0.75:
        return draw.choice(["(", "(?:"]) + first + ")"
    if form < 0.83:
        return first + "|" + drawn_pattern(draw, depth + 1)
    return (draw.choice(ATOMS) if form < 0.93 else f"({first})") + draw.choice(TIMES)


def drawn_texts(draw: random.Random) -> pa.Array:
    texts = ["".join(draw.choices(LETTERS, k=draw.randrange(12))) for _ in range(30)]
    return pa.array([*texts, "", None])


def native(call: Call, texts: pa.Array) -> list[Any]:
    program = _kernels.Program()
    program.set_outputs([Lowering(program, substitutes={}, ascii_only=False).node(call)])
    _, _, columns, _ = program.run(pa.record_batch([texts], names=["t"]), True)
    return pa.record_batch(columns).column(0).to_pylist()  # type: ignore[no-any-return]


def calls(draw: random.Random, pattern: str, options: str) -> dict[str, tuple[Call, tuple[Any, ...]]]:
    """The call of each function, and its constant arguments as the reference takes them."""
    text, last = Column(0, STRING), Literal(options, STRING)
    expression, by, group = Literal(pattern, STRING), draw.choice(REPLACEMENTS), draw.randrange(3)
    once = options.replace("g", "")
    return {
        "regexp_matches": (Call("regexp_matches", (text, expression, last), BOOL), (pattern, once)),
        "regexp_full_match": (Call("regexp_full_match", (text, expression, last), BOOL), (pattern, once)),
        "regexp_replace": (
            Call("regexp_replace", (text, expression, Literal(by, STRING), last), STRING),
            (pattern, by, options),
        ),
        "regexp_extract": (
            Call("regexp_extract", (text, expression, Literal(group, INT32), last), STRING),
            (pattern, group, once),
        ),
    }


REFERENCE: dict[str, Callable[[pa.Array, tuple[Any, ...]], pa.Array]] = {
    "regexp_matches": patterns._matches,
    "regexp_full_match": patterns._full_match,
    "regexp_replace": patterns._replace_matches,
    "regexp_extract": patterns._extract,
}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_taken_is_as_in_re2(seed: int) -> None:
    draw = random.Random(seed)
    taken = 0
    for _ in range(120):
        pattern, options = drawn_pattern(draw), "".join(draw.sample(sorted(_REGEX_OPTIONS), draw.choice([0, 0, 1, 2])))
        texts = drawn_texts(draw)
        for function, (call, constants) in calls(draw, pattern, options).items():
            try:
                found = native(call, texts)
            except Missing:
                continue
            taken += 1
            expected = REFERENCE[function](texts, constants).to_pylist()
            assert found == expected, (function, pattern, options, constants)
    assert taken > 200


def test_a_dictionary_is_searched_once_an_entry() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1, 0], pa.int32()), pa.array(["a-1", "b-2"]))
    call = Call("regexp_replace", (Column(0, STRING), Literal("(.)-(.)", STRING), Literal("\\2\\1", STRING)), STRING)
    assert native(call, words) == ["1a", "2b", None, "2b", "1a"]


@pytest.mark.parametrize("pattern", ["(?m)^a", "\\bx", "[[:alpha:]]", "(a*)*", "(?P<n>a)", "a**", "("])
def test_the_rest_is_left_to_re2(pattern: str) -> None:
    with pytest.raises(Missing):
        native(Call("regexp_matches", (Column(0, STRING), Literal(pattern, STRING)), BOOL), pa.array(["a"]))

"""LIKE and regular expressions on columns; they run in RE2, as in DuckDB, through pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.data.types import to_arrow
from bireme.errors import DomainFault
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def by_pattern(compute: Callable[[pa.Array, Sequence[Any]], pa.Array]) -> Evaluator:
    """A function of a text and what else is usually constant: once for all rows with the same other arguments."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        different = [pc.unique(array) for array in args[1:]]
        if all(len(each) == 1 for each in different):
            other = tuple([each[0].as_py() for each in different])
            return _computed(compute, call, args[0], other)
        others = list(zip(*(array.to_pylist() for array in args[1:]), strict=True))
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, other in enumerate(others):
            groups.setdefault(other, []).append(row)
        if not groups:
            return pa.array([], to_arrow(call.type))
        parts, order = [], []
        for other, rows in groups.items():
            chosen = args[0].take(pa.array(rows, pa.int64()))
            parts.append(_computed(compute, call, chosen, other))
            order.extend(rows)
        back = np.argsort(np.array(order, np.int64), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(back))

    return evaluate


def _computed(
    compute: Callable[[pa.Array, Sequence[Any]], pa.Array], call: Call, texts: pa.Array, other: Sequence[Any]
) -> pa.Array:
    if None in other:
        return pa.nulls(len(texts), to_arrow(call.type))
    try:
        return compute(texts, other)
    except pa.ArrowInvalid as error:
        raise DomainFault(f"cannot read the regular expression {other[0]!r}: {error}") from None


def like_expression(pattern: str, escape: str) -> str:
    """The regular expression that matches what the LIKE pattern does."""
    parts = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if escape and character == escape:
            if position == len(pattern):
                raise DomainFault(f"the LIKE pattern {pattern!r} ends in its escape character")
            parts.append(_quoted(pattern[position]))
            position += 1
        elif character == "%":
            parts.append(".*")
        else:
            parts.append("." if character == "_" else _quoted(character))
    return rf"(?s)\A{''.join(parts)}\z"


def _quoted(character: str) -> str:
    if character.isalnum() or character == "_" or ord(character) > 127:
        return character
    return f"\\x{ord(character):02x}"


def _like(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    pattern, escape = other if len(other) == 2 else (other[0], "")
    return pc.match_substring_regex(texts, like_expression(pattern, escape))


def _ilike(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    lowered = tuple(pc.utf8_lower(pa.array([text], pa.string()))[0].as_py() for text in other)
    return _like(pc.utf8_lower(texts), lowered)


def _glob(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    return pc.match_substring_regex(texts, _glob_expression(other[0]))


_GLOB: Final = re.compile(r"\\(?P<escaped>.)|\[(?P<not>!?)(?P<set>\]?[^\]]*)\]|(?P<one>.)", re.DOTALL)


def _glob_expression(pattern: str) -> str:
    """The regular expression that matches what the GLOB pattern does."""
    parts = []
    for token in _GLOB.finditer(pattern):
        if token["set"] is not None:
            inside = "".join(each if each == "-" else _quoted(each) for each in token["set"])
            parts.append(f"[{'^' if token['not'] else ''}{inside}]")
        elif token["escaped"] is None and token["one"] in "*?":
            parts.append(".*" if token["one"] == "*" else ".")
        else:
            parts.append(_quoted(token["escaped"] or token["one"]))
    return rf"(?s)\A{''.join(parts)}\z"


def _expression(pattern: str, options: str) -> str:
    """A regular expression with DuckDB's option letters as RE2's flags."""
    quoted = "".join(map(_quoted, pattern)) if "l" in options else pattern
    flags = ("i" if "i" in options else "") + ("s" if "s" in options else "")
    return f"(?{flags}){quoted}" if flags else quoted


def _matches(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    return pc.match_substring_regex(texts, _expression(other[0], other[1] if len(other) > 1 else ""))


def _full_match(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    pattern = _expression(other[0], other[1] if len(other) > 1 else "")
    return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")


def _replace_matches(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    options = other[2] if len(other) > 2 else ""
    expression, by, limit = _expression(other[0], options), other[1], None
    if "g" not in options and not _matches_once(expression):
        # Asked for one replacement Arrow looks at the match alone, where other assertions hold than in the text.
        pc.replace_substring_regex(pa.array([""]), expression, by)  # RE2 says whether both are well formed
        if any(mark.isdigit() and int(mark) > 7 for mark in _MARK.findall(by)):
            limit = 1
        else:
            expression, by = rf"\A((?s:.*?))({expression})", r"\1" + _MARK.sub(_two_groups_later, by)
    return pc.replace_substring_regex(texts, expression, by, max_replacements=limit)


# A group, or a backslash.
_MARK: Final = re.compile(r"\\([0-9\\])")


def _two_groups_later(mark: re.Match[str]) -> str:
    return f"\\{int(mark[1]) + 2}" if mark[1].isdigit() else mark[0]


def _matches_once(expression: str) -> bool:
    """Whether it certainly matches at the start of a text only: anchored, without alternatives, flags or repeats of
    the anchor."""
    rest = expression.removeprefix("^")
    if rest == expression or rest.startswith(("*", "+", "?", "{")):
        return False
    return "|" not in rest and "(?" not in rest.replace("(?:", "")


def _extract(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    """The group of that number in the first match; group 0 is the match."""
    group = other[1] if len(other) > 1 else 0
    options = other[2] if len(other) > 2 else ""
    named, groups = ("".join(map(_quoted, other[0])), 0) if "l" in options else named_groups(other[0])
    expression = _expression(f"(?P<g0>{named})", options.replace("l", ""))
    pc.match_substring_regex(pa.array([""]), expression)  # RE2 says whether it is one
    found = pc.extract_regex(texts, pattern=expression)
    if not 0 <= group <= groups:
        return pc.if_else(texts.is_null(), pa.scalar(None, pa.string()), "")
    part = pc.struct_field(found, f"g{group}")
    return pc.if_else(texts.is_null(), pa.scalar(None, pa.string()), pc.fill_null(part, ""))


def named_groups(pattern: str) -> tuple[str, int]:
    """The pattern with its capturing groups named g1, g2, …, and how many they are."""
    parts: list[str] = []
    count = at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        assert token is not None
        if token["group"] is not None:
            count += 1
            parts.append(f"(?P<g{count}>")
        else:
            parts.append(token[0])
        at = token.end()
    return "".join(parts), count


# What may hold a parenthesis that opens no group: quoted parts, escapes, classes, and groups of other kinds.
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|(?P<group>\((?:\?P?<\w+>|(?!\?)))|.", re.DOTALL
)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "like": by_pattern(_like),
    "ilike": by_pattern(_ilike),
    "glob": by_pattern(_glob),
    "regexp_matches": by_pattern(_matches),
    "regexp_full_match": by_pattern(_full_match),
    "regexp_replace": by_pattern(_replace_matches),
    "regexp_extract": by_pattern(_extract),
}

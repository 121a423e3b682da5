"""Functions of texts on columns, mostly one python string at a time; patterns run in RE2, as in DuckDB.

Positions and lengths count code points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.vectors import from_texts
from bireme.data.types import to_arrow
from bireme.errors import DomainFault, Overflow
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

# The blanks that trim removes: those of Unicode's category Zs.
_BLANKS: Final = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
_TEXT_BYTES_MAX: Final = 1 << 30


def _by_row(compute: Callable[..., Any]) -> Evaluator:
    """A function of single values that is NULL where an argument is."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        rows = zip(*(array.to_pylist() for array in args), strict=True)
        return pa.array([None if None in row else compute(*row) for row in rows], to_arrow(call.type))

    return evaluate


def _by_column(compute: Callable[[pa.Array], pa.Array]) -> Evaluator:
    return lambda call, args: compute(args[0])


# ---------------------------------------------------------------------------------------------- patterns


def _by_pattern(compute: Callable[[pa.Array, Sequence[Any]], pa.Array]) -> Evaluator:
    """A function of a text and what else is usually constant: once for all rows with the same other arguments."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        others = list(zip(*(array.to_pylist() for array in args[1:]), strict=True))
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, other in enumerate(others):
            groups.setdefault(other, []).append(row)
        if not groups:
            return pa.array([], to_arrow(call.type))
        parts, order = [], []
        for other, rows in groups.items():
            chosen = args[0] if len(groups) == 1 else args[0].take(pa.array(rows, pa.int64()))
            gone = None in other
            parts.append(pa.nulls(len(rows), to_arrow(call.type)) if gone else _computed(compute, chosen, other))
            order.extend(rows)
        back = np.argsort(np.array(order, np.int64), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(back))

    return evaluate


def _computed(
    compute: Callable[[pa.Array, Sequence[Any]], pa.Array], texts: pa.Array, other: Sequence[Any]
) -> pa.Array:
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
    # Arrow is slow at counting replacements, so it is not asked to where there is one at most.
    limit = None if "g" in options or _matches_once(_expression(other[0], options)) else 1
    return pc.replace_substring_regex(texts, _expression(other[0], options), other[1], max_replacements=limit)


def _matches_once(expression: str) -> bool:
    """Whether it certainly matches at the start of a text only: anchored, without alternatives, flags or repeats of
    the anchor."""
    rest = expression.removeprefix("^")
    if rest == expression or rest.startswith(("*", "+", "?", "{")):
        return False
    return "|" not in rest and "(?" not in rest.replace("(?:", "")


def _extract(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    group = other[1] if len(other) > 1 else 0
    expression = _expression(other[0], other[2] if len(other) > 2 else "")
    pc.match_substring_regex(pa.array([""]), expression)  # RE2 says whether it is one
    compiled = re.compile(expression)
    if not 0 <= group <= compiled.groups:
        return from_texts([None if text is None else "" for text in texts.to_pylist()])
    return from_texts([None if text is None else _group(compiled, text, group) for text in texts.to_pylist()])


def _group(compiled: re.Pattern[str], text: str, group: int) -> str:
    found = compiled.search(text)
    return (found[group] or "") if found is not None else ""


# ------------------------------------------------------------------------------------------- single texts


def substring(text: str, start: int, length: int | None = None) -> str:
    """From `start` (from 1, negative from the end), `length` characters; a negative length ends before the start.

    Positions before the text count as positions, so that substring('abc', 0, 2) is 'a'.
    """
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else -1
    end = len(text) if length is None else begin + length
    begin, end = min(begin, end), max(begin, end)
    return text[max(begin, 0) : max(end, 0)]


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(0, len(text) + count)]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(0, len(text) - count) :]
    return text[-count:]


def _padding(name: str, text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    if not pad:
        raise DomainFault(f"{name} has nothing to pad with: its third argument is empty")
    if missing * len(pad.encode()) > _TEXT_BYTES_MAX:
        raise Overflow(f"{name} to {length} characters leaves the range of a text")
    return (pad * (missing // len(pad) + 1))[:missing]


def _lpad(text: str, length: int, pad: str) -> str:
    if length <= len(text):
        return text[: max(0, length)]
    return _padding("lpad", text, length, pad) + text


def _rpad(text: str, length: int, pad: str) -> str:
    if length <= len(text):
        return text[: max(0, length)]
    return text + _padding("rpad", text, length, pad)


def _repeat(text: str, count: int) -> str:
    if count * len(text.encode()) > _TEXT_BYTES_MAX:
        raise Overflow(f"repeat {count} times leaves the range of a text")
    return text * max(0, count)


def _split_part(text: str, separator: str, index: int) -> str:
    parts = text.split(separator) if separator else list(text)
    position = index - 1 if index > 0 else len(parts) + index
    return parts[position] if index != 0 and 0 <= position < len(parts) else ""


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _chr(code: int) -> str:
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise DomainFault(f"there is no character with the code point {code}")
    return chr(code)


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _trimmed(strip: Callable[[str, str], str]) -> Evaluator:
    return _by_row(lambda text, characters=_BLANKS: strip(text, characters))


def _concat(call: Call, args: list[pa.Array]) -> pa.Array:
    rows = zip(*(array.to_pylist() for array in args), strict=True)
    return from_texts(["".join(text for text in row if text is not None) for row in rows])


def _concat_ws(call: Call, args: list[pa.Array]) -> pa.Array:
    rows = zip(*(array.to_pylist() for array in args), strict=True)
    return from_texts(
        [None if between is None else between.join(text for text in row if text is not None) for between, *row in rows]
    )


def _octet_length(array: pa.Array) -> pa.Array:
    return pc.binary_length(array).cast(pa.int64())


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "like": _by_pattern(_like),
    "ilike": _by_pattern(_ilike),
    "regexp_matches": _by_pattern(_matches),
    "regexp_full_match": _by_pattern(_full_match),
    "regexp_replace": _by_pattern(_replace_matches),
    "regexp_extract": _by_pattern(_extract),
    "starts_with": _by_row(str.startswith),
    "ends_with": _by_row(str.endswith),
    "contains": _by_row(str.__contains__),
    "substring": _by_row(substring),
    "lower": _by_column(pc.utf8_lower),
    "upper": _by_column(pc.utf8_upper),
    "concat": _concat,
    "concat_op": _by_row(str.__add__),
    "concat_ws": _concat_ws,
    "trim": _trimmed(str.strip),
    "ltrim": _trimmed(str.lstrip),
    "rtrim": _trimmed(str.rstrip),
    "length": _by_row(len),
    "octet_length": _by_column(_octet_length),
    "replace": _by_row(_replace),
    "split_part": _by_row(_split_part),
    "left": _by_row(_left),
    "right": _by_row(_right),
    "lpad": _by_row(_lpad),
    "rpad": _by_row(_rpad),
    "reverse": _by_row(lambda text: text[::-1]),
    "repeat": _by_row(_repeat),
    "position": _by_row(lambda text, part: text.find(part) + 1),
    "ascii": _by_row(_ascii),
    "chr": _by_row(_chr),
}

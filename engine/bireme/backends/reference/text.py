"""Functions of texts on columns, mostly one python string at a time; patterns are in `patterns`.

Positions and lengths count code points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

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


def _code_point(of_nothing: int) -> Evaluator:
    return _by_row(lambda text: ord(text[0]) if text else of_nothing)


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
    "starts_with": _by_row(str.startswith),
    "ends_with": _by_row(str.endswith),
    "contains": _by_row(str.__contains__),
    "substring": _by_row(substring),
    "lower": _by_column(pc.utf8_lower),
    "upper": _by_column(pc.utf8_upper),
    "concat": _concat,
    "concat_op": _by_row(lambda left, right: left + right),
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
    "ascii": _code_point(0),
    "unicode": _code_point(-1),
    "chr": _by_row(_chr),
}

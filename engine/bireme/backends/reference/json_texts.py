"""Texts in JSON, one at a time: parsed into members and elements, and written again.

Like DuckDB's reader this takes a comma behind the last element, NaN and Infinity; of members with one key the first
counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from bireme.backends.reference.values import by_row
from bireme.errors import ConversionFault, DomainFault
from bireme.plan.expr import Call
from bireme.plan.functions.json_paths import PathError, Step, parse_path

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_DEPTH_MAX: Final = 200
_SHOWN_MAX: Final = 100
_SPACES: Final = re.compile(r"[ \n\t\r]*")
_NUMBER: Final = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9])|(?i:nan|infinity|inf))")
_STRING: Final = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LONE: Final = re.compile(r"[\ud800-\udfff]")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WRITTEN: Final = {value: f"\\{key}" for key, value in _ESCAPES.items()} | {'"': '\\"', "\\": "\\\\"}
_WORDS: Final = {"true": True, "false": False, "null": None}


class Number(NamedTuple):
    """As it is written."""

    text: str

    @property
    def is_whole(self) -> bool:
        return self.text.removeprefix("-").isdigit()


class Members(NamedTuple):
    """An object: its members in their order, of which several may have one key."""

    pairs: list[tuple[str, Any]]


Json: TypeAlias = Members | list[Any] | str | Number | bool | None


class _Malformed(Exception):
    def __init__(self, place: int) -> None:
        self.place = place


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def document(self) -> Json:
        found = self._value(0)
        self._spaces()
        if self._place < len(self._text):
            raise _Malformed(self._place)
        return found

    def _spaces(self) -> None:
        found = _SPACES.match(self._text, self._place)
        assert found is not None
        self._place = found.end()

    def _take(self, character: str) -> bool:
        is_there = self._text.startswith(character, self._place)
        self._place += is_there
        return is_there

    def _value(self, depth: int) -> Json:
        self._spaces()
        if depth > _DEPTH_MAX:
            raise _Malformed(self._place)
        if self._take("{"):
            return Members(self._listed("}", self._member, depth + 1))
        if self._take("["):
            return self._listed("]", self._value, depth + 1)
        if self._text.startswith('"', self._place):
            return self._string()
        for word, value in _WORDS.items():
            if self._take_word(word):
                return value
        found = _NUMBER.match(self._text, self._place)
        if found is None:
            raise _Malformed(self._place)
        self._place = found.end()
        return Number(found[0])

    def _take_word(self, word: str) -> bool:
        is_there = self._text.startswith(word, self._place)
        self._place += len(word) if is_there else 0
        return is_there

    def _listed(self, bracket: str, one: Callable[[int], Any], depth: int) -> list[Any]:
        found: list[Any] = []
        self._spaces()
        while not self._take(bracket):
            found.append(one(depth))
            self._spaces()
            if self._take(","):
                self._spaces()
            elif not self._text.startswith(bracket, self._place):
                raise _Malformed(self._place)
        return found

    def _member(self, depth: int) -> tuple[str, Json]:
        key = self._string()
        self._spaces()
        if not self._take(":"):
            raise _Malformed(self._place)
        return key, self._value(depth)

    def _string(self) -> str:
        found = _STRING.match(self._text, self._place)
        if found is None:
            raise _Malformed(self._place)
        units = _ESCAPE.sub(_unescaped, found[1])
        text = units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        if _LONE.search(text):
            raise _Malformed(self._place)
        self._place = found.end()
        return text


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def _parsed(text: str) -> Json:
    try:
        return _Parser(text).document()
    except _Malformed as error:
        byte = len(text[: error.place].encode())
        shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
        raise ConversionFault(f"the text is no JSON: it makes no sense at byte {byte} of {shown!r}") from None


_NOTHING: Final = object()


def _at(text: str, path: str) -> Any:
    """What a path leads to, or _NOTHING."""
    try:
        steps = parse_path(path)
    except PathError as error:
        raise DomainFault(str(error)) from None
    found: Any = _parsed(text)
    for step in steps:
        found = _step_to(found, step)
    return found


def _step_to(value: Any, step: Step) -> Any:
    if isinstance(value, Members) and step.key is not None:
        return next((member for key, member in value.pairs if key == step.key), _NOTHING)
    if isinstance(value, list) and step.place is not None:
        place = step.place if step.place >= 0 else step.place + len(value)
        return value[place] if 0 <= place < len(value) else _NOTHING
    return _NOTHING


def _written(value: Any) -> str:
    match value:
        case Members():
            return "{" + ",".join(f"{_quoted(key)}:{_written(member)}" for key, member in value.pairs) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case Number():
            return _number(value)
        case str():
            return _quoted(value)
    return next(word for word, known in _WORDS.items() if known is value)


def _quoted(text: str) -> str:
    return '"' + "".join(_WRITTEN.get(each) or (f"\\u{ord(each):04X}" if each < " " else each) for each in text) + '"'


def _number(number: Number) -> str:
    if number.text == "-0":
        return "0"
    if number.is_whole or not math.isfinite(value := float(number.text)):
        return number.text
    return _shortest(value)


def _shortest(value: float) -> str:
    """The shortest digits that give the value back, without an exponent from 1e-6 up to below 1e21 (as ECMAScript)."""
    _, digits, power = Decimal(repr(abs(value))).normalize().as_tuple()
    assert isinstance(power, int)
    mantissa = "".join(map(str, digits))
    exponent = len(digits) - 1 + power
    prefix = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{prefix}0.0"
    if not -7 < exponent < 21:
        rest = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
        return f"{prefix}{mantissa[0]}{rest}e{exponent}"
    if exponent < 0:
        return f"{prefix}0.{'0' * (-exponent - 1)}{mantissa}"
    whole, rest = mantissa[: exponent + 1].ljust(exponent + 1, "0"), mantissa[exponent + 1 :]
    return f"{prefix}{whole}.{rest or '0'}"


def _extract(text: str, path: str) -> str | None:
    found = _at(text, path)
    return None if found is _NOTHING else _written(found)


def _extract_string(text: str, path: str) -> str | None:
    found = _at(text, path)
    if found is _NOTHING or found is None:
        return None
    return found if isinstance(found, str) else _written(found)


def _value(text: str, path: str) -> str | None:
    found = _at(text, path)
    return None if found is _NOTHING or found is None or isinstance(found, (Members, list)) else _written(found)


def _type(text: str, path: str = "") -> str | None:
    found = _at(text, path)
    match found:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case str():
            return "VARCHAR"
        case Members():
            return "OBJECT"
        case list():
            return "ARRAY"
        case Number() if found.is_whole and -(1 << 63) <= int(found.text) < 1 << 64:
            return "BIGINT" if found.text.startswith("-") else "UBIGINT"
        case Number():
            return "DOUBLE"
    return None


def _array_length(text: str, path: str = "") -> int | None:
    found = _at(text, path)
    if found is _NOTHING:
        return None
    return len(found) if isinstance(found, list) else 0


def _is_valid(text: str) -> bool:
    try:
        _Parser(text).document()
    except _Malformed:
        return False
    return True


def _checked(text: str) -> str:
    _parsed(text)
    return text


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "json": by_row(lambda text: _written(_parsed(text))),
    "json_checked": by_row(_checked),
    "json_extract": by_row(_extract),
    "json_extract_string": by_row(_extract_string),
    "json_value": by_row(_value),
    "json_type": by_row(_type),
    "json_array_length": by_row(_array_length),
    "json_exists": by_row(lambda text, path: _at(text, path) is not _NOTHING),
    "json_valid": by_row(_is_valid),
}

"""Digests and spellings on columns, one value at a time; and how far texts are apart."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
import urllib.parse
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bireme.backends.reference.templates import format_fields, printf
from bireme.backends.reference.values import by_row, from_values
from bireme.errors import ConversionFault, DomainFault
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_BITS_MAX: Final = 64
# Where Winkler's bonus begins, the weight of each common character at the beginning, and how many count.
_WINKLER_MIN: Final = 0.7
_WINKLER_WEIGHT: Final = 0.1
_WINKLER_LENGTH: Final = 4


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _digest(name: str) -> Evaluator:
    return by_row(lambda value: hashlib.new(name, _bytes(value), usedforsecurity=False).hexdigest())


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ConversionFault(f"{text!r} is not a text in base 64") from None


def _hex(value: str | bytes | int) -> str:
    if isinstance(value, int):
        return f"{value % (1 << _BITS_MAX):X}"
    return _bytes(value).hex().upper()


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")
    except ValueError:
        raise ConversionFault(f"{text!r} is not a text of hexadecimal digits") from None


def _bin(value: str | bytes | int) -> str:
    if isinstance(value, int):
        return f"{value % (1 << _BITS_MAX):b}"
    return "".join(f"{byte:08b}" for byte in _bytes(value))


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ConversionFault("a blob that is no UTF-8 cannot be decoded to a text") from None


def _url_decode(text: str) -> str:
    return _decode(urllib.parse.unquote_to_bytes(text))


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for index, character in enumerate(old):
        table.setdefault(ord(character), new[index] if index < len(new) else None)
    return text.translate(table)


def _strip_accents(text: str) -> str:
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return unicodedata.normalize("NFC", plain)


# ------------------------------------------------------------------------------------------ distances


def _levenshtein(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, start=1):
        before, row[0] = row[0], number
        for index, other in enumerate(right, start=1):
            changed = before + (character != other)
            before = row[index]
            row[index] = min(row[index] + 1, row[index - 1] + 1, changed)
    return row[-1]


def _damerau_levenshtein(left: str, right: str) -> int:
    """With changes of places between which other changes may lie (Lowrance and Wagner)."""
    far = len(left) + len(right)
    last_row: dict[str, int] = {}
    table: list[list[int]] = [[far] * (len(right) + 2), [far, *range(len(right) + 1)]]
    for row, character in enumerate(left, start=1):
        last_column = 0
        costs = [far, row]
        for column, other in enumerate(right, start=1):
            from_row, from_column = last_row.get(other, 0), last_column
            if character == other:
                last_column = column
            moved = table[from_row][from_column] + (row - from_row - 1) + 1 + (column - from_column - 1)
            changed = table[row][column] + (character != other)
            costs.append(min(changed, costs[column] + 1, table[row][column + 1] + 1, moved))
        table.append(costs)
        last_row[character] = row
    return table[-1][-1]


def _jaro(left: str, right: str) -> float:
    reach = max(len(left), len(right)) // 2 - 1
    taken = [False] * len(right)
    matched = []
    for place, character in enumerate(left):
        for other in range(max(0, place - reach), min(len(right), place + reach + 1)):
            if not taken[other] and right[other] == character:
                taken[other] = True
                matched.append(character)
                break
    if not matched:
        return float(bool(left) and left == right)
    there = [character for character, is_taken in zip(right, taken, strict=True) if is_taken]
    moved = sum(one != other for one, other in zip(matched, there, strict=True)) // 2
    count = len(matched)
    return (count / len(left) + count / len(right) + (count - moved) / count) / 3


def _jaro_winkler(left: str, right: str) -> float:
    alike = _jaro(left, right)
    if alike <= _WINKLER_MIN:
        return alike
    begin = 0
    while begin < min(len(left), len(right), _WINKLER_LENGTH) and left[begin] == right[begin]:
        begin += 1
    return alike + begin * _WINKLER_WEIGHT * (1 - alike)


def _at_least(similarity: Callable[[str, str], float]) -> Callable[..., float]:
    def compute(left: str, right: str, least: float = 0.0) -> float:
        found = similarity(left, right)
        return found if found >= least else 0.0

    return compute


def _hamming(left: str, right: str) -> int:
    if len(left) != len(right):
        raise DomainFault("hamming compares texts of one length only")
    return sum(one != other for one, other in zip(left, right, strict=True))


def _jaccard(left: str, right: str) -> float:
    one, other = set(left), set(right)
    if not one or not other:
        raise DomainFault("jaccard compares texts that are not empty only")
    return len(one & other) / len(one | other)


def _templated(write: Callable[..., str]) -> Callable[..., str]:
    """Of decimals only those without a place behind the point come here."""
    return lambda template, *values: write(
        template, *(int(value) if isinstance(value, Decimal) else value for value in values)
    )


def _bit_count(call: Call, args: list[pa.Array]) -> pa.Array:
    bits = call.args[0].type.bits
    counts = [None if value is None else (value % (1 << bits)).bit_count() for value in args[0].to_pylist()]
    return from_values(counts, call.type)


def _quoted(text: str) -> str:
    return "".join(each if each.isalnum() or each == "_" else f"\\{each}" for each in text)


def _texts(functions: Sequence[tuple[str, Callable[..., Any]]]) -> dict[str, Evaluator]:
    return {name: by_row(compute) for name, compute in functions}


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "md5": _digest("md5"),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "bit_count": _bit_count,
    **_texts(
        (
            ("to_base64", lambda value: base64.b64encode(value).decode()),
            ("from_base64", _from_base64),
            ("hex", _hex),
            ("unhex", _unhex),
            ("bin", _bin),
            ("encode", str.encode),
            ("decode", _decode),
            ("url_encode", lambda text: urllib.parse.quote(text, safe="~")),
            ("url_decode", _url_decode),
            ("translate", _translate),
            ("strip_accents", _strip_accents),
            ("nfc_normalize", lambda text: unicodedata.normalize("NFC", text)),
            ("bit_length", lambda text: 8 * len(text.encode())),
            ("regexp_escape", _quoted),
            ("levenshtein", _levenshtein),
            ("damerau_levenshtein", _damerau_levenshtein),
            ("jaro_similarity", _at_least(_jaro)),
            ("jaro_winkler_similarity", _at_least(_jaro_winkler)),
            ("hamming", _hamming),
            ("jaccard", _jaccard),
            ("format", _templated(format_fields)),
            ("printf", _templated(printf)),
        )
    ),
}

"""Lists, structs and intervals as texts, whole columns at once, as a cast to VARCHAR writes them.

What is written is in `plan.functions.texts` and `conversion`; Arrow puts the parts together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference.collected import lengths_of, list_array
from bireme.backends.reference.structs import field_at
from bireme.backends.reference.values import text_array
from bireme.backends.reference.vectors import Bools, Numbers, nulls_of, span_parts
from bireme.data import arrays
from bireme.data.record import plain
from bireme.data.types import INTERVAL, STRING, DataType, Kind, list_of, to_arrow
from bireme.errors import TooMuchAtOnce
from bireme.plan.functions.conversion import is_row
from bireme.plan.functions.texts import quoted

# Turns a column of a type into one of texts.
Write = Callable[[pa.Array, DataType], pa.Array]

_TEXTS: Final = to_arrow(list_of(STRING))
# Empty, with a blank at an end, a NULL in writing, or with a character that means something in a list.
_BLANK: Final = r"[\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
_QUOTED: Final = rf"""^$|^{_BLANK}|{_BLANK}$|^(?i:null)$|['"\\,:()\[\]{{}}=]"""
# What has none of that.
_PLAIN: Final = frozenset({Kind.BOOL, Kind.FLOAT32, Kind.FLOAT64, Kind.DECIMAL, Kind.DATE})
_QUOTE, _BACKSLASH = b"'\\"
_IS_MARK: Final = np.isin(np.arange(256), list(b"'\"\\,:()[]{}="))
# A blank, or a part of a character that may be one.
_IS_ODD_END: Final = np.isin(np.arange(256), [*range(9, 14), *range(28, 33), *range(128, 256)])
_MICROSECONDS: Final = 1_000
_A_SECOND: Final = 1_000_000
_PAIRS_MAX: Final = 100


def is_written_here(kind: DataType) -> bool:
    return kind is INTERVAL or kind.kind in (Kind.LIST, Kind.STRUCT)


def written(array: pa.Array, kind: DataType, write: Write) -> pa.Array:
    """The texts of a column; `write` gives those of its parts."""
    try:
        if kind is INTERVAL:
            return _intervals(array)
        return _lists(array, kind, write) if kind.kind is Kind.LIST else _structs(array, kind, write)
    except pa.ArrowCapacityError as error:
        raise TooMuchAtOnce(f"the texts of {kind} values of some rows take more than 2 GiB") from error


def _one(text: str) -> Any:
    """A text as Arrow's functions take it."""
    return text_array(text)[0]


def _joined(*parts: Any) -> pa.Array:
    """Texts of columns, and such that are the same in all rows, one behind the other; NULL where one is."""
    return pc.binary_join_element_wise(*[_one(part) if isinstance(part, str) else part for part in parts], _one(""))


def _without(texts: pa.Array, missing: Bools) -> pa.Array:
    if not missing.any():
        return texts
    return pc.if_else(arrays.from_numpy(missing), pa.nulls(1, pa.string())[0], texts)


# -------------------------------------------------------------------------------------------- lists, structs


def _lists(lists: pa.Array, kind: DataType, write: Write) -> pa.Array:
    shown = _shown(plain(lists.flatten()), kind.children[0].type, write)
    texts = list_array(_TEXTS, shown, lengths_of(lists), nulls_of(lists))
    return _joined("[", pc.binary_join(texts, _one(", ")), "]")


def _structs(structs: pa.Array, kind: DataType, write: Write) -> pa.Array:
    row = is_row(kind)
    parts: list[Any] = []
    for place, child in enumerate(kind.children):
        label = "" if row else f"{quoted(child.name)}: "
        parts += [f"{', ' if place else ''}{label}", _shown(plain(field_at(structs, place)), child.type, write)]
    return _without(_joined("(" if row else "{", *parts, ")" if row else "}"), nulls_of(structs))


def _shown(values: pa.Array, kind: DataType, write: Write) -> pa.Array:
    """Values as they stand inside of a list or struct; none is NULL."""
    texts = values if kind is STRING else write(values, kind)
    if not kind.is_nested and not kind.is_integer and kind.kind not in _PLAIN:
        texts = _in_quotes(texts)
    missing = nulls_of(texts)
    return pc.if_else(arrays.from_numpy(missing), _one("NULL"), texts) if missing.any() else texts


def _in_quotes(texts: pa.Array) -> pa.Array:
    """Those quoted that could be read as something else."""
    content, bounds = _bytes_of(texts)
    wanted = _need_quotes(texts, content, bounds)
    if not wanted.any():
        return texts
    escaped = texts
    for byte, spelt in ((_BACKSLASH, "\\\\"), (_QUOTE, "\\'")):
        if (content == byte).any():
            escaped = pc.replace_substring(escaped, chr(byte), spelt)
    in_quotes = _joined("'", escaped, "'")
    return in_quotes if wanted.all() else pc.if_else(arrays.from_numpy(wanted), in_quotes, texts)


def _bytes_of(texts: pa.Array) -> tuple[Numbers, Numbers]:
    """All bytes of a column, and where in these each text begins, and the last one ends."""
    _, ends, content = texts.buffers()
    if len(texts) == 0 or ends is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


def _need_quotes(texts: pa.Array, content: Numbers, bounds: Numbers) -> Bools:
    """Those that hold a mark are found among all bytes; few others have to be looked at one by one."""
    starts, ends = bounds[:-1], bounds[1:]
    wanted: Bools = starts == ends
    wanted[np.searchsorted(ends, np.flatnonzero(_IS_MARK[content]), side="right")] = True
    left = np.flatnonzero(~wanted)
    first, last = content[starts[left]], content[ends[left] - 1]
    is_odd = _IS_ODD_END[first] | _IS_ODD_END[last] | (ends[left] - starts[left] == len("null"))
    odd = left[is_odd]
    if len(odd):
        wanted[odd] = arrays.is_true(pc.match_substring_regex(texts.take(arrays.from_numpy(odd)), _QUOTED))
    return wanted


# ------------------------------------------------------------------------------------------------- intervals


def _intervals(spans: pa.Array) -> pa.Array:
    if len(spans) == 0:
        return pa.nulls(0, pa.string())
    months, days, nanoseconds = span_parts(spans)
    years = np.abs(months) // 12 * np.sign(months)
    amounts = {"year": years, "month": months - years * 12, "day": days}
    parts = [_amounts(numbers, unit) for unit, numbers in amounts.items() if numbers.any()]
    is_shown = (nanoseconds != 0) | ((months == 0) & (days == 0))
    if is_shown.any():
        parts.append(_clocks(nanoseconds, is_shown))
    texts = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _one(" "), null_handling="skip")
    return _without(texts, nulls_of(spans))


def _amounts(amounts: Numbers, unit: str) -> pa.Array:
    """Such as `1 day` and `-2 days`; NULL for none."""
    numbers = arrays.from_numpy(amounts, missing=amounts == 0).cast(pa.string())
    ending = pc.if_else(arrays.from_numpy(np.abs(amounts) == 1), _one(f" {unit}"), _one(f" {unit}s"))
    return _joined(numbers, ending)


def _clocks(nanoseconds: Numbers, is_shown: Bools) -> pa.Array:
    """Hours, minutes and seconds, to microseconds; NULL where they are not shown."""
    # The smallest has no counterpart; its bits without a sign are its size.
    micros = np.abs(nanoseconds).view(np.uint64) // np.uint64(_MICROSECONDS)
    seconds, fraction = np.divmod(micros.view(np.int64), _A_SECOND)
    minutes, second = np.divmod(seconds, 60)
    hours, minute = np.divmod(minutes, 60)
    negative = nanoseconds < 0
    sign = pc.if_else(arrays.from_numpy(negative), _one("-"), _one("")) if negative.any() else ""
    parts = [_digits(hours), ":", _digits(minute), ":", _digits(second)]
    return _without(_joined(sign, *parts, _fractions(fraction)), ~is_shown)


def _digits(numbers: Numbers) -> pa.Array:
    """At least two."""
    if len(numbers) == 0 or numbers.max() < _PAIRS_MAX:
        return _pairs().take(arrays.from_numpy(numbers))
    return _padded(numbers, 2)


@lru_cache(maxsize=1)
def _pairs() -> pa.Array:
    """The texts from 00 to 99."""
    content = "".join([f"{number:02}" for number in range(_PAIRS_MAX)]).encode()
    ends = pa.py_buffer(np.arange(0, len(content) + 1, 2, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), _PAIRS_MAX, [None, ends, pa.py_buffer(content)])


def _padded(numbers: Numbers, width: int) -> pa.Array:
    return pc.utf8_lpad(arrays.from_numpy(numbers).cast(pa.string()), width=width, padding="0")


def _fractions(micros: Numbers) -> pa.Array:
    """Behind the second, without the zeros at their end."""
    if not micros.any():
        return _one("")
    digits = pc.utf8_rtrim(_padded(micros, 6), characters="0")
    return pc.if_else(arrays.from_numpy(micros != 0), _joined(".", digits), _one(""))

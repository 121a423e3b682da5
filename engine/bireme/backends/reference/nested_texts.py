"""Lists, structs and intervals as texts, whole columns at once, as a cast to VARCHAR writes them.

What is written is in `plan.functions.texts` and `conversion`; Arrow puts the parts together.
"""

from __future__ import annotations

from collections.abc import Callable
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
_MICROSECONDS: Final = 1_000
_A_SECOND: Final = 1_000_000


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
    wanted = pc.match_substring_regex(texts, _QUOTED)
    if not arrays.is_true(wanted).any():
        return texts
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "'", "\\'")
    return pc.if_else(wanted, _joined("'", escaped, "'"), texts)


# ------------------------------------------------------------------------------------------------- intervals


def _intervals(spans: pa.Array) -> pa.Array:
    months, days, nanoseconds = span_parts(spans)
    years = np.abs(months) // 12 * np.sign(months)
    parts = [_amounts(years, "year"), _amounts(months - years * 12, "month"), _amounts(days, "day")]
    is_shown = (nanoseconds != 0) | ((months == 0) & (days == 0))
    texts = pc.binary_join_element_wise(*parts, _clocks(nanoseconds, is_shown), _one(" "), null_handling="skip")
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
    seconds, fraction = np.divmod(micros, np.uint64(_A_SECOND))
    minutes, hours = seconds // np.uint64(60), seconds // np.uint64(3600)
    sign = pc.if_else(arrays.from_numpy(nanoseconds < 0), _one("-"), _one(""))
    parts = [_digits(hours), ":", _digits(minutes % np.uint64(60)), ":", _digits(seconds % np.uint64(60))]
    return _without(_joined(sign, *parts, _fractions(fraction)), ~is_shown)


def _digits(numbers: Numbers, width: int = 2) -> pa.Array:
    return pc.utf8_lpad(arrays.from_numpy(numbers).cast(pa.string()), width=width, padding="0")


def _fractions(micros: Numbers) -> pa.Array:
    """Behind the second, without the zeros at their end."""
    if not micros.any():
        return _one("")
    digits = pc.utf8_rtrim(_digits(micros, 6), characters="0")
    return pc.if_else(arrays.from_numpy(micros != 0), _joined(".", digits), _one(""))

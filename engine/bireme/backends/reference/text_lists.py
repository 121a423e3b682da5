"""Lists of parts of texts: what lies between separators, and what a regular expression matches.

Arrow splits whole columns. An expression that may match nothing, asks for the start or end of a text or word, or is
blind to case is left to `pattern_parts`, which takes a row at a time, as is a group of a match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bireme.backends.reference import pattern_parts
from bireme.backends.reference.collected import list_array
from bireme.backends.reference.elements import Elements, spread
from bireme.backends.reference.patterns import by_pattern
from bireme.backends.reference.vectors import nulls_of
from bireme.data import arrays
from bireme.data.types import STRING, list_of, to_arrow
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_TEXTS: Final = to_arrow(list_of(STRING))
# One of these is put around matches; control characters that texts hardly have.
_MARKS: Final = "\x1d\x1e\x1f\x02"
# What marks add is at most twice a text.
_MARKED_BYTES_MAX: Final = 1 << 29


def _split(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    separator = other[0]
    return pc.split_pattern(texts, separator) if separator else _characters(texts)


def _characters(texts: pa.Array) -> pa.Array:
    missing = nulls_of(texts)
    texts = texts.fill_null("") if texts.null_count else texts
    _, ends, content = texts.buffers()
    bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    encoded = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
    begins = (encoded & 0xC0) != 0x80
    offsets = np.append(np.flatnonzero(begins), len(encoded)).astype(np.int32)
    before = np.concatenate([[0], np.cumsum(begins)])[bounds - bounds[0]]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(encoded)]
    values = pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
    return list_array(_TEXTS, values, np.diff(before), missing)


def _split_by_expression(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    if texts.null_count == len(texts) or not pattern_parts.is_plain(other[0]):
        return _by_row(pattern_parts.split, texts, other)
    return pc.split_pattern_regex(texts, other[0])


def _all_matches(texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    pattern, group = other if len(other) == 2 else (other[0], 0)
    mark = _mark_for(texts)
    if group != 0 or mark is None or texts.null_count == len(texts) or not pattern_parts.is_plain(pattern):
        return _by_row(pattern_parts.all_matches, texts, (pattern, group))
    marked = pc.replace_substring_regex(texts, pattern, f"{mark}\\0{mark}")
    # Every second part is a match.
    parts = Elements(pc.split_pattern(marked, mark), list_of(STRING))
    counts = parts.lengths // 2
    return parts.lists(spread(parts.starts + 1, counts, np.full(len(counts), 2)), counts)


def _mark_for(texts: pa.Array) -> str | None:
    """A character that no text has."""
    if texts.nbytes > _MARKED_BYTES_MAX:
        return None
    return next((mark for mark in _MARKS if not arrays.is_true(pc.match_substring(texts, mark)).any()), None)


def _by_row(compute: Callable[..., Any], texts: pa.Array, other: Sequence[Any]) -> pa.Array:
    return pa.array([None if text is None else compute(text, *other) for text in texts.to_pylist()], _TEXTS)


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "string_split": by_pattern(_split),
    "string_split_regex": by_pattern(_split_by_expression),
    "regexp_extract_all": by_pattern(_all_matches),
}

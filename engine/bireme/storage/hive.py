"""Hive partitions: columns that the folders of files spell, as in `year=2024/month=1/x.parquet`. Pure.

Rule: as DuckDB reads them. A folder is part of it where its name has one `=` and something before it; of a key that
comes twice the first counts. Keys are in the order of their names, since paths may have them in any; of those that
differ in case alone the first in this order counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from bireme.data.types import DATE, INT64, STRING, TIMESTAMP, DataType
from bireme.errors import ArgumentFault, ConversionFault, SourceMismatch
from bireme.plan.expr import Value
from bireme.plan.functions.conversion import convert, converter
from bireme.plan.read_options import ReadOptions

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
# A number with a leading zero is a text to most who write it.
_INTEGER: Final = re.compile(r"\s*-?(?:0|[1-9][0-9]*)\s*|\s*0x[0-9a-f]+\s*", re.IGNORECASE | re.ASCII)
_DATE: Final = re.compile(r"\s*[0-9]+-[0-9]+-[0-9]+\s*", re.ASCII)


class Partitions(NamedTuple):
    """The columns that paths spell, and of each file their values."""

    fields: tuple[tuple[str, DataType], ...]
    values: tuple[tuple[Value, ...], ...]


def partitions(paths: Sequence[str], options: ReadOptions) -> Partitions:
    """What the folders of the paths spell; nothing where they do not agree and are not said to.

    Raises SourceMismatch where they are, ConversionFault for values that are not of the type asked for.
    """
    none = Partitions((), ((),) * len(paths))
    if options.hive_partitioning is False:
        return none
    found = [_keys(path) for path in paths]
    first = found[0]
    for path, keys in zip(paths, found, strict=True):
        if keys.keys() != first.keys():
            if options.hive_partitioning is None:
                return none
            raise _mismatch(paths[0], first, path, keys)
    names = _distinct(sorted(first))
    _check_names(names, paths[0])
    asked = _asked_types(options, names)
    types = [asked.get(name) or _type([keys[name] for keys in found], options) for name in names]
    values = [
        tuple([_value(path, name, keys[name], kind) for name, kind in zip(names, types, strict=True)])
        for path, keys in zip(paths, found, strict=True)
    ]
    return Partitions(tuple(zip(names, types, strict=True)), tuple(values))


def _distinct(names: Sequence[str]) -> list[str]:
    """Names without those that are there before in another case."""
    firsts: dict[str, str] = {}
    for name in names:
        firsts.setdefault(name.lower(), name)
    return list(firsts.values())


def _keys(path: str) -> dict[str, str]:
    """Keys and values, as they are written, of the folders of a path."""
    keys: dict[str, str] = {}
    if "=" in path:
        for part in path.split("/")[:-1]:
            key, equals, value = part.partition("=")
            if equals and key and "=" not in value:
                keys.setdefault(key, value)
    return keys


def _mismatch(first: str, keys: Mapping[str, str], path: str, others: Mapping[str, str]) -> SourceMismatch:
    missing = [key for key in keys if key not in others]
    place, key = (path, missing[0]) if missing else (first, next(key for key in others if key not in keys))
    return SourceMismatch(
        f"{first!r} and {path!r} are not partitioned by the same keys: {place!r} has no folder {key + '=…'!r}; name "
        "the files of one kind, or read them with hive_partitioning = false"
    )


def _check_names(names: Sequence[str], path: str) -> None:
    for name in names:
        try:
            name.encode()
        except UnicodeError:
            raise ConversionFault(f"the folder {name + '=…'!r} of {path!r} is no text in UTF-8") from None


def _asked_types(options: ReadOptions, names: Sequence[str]) -> dict[str, DataType]:
    for name, _ in options.hive_types:
        if name not in names:
            known = f"there are {', '.join(map(repr, names))}" if names else "the paths have none"
            raise ArgumentFault(f"hive_types: there is no partition column {name!r}; {known}")
    return dict(options.hive_types)


def _type(texts: Iterable[str], options: ReadOptions) -> DataType:
    """The type of a column whose values are written so."""
    if not options.hive_types_autocast:
        return STRING
    kinds = {_kind_of(text) for text in texts if not _is_null(text)}
    return kinds.pop() if len(kinds) == 1 else STRING


def _kind_of(text: str) -> DataType:
    if _INTEGER.fullmatch(text):
        return INT64 if _reads(text, INT64) else STRING
    if _DATE.fullmatch(text):
        return DATE if _reads(text, DATE) else STRING
    return TIMESTAMP if ":" in text and _reads(text, TIMESTAMP) else STRING


def _reads(text: str, kind: DataType) -> bool:
    try:
        convert(text, STRING, kind)
    except ConversionFault:
        return False
    return True


def _is_null(text: str) -> bool:
    return text == _NULL or text.upper() == "NULL"


def _value(path: str, name: str, text: str, kind: DataType) -> Value:
    if text == _NULL or (kind is not STRING and _is_null(text)):
        return None
    if converter(STRING, kind) is None:
        raise ArgumentFault(f"hive_types, {name!r}: the name of a folder is no {kind}")
    try:
        value: Value = convert(_decoded(text), STRING, kind)
    except ConversionFault:
        raise ConversionFault(f"the folder {name}={text} of {path!r} is not named after a {kind}") from None
    except UnicodeError:
        raise ConversionFault(f"the folder {name}={text!r} of {path!r} is no text in UTF-8") from None
    return value


def _decoded(text: str) -> str:
    """The text without what paths have in place of some characters. Raises UnicodeError."""
    text.encode()
    if "%" not in text:
        return text
    from urllib.parse import unquote  # most folders do without

    return unquote(text, errors="strict")

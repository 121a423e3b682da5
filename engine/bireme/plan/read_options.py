"""How the files of a table are to be read: the options of read_parquet and of the calls that register files.

Rule: what is given is checked here, once, whoever gives it; what the options do is in `storage.file_columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bireme.data.types import DataType, Kind
from bireme.errors import ArgumentFault, TypeFault
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`hive_partitioning` is None where the paths are to tell. `filename` is the name of a column, "" for none."""

    hive_partitioning: bool | None = None
    hive_types: tuple[tuple[str, DataType], ...] = ()
    hive_types_autocast: bool = True
    union_by_name: bool = False
    filename: str = ""
    file_row_number: bool = False


AS_THEY_ARE: Final = ReadOptions()
FILENAME: Final = "filename"
FILE_ROW_NUMBER: Final = "file_row_number"
OPTIONS: Final = (
    "filename",
    "file_row_number",
    "hive_partitioning",
    "hive_types",
    "hive_types_autocast",
    "union_by_name",
)


def read_options(given: Mapping[str, object]) -> ReadOptions:
    """The options of these names, compared without regard to case. Raises ArgumentFault."""
    if not given:
        return AS_THEY_ARE
    found: dict[str, object] = {}
    for name, value in given.items():
        if name.lower() not in OPTIONS:
            raise ArgumentFault(f"there is no option {name!r} for reading files; there are {', '.join(OPTIONS)}")
        found[name.lower()] = value
    partitioned = None if found.get("hive_partitioning") is None else _flag(found, "hive_partitioning", False)
    types = _types(found.get("hive_types"))
    if types and partitioned is False:
        raise ArgumentFault("hive_types are types of partition columns, which hive_partitioning = false leaves out")
    return ReadOptions(
        hive_partitioning=True if types else partitioned,
        hive_types=types,
        hive_types_autocast=_flag(found, "hive_types_autocast", True),
        union_by_name=_flag(found, "union_by_name", False),
        filename=_name(found.get("filename", False)),
        file_row_number=_flag(found, "file_row_number", False),
    )


def _flag(found: Mapping[str, object], name: str, default: bool) -> bool:
    value = found.get(name, default)
    if not isinstance(value, bool) and value not in (0, 1):
        raise ArgumentFault(f"{name} is true or false, not {value!r}")
    return bool(value)


def _name(value: object) -> str:
    """The name that the column of file names gets: its own, where it is only said that there shall be one."""
    if isinstance(value, bool) or value in (0, 1):
        return FILENAME if value else ""
    if not isinstance(value, str) or not value:
        raise ArgumentFault(f"filename is true, false, or the name of the column, not {value!r}")
    return value


def _types(value: object) -> tuple[tuple[str, DataType], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ArgumentFault(f"hive_types names types of partition columns, as in {{'year': 'integer'}}, not {value!r}")
    return tuple([(name, _type(name, kind)) for name, kind in value.items()])


def _type(name: str, kind: object) -> DataType:
    from bireme.plan.functions import parse_type

    if isinstance(kind, DataType):
        found = kind
    elif isinstance(kind, str):
        try:
            found = parse_type(kind)
        except TypeFault as error:
            raise ArgumentFault(f"hive_types, {name!r}: {error}") from error
    else:
        raise ArgumentFault(f"hive_types, {name!r}: a type is written as a text such as 'integer', not {kind!r}")
    if found.is_nested or found.kind in (Kind.INTERVAL, Kind.NULL):
        raise ArgumentFault(f"hive_types, {name!r}: the name of a folder is no {found}")
    return found

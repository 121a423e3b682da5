"""Where the columns of a table come from in each of its files. Pure.

Rule: as DuckDB puts files together. The first file gives the columns, unless all are to by name; other files' columns
are found by name, whatever their order, and become of its types. A file that has not got one, or not of a type that can
become the table's, is at fault only if somebody reads that column of it. What partitions, `filename` and
`file_row_number` add comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from bireme.data.schema import Schema
from bireme.data.types import BOOL, INT64, NULL, STRING, DataType, Field
from bireme.errors import ArgumentFault, SourceMismatch
from bireme.plan.expr import Value
from bireme.plan.read_options import FILE_ROW_NUMBER, ReadOptions
from bireme.storage.hive import partitions

_ADVICE: Final = "read them with union_by_name = true, or as tables of their own"


class Stored(NamedTuple):
    """A column of the file, and its type there."""

    column: int
    type: DataType


class Constant(NamedTuple):
    """One value for all rows of the file."""

    value: Value


class RowNumber(NamedTuple):
    """The number of the row in the file."""


class FileSchema(NamedTuple):
    """A file's path as it was asked for, and its own columns."""

    shown: str
    schema: Schema


class Lacking(NamedTuple):
    """The file has not got `column`, or as `found`, which cannot become one of its type."""

    file: FileSchema
    column: str
    type: DataType
    found: Field | None

    @property
    def story(self) -> str:
        """What is wrong with the file, for whoever reads the column of it."""
        shown, schema = self.file
        if self.found is not None:
            return (
                f"{shown!r}: column {self.found.name!r} is {self.found.type} there and {self.type} in the table, which "
                f"it cannot become; {_ADVICE}"
            )
        names = ", ".join(map(repr, schema.names[:20]))
        return f"{shown!r} has no column {self.column!r}, which the first file has (it has {names}); {_ADVICE}"


Origin = Stored | Constant | RowNumber | Lacking
# A name without regard to case, and which of the columns that have it.
_Key = tuple[str, int]


class TableColumns(NamedTuple):
    """The columns of a table, and where they come from in each file; None for its own, as they are."""

    schema: Schema
    origins: tuple[tuple[Origin, ...] | None, ...]


def table_columns(files: Sequence[FileSchema], options: ReadOptions) -> TableColumns:
    """Raises SourceMismatch, ArgumentFault and ConversionFault."""
    found = partitions([file.shown for file in files], options)
    merged = _united(files) if options.union_by_name else _keyed(files[0].schema)
    columns = [_Column(merged[key].name, merged[key].type) for key in merged]
    _add_stored(columns, list(merged), files, is_union=options.union_by_name)
    names = {key[0] for key in merged}
    _add_asked(columns, files, options, names, [name for name, _ in found.fields])
    for place, (name, kind) in enumerate(found.fields):
        _add_partition(columns, name, kind, [Constant(values[place]) for values in found.values])
    fields = tuple([Field(column.name, column.type, column.nullable) for column in columns])
    return TableColumns(Schema(fields), tuple([_of_file(columns, place) for place in range(len(files))]))


def _of_file(columns: Sequence[_Column], place: int) -> tuple[Origin, ...]:
    return tuple([column.origins[place] for column in columns])


class _Column:
    """A column of the table while its origins are put together, one a file."""

    def __init__(self, name: str, kind: DataType, origins: Sequence[Origin] = (), nullable: bool = False) -> None:
        self.name = name
        self.type = kind
        self.origins = list(origins)
        self.nullable = nullable


def _keyed(schema: Schema) -> dict[_Key, Field]:
    """The columns by what finds them in other files."""
    counts: dict[str, int] = {}
    keyed: dict[_Key, Field] = {}
    for field in schema:
        name = field.name.lower()
        counts[name] = counts.get(name, -1) + 1
        keyed[name, counts[name]] = field
    return keyed


def _united(files: Sequence[FileSchema]) -> dict[_Key, Field]:
    """All columns of all files, in the order in which they come first, of types that hold all of their values."""
    merged: dict[_Key, Field] = {}
    seen: set[Schema] = set()
    for file in files:
        if file.schema in seen:
            continue
        seen.add(file.schema)
        for key, field in _keyed(file.schema).items():
            known = merged.get(key)
            kind = field.type if known is None else _common(known, field, file)
            merged[key] = Field(field.name if known is None else known.name, kind)
    return merged


def _common(known: Field, field: Field, file: FileSchema) -> DataType:
    from bireme.plan.functions.casting import common_of_two, is_castable

    kind = common_of_two(known.type, field.type)
    if kind is not None:
        return kind
    if BOOL in (known.type, field.type) and (known.type.is_numeric or field.type.is_numeric):
        return known.type if field.type is BOOL else field.type
    if STRING in (known.type, field.type) and is_castable(known.type, STRING) and is_castable(field.type, STRING):
        return STRING
    raise SourceMismatch(
        f"{file.shown!r}: column {field.name!r} is {field.type} there and {known.type} in a file before it, and there "
        "is no type for both; read the files as tables of their own"
    )


def _add_stored(
    columns: Sequence[_Column], keys: Sequence[_Key], files: Sequence[FileSchema], *, is_union: bool
) -> None:
    """What the files have of the columns; files that are alike share it."""
    known: dict[Schema, list[Origin]] = {}
    for file in files:
        own = known.get(file.schema)
        if own is None:
            own = known[file.schema] = _origins(columns, keys, file, is_union=is_union)
        for column, origin in zip(columns, own, strict=True):
            column.origins.append(origin._replace(file=file) if isinstance(origin, Lacking) else origin)


def _origins(columns: Sequence[_Column], keys: Sequence[_Key], file: FileSchema, *, is_union: bool) -> list[Origin]:
    places = {key: place for place, key in enumerate(_keyed(file.schema))}
    found: list[Origin] = []
    for column, key in zip(columns, keys, strict=True):
        place = places.get(key)
        field = None if place is None else file.schema[place]
        column.nullable |= field is None or field.nullable
        if place is None or field is None:
            found.append(Constant(None) if is_union else Lacking(file, column.name, column.type, None))
        else:
            found.append(_origin(column, place, field, file))
    return found


def _origin(column: _Column, place: int, field: Field, file: FileSchema) -> Origin:
    from bireme.plan.functions.casting import is_castable

    if field.type is NULL and column.type is not NULL:
        return Constant(None)
    if field.type is column.type or is_castable(field.type, column.type):
        return Stored(place, field.type)
    return Lacking(file, column.name, column.type, field)


def _add_asked(
    columns: list[_Column], files: Sequence[FileSchema], options: ReadOptions, names: set[str], keys: Sequence[str]
) -> None:
    """The columns `file_row_number` and `filename`."""
    if options.file_row_number:
        if FILE_ROW_NUMBER in {*names, *map(str.lower, keys)}:
            raise ArgumentFault(f"file_row_number adds a column {FILE_ROW_NUMBER!r}, which is there already")
        columns.append(_Column(FILE_ROW_NUMBER, INT64, [RowNumber()] * len(files)))
    if options.filename:
        taken = {*names, *map(str.lower, keys), *([FILE_ROW_NUMBER] if options.file_row_number else [])}
        if options.filename.lower() in taken:
            raise ArgumentFault(
                f"filename adds a column {options.filename!r}, which is there already; write filename = 'another name'"
            )
        columns.append(_Column(options.filename, STRING, [Constant(_readable(file.shown)) for file in files]))


def _readable(path: str) -> str:
    """A path as text: names of files may be any bytes."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _add_partition(columns: list[_Column], name: str, kind: DataType, values: Sequence[Constant]) -> None:
    """A partition column, in place of the first column of that name that the files have."""
    nullable = any(each.value is None for each in values)
    for column in columns:
        if column.name.lower() == name.lower():
            column.type, column.origins, column.nullable = kind, list(values), nullable
            return
    columns.append(_Column(name, kind, values, nullable))

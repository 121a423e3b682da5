"""Batches written as text: CSV and JSON lines.

CSV is RFC 4180 with a header line: strings in quotes, NULL as nothing at all, so that it differs from an empty string.
JSON lines have one object a row: decimals as numbers with all their digits, dates and times as ISO 8601, bytes as
base64, NaN and infinities, for which JSON has no number, as the strings "NaN", "Infinity" and "-Infinity". Where a
name repeats, later columns get a number: an object has one value a name.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class CsvFormat:
    """Writes to `file`, which has `write` and `tell`."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._schema = pa.schema([pa.field(field.name, _csv_type(field.type)) for field in schema])
        self._writer = csv.CSVWriter(file, self._schema)

    def write(self, batch: pa.RecordBatch) -> int:
        columns = [_as_csv(column, field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return int(batch.num_rows)

    def finish(self) -> None:
        self._writer.close()


class JsonLinesFormat:
    """Writes to `file`, which has `write`."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        self._file = file
        self._labels = [f"{_ENCODE(name)}:" for name in _distinct_names(schema.names)]

    def write(self, batch: pa.RecordBatch) -> int:
        columns = [
            [f"{label}{text}" for text in json_texts(column)]
            for label, column in zip(self._labels, batch.columns, strict=True)
        ]
        if not columns:
            self._file.write(b"{}\n" * batch.num_rows)
            return int(batch.num_rows)
        lines = "".join([f"{{{','.join(values)}}}\n" for values in zip(*columns, strict=True)])
        self._file.write(lines.encode(errors="surrogatepass"))
        return int(batch.num_rows)

    def finish(self) -> None:
        """Every line is written already."""


def json_texts(column: pa.Array) -> list[str]:
    """The values of a column as JSON."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _with_nulls(column, column.cast(pa.string()).to_pylist())
    if pa.types.is_boolean(kind):
        return ["null" if value is None else "true" if value else "false" for value in column.to_pylist()]
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return _with_nulls(column, [f'"{text}"' for text in _nanosecond_texts(column)])
    return [_json(value) for value in column.to_pylist()]


def _with_nulls(column: pa.Array, texts: Sequence[str | None]) -> list[str]:
    if column.null_count == 0:
        return list(texts)  # type: ignore[arg-type]
    return ["null" if is_null else str(text) for text, is_null in zip(texts, column.is_null().to_pylist(), strict=True)]


def _nanosecond_texts(column: pa.Array) -> list[str]:
    """Python has no type for these: their texts come from Arrow."""
    return [str(text).replace(" ", "T", 1) for text in column.cast(pa.string()).to_pylist()]


def _json(value: Any) -> str:
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return f'"{value.isoformat()}"'
    return _ENCODE(str(value))


def _float_text(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def _object_text(value: dict[str, Any]) -> str:
    return f"{{{','.join(f'{_ENCODE(str(name))}:{_json(item)}' for name, item in value.items())}}}"


def _list_text(value: list[Any] | tuple[Any, ...]) -> str:
    return f"[{','.join(map(_json, value))}]"


_WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float_text,
    Decimal: lambda value: format(value, "f"),
    str: _ENCODE,
    bytes: lambda value: f'"{base64.b64encode(value).decode()}"',
    dict: _object_text,
    list: _list_text,
    tuple: _list_text,
}


def _distinct_names(names: Sequence[str]) -> list[str]:
    taken = set(names)
    seen: set[str] = set()
    distinct = []
    for name in names:
        chosen, number = name, 1
        while chosen in seen or (chosen != name and chosen in taken):
            number += 1
            chosen = f"{name}_{number}"
        seen.add(chosen)
        distinct.append(chosen)
    return distinct


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """The type that pyarrow's CSV writer is given: it lacks nested values, intervals and bytes that are no text."""
    as_json = pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_binary(kind)
    return pa.string() if as_json or pa.types.is_duration(kind) or pa.types.is_dictionary(kind) else kind


def _as_csv(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        return _as_csv(column.dictionary_decode(), kind)
    if pa.types.is_duration(column.type):
        return column.cast(pa.int64()).cast(pa.string())
    texts = [None if value is None else _json(value).strip('"') for value in column.to_pylist()]
    return pa.array(texts, pa.string())

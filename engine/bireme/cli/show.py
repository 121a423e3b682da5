"""Rows as a table on a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

# More rows than this help nobody on a terminal; the count below the table tells of the rest.
_ROWS_SHOWN_MAX: Final = 100
# Data must not steer the terminal. Line ends and tabs are harmless.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Prints the first rows and how many there are."""
    shown: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows < _ROWS_SHOWN_MAX:
            shown.append(batch.slice(0, _ROWS_SHOWN_MAX - rows))
        rows += batch.num_rows
    console = Console()
    # Written by us: rich would end the process where the reader of a pipe has left.
    with console.capture() as capture:
        console.print(_table(schema, shown))
        more = f", the first {_ROWS_SHOWN_MAX} shown" if rows > _ROWS_SHOWN_MAX else ""
        console.print(f"{rows:,} row{'' if rows == 1 else 's'}{more}", highlight=False)
    sys.stdout.write(capture.get())


def _table(schema: pa.Schema, batches: list[pa.RecordBatch]) -> Table:
    table = Table()
    for field in schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        header = Text(f"{field.name}\n{field.type}")
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            table.add_row(*[_cell(value) for value in row])
    return table


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(_CONTROLS.sub(_escaped, str(value)))


def _escaped(control: re.Match[str]) -> str:
    return control[0].encode("unicode_escape").decode()

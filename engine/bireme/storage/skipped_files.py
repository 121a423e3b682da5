"""Files of a table that conditions leave out by what is the same in all of their rows.

Rule: what bounds leave open is worked out by the backend, as a query means it, for all files at once; where that fails,
for fewer of them. A file for which it fails stays: it fails as it would have where a row of the file is asked, if one
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from bireme.data.arrays import is_true
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import to_arrow
from bireme.errors import DataError
from bireme.plan.expr import Expr, Value
from bireme.plan.tree import columns_used, remap
from bireme.storage.parquet_table_file import TableFile
from bireme.storage.shaped_split import Evaluate


def skipped_files(
    undecided: Iterable[tuple[TableFile, Sequence[Expr]]], columns: Sequence[int], schema: Schema, evaluate: Evaluate
) -> set[TableFile]:
    """Those of the files, each with filters that its bounds leave open, of which no row can pass one of them. Filters
    are over `columns` of the table, whose schema is `schema`.
    """
    asked: dict[Expr, dict[TableFile, None]] = {}
    for file, filters in undecided:
        for predicate in filters:
            asked.setdefault(predicate, {})[file] = None
    skipped: set[TableFile] = set()
    for predicate, files in asked.items():
        used = sorted(columns_used(predicate))
        wanted = [columns[position] for position in used]
        told = [file for file in files if file not in skipped and file.are_constant(wanted)]
        if used and told:
            moved = remap(predicate, {position: place for place, position in enumerate(used)})
            skipped.update(_failing(moved, told, wanted, schema.select(used), evaluate))
    return skipped


def _failing(
    predicate: Expr, files: Sequence[TableFile], columns: Sequence[int], schema: Schema, evaluate: Evaluate
) -> list[TableFile]:
    """Those of whose values a condition is not TRUE; `schema` is that of `columns`."""
    arrays = [
        pa.array(_values(files, column), to_arrow(field.type)) for column, field in zip(columns, schema, strict=True)
    ]
    try:
        truths = is_true(evaluate(predicate, record_batch(arrays, schema.names, len(files)), schema))
    except DataError:
        if len(files) == 1:
            return []
        parts = files[: len(files) // 2], files[len(files) // 2 :]
        return [file for part in parts for file in _failing(predicate, part, columns, schema, evaluate)]
    return [file for file, is_passed in zip(files, truths, strict=True) if not is_passed]


def _values(files: Sequence[TableFile], column: int) -> list[Value]:
    found = [file.constant(column) for file in files]
    return [one.value for one in found if one is not None]

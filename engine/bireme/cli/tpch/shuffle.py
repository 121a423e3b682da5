"""The tables of a folder again, with the rows of each in random order: always the same one, for a fixed seed.

Rows are dealt to piles at random, then each pile is permuted in memory and written; together that is a uniform
permutation, with memory for one pile. Row groups, codecs and dictionaries are those of the original files, so that
only the order differs. As in `data`, a folder is complete or not there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bireme.cli.tpch.data import TABLES
from bireme.errors import SinkFailed

_SEED: Final = 20_261_129
_PILE_ROWS: Final = 1_000_000
_BATCH_ROWS: Final = 1 << 17


def shuffled_folder(ordered: Path) -> Path:
    """The folder beside `ordered` with its tables in random order, made now if it is not there yet."""
    target = ordered.with_name(f"{ordered.name}-shuffled")
    if all((target / f"{table}.parquet").is_file() for table in TABLES):
        return target
    print(f"shuffling {ordered} into {target} …", file=sys.stderr, flush=True)
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise SinkFailed(f"cannot create {target}: {error.strerror}; choose another folder with --data") from error
    try:
        for table in TABLES:
            shuffle_file(ordered / f"{table}.parquet", beside / f"{table}.parquet", pile_rows=_PILE_ROWS)
        shutil.rmtree(target, ignore_errors=True)
        beside.rename(target)
    except OSError as error:
        raise SinkFailed(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def shuffle_file(source: Path, target: Path, *, pile_rows: int) -> None:
    """Writes the rows of a Parquet file in random order, piles of about `pile_rows` in memory one at a time."""
    # The name is part of the seed: tables of equally many rows must not be permuted alike.
    random = np.random.default_rng([_SEED, zlib.crc32(source.stem.encode())])
    with pq.ParquetFile(source) as file, tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        count = -(-file.metadata.num_rows // pile_rows) or 1
        piles = [Path(scratch) / f"{index}.arrow" for index in range(count)]
        schema = _plain(file.schema_arrow)
        _deal(file, schema, piles, random)
        sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
        with pq.ParquetWriter(target, schema, **_layout(file.metadata)) as writer:
            for group in _row_groups(_permuted(piles, random), sizes):
                writer.write_table(group, row_group_size=max(1, group.num_rows))


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without string views, which files do not know and `take` is slow on."""
    for index, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(index, field.with_type(pa.string()))
    return schema


def _layout(metadata: Any) -> dict[str, Any]:
    """The settings under which pyarrow writes files like this one."""
    if metadata.num_row_groups == 0:
        return {}
    first = metadata.row_group(0)
    columns = [first.column(index) for index in range(first.num_columns)]
    return {
        "compression": {column.path_in_schema: column.compression for column in columns},
        "use_dictionary": [column.path_in_schema for column in columns if column.has_dictionary_page],
        "write_page_index": any(column.has_column_index for column in columns),
        "store_decimal_as_integer": True,
        "store_schema": False,
    }


def _deal(file: pq.ParquetFile, schema: pa.Schema, piles: Sequence[Path], random: np.random.Generator) -> None:
    with ExitStack() as stack:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        writers = [stack.enter_context(pa.ipc.new_stream(str(pile), schema, options=options)) for pile in piles]
        for batch in file.iter_batches(_BATCH_ROWS):
            pile_of_row = random.integers(0, len(piles), batch.num_rows)
            dealt = batch.cast(schema).take(pa.array(np.argsort(pile_of_row, kind="stable")))
            start = 0
            for writer, rows in zip(writers, np.bincount(pile_of_row, minlength=len(piles)).tolist(), strict=True):
                writer.write_batch(dealt.slice(start, rows))
                start += rows


def _permuted(piles: Sequence[Path], random: np.random.Generator) -> Iterator[pa.Table]:
    for pile in piles:
        with pa.OSFile(str(pile)) as stream:
            table = pa.ipc.open_stream(stream).read_all()
        pile.unlink()
        yield table.take(pa.array(random.permutation(table.num_rows)))


def _row_groups(tables: Iterator[pa.Table], sizes: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of the tables in order, cut into the given numbers."""
    waiting = next(tables)
    for size in sizes:
        while waiting.num_rows < size:
            waiting = pa.concat_tables([waiting, next(tables)])
        yield waiting.slice(0, size)
        waiting = waiting.slice(size)

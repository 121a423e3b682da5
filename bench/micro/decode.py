"""Nanoseconds per value to decode column chunks: our chunk reader, pyarrow's, and the floor of copying the bytes.

    python bench/micro/decode.py data/lineitem.parquet [--row-group 0] [--columns l_orderkey,l_comment]

One thread, one row group, bytes in memory; the least CPU time of several runs counts. `all` reads every value (strings
of dictionaries as codes, as pyarrow is told to), `1%` one row in a hundred, `select` the rows of half of the
dictionary's entries. `floor` is the time in which the stored bytes and the values could be copied at FLOOR_GB_PER_S.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bireme.backends.native import _kernels

RUNS: Final = 25
FLOOR_GB_PER_S: Final = 10.0
_PHYSICAL: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6, "LZ4": 7}
_SIMPLE: Final = {"BOOLEAN": "b", "INT32": "i", "INT64": "l", "FLOAT": "f", "DOUBLE": "g", "BYTE_ARRAY": "u"}


def least_seconds(work: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(RUNS):
        start = time.thread_time()
        work()
        least = min(least, time.thread_time() - start)
    return least


def decompress(codec: int, data: memoryview, size: int) -> pa.Buffer:
    name = next(name for name, number in _CODECS.items() if number == codec)
    return pa.Codec(name.lower()).decompress(pa.py_buffer(data), decompressed_size=size)


def open_chunk(content: bytes, metadata: Any, row_group: int, column: int) -> Any:
    place = metadata.row_group(row_group).column(column)
    start = min(place.data_page_offset, place.dictionary_page_offset or place.data_page_offset)
    return _kernels.ParquetChunk(
        memoryview(content)[start : start + place.total_compressed_size],
        _SIMPLE[place.physical_type],
        physical=_PHYSICAL.index(place.physical_type),
        type_length=0,
        codec=_CODECS[place.compression],
        is_optional=metadata.schema.column(column).max_definition_level == 1,
        rows=metadata.row_group(row_group).num_rows,
        pages=[],
        multiplier=1,
        divisor=1,
        decompress=decompress,
    )


def theirs(content: bytes, row_group: int, name: str, is_codes: bool) -> Callable[[], object]:
    source = pa.BufferReader(content)
    reader = pq.ParquetFile(source, read_dictionary=[name] if is_codes else [])
    return lambda: reader.read_row_group(row_group, columns=[name], use_threads=False)


def report(content: bytes, metadata: Any, row_group: int, column: int) -> None:
    place = metadata.row_group(row_group).column(column)
    rows = metadata.row_group(row_group).num_rows
    generator = random.Random(1)
    few = pa.array(sorted(generator.sample(range(rows), max(1, rows // 100))), pa.uint32())

    def opened() -> Any:
        return open_chunk(content, metadata, row_group, column)

    is_codes = opened().is_dictionary()
    is_text = place.physical_type == "BYTE_ARRAY"
    words = len(pa.array(opened().dictionary())) if is_codes else 0
    keep = np.random.default_rng(1).integers(0, 2, words).astype(np.uint8).tobytes()

    def read_all() -> object:
        return opened().read_codes(None) if is_codes and is_text else opened().read(None)

    ours = least_seconds(read_all)
    other = least_seconds(theirs(content, row_group, place.path_in_schema, is_codes and is_text))
    sparse = least_seconds(lambda: opened().read(few))
    selected = least_seconds(lambda: opened().select_codes(None, keep, False)) if is_codes else float("nan")
    decoded = pa.array(read_all()).nbytes
    floor = (place.total_compressed_size + decoded) / FLOOR_GB_PER_S / rows
    print(
        f"{place.path_in_schema:16} {place.physical_type:10} {'codes' if is_codes else 'plain':5}"
        f" {place.total_compressed_size / rows:7.2f} {decoded / rows:7.2f} {floor:6.2f} {ours / rows * 1e9:7.2f}"
        f" {other / rows * 1e9:7.2f} {sparse / rows * 1e9:7.2f} {selected / rows * 1e9:7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--row-group", type=int, default=0)
    parser.add_argument("--columns", default="")
    arguments = parser.parse_args()
    with open(arguments.path, "rb") as file:
        content = file.read()
    metadata = pq.read_metadata(pa.BufferReader(content))
    wanted = set(filter(None, arguments.columns.split(",")))
    print(
        f"{'column':16} {'type':10} {'pages':5} {'stored':>7} {'decoded':>7} {'floor':>6} {'all':>7} {'pyarrow':>7}"
        f" {'1%':>7} {'select':>7}   bytes and ns per value"
    )
    for column in range(metadata.num_columns):
        if not wanted or metadata.schema.column(column).name in wanted:
            report(content, metadata, arguments.row_group, column)


if __name__ == "__main__":
    main()

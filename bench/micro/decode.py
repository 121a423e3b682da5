"""Decoding column chunks of a Parquet file: our chunk reader against pyarrow's.

    python bench/micro/decode.py data/lineitem.parquet [--row-group 0] [--only l_comment]

One row group, its bytes in memory. `all` reads every value (strings of dictionaries as codes, as pyarrow is told to),
`1%` one row in a hundred, `select` the rows of half of the dictionary's entries. For the latter two pyarrow would have
to read all and then take or filter: only its reading is timed. The floor counts stored bytes and values made.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from frame import Case, family_parser, run_family

from bireme.backends.native import _kernels

_PHYSICAL: Final = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6, "LZ4": 7}
_FORMATS: Final = {"BOOLEAN": "b", "INT32": "i", "INT64": "l", "FLOAT": "f", "DOUBLE": "g", "BYTE_ARRAY": "u"}


def decompress(codec: int, data: memoryview, size: int) -> pa.Buffer:
    name = next(name for name, number in _CODECS.items() if number == codec)
    return pa.Codec(name.lower()).decompress(pa.py_buffer(data), decompressed_size=size)


def opener(content: bytes, metadata: Any, row_group: int, column: int) -> Callable[[], Any]:
    """Opens our reader anew: nothing is left decompressed from the last run."""
    place = metadata.row_group(row_group).column(column)
    start = min(place.data_page_offset, place.dictionary_page_offset or place.data_page_offset)
    return lambda: _kernels.ParquetChunk(
        memoryview(content)[start : start + place.total_compressed_size],
        _FORMATS[place.physical_type],
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


def column_cases(content: bytes, metadata: Any, row_group: int, column: int) -> Iterator[Case]:
    place = metadata.row_group(row_group).column(column)
    name, rows, stored = place.path_in_schema, place.num_values, place.total_compressed_size
    opened = opener(content, metadata, row_group, column)
    is_codes = opened().is_dictionary()
    as_codes = is_codes and place.physical_type == "BYTE_ARRAY"
    reader = pq.ParquetFile(pa.BufferReader(content), read_dictionary=[name] if as_codes else [])
    few = pa.array(sorted(random.Random(1).sample(range(rows), max(1, rows // 100))), pa.uint32())

    def ours() -> Any:
        return opened().read_codes(None) if as_codes else opened().read(None)

    def theirs() -> Any:
        return reader.read_row_group(row_group, columns=[name], use_threads=False).column(0)

    def case(kind: str, values_bytes: int, bireme: Callable[[], object], pyarrow: Callable[[], object]) -> Case:
        works = {"bireme": bireme, "pyarrow": pyarrow}
        return Case(name=f"{name} {kind}", rows=rows, floor_bytes=stored + values_bytes, works=works)

    decoded_bytes = pa.array(ours()).nbytes
    yield case("all", decoded_bytes, ours, theirs)
    yield case("1%", decoded_bytes // 100, lambda: opened().read(few), theirs)
    if is_codes:
        flags = np.random.default_rng(1).integers(0, 2, len(pa.array(opened().dictionary())))
        keep = flags.astype(np.uint8).tobytes()
        yield case("select", 2 * rows, lambda: opened().select_codes(None, keep, False), theirs)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    with open(options.path, "rb") as file:
        content = file.read()
    metadata = pq.read_metadata(pa.BufferReader(content))
    for column in range(metadata.num_columns):
        if metadata.schema.column(column).physical_type in _FORMATS:
            yield from column_cases(content, metadata, options.row_group, column)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("path")
    parser.add_argument("--row-group", type=int, default=0)
    run_family("decode", cases, parser)

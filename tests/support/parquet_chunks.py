"""Column chunks of Parquet files as ParquetChunk objects."""

import ctypes
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bireme.backends.native import _kernels
from bireme.storage.thrift_compact import read_struct

PHYSICAL = {
    "BOOLEAN": 0,
    "INT32": 1,
    "INT64": 2,
    "INT96": 3,
    "FLOAT": 4,
    "DOUBLE": 5,
    "BYTE_ARRAY": 6,
    "FIXED_LEN_BYTE_ARRAY": 7,
}
CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "LZ4": 7, "ZSTD": 6}
_CODEC_NAMES = {2: "gzip", 4: "brotli", 6: "zstd"}


def decompress(codec: int, data: memoryview, size: int) -> pa.Buffer:
    return pa.Codec(_CODEC_NAMES[codec]).decompress(pa.py_buffer(data), decompressed_size=size)


def format_of(kind: pa.DataType) -> str:
    """The Arrow format string of a type."""
    schema = kind.__arrow_c_schema__()
    return _format_in(schema)


def _format_in(capsule: object) -> str:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"arrow_schema")
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_char_p))[0].decode()


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def page_locations(chunk: bytes) -> list[tuple[int, int, int]]:
    """What an offset index says about the data pages of a chunk, from their headers."""
    found, position, row = [], 0, 0
    while position < len(chunk):
        header, start = read_struct(chunk, position)
        end = start + header[3]
        if header[1] in (0, 3):
            found.append((position, end - position, row))
            row += header[5 if header[1] == 0 else 8][1]
        position = end
    return found


def chunk_of(
    content: bytes,
    target: pa.DataType,
    *,
    column: int = 0,
    row_group: int = 0,
    is_indexed: bool = False,
    multiplier: int = 1,
    divisor: int = 1,
) -> Any:
    """The reader of one column chunk, to come out as `target`."""
    metadata = pq.read_metadata(io.BytesIO(content))
    place = metadata.row_group(row_group).column(column)
    described = metadata.schema.column(column)
    # Without rows there may be no data page, which then is said to be at 0.
    start = min(filter(None, (place.dictionary_page_offset, place.data_page_offset)), default=0)
    data = content[start : start + place.total_compressed_size]
    return _kernels.ParquetChunk(
        data,
        format_of(target),
        physical=PHYSICAL[place.physical_type],
        type_length=described.length or 0,
        codec=CODECS[place.compression],
        is_optional=described.max_definition_level == 1,
        rows=metadata.row_group(row_group).num_rows,
        pages=page_locations(data) if is_indexed else [],
        multiplier=multiplier,
        divisor=divisor,
        decompress=decompress,
    )

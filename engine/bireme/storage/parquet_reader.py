"""pyarrow's own reader of Parquet files, which takes columns by position, without the module `pyarrow.parquet`.

That module loads file systems and encryption, which takes longer than a small query with all of its process.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def open_reader(source: pa.NativeFile, **options: Any) -> Any:
    """A reader of the file in `source`; the options are those of `pyarrow.parquet.ParquetFile`."""
    try:
        from pyarrow._parquet import ParquetReader
    except ImportError:  # another pyarrow may keep it elsewhere
        import pyarrow.parquet as pq

        return pq.ParquetFile(source, **options).reader
    reader = ParquetReader()
    reader.open(source, **options)
    return reader

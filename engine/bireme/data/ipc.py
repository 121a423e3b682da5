"""A batch to one buffer in Arrow's IPC stream format, and back; for wire and pinned pages.

The bytes carry schema, dictionaries and row count, so that they can be read without anything else. Values that come
back share the buffer. Checksums are the business of who stores or sends.
"""

from __future__ import annotations

import pyarrow as pa

from bireme.errors import EngineBug


def pack(batch: pa.RecordBatch) -> pa.Buffer:
    """The bytes of `batch`: only the rows it shows, not the whole buffers it is a slice of."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpack(buffer: pa.Buffer) -> pa.RecordBatch:
    """The batch that `pack` packed."""
    with pa.ipc.open_stream(buffer) as reader:
        batches = list(reader)
    if len(batches) != 1:
        raise EngineBug(f"{buffer.size} packed bytes hold {len(batches)} batches instead of one")
    return batches[0]

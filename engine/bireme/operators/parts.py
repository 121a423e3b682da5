"""What a cut makes of batches: the rows of each part in one batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

from bireme.backends.base import Kernels
from bireme.data.record import compact

Part = TypeVar("Part", bound=Hashable)


def gathered(pieces: Iterable[tuple[Part, pa.RecordBatch]], kernels: Kernels) -> Iterator[tuple[Part, pa.RecordBatch]]:
    """Those parts that have rows, each with its rows in the order in which they came."""
    found: dict[Part, list[pa.RecordBatch]] = {}
    for part, piece in pieces:
        if piece.num_rows:
            found.setdefault(part, []).append(compact(piece))
    for part, some in found.items():
        yield part, kernels.joined(some)

"""What a frame asks of whoever runs plans: the session implements it, tests have a fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from bireme.plan.relation import Rel


class Runner(Protocol):
    """Runs plans. Results are in the Arrow types of `Schema.to_result_arrow`."""

    def collect(self, plan: Rel) -> pa.Table:
        """All rows; blocks the calling thread. Ctrl-C cancels the query and leaves the runner usable."""
        ...

    def batches(self, plan: Rel) -> Iterator[pa.RecordBatch]:
        """Rows as they come; closing the iterator cancels the query."""
        ...

    def batches_async(self, plan: Rel) -> AsyncIterator[pa.RecordBatch]:
        """Rows as they come, for a caller with an event loop of its own."""
        ...

    def sink_parquet(self, plan: Rel, path: Path) -> int:
        """Writes all rows to one Parquet file, whole or not at all; returns the number of rows."""
        ...

    def cache(self, plan: Rel) -> None:
        """From now on keeps decoded what queries read of the tables in `plan`."""
        ...

    def explain(self, plan: Rel, *, optimized: bool, physical: bool, analyze: bool) -> str:
        """The plan as text; with `analyze` it is run and what happened is added."""
        ...

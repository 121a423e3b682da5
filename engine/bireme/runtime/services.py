"""The seam between a live Dag and the worker that runs it, whose executors are the same for all Dags."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from bireme.clock import Clock
from bireme.data.batch import Batch
from bireme.observe.recorder import Recorder
from bireme.runtime.compute.task import Supplier
from bireme.runtime.holder.column_cache import ColumnCache
from bireme.runtime.memory.ledger import Ledger
from bireme.runtime.pipeline import LivePipeline

T = TypeVar("T")


class Services(Protocol):
    """What a Dag asks of its worker."""

    clock: Clock
    recorder: Recorder
    ledger: Ledger
    cache: ColumnCache

    def offer(self, supplier: Supplier) -> None:
        """A pipeline has work for Compute."""
        ...

    def relievable(self, pipeline: LivePipeline) -> None:
        """What a pipeline could give up of its state has changed."""
        ...

    def want_bytes(self, pipeline: LivePipeline) -> None:
        """A scan wants splits fetched."""
        ...

    def on_io_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs what blocks."""
        ...

    def drop(self, batch: Batch) -> None:
        """A batch that does not lie on DEVICE is not needed any more."""
        ...

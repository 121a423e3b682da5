"""What a session lives on: the backend's kernels, and a worker with the files it reads and the folders it spills to."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final

from bireme.backends.base import Kernels, Program
from bireme.config import Config
from bireme.data.schema import Schema
from bireme.errors import ConfigError
from bireme.plan.expr import Expr
from bireme.runtime.compute.meter import Meter
from bireme.runtime.memory.footprint import Quota
from bireme.runtime.worker import Worker
from bireme.session.loop_thread import LoopThread
from bireme.storage.local import LocalByteSource, RangeReader
from bireme.storage.shaped_split import Evaluate
from bireme.storage.spill import LocalSpillStore
from bireme.storage.spill_file import SpillFiles
from bireme.storage.spill_policy import Compression
from bireme.units import GIB

# Below, what an allocator keeps, of huge pages most of all, is a noticeable part of the memory.
_KEPT_PAGES_BYTES_MIN: Final = GIB
# Casts, and conditions on what files have in common; programs are small.
_PROGRAMS_KEPT_MAX: Final = 64


def kernels_of(backend: str) -> Kernels:
    """The backend of that name. Raises ConfigError."""
    if backend == "native":
        from bireme.backends.native import NativeKernels

        return NativeKernels()
    if backend == "reference":
        from bireme.backends.reference import ReferenceKernels

        return ReferenceKernels()
    raise ConfigError(f"the backends are native and reference, not {backend!r}")


def evaluator(kernels: Kernels) -> Evaluate:
    """How that backend works out an expression over a batch. Any thread."""

    @lru_cache(_PROGRAMS_KEPT_MAX)
    def program(expr: Expr, schema: Schema) -> Program:
        return kernels.program(schema, predicate=None, exprs=[expr], names=["value"])

    return lambda expr, batch, schema: program(expr, schema).run(batch).column(0)


def range_reader_of(backend: str) -> RangeReader | None:
    """How that backend likes bytes of files to come into memory; None where it does not care."""
    if backend != "native":
        return None
    from bireme.backends.native.file_ranges import read_ranges

    return read_ranges


def _spill_files_of(backend: str) -> SpillFiles | None:
    """How that backend writes spilled batches to files; None where it does not care."""
    if backend != "native":
        return None
    from bireme.backends.native.spill_files import NativeSpillFiles

    return NativeSpillFiles()


def _memory_of(config: Config) -> tuple[Quota | None, Meter | None]:
    """What limits the pool of the backend, and what measures its kernels; None where it has none."""
    if config.backend != "native":
        return None, None
    from bireme.backends.native import BufferMeter, pool_quota, use_small_pages

    is_short = config.memory_bytes_max < _KEPT_PAGES_BYTES_MIN
    if is_short:
        use_small_pages()
    return pool_quota(), BufferMeter(is_short=is_short)


class House:
    """A worker and what it reads from and spills to, opened and closed together on the loop."""

    def __init__(self, config: Config, reader: RangeReader | None, kernels: Kernels) -> None:
        self._source = LocalByteSource(reader=reader)
        self._spill = LocalSpillStore(
            config.spill_folders,
            bytes_max=config.spill_bytes_max,
            files=_spill_files_of(config.backend),
            direct=config.spill_direct,
            compression=Compression(config.spill_compression),
        )
        quota, meter = _memory_of(config)
        self._worker = Worker(
            config, source=self._source, spill=self._spill, quota=quota, meter=meter, joined=kernels.joined
        )

    async def open(self) -> Worker:
        await self._worker.start()
        return self._worker

    async def close(self) -> None:
        try:
            await self._worker.close()
        finally:
            self._spill.close()
            self._source.close()


def abandoned(loop: LoopThread, house: House) -> None:
    """Closes what a forgotten session left. The collector may be running on a thread that closing would wait for."""
    if threading.current_thread() is threading.main_thread():
        close(loop, house)
    else:
        threading.Thread(target=close, args=(loop, house), name="bireme-close", daemon=True).start()


def close(loop: LoopThread, house: House) -> None:
    """Ends everything that a session has started."""
    try:
        loop.wait(house.close())
    finally:
        loop.close()

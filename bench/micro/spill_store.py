"""The spill store against what its disk can do.

    python bench/micro/spill_store.py [--folder /tmp] [--mebibytes 64] [--batch-kibibytes 1024 4096] [--threads 1 4]

The floor writes and reads the same number of bytes to one preallocated file, in calls of the same size, from as many
threads, from one aligned buffer of large pages each, with O_DIRECT: what fio does with `ioengine=psync iodepth=1
numjobs=threads`, so as many requests wait at once. The store gets batches of random numbers, so nothing is there to
compress. Turns are short and follow each other, floor, store, store, floor, and the share is the median of what the
pairs of turns gave: other work on the machine and limits on the disk's rate then meet both. The last column is
processor time of the store's own.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bireme.backends.native.spill_files import NativeSpillFiles
from bireme.storage.base import SpillTicket
from bireme.storage.spill import LocalSpillStore
from bireme.units import KIB, MIB

_COLUMNS = 8


def timed(threads: int, count: int, call: Callable[[int, int], object]) -> float:
    """Seconds in which `threads` threads make `count` calls, of (thread, number)."""

    def work(thread: int) -> None:
        for number in range(thread, count, threads):
            call(thread, number)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: None, range(threads)))
        started = time.perf_counter()
        list(pool.map(work, range(threads)))
        return time.perf_counter() - started


class Floor:
    """Plain calls on one file."""

    def __init__(self, folder: Path, total: int, size: int, threads: int) -> None:
        self.path = folder / "bireme-floor"
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
        os.posix_fallocate(self.descriptor, 0, total)
        self.size = size
        self.buffers = [mmap.mmap(-1, size) for _ in range(threads)]
        for buffer in self.buffers:
            with contextlib.suppress(OSError):
                buffer.madvise(mmap.MADV_HUGEPAGE)
            buffer.write(os.urandom(size))

    def write(self, thread: int, number: int) -> None:
        os.pwrite(self.descriptor, self.buffers[thread], number * self.size)

    def read(self, thread: int, number: int) -> None:
        os.preadv(self.descriptor, [self.buffers[thread]], number * self.size)

    def close(self) -> None:
        os.close(self.descriptor)
        self.path.unlink()


def drawn_batch(nbytes: int) -> pa.RecordBatch:
    rows = max(1, nbytes // (8 * _COLUMNS))
    numbers = np.random.default_rng(1).integers(0, 1 << 62, (_COLUMNS, rows))
    return pa.RecordBatch.from_arrays([pa.array(each) for each in numbers], [f"c{i}" for i in range(_COLUMNS)])


class Turn(NamedTuple):
    """What one turn gave: MB/s, and nanoseconds of processors a byte."""

    rate: float
    processor: float


def turn(threads: int, count: int, size: int, call: Callable[[int, int], object]) -> Turn:
    before = time.process_time()
    seconds = timed(threads, count, call)
    nbytes = count * size
    return Turn(nbytes / seconds / 1e6, (time.process_time() - before) / nbytes * 1e9)


def floor_turns(folder: Path, count: int, size: int, threads: int) -> tuple[Turn, Turn]:
    """Of writes and of reads."""
    floor = Floor(folder, count * size, size, threads)
    try:
        return turn(threads, count, size, floor.write), turn(threads, count, size, floor.read)
    finally:
        floor.close()


def store_turns(folder: Path, count: int, size: int, threads: int, batch: pa.RecordBatch) -> tuple[Turn, Turn]:
    store = LocalSpillStore([folder], bytes_max=1 << 40, files=NativeSpillFiles())
    tickets: list[SpillTicket | None] = [None] * count

    def write(_: int, number: int) -> None:
        tickets[number] = store.write(batch)

    def read(_: int, number: int) -> None:
        ticket = tickets[number]
        assert ticket is not None
        store.read(ticket)

    try:
        return turn(threads, count, size, write), turn(threads, count, size, read)
    finally:
        store.close()


def run(folder: Path, total: int, size: int, threads: int, turns: int) -> tuple[list[Turn], ...]:
    """Turns of the floor's writes and reads, then of the store's."""
    count = max(threads, total // size)
    batch = drawn_batch(size)
    floors: list[tuple[Turn, Turn]] = []
    stores: list[tuple[Turn, Turn]] = []
    for number in range(turns):
        for is_floor in (number % 2 == 0, number % 2 != 0):
            if is_floor:
                floors.append(floor_turns(folder, count, size, threads))
            else:
                stores.append(store_turns(folder, count, size, threads, batch))
    return *map(list, zip(*floors, strict=True)), *map(list, zip(*stores, strict=True))


def cells(floor: list[Turn], store: list[Turn]) -> str:
    share = median([ours.rate / theirs.rate for ours, theirs in zip(store, floor, strict=True)])
    rates = f"{median([one.rate for one in floor]):>12.0f} {median([one.rate for one in store]):>6.0f}"
    return f"{rates} {share:>6.0%} {median([one.processor for one in store]):>7.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--mebibytes", type=int, default=64, help="written and read in a turn")
    parser.add_argument("--batch-kibibytes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--turns", type=int, default=11)
    given = parser.parse_args(arguments)
    head = f"{'store':>6} {'share':>6} {'ns/byte':>7}"
    print(f"{'batch':>10} {'threads':>7}  {'write: floor':>12} {head}  {'read: floor':>12} {head}")
    for size in given.batch_kibibytes:
        for threads in given.threads:
            floor_writes, floor_reads, writes, reads = run(
                given.folder, given.mebibytes * MIB, size * KIB, threads, given.turns
            )
            line = [f"{size:>6} KiB {threads:>7}", cells(floor_writes, writes), cells(floor_reads, reads)]
            print("  ".join(line), flush=True)


if __name__ == "__main__":
    main()

"""The spill store against what its disk can do.

    python bench/micro/spill_store.py [--folder /tmp] [--mebibytes 512] [--batch-kibibytes 1024 4096] [--threads 1 4]

The floor writes and reads the same number of bytes to one preallocated file, in calls of the same size, from as many
threads, from one aligned buffer each, with O_DIRECT: what fio does with `ioengine=psync iodepth=1 numjobs=threads`, so
as many requests wait at once. The store gets batches of random numbers, so nothing is there to compress. Both run in
turns, and the best turn of each counts: other work on the machine only ever slows one down.
"""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from bireme.backends.native.spill_files import NativeSpillFiles
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


def run(folder: Path, total: int, size: int, threads: int, turns: int) -> dict[str, float]:
    """Best rates in MB/s."""
    count = total // size
    batch = drawn_batch(size)
    rates: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        rates[name] = max(rates.get(name, 0.0), count * size / seconds / 1e6)

    for _ in range(turns):
        floor = Floor(folder, total, size, threads)
        note("floor write", timed(threads, count, floor.write))
        note("floor read", timed(threads, count, floor.read))
        floor.close()
        store = LocalSpillStore([folder], bytes_max=1 << 40, files=NativeSpillFiles())
        tickets = [None] * count

        def write(_: int, number: int, store: LocalSpillStore = store, tickets: list = tickets) -> None:
            tickets[number] = store.write(batch)

        def read(_: int, number: int, store: LocalSpillStore = store, tickets: list = tickets) -> None:
            store.read(tickets[number])

        note("store write", timed(threads, count, write))
        note("store read", timed(threads, count, read))
        store.close()
    return rates


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--batch-kibibytes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args(arguments)
    shares = f"{'store':>6} {'share':>6}"
    print(f"{'batch':>10} {'threads':>7}  {'write: floor':>12} {shares}  {'read: floor':>11} {shares}")
    for size in given.batch_kibibytes:
        for threads in given.threads:
            rates = run(given.folder, given.mebibytes * MIB, size * KIB, threads, given.turns)
            cells = [f"{size:>6} KiB {threads:>7}"]
            for kind, width in (("write", 12), ("read", 11)):
                floor, store = rates[f"floor {kind}"], rates[f"store {kind}"]
                cells.append(f"{floor:>{width}.0f} {store:>6.0f} {store / floor:>6.0%}")
            print("  ".join(cells), flush=True)


if __name__ == "__main__":
    main()

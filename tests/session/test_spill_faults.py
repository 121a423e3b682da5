"""Queries that must spill while something goes wrong below. Each ends with its answer or a named error and frees all,
and the session answers the next query.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.backends.native.spill_files import NativeSpillFiles
from bireme.config import config_from
from bireme.data.tier import Tier
from bireme.errors import SpillCorrupt, SpillFailed
from bireme.observe.event import PipelineOpened
from bireme.session.session import Session

ROWS = 250_000
# About 8 MB of groups, and as many bytes of batches, far more than the limit.
QUERY = "select k, count(*) as c, sum(v) as s, max(w) as w from t group by k order by k"
LIMIT = "4MiB"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose keys are all different and in no order."""
    path = tmp_path_factory.mktemp("spill_faults") / "t.parquet"
    keys = [(index * 7919) % ROWS for index in range(ROWS)]
    columns = {"k": pa.array(keys, pa.int64()), "v": pa.array(range(ROWS), pa.int64()), "w": pa.array(map(str, keys))}
    pq.write_table(pa.table(columns), path, row_group_size=20_000)
    return path


@contextmanager
def session(table: Path, folder: Path | Sequence[Path]) -> Iterator[Session]:
    with bm.connect(threads=2, memory_limit=LIMIT, spill_folder=folder) as opened:
        opened.register("t", str(table))
        yield opened


def check_next_query(opened: Session) -> None:
    """Nothing is held, and a query that need not spill is answered."""
    statistics = opened.statistics()
    assert (statistics.queries, statistics.waiting_for_room, statistics.tasks_running) == (0, 0, 0)
    assert statistics.bytes_held == dict.fromkeys(statistics.bytes_held, 0)
    assert statistics.spill_bytes == 0
    assert opened.sql("select count(*) as n from t where v < 10").collect().to_pydict() == {"n": [10]}


def check_answer(answer: pa.Table) -> None:
    assert answer.column("k").to_pylist() == list(range(ROWS))
    assert answer.column("w").to_pylist() == list(map(str, range(ROWS)))
    assert answer.column("c").to_pylist() == [1] * ROWS
    assert sum(answer.column("s").to_pylist()) == ROWS * (ROWS - 1) // 2


def test_it_spills_and_says_so(table: Path, tmp_path: Path) -> None:
    with session(table, tmp_path) as opened:
        check_answer(opened.sql(QUERY).collect())
        check_next_query(opened)
        assert "spilled" in opened.sql(QUERY).explain(analyze=True)


def test_a_spill_folder_that_cannot_be_made_is_named(table: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with session(table, blocked) as opened:
        with pytest.raises(SpillFailed, match="a file"):
            opened.sql(QUERY).collect()
        check_next_query(opened)


@pytest.mark.parametrize("limit", [0, 2_000_000])
def test_a_quota_that_is_met_is_named(table: Path, tmp_path: Path, limit: int) -> None:
    config = config_from(threads=2, memory_limit=LIMIT, spill_folder=tmp_path)
    fields = {name: getattr(config, name) for name in config.__slots__}
    with Session(type(config)(**(fields | {"spill_bytes_max": limit}))) as opened:
        opened.register("t", str(table))
        with pytest.raises(SpillFailed, match=r"may take no more|would pass the limit"):
            opened.sql(QUERY).collect()
        check_next_query(opened)


def test_a_read_only_spill_folder_is_named(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, is_read_only = os.open, [True]

    def refusing(path: Any, flags: int, *mode: Any, **options: Any) -> int:
        if is_read_only[0] and flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *mode, **options)

    # Permissions would not do: the superuser may write everywhere.
    monkeypatch.setattr(os, "open", refusing)
    with session(table, tmp_path) as opened:
        with pytest.raises(SpillFailed, match="Read-only file system; make it writable or choose another folder"):
            opened.sql(QUERY).collect()
        check_next_query(opened)
        is_read_only[0] = False
        check_answer(opened.sql(QUERY).collect())


def failing(monkeypatch: pytest.MonkeyPatch, name: str, how: Callable[[Any], Any]) -> None:
    """Makes reads or writes of spill files misbehave; `how` gets the real call."""
    monkeypatch.setattr(NativeSpillFiles, name, how(getattr(NativeSpillFiles, name)))


def test_a_full_disk_is_named(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [2_000_000]

    def filling(real: Any) -> Any:
        def write(files: Any, descriptor: int, offset: int, pieces: Any) -> Any:
            left[0] -= sum(map(len, pieces))
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            return real(files, descriptor, offset, pieces)

        return write

    failing(monkeypatch, "write", filling)
    with session(table, tmp_path) as opened:
        with pytest.raises(SpillFailed, match="No space left on device"):
            opened.sql(QUERY).collect()
        check_next_query(opened)
        left[0] = 1 << 40
        check_answer(opened.sql(QUERY).collect())


def test_a_folder_that_goes_is_named(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[bool] = []

    def vanishing(real: Any) -> Any:
        def read(files: Any, descriptor: int, offset: int, length: int) -> Any:
            found = real(files, descriptor, offset, length)
            if not gone:
                gone.append(True)
                shutil.rmtree(Path(f"/proc/self/fd/{descriptor}").resolve().parent)
            return found

        return read

    failing(monkeypatch, "read", vanishing)
    with session(table, tmp_path) as opened:
        with pytest.raises(SpillFailed, match="No such file or directory"):
            opened.sql(QUERY).collect()
        assert gone
        assert opened.sql("select count(*) as n from t where v < 10").collect().to_pydict() == {"n": [10]}


@pytest.mark.parametrize("torn", [False, True])
def test_a_flipped_bit_or_a_torn_write_never_gives_a_wrong_row(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    written: list[int] = []

    def damaging(real: Any) -> Any:
        def write(files: Any, descriptor: int, offset: int, pieces: Any) -> Any:
            checksum = real(files, descriptor, offset, pieces)
            written.append(sum(map(len, pieces)))
            if len(written) == 3:
                at, length = offset + written[-1] // 2, 1
                if torn:
                    at, length = offset + written[-1] - 100, 100
                with Path(f"/proc/self/fd/{descriptor}").resolve().open("r+b") as file:
                    file.seek(at)
                    old = file.read(length)
                    file.seek(at)
                    file.write(bytes(length) if torn else bytes([old[0] ^ 4]))
            return checksum

        return write

    failing(monkeypatch, "write", damaging)
    with session(table, tmp_path) as opened:
        with pytest.raises(SpillCorrupt, match="checksum"):
            opened.sql(QUERY).collect()
        check_next_query(opened)
        check_answer(opened.sql(QUERY).collect())


def folder_of(descriptor: int) -> str:
    """The name of the spill folder that a file lies in."""
    return Path(f"/proc/self/fd/{descriptor}").resolve().parent.parent.name


@pytest.mark.parametrize("how", ["it takes nothing", "it fills up", "it goes away"])
def test_of_several_folders_one_may_fail(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    left = [0 if how == "it takes nothing" else 1_500_000]

    def choosy(real: Any) -> Any:
        def write(files: Any, descriptor: int, offset: int, pieces: Any) -> Any:
            if folder_of(descriptor) == "bad":
                left[0] -= sum(map(len, pieces))
                if left[0] < 0 and how == "it goes away":
                    left[0] = 1 << 40
                    shutil.rmtree(tmp_path / "bad")
                if left[0] < 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
            return real(files, descriptor, offset, pieces)

        return write

    failing(monkeypatch, "write", choosy)
    with session(table, [tmp_path / "bad", tmp_path / "good"]) as opened:
        if how == "it goes away":
            # What lay there is lost with it.
            with pytest.raises(SpillFailed, match=r"'.*bad'|is gone"):
                opened.sql(QUERY).collect()
            assert opened.sql("select count(*) as n from t where v < 10").collect().to_pydict() == {"n": [10]}
        else:
            text = opened.sql(QUERY).explain(analyze=True)
            assert "bad" in text
            assert "others are tried" in text
            check_answer(opened.sql(QUERY).collect())
        check_next_query(opened)
        check_answer(opened.sql(QUERY).collect())
    assert not any((tmp_path / "good").iterdir())


def test_compressed_spills_are_told_and_answer_the_same(table: Path, tmp_path: Path) -> None:
    with bm.connect(threads=2, memory_limit=LIMIT, spill_folder=tmp_path, spill_compression="lz4") as opened:
        opened.register("t", str(table))
        check_answer(opened.sql(QUERY).collect())
        assert "of processors" in opened.sql(QUERY).explain(analyze=True)
        down = opened.statistics().moves[Tier.DEVICE, Tier.DISK]
        assert down.compressed_count > 0
        assert down.compressed_stored_bytes < down.compressed_bytes
        assert down.compress_seconds > 0
        check_next_query(opened)


def test_a_slow_disk_only_makes_it_slow(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(real: Any) -> Any:
        def write(files: Any, descriptor: int, offset: int, pieces: Any) -> Any:
            time.sleep(0.15)  # longer than a stall
            return real(files, descriptor, offset, pieces)

        return write

    failing(monkeypatch, "write", slow)
    with session(table, tmp_path) as opened:
        check_answer(opened.sql(QUERY).collect())
        check_next_query(opened)


def test_a_result_that_nobody_reads_waits_and_a_forgotten_one_is_freed(table: Path, tmp_path: Path) -> None:
    with session(table, tmp_path) as opened:
        unread = iter(opened.sql(QUERY).to_batches())
        first = next(unread)
        assert first.column("k")[0].as_py() == 0
        held = opened.statistics().bytes_held[Tier.DEVICE]
        # Another query gets its room although the reader of the first has stopped.
        check_answer(opened.sql(QUERY).collect())
        assert held <= 2 * 4 * (1 << 20)
        del unread
        opened.sql("select 1").collect()
        deadline = time.monotonic() + 20
        while opened.statistics().queries and time.monotonic() < deadline:
            time.sleep(0.01)
        check_next_query(opened)


def test_small_row_groups_are_read_whole_in_little_memory(table: Path, tmp_path: Path) -> None:
    # Their parts would spare less than what each task takes, and have groups leave memory after some hundred rows.
    with session(table, tmp_path) as opened:
        opened.sql("select k, v from t where v % 4 = 1 order by k").collect()
        events = opened._worker.recorder.events()
        (splits,) = [event.splits for _, event in events if isinstance(event, PipelineOpened) and event.splits]
        assert splits == -(-ROWS // 20_000)


def test_ten_queries_at_once_share_one_budget(table: Path, tmp_path: Path) -> None:
    with session(table, tmp_path) as opened, ThreadPoolExecutor(10) as pool:
        query = "select k % 50000 as k, sum(v) as s from t where v % 4 = {0} group by 1 order by 1"
        texts = [query.format(index % 4) for index in range(10)]
        alone = [opened.sql(text).collect() for text in texts[:4]]
        for index, answer in enumerate(pool.map(lambda text: opened.sql(text).collect(), texts)):
            assert answer.equals(alone[index % 4])
        check_next_query(opened)


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_a_query_cancelled_at_any_moment_leaves_nothing(table: Path, tmp_path: Path, after: float) -> None:
    async def read(opened: Session) -> None:
        async for _ in opened.sql(QUERY):
            await asyncio.sleep(0)

    async def cancelled(opened: Session) -> None:
        try:
            async with asyncio.timeout(after):
                await read(opened)
        except TimeoutError:
            pass

    with session(table, tmp_path) as opened:
        asyncio.run(cancelled(opened))
        deadline = time.monotonic() + 20
        while opened.statistics().queries and time.monotonic() < deadline:
            time.sleep(0.01)
        check_next_query(opened)


_VICTIM = """
import sys, bireme as bm
from bireme.backends.native.spill_files import NativeSpillFiles
real, count = NativeSpillFiles.write, [0]
def telling(*given):
    checksum = real(*given)
    count[0] += 1
    if count[0] == 3:
        print("spilling", flush=True)
    return checksum
NativeSpillFiles.write = telling
session = bm.connect(threads=2, memory_limit=sys.argv[2], spill_folder=sys.argv[3])
session.register("t", sys.argv[1])
session.sql(sys.argv[4]).collect()
"""


def test_what_a_process_killed_in_mid_spill_left_is_gone_after_a_restart(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    arguments = [sys.executable, "-c", _VICTIM, str(table), LIMIT, str(folder), QUERY]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "spilling\n"
        victim.send_signal(signal.SIGKILL)
    assert any(folder.iterdir())
    with session(table, folder) as opened:
        assert not any(folder.iterdir())
        check_answer(opened.sql(QUERY).collect())
    assert not any(folder.iterdir())

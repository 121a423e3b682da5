"""One conformance kit for every spill store, and what only the one on files can do wrong."""

import os
import resource
import shutil
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bireme.backends.native.spill_files import NativeSpillFiles
from bireme.data.packed import unpack
from bireme.data.spill_run import Written
from bireme.errors import SpillCorrupt, SpillFailed
from bireme.storage.memory import MemorySpillStore
from bireme.storage.spill import LocalSpillStore
from bireme.storage.spill_policy import Compression, SpillHint, Verdict

MAKERS = {
    "memory": lambda folder, bytes_max=1 << 30: MemorySpillStore(bytes_max=bytes_max),
    "plain files": lambda folder, bytes_max=1 << 30: LocalSpillStore([folder], bytes_max=bytes_max),
    "a segment a batch": lambda folder, bytes_max=1 << 30: LocalSpillStore(
        [folder], bytes_max=bytes_max, segment_bytes=1
    ),
    "direct IO": lambda folder, bytes_max=1 << 30: native_store(folder, bytes_max=bytes_max),
    "through the cache": lambda folder, bytes_max=1 << 30: native_store(folder, bytes_max=bytes_max, direct=False),
    "compressed": lambda folder, bytes_max=1 << 30: native_store(
        folder, bytes_max=bytes_max, compression=Compression.LZ4
    ),
    "three folders": lambda folder, bytes_max=1 << 30: native_store(
        folder / "a", folder / "b", folder / "c", bytes_max=bytes_max, segment_bytes=100_000
    ),
}


def native_store(*folders, bytes_max=1 << 30, **options):
    return LocalSpillStore(folders, bytes_max=bytes_max, files=NativeSpillFiles(), **options)


def batch_of(rows, start=0):
    numbers = range(start, start + rows)
    return pa.record_batch(
        {
            "number": pa.array(numbers, pa.int64()),
            "maybe": pa.array([None if i % 3 == 0 else i for i in numbers], pa.int32()),
            "money": pa.array([Decimal(i) / 4 for i in numbers], pa.decimal64(15, 2)),
            "word": pa.array([f"wörd {i % 5}" for i in numbers], pa.string()).dictionary_encode(),
            "text": pa.array(["x" * (i % 50) for i in numbers], pa.string()),
            "list": pa.array([[i] * (i % 3) for i in numbers], pa.list_(pa.int64())),
        }
    )


@pytest.fixture(params=MAKERS)
def make(request, tmp_path):
    return lambda **options: MAKERS[request.param](tmp_path / "spill", **options)


def test_batches_come_back_equal_in_any_order(make):
    store = make()
    batches = [batch_of(rows, start=rows) for rows in (1, 1000, 7, 0, 20_000)]
    tickets = [store.write(batch) for batch in batches]
    for ticket, batch in reversed(list(zip(tickets, batches, strict=True))):
        found = store.read(ticket)
        assert found.schema == batch.schema
        assert found.equals(batch)
    store.close()


def test_a_batch_without_columns_keeps_its_rows(make):
    store = make()
    assert store.read(store.write(batch_of(12).select([]))).num_rows == 12
    store.close()


def test_a_slice_takes_room_for_its_own_rows_only(make):
    store = make()
    ticket = store.write(batch_of(10_000).slice(500, 10))
    assert ticket.length < 10_000
    assert ticket.length <= ticket.stored < 14_096
    assert store.read(ticket).equals(batch_of(10, start=500))
    store.close()


def test_equal_names_and_no_names_are_kept(make):
    store = make()
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["a"]), pa.array([None])], names=["a", "a", ""])
    assert store.read(store.write(batch)).equals(batch)
    store.close()


def test_dropping_everything_gives_all_room_back(make):
    store = make()
    tickets = [store.write(batch_of(100)) for _ in range(5)]
    assert store.bytes_used >= sum(ticket.stored for ticket in tickets)
    for ticket in tickets:
        store.drop(ticket)
    assert store.bytes_used == 0
    again = store.write(batch_of(100))
    assert store.read(again).equals(batch_of(100))
    store.close()


def test_a_dropped_batch_cannot_be_read(make):
    store = make()
    ticket = store.write(batch_of(3))
    store.drop(ticket)
    with pytest.raises(SpillFailed, match="gone"):
        store.read(ticket)
    store.close()


def test_the_quota_is_named_and_leaves_the_store_usable(make):
    store = make(bytes_max=50_000)
    kept = store.write(batch_of(100))
    with pytest.raises(SpillFailed, match="limit"):
        store.write(batch_of(10_000))
    assert store.bytes_used == kept.stored
    assert store.read(kept).equals(batch_of(100))
    store.close()


def test_closing_is_idempotent_and_final(make):
    store = make()
    ticket = store.write(batch_of(3))
    store.close()
    store.close()
    assert store.bytes_used == 0
    with pytest.raises(SpillFailed, match="closed"):
        store.write(batch_of(1))
    with pytest.raises(SpillFailed, match="closed"):
        store.read(ticket)
    store.drop(ticket)


def test_many_threads_share_a_store(make):
    store = make()
    barrier = threading.Barrier(4)

    def work(worker):
        barrier.wait(timeout=10)
        kept = []
        for turn in range(25):
            batch = batch_of(50 + turn, start=worker * 1000)
            kept.append((store.write(batch), batch))
            if turn % 3 == 2:
                ticket, expected = kept.pop(turn % len(kept))
                assert store.read(ticket).equals(expected)
                store.drop(ticket)
        for ticket, expected in kept:
            assert store.read(ticket).equals(expected)
            store.drop(ticket)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, worker) for worker in range(4)]:
            done.result(timeout=60)
    assert store.bytes_used == 0
    store.close()


# ------------------------------------------------------------------------------------------ in memory


def test_memory_faults_are_raised_and_leave_nothing():
    errors = [SpillFailed("full")]
    store = MemorySpillStore(bytes_max=1 << 20, fault=lambda operation: errors.pop() if errors else None)
    with pytest.raises(SpillFailed, match="full"):
        store.write(batch_of(5))
    assert store.bytes_used == 0
    ticket = store.write(batch_of(5))
    store.damage(ticket, position=999)
    with pytest.raises(SpillCorrupt):
        store.read(ticket)


# -------------------------------------------------------------------------------------------- on files


def files_below(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def segment_file(folder: Path, ticket):
    (home,) = [path for path in folder.iterdir() if path.is_dir()]
    return home / str(ticket.segment)


def test_an_unused_store_makes_no_folder(tmp_path):
    store = LocalSpillStore([tmp_path / "spill"], bytes_max=1)
    store.close()
    assert files_below(tmp_path) == []


def test_close_leaves_nothing(tmp_path):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    store.write(batch_of(10))
    assert len(files_below(tmp_path)) == 3
    store.close()
    assert files_below(tmp_path) == []


def flip_bit(folder, ticket, where):
    """At a byte of what the ticket stands for, or at a fraction of it."""
    position = int(where * ticket.length) if isinstance(where, float) else where % ticket.length
    with segment_file(folder, ticket).open("r+b") as file:
        file.seek(ticket.offset + position)
        byte = file.read(1)[0]
        file.seek(ticket.offset + position)
        file.write(bytes([byte ^ 16]))


@pytest.mark.parametrize("where", [0, 5, 0.5, -1])
def test_any_flipped_bit_is_noticed(tmp_path, where):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    first, second = store.write(batch_of(100)), store.write(batch_of(200))
    flip_bit(tmp_path, second, where)
    with pytest.raises(SpillCorrupt, match="checksum"):
        store.read(second)
    assert store.read(first).equals(batch_of(100))
    store.close()


def test_a_shortened_segment_is_noticed(tmp_path):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    ticket = store.write(batch_of(100))
    os.truncate(segment_file(tmp_path, ticket), ticket.length - 1)
    with pytest.raises(SpillCorrupt):
        store.read(ticket)
    store.close()


def test_a_folder_that_vanished_is_named(tmp_path):
    store = LocalSpillStore([tmp_path / "spill"], bytes_max=1 << 30)
    ticket = store.write(batch_of(100))
    segment_file(tmp_path / "spill", ticket).unlink()
    with pytest.raises(SpillFailed, match="spill"):
        store.read(ticket)
    store.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    store = LocalSpillStore([tmp_path / "file" / "spill"], bytes_max=1 << 30)
    with pytest.raises(SpillFailed, match="choose another folder"):
        store.write(batch_of(1))
    store.close()


def test_a_full_disk_leaves_nothing_of_the_write(tmp_path):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    kept = store.write(batch_of(100))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on the size of files fails a write after its first bytes, as a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (kept.stored + 1000, before[1]))
    try:
        with pytest.raises(SpillFailed, match="cannot write"):
            store.write(batch_of(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.bytes_used == kept.stored
    assert segment_file(tmp_path, kept).stat().st_size == kept.stored
    assert store.read(kept).equals(batch_of(100))
    after = store.write(batch_of(1000))
    assert store.read(after).equals(batch_of(1000))
    store.close()


def test_a_failed_first_write_leaves_no_segment(tmp_path):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(SpillFailed):
            store.write(batch_of(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.bytes_used == 0
    assert not [path for path in tmp_path.rglob("*") if path.name.isdecimal()]
    store.close()


def test_segments_are_cut_and_go_one_by_one(tmp_path):
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30, segment_bytes=100_000)
    tickets = [store.write(batch_of(500)) for _ in range(12)]
    segments = {ticket.segment for ticket in tickets}
    assert len(segments) > 2
    assert all(ticket.offset + ticket.stored <= 100_000 for ticket in tickets)
    for ticket in tickets[:-1]:
        store.drop(ticket)
    names = [path.name for path in tmp_path.rglob("*") if path.name.isdecimal()]
    assert names == [str(tickets[-1].segment)]
    store.close()


ORPHAN = """
import sys
from pathlib import Path
import pyarrow as pa
from bireme.storage.spill import LocalSpillStore
store = LocalSpillStore([Path(sys.argv[1])], bytes_max=1 << 30)
store.write(pa.record_batch({"a": [1, 2, 3]}))
import os
os._exit(0)
"""


def test_what_a_killed_process_left_is_removed_and_the_living_are_not(tmp_path):
    living = LocalSpillStore([tmp_path], bytes_max=1 << 30)
    ticket = living.write(batch_of(10))
    mine = files_below(tmp_path)
    subprocess.run([sys.executable, "-c", ORPHAN, str(tmp_path)], check=True, timeout=60)
    assert len(files_below(tmp_path)) == 2 * len(mine)
    LocalSpillStore([tmp_path], bytes_max=1 << 30).close()
    assert files_below(tmp_path) == mine
    assert living.read(ticket).equals(batch_of(10))
    living.close()


# ------------------------------------------------------------------------------- direct IO and several folders


def test_batches_go_to_all_folders_in_turn(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    store = native_store(*folders)
    tickets = [store.write(batch_of(100, start=number)) for number in range(9)]
    assert [len([ticket for ticket in tickets if segment_file(folder, ticket).exists()]) for folder in folders] == [
        3
    ] * 3
    for number, ticket in enumerate(tickets):
        assert store.read(ticket).equals(batch_of(100, start=number))
    store.close()
    assert all(files_below(folder) == [] for folder in folders)


def test_a_folder_that_takes_nothing_is_passed_over_and_noted(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    store = native_store(tmp_path / "file", tmp_path / "good")
    tickets = [store.write(batch_of(100, start=number)) for number in range(6)]
    assert all(segment_file(tmp_path / "good", ticket).exists() for ticket in tickets)
    notes = store.take_notes()
    assert notes
    assert all("file" in note and "others are tried" in note for note in notes)
    assert store.take_notes() == []
    store.close()


def test_a_disk_that_fills_up_leaves_the_rest_to_others(tmp_path, monkeypatch):
    class Filling(NativeSpillFiles):
        def write(self, descriptor, offset, pieces):
            if "/small/" in os.readlink(f"/proc/self/fd/{descriptor}") and offset >= 8192:
                raise OSError(28, "No space left on device")
            return super().write(descriptor, offset, pieces)

    store = LocalSpillStore([tmp_path / "small", tmp_path / "large"], bytes_max=1 << 30, files=Filling())
    tickets = [store.write(batch_of(10, start=number)) for number in range(12)]
    on_small = [ticket for ticket in tickets if segment_file(tmp_path / "small", ticket).exists()]
    assert 0 < len(on_small) < 6
    for number, ticket in enumerate(tickets):
        assert store.read(ticket).equals(batch_of(10, start=number))
        store.drop(ticket)
    assert store.bytes_used == 0
    store.close()


@pytest.mark.parametrize("refused", ["open", "write"])
def test_without_direct_io_it_goes_through_the_cache_and_says_so(tmp_path, monkeypatch, refused):
    opened = []
    real = os.open

    def plain_open(path, flags, *mode, **options):
        is_direct = bool(flags & os.O_DIRECT)
        if is_direct and refused == "open":
            raise OSError(22, "Invalid argument")
        descriptor = real(path, flags, *mode, **options)
        opened.append((descriptor, is_direct))
        return descriptor

    class Refusing(NativeSpillFiles):
        def write(self, descriptor, offset, pieces):
            if refused == "write" and dict(opened)[descriptor]:
                raise OSError(22, "Invalid argument")
            return super().write(descriptor, offset, pieces)

    monkeypatch.setattr(os, "open", plain_open)
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30, files=Refusing())
    batches = [batch_of(1000, start=number) for number in range(3)]
    tickets = [store.write(batch) for batch in batches]
    assert [store.read(ticket) for ticket in tickets] == batches
    assert [note for note in store.take_notes() if "no direct IO" in note] != []
    assert store.take_notes() == []
    store.close()


def test_spilled_batches_are_written_past_the_cache(tmp_path, monkeypatch):
    flags = []
    real = os.open

    def telling(path, how, *mode, **options):
        flags.append(how)
        return real(path, how, *mode, **options)

    monkeypatch.setattr(os, "open", telling)
    store = native_store(tmp_path)
    store.read(store.write(batch_of(1000)))
    if store.take_notes():
        pytest.skip("the file system of temporary files has no direct IO")
    assert [how & os.O_DIRECT for how in flags[-2:]] == [os.O_DIRECT] * 2
    store.close()


def test_a_home_that_somebody_removed_is_made_again(tmp_path):
    store = native_store(tmp_path)
    lost = store.write(batch_of(100))
    shutil.rmtree(segment_file(tmp_path, lost).parent)
    again = store.write(batch_of(200))
    assert store.read(again).equals(batch_of(200))
    with pytest.raises(SpillFailed, match="gone"):
        store.read(lost)
    store.drop(lost)
    store.close()
    assert files_below(tmp_path) == []


def test_room_of_dropped_batches_is_used_again(tmp_path):
    store = native_store(tmp_path, segment_bytes=1 << 20)
    tickets = [store.write(batch_of(1000, start=number)) for number in range(20)]
    before = store.bytes_used
    for _ in range(5):
        for ticket in tickets[::2]:
            store.drop(ticket)
        tickets[::2] = [store.write(batch_of(1000, start=number)) for number in range(0, 20, 2)]
    assert store.bytes_used == before
    for number, ticket in enumerate(tickets):
        assert store.read(ticket).equals(batch_of(1000, start=number))
    store.close()


# ------------------------------------------------------------------------------------------------- compression

IDLE = SpillHint("an edge", 2.0)


def numbers_batch(rows, start=0):
    """Two columns that compress, and one that does not."""
    drawn = np.random.default_rng(start)
    return pa.record_batch(
        {
            "ascending": np.arange(start, start + rows),
            "few": drawn.integers(0, 5, rows),
            "noise": drawn.integers(-(1 << 63), 1 << 63, rows),
        }
    )


@given(
    kinds=st.lists(st.sampled_from(["ascending", "few", "noise"]), max_size=6),
    rows=st.sampled_from([0, 1, 2_100, 33_000, 70_001]),
    start=st.integers(0, 1 << 40),
    cut=st.integers(0, 50),
)
@settings(max_examples=40, deadline=None)
def test_what_is_compressed_comes_back(tmp_path_factory, kinds, rows, start, cut):
    whole = numbers_batch(rows, start)
    batch = pa.RecordBatch.from_arrays([whole.column(kind) for kind in kinds], [str(at) for at in range(len(kinds))])
    batch = batch.slice(min(cut, batch.num_rows))
    store = native_store(tmp_path_factory.mktemp("spill"), compression=Compression.LZ4)
    ticket = store.write(batch)
    assert ticket.compressed == any(kind != "noise" for kind in kinds if batch.num_rows > 2_048)
    if ticket.compressed:
        assert ticket.length < ticket.packed_length
        assert ticket.compress_seconds > 0
    assert store.read(ticket).equals(batch)
    assert store.bytes_used == ticket.stored
    store.drop(ticket)
    assert store.bytes_used == 0
    store.close()


def test_frames_are_blocks_of_lz4_as_others_know_it(tmp_path):
    store = native_store(tmp_path, compression=Compression.LZ4)
    batch = numbers_batch(100_000)
    ticket = store.write(batch)
    run = segment_file(tmp_path, ticket).read_bytes()[ticket.offset : ticket.offset + ticket.length]
    codec, content = pa.Codec("lz4_raw"), b""
    while run:
        length, body = struct.unpack_from("<II", run)
        packed, run = run[8 : 8 + body], run[8 + body :]
        content += packed if body == length else codec.decompress(packed, length, asbytes=True)
    assert unpack(pa.py_buffer(content)).equals(batch)
    store.close()


@pytest.mark.parametrize("where", [0, 5, 0.1, 0.5, 0.9, -1])
def test_any_flipped_bit_of_what_is_compressed_is_noticed(tmp_path, where):
    store = native_store(tmp_path, direct=False, compression=Compression.LZ4)
    first, second = store.write(numbers_batch(50_000)), store.write(numbers_batch(50_000, start=9))
    flip_bit(tmp_path, second, where)
    with pytest.raises(SpillCorrupt, match="checksum"):
        store.read(second)
    assert store.read(first).equals(numbers_batch(50_000))
    store.close()


def test_a_shortened_compressed_run_is_noticed(tmp_path):
    store = native_store(tmp_path, direct=False, compression=Compression.LZ4)
    ticket = store.write(numbers_batch(50_000))
    os.truncate(segment_file(tmp_path, ticket), ticket.length // 2)
    with pytest.raises(SpillCorrupt):
        store.read(ticket)
    store.close()


def test_the_quota_counts_bytes_on_disk(tmp_path):
    batch = pa.record_batch({"same": np.zeros(100_000, dtype=np.int64)})
    store = native_store(tmp_path, bytes_max=2 * batch.nbytes, compression=Compression.LZ4)
    tickets = [store.write(batch) for _ in range(20)]
    assert store.bytes_used == sum(ticket.stored for ticket in tickets) < batch.nbytes
    assert all(store.read(ticket).equals(batch) for ticket in tickets)
    store.close()


def disk_of(bytes_per_second):
    """Files on a disk as fast as that: so they say, and nobody waits for it."""

    class Frames(type(NativeSpillFiles.frames)):
        def write(self, descriptor, offset, pieces, chosen):
            written = super().write(descriptor, offset, pieces, chosen)
            return written._replace(seconds=written.length / bytes_per_second, codec_wall_seconds=0.0)

    class Files(NativeSpillFiles):
        frames = Frames()

        def write(self, descriptor, offset, pieces):
            length, checksum, *_ = super().write(descriptor, offset, pieces)
            return Written(length, checksum, length / bytes_per_second)

        def read(self, descriptor, offset, length):
            return super().read(descriptor, offset, length)._replace(seconds=length / bytes_per_second)

    return Files()


def verdicts(tmp_path, *, bytes_per_second, hint=IDLE):
    """What becomes of one batch after the other on such a disk."""
    store = LocalSpillStore([tmp_path], bytes_max=1 << 30, files=disk_of(bytes_per_second))
    tickets = [store.write(numbers_batch(100_000, start=at), hint) for at in range(12)]
    for at, ticket in enumerate(tickets):
        assert store.read(ticket).equals(numbers_batch(100_000, start=at))
    notes = store.take_notes()
    store.close()
    return [ticket.verdict for ticket in tickets], [note for note in notes if "compressed" in note]


def test_a_slow_disk_has_its_spills_compressed(tmp_path):
    found, notes = verdicts(tmp_path, bytes_per_second=20e6)
    assert set(found[:3]) == {Verdict.UNMEASURED}
    assert set(found[4:]) == {Verdict.COMPRESSED}
    (note,) = notes
    assert "100.00 ns of the disk" in note
    assert "2.0 processors are idle" in note


def test_a_fast_disk_is_left_alone(tmp_path):
    found, notes = verdicts(tmp_path, bytes_per_second=50e9)
    assert set(found[4:]) == {Verdict.COSTS_MORE}
    assert notes == []


def test_nothing_is_compressed_while_processors_have_work(tmp_path):
    found, _ = verdicts(tmp_path, bytes_per_second=20e6, hint=SpillHint("an edge", 0.0))
    assert set(found[4:]) == {Verdict.BUSY}


def test_off_is_off(tmp_path):
    store = native_store(tmp_path, compression=Compression.OFF)
    assert store.write(numbers_batch(100_000), IDLE).verdict is Verdict.OFF
    store.close()

"""One conformance kit for everything that reads byte ranges, and what only the one on files can do wrong."""

import os
import random
import threading

import pytest

from bireme.backends.native.file_ranges import read_ranges
from bireme.errors import SourceChanged, SourceMissing, StorageError
from bireme.storage import local
from bireme.storage.base import ByteRange
from bireme.storage.local import LocalByteSource, file_version
from bireme.storage.memory import MemoryByteSource


class Local:
    """Files in a folder."""

    def __init__(self, folder):
        self._folder = folder
        self.source = self.opened()

    def opened(self):
        return LocalByteSource()

    def path(self, name):
        return str(self._folder / name)

    def write(self, name, content):
        (self._folder / name).write_bytes(content)

    def version(self, name):
        return file_version((self._folder / name).stat())

    def close(self):
        self.source.close()


class Pooled(Local):
    """The same files, read into the memory of the native kernels."""

    def opened(self):
        return LocalByteSource(reader=read_ranges)


class InMemory:
    """Byte strings."""

    def __init__(self, _):
        self.source = MemoryByteSource({})
        self.write = self.source.write
        self.version = self.source.version

    def path(self, name):
        return name

    def close(self):
        """Nothing is open."""


@pytest.fixture(params=[Local, Pooled, InMemory], ids=["local", "pooled", "memory"])
def files(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.close()


def test_exactly_the_bytes_asked_for(files):
    content = random.Random(1).randbytes(5000)
    files.write("a", content)
    rng = random.Random(2)
    for _ in range(50):
        start = rng.randrange(5000)
        length = rng.randrange(5001 - start)
        assert files.source.read(ByteRange(files.path("a"), start, length)).to_pybytes() == content[start:][:length]
    planned = ByteRange(files.path("a"), 4990, 10, files.version("a"))
    assert files.source.read(planned).to_pybytes() == content[-10:]


def test_bytes_outlive_source_and_file(files):
    files.write("a", b"0123456789")
    found = files.source.read(ByteRange(files.path("a"), 2, 3))
    files.write("a", b"__________")
    files.close()
    assert found.to_pybytes() == b"234"


def test_a_missing_file_is_named(files):
    with pytest.raises(SourceMissing, match="nowhere"):
        files.source.read(ByteRange(files.path("nowhere"), 0, 1))


def test_a_file_that_is_shorter_than_planned_has_changed(files):
    files.write("short", b"0123456789")
    with pytest.raises(SourceChanged, match="short"):
        files.source.read(ByteRange(files.path("short"), 5, 6))


def test_another_content_has_changed_and_a_new_plan_reads_it(files):
    files.write("a", b"0123456789")
    planned = ByteRange(files.path("a"), 0, 10, files.version("a"))
    assert files.source.read(planned).to_pybytes() == b"0123456789"
    files.write("a", b"abcdefghijk")
    with pytest.raises(SourceChanged, match="run the query again"):
        files.source.read(planned)
    again = ByteRange(files.path("a"), 0, 10, files.version("a"))
    assert files.source.read(again).to_pybytes() == b"abcdefghij"


def test_many_threads_share_a_source(files):
    for number in range(6):
        files.write(str(number), bytes([number]) * 1000)
    failures = []

    def work(seed):
        rng = random.Random(seed)
        for _ in range(100):
            number = rng.randrange(6)
            found = files.source.read(ByteRange(files.path(str(number)), 100, 50)).to_pybytes()
            if found != bytes([number]) * 50:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []


def test_memory_faults_are_raised_and_reads_are_kept():
    errors = [SourceMissing("gone")]
    source = MemoryByteSource({"a": b"0123"}, fault=lambda _: errors.pop() if errors else None)
    with pytest.raises(SourceMissing, match="gone"):
        source.read(ByteRange("a", 0, 1))
    assert source.read(ByteRange("a", 1, 2)).to_pybytes() == b"12"
    assert source.reads == [ByteRange("a", 0, 1), ByteRange("a", 1, 2)]


# -------------------------------------------------------------------------------------------- on files


def test_a_replaced_file_is_noticed_although_its_descriptor_is_kept(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with LocalByteSource() as source:
        planned = ByteRange(str(path), 0, 3, file_version(path.stat()))
        assert source.read(planned).to_pybytes() == b"old"
        (tmp_path / "b").write_bytes(b"new")
        (tmp_path / "b").replace(path)
        now = ByteRange(str(path), 0, 3, file_version(path.stat()))
        assert source.read(now).to_pybytes() == b"new"
        with pytest.raises(SourceChanged):
            source.read(planned)


def test_a_write_during_a_read_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "bytes"
    path.write_bytes(b"a" * 100)
    version = file_version(path.stat())
    preadv = os.preadv

    def slow_preadv(*arguments):
        count = preadv(*arguments)
        path.write_bytes(b"b" * 101)
        return count

    with LocalByteSource() as reads:
        assert reads.read(ByteRange(str(path), 0, 10, version)).to_pybytes() == b"a" * 10
        monkeypatch.setattr(os, "preadv", slow_preadv)
        with pytest.raises(SourceChanged):
            reads.read(ByteRange(str(path), 0, 10, version))


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_descriptors_are_bounded_and_closed(tmp_path):
    paths = []
    for number in range(12):
        path = tmp_path / str(number)
        path.write_bytes(bytes([number]) * 10)
        paths.append(str(path))
    before = open_descriptors()
    reads = LocalByteSource(open_files_max=3)
    for _ in range(3):
        for number, path in enumerate(paths):
            assert reads.read(ByteRange(path, 2, 3)).to_pybytes() == bytes([number]) * 3
        assert open_descriptors() <= before + 3
    reads.close()
    assert open_descriptors() == before
    with pytest.raises(StorageError, match="closed"):
        reads.read(ByteRange(paths[0], 0, 1))
    assert open_descriptors() == before


def test_many_threads_read_through_few_descriptors(tmp_path):
    paths = []
    for number in range(6):
        path = tmp_path / str(number)
        path.write_bytes(bytes([number]) * 1000)
        paths.append(str(path))
    reads = LocalByteSource(open_files_max=2)
    failures = []

    def work(seed):
        rng = random.Random(seed)
        for _ in range(200):
            number = rng.randrange(6)
            if reads.read(ByteRange(paths[number], 100, 50)).to_pybytes() != bytes([number]) * 50:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    reads.close()
    assert failures == []


def test_the_page_cache_is_asked_only_about_open_files(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes(3 << 20))
    whole = ByteRange(str(path), 0, 3 << 20)
    with LocalByteSource() as source:
        assert not source.is_resident([whole])
        source.read(whole)
        assert source.is_resident([whole])
        # Past its end nothing can be had without asking the file system.
        assert not source.is_resident([ByteRange(str(path), 3 << 20, 1)])


def test_a_file_that_was_resident_some_times_in_a_row_is_asked_less(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(bytes(100))
    ranges = [ByteRange(str(path), start, 10) for start in range(0, 100, 10)]
    asked = []
    plainly = local._are_cached
    monkeypatch.setattr(local, "_are_cached", lambda file, some: asked.append(len(some)) or plainly(file, some))
    with LocalByteSource() as source:
        source.read_all(ranges)
        assert all(source.is_resident(ranges) for _ in range(20))
        assert asked[0] == 10
        assert asked[-1] == 1
        assert not source.is_resident([*ranges, ByteRange(str(path), 100, 10)])
        assert source.is_resident(ranges)
        assert asked[-1] == 10, "it is not trusted any more"


def test_a_system_that_cannot_tell_has_nothing_resident(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"0123")
    with LocalByteSource() as source:
        source.read(ByteRange(str(path), 0, 4))
        monkeypatch.delattr(os, "RWF_NOWAIT")
        assert not source.is_resident([ByteRange(str(path), 0, 4)])


def test_several_ranges_of_several_files_come_in_order(files):
    files.write("a", b"0123456789")
    files.write("b", b"abcdefghij")
    wanted = [ByteRange(files.path("a"), 1, 2), ByteRange(files.path("b"), 0, 3), ByteRange(files.path("a"), 8, 2)]
    assert [one.to_pybytes() for one in files.source.read_all(wanted)] == [b"12", b"abc", b"89"]

"""Joining small splits to runs: order, bytes, ranges of keys, and when not to."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.disk import bytes_of
from support.fake_stages import FakeSplit

from bireme.data.key_range import EMPTY, KeyRange
from bireme.runtime.preload.part_by_part import PartByPart
from bireme.storage.base import ByteRange, Split
from bireme.storage.split_run import RunLimits, SplitRun, hulls, in_runs, kept, kept_parts, run_lengths
from bireme.units import MIB

LIMITS = RunLimits(2, 1 << 30)


def splits_of(sizes):
    return [FakeSplit((index,), (ByteRange("t", index * 10**9, size),)) for index, size in enumerate(sizes)]


@given(st.lists(st.integers(1, 6 * MIB), max_size=200))
def test_runs_keep_splits_in_order_and_within_limits(sizes):
    splits = splits_of(sizes)
    lengths = run_lengths(splits, LIMITS)
    joined = in_runs(splits, lengths)
    flat = [one for split in joined for one in (split.splits if isinstance(split, SplitRun) else (split,))]
    assert flat == splits
    assert len(joined) >= min(4, len(splits))
    for split in joined:
        if isinstance(split, SplitRun):
            assert sum(one.length for one in split.ranges) <= max(4 * MIB, sum(sizes) // 32)
            assert split.rows == len(split.splits)
            assert [list(own) for _, own in split.pieces(list(split.ranges))] == [list(s.ranges) for s in split.splits]


def test_a_scan_of_few_splits_stays_as_it_is():
    splits = splits_of([10] * 7)
    assert in_runs(splits, run_lengths(splits, LIMITS)) == splits


@pytest.mark.parametrize(("count", "lengths"), [(8, [2, 2, 2, 1, 1]), (16, [4, 4, 4, 2, 2]), (18, [4, 4, 4, 2, 2, 2])])
def test_the_last_runs_of_a_short_scan_are_half_as_long(count, lengths):
    assert run_lengths(splits_of([10] * count), LIMITS) == lengths


def test_runs_are_shorter_where_a_task_keeps_a_table_of_its_own():
    splits = splits_of([10] * 48)
    assert run_lengths(splits, LIMITS, keeps_rows=True) == [4] * 11 + [2, 2]
    assert max(run_lengths(splits, LIMITS)) == 12


def test_parts_of_one_whole_are_not_joined():
    parts = [FakeSplit((index,), (ByteRange("t", 0, 5),), 100) for index in range(100)]
    assert in_runs(parts, run_lengths(parts, LIMITS)) == parts


def test_splits_in_memory_are_joined_by_their_size():
    small, large = FakeSplit((1,)), FakeSplit((1,) * MIB)
    assert run_lengths([small] * 100, LIMITS) == [25] * 3 + [13, 12]
    assert run_lengths([large] * 60, LIMITS) == [1] * 60


def test_the_more_slots_the_more_tasks():
    splits = splits_of([10] * 960)
    counts = [len(run_lengths(splits, RunLimits(slots, 1 << 40))) for slots in (1, 2, 16)]
    assert counts == sorted(counts)
    assert counts[-1] >= 2 * 16


@pytest.mark.parametrize(("count", "length"), [(400, 16), (1_600, 50), (16_000, 128)])
def test_runs_of_larger_scans_are_larger_within_limits(count, length):
    lengths = run_lengths(splits_of([MIB // 4] * count), RunLimits(2, 1 << 50))
    assert max(lengths) == length
    assert set(lengths[: count // length // 2]) == {length}


def test_the_bytes_of_a_run_are_read_part_by_part():
    run = in_runs(splits_of([10] * 8), run_lengths(splits_of([10] * 8), LIMITS))[0]
    reads = []
    given = PartByPart(run.ranges, lambda ranges: reads.append(list(ranges)) or [bytes_of(one) for one in ranges])
    assert len(given) == len(run.ranges) == 2
    for (split, buffers), wanted in zip(run.pieces(given), run.splits, strict=True):
        assert split is wanted
        assert buffers == [bytes_of(one) for one in wanted.ranges]
        assert reads.pop() == list(wanted.ranges)
    assert given[1] == bytes_of(run.ranges[1])


def test_a_run_decodes_to_a_small_part_of_memory():
    splits = [FakeSplit((1,) * 1000, (ByteRange("t", 0, 1),)) for _ in range(1000)]
    assert max(run_lengths(splits, RunLimits(2, 32 * 3 * 8_000))) == 3


def test_the_range_of_a_run_is_around_those_of_its_splits():
    ranges = [KeyRange(5, 9), EMPTY, KeyRange(1, 2), EMPTY, EMPTY, KeyRange(3, 3), None]
    assert hulls(ranges, [3, 2, 2]) == [KeyRange(1, 9), EMPTY, None]
    assert hulls(ranges, [1] * 7) == ranges


def kept_run() -> Split:
    splits = [FakeSplit((index,), (ByteRange("t", index, 1),)) for index in range(8)]
    return in_runs(splits, run_lengths(splits, LIMITS))[1]


def test_each_split_of_a_kept_run_has_its_own_columns():
    run = kept_run()
    found = kept(run, {1: pa.chunked_array([pa.array([3], pa.int64())])})
    assert [part.ranges for part in kept_parts(found)] == [run.splits[0].ranges, ()]
    assert found.ranges == run.ranges[:1]
    buffers = [pa.py_buffer(bytes_of(run.ranges[0]))]
    for _ in range(2):  # the second time it is complete, whatever bytes come
        assert [batch.column(0).to_pylist() for batch in found.decode(buffers)] == [[2], [3]]
    assert [key for part in kept_parts(found) for key, _ in part.fresh] == list(run.chunk_keys[:1])


def test_a_split_that_is_not_kept_has_no_kept_parts():
    assert kept_parts(kept_run()) == kept_parts(FakeSplit((1,))) == kept_parts(None) == []

"""Joining small splits to runs: order, bytes, ranges of keys, and when not to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_stages import FakeSplit

from bireme.data.key_range import EMPTY, KeyRange
from bireme.operators.split_run import SplitRun, hulls, in_runs, run_lengths
from bireme.storage.base import ByteRange
from bireme.units import MIB


def splits_of(sizes):
    return [FakeSplit((index,), (ByteRange("t", index * 10**9, size),)) for index, size in enumerate(sizes)]


@given(st.lists(st.integers(1, 6 * MIB), max_size=200))
def test_runs_keep_splits_in_order_and_within_limits(sizes):
    splits = splits_of(sizes)
    lengths = run_lengths(splits)
    joined = in_runs(splits, lengths)
    flat = [one for split in joined for one in (split.splits if isinstance(split, SplitRun) else (split,))]
    assert flat == splits
    assert len(joined) >= min(24, len(splits))
    for split in joined:
        if isinstance(split, SplitRun):
            assert sum(one.length for one in split.ranges) <= 4 * MIB
            assert split.rows == len(split.splits)
            assert [list(own) for _, own in split.pieces(list(split.ranges))] == [list(s.ranges) for s in split.splits]


def test_a_scan_of_few_splits_stays_as_it_is():
    splits = splits_of([10] * 47)
    assert in_runs(splits, run_lengths(splits)) == splits
    assert len(in_runs(splits_of([10] * 48), run_lengths(splits_of([10] * 48)))) == 24


@pytest.mark.parametrize("ranges", [(), (ByteRange("t", 0, 5),)])
def test_parts_of_one_whole_and_data_in_memory_are_not_joined(ranges):
    parts = [FakeSplit((index,), ranges, 1 if not ranges else 100) for index in range(100)]
    assert in_runs(parts, run_lengths(parts)) == parts


def test_the_range_of_a_run_is_around_those_of_its_splits():
    ranges = [KeyRange(5, 9), EMPTY, KeyRange(1, 2), EMPTY, EMPTY, KeyRange(3, 3), None]
    assert hulls(ranges, [3, 2, 2]) == [KeyRange(1, 9), EMPTY, None]
    assert hulls(ranges, [1] * 7) == ranges

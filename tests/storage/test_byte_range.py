"""Merging byte ranges, against sets of single bytes."""

from hypothesis import given
from hypothesis import strategies as st

from bireme.storage.base import ByteRange
from bireme.storage.byte_range import coalesce

RANGES = st.lists(
    st.builds(
        ByteRange, st.sampled_from(["a", "b"]), st.integers(0, 60), st.integers(0, 12), st.sampled_from(["", "v"])
    ),
    max_size=12,
)


def bytes_of(ranges):
    return {(r.path, r.version, position) for r in ranges for position in range(r.offset, r.end)}


@given(RANGES, st.integers(0, 10), st.integers(1, 40))
def test_every_wanted_byte_is_in_one_range_and_gaps_stay_small(ranges, gap, longest):
    merged = coalesce(ranges, gap_bytes_max=gap, merged_bytes_max=longest)
    assert bytes_of(ranges) <= bytes_of(merged)
    assert len(bytes_of(merged)) == sum(r.length for r in merged), "no byte twice"
    assert list(merged) == sorted(merged, key=lambda r: (r.path, r.version, r.offset))
    for wanted in ranges:
        holders = [m for m in merged if bytes_of([wanted]) <= bytes_of([m])]
        assert wanted.length == 0 or len(holders) == 1
    extra = bytes_of(merged) - bytes_of(ranges)
    runs = run_lengths(extra)
    assert all(length <= gap for length in runs)


def run_lengths(positions):
    ordered = sorted(positions)
    lengths = []
    for index, (path, version, position) in enumerate(ordered):
        if index and ordered[index - 1] == (path, version, position - 1):
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


@given(RANGES)
def test_without_gaps_nothing_else_is_read(ranges):
    assert bytes_of(coalesce(ranges, gap_bytes_max=0, merged_bytes_max=1)) == bytes_of(ranges)


def test_neighbours_merge_up_to_the_limit_and_large_ranges_stay_whole():
    ranges = [ByteRange("f", 10 * i, 10) for i in range(6)]
    assert [r.length for r in coalesce(ranges, merged_bytes_max=30)] == [30, 30]
    assert coalesce([ByteRange("f", 0, 1000)], merged_bytes_max=30) == (ByteRange("f", 0, 1000),)

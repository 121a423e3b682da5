"""Where spilled batches lie: nothing overlaps, gaps are used again, what is empty goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bireme.storage.spill_space import BLOCK_BYTES, Segment, Space, in_blocks

_SEGMENT_BYTES = 16 * BLOCK_BYTES


def test_whole_blocks() -> None:
    assert [in_blocks(nbytes) for nbytes in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]


@given(st.lists(st.tuples(st.integers(1, 24), st.integers(0, 10)), max_size=60))
def test_what_is_taken_never_overlaps_and_all_comes_back(steps: list[tuple[int, int]]) -> None:
    """A step takes some blocks, or gives one of those taken back."""
    space, taken, names = Space(_SEGMENT_BYTES), [], iter(range(1_000))
    for blocks, which in steps:
        if which < len(taken):
            segment, offset, length = taken.pop(which)
            gone = space.give_back(segment, offset, length)
            assert gone == (segment.number not in space.segments)
        else:
            segment, offset = space.take(blocks * BLOCK_BYTES, next(names))
            taken.append((segment, offset, blocks * BLOCK_BYTES))
        _check(space, taken)
    for segment, offset, length in taken:
        space.give_back(segment, offset, length)
    assert space.segments == {}
    assert space.size == 0


def _check(space: Space, taken: list[tuple[Segment, int, int]]) -> None:
    for segment in space.segments.values():
        runs = sorted([(offset, offset + length) for one, offset, length in taken if one is segment] + segment.free)
        # What is taken and what is free make up the file, and no two gaps touch.
        assert [start for start, _ in runs] == [0, *[end for _, end in runs[:-1]]]
        assert runs[-1][1] == segment.size
        assert all(one[1] != other[0] for one, other in zip(segment.free, segment.free[1:], strict=False))
        assert segment.taken == sum(length for one, _, length in taken if one is segment) > 0
        assert segment.size <= max(_SEGMENT_BYTES, 24 * BLOCK_BYTES)


def test_old_segments_first_and_a_gap_before_the_end() -> None:
    space = Space(4 * BLOCK_BYTES)
    first = [space.take(BLOCK_BYTES, 0) for _ in range(4)]
    space.take(BLOCK_BYTES, 1)
    space.give_back(*first[1], BLOCK_BYTES)
    assert space.take(BLOCK_BYTES, 2) == first[1]
    assert space.size == 5 * BLOCK_BYTES


def test_a_trimmed_end_is_no_part_of_the_file() -> None:
    space = Space(_SEGMENT_BYTES)
    space.take(BLOCK_BYTES, 0)
    segment, offset = space.take(3 * BLOCK_BYTES, 1)
    space.give_back(segment, offset, 3 * BLOCK_BYTES)
    segment.trim()
    assert (segment.size, segment.free) == (BLOCK_BYTES, [])

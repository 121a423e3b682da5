"""How much of joins stays in memory, and how what does not is done: properties of the decisions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bireme.operators.away import partitions_for
from bireme.runtime.round_policy import How, blocks, how, round_bytes_max, tables_bytes_max, ways

SIZES = st.lists(st.integers(0, 10_000), max_size=40)


@given(SIZES, st.integers(1, 20_000))
def test_blocks_take_every_batch_once_and_fit_unless_they_are_one(sizes: list[int], most: int) -> None:
    found = blocks(sizes, most)
    assert [size for block in found for size in sizes[block]] == sizes
    assert all(sum(sizes[block]) <= most or len(sizes[block]) == 1 for block in found)


@given(SIZES, st.integers(1, 20_000))
def test_two_blocks_that_follow_each_other_would_not_fit_together(sizes: list[int], most: int) -> None:
    found = blocks(sizes, most)
    assert all(sum(sizes[one]) + sizes[two][0] > most for one, two in pairwise(found))


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 8), st.booleans(), st.integers(1, 1 << 40))
def test_what_fits_is_joined_and_what_does_not_never_is(
    build: int, cut: int, cuts: int, can_cut: bool, most: int
) -> None:
    chosen = how(build_bytes=build, cut_bytes=max(build, cut), cuts=cuts, can_cut=can_cut, bytes_max=most)
    assert (chosen is How.JOIN) is (build <= most)
    assert can_cut or chosen is not How.CUT


def test_cuts_come_to_an_end() -> None:
    """Whatever the keys are: a partition that hardly became smaller, or was cut often, goes block by block."""
    assert how(build_bytes=100, cut_bytes=101, cuts=1, can_cut=True, bytes_max=10) is How.LOOP
    assert how(build_bytes=100, cut_bytes=1_000, cuts=1, can_cut=True, bytes_max=10) is How.CUT
    assert how(build_bytes=100, cut_bytes=1_000, cuts=99, can_cut=True, bytes_max=10) is How.LOOP


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 30))
def test_a_cut_has_some_ways_and_not_too_many(build: int, most: int) -> None:
    assert 2 <= ways(build, most) <= 16


def test_tables_leave_room_for_rounds() -> None:
    limit = 1 << 20
    assert tables_bytes_max(limit) + round_bytes_max(limit) < limit
    assert round_bytes_max(0) == 1


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 40))
def test_a_build_side_as_large_as_expected_needs_no_cut_while_it_is_a_few_times_the_memory(
    nbytes: int, memory: int
) -> None:
    count = partitions_for(nbytes, memory)
    assert 16 <= count <= 64
    # With a fifth of leeway, since partitions are hardly ever equal.
    assert nbytes > 6 * memory or 1.2 * nbytes / count <= round_bytes_max(memory) + 1

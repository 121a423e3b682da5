"""What the four executors decide, as stories: facts in, choices out. No loop, no mocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bireme.data.ids import QueryId
from bireme.data.record import JOINED_ROWS_MAX
from bireme.runtime.compute.estimate import RECORDS_MAX, History
from bireme.runtime.compute.policy import (
    RETRIES_MAX,
    ReadyList,
    Remedy,
    is_brief,
    rank,
    remedy,
    rows_per_task,
    seconds_per_row,
)
from bireme.runtime.memory.policy import Candidate, Need, State, bundles, choose_demotions, excess, next_resort
from bireme.runtime.network.policy import FlowView, choose_send
from bireme.runtime.preload.policy import ScanView, choose_fetch, fetch_bytes_max, promotion_room


def candidate(
    name: str,
    nbytes: int = 10,
    *,
    query: int = 1,
    next_use: int = 1,
    place: int = 0,
    queued: bool = False,
    homed_below: bool = False,
    is_growing: bool = False,
) -> Candidate:
    return Candidate(QueryId(query), next_use, place, nbytes, queued, homed_below, name, is_growing)


def names(chosen) -> list[str]:
    return [one.handle for one in chosen]


# ---------------------------------------------------------------------------------------------- memory


def test_the_furthest_next_use_goes_first() -> None:
    near, far = candidate("near", next_use=2), candidate("far", next_use=9)
    assert names(choose_demotions([near, far], 10, spare_queued=False)) == ["far"]


def test_the_youngest_query_goes_first_and_the_back_of_a_queue_before_its_front() -> None:
    old, young = candidate("old", query=1, next_use=9), candidate("young", query=2, next_use=1)
    front, back = candidate("front", query=2, place=1), candidate("back", query=2, place=7)
    assert names(choose_demotions([old, young], 10, spare_queued=False)) == ["young"]
    assert names(choose_demotions([front, back], 10, spare_queued=False)) == ["back"]


def test_what_has_its_home_below_goes_before_what_has_not() -> None:
    homed, far = candidate("homed", next_use=1, homed_below=True), candidate("far", next_use=9)
    assert names(choose_demotions([far, homed], 10, spare_queued=False)) == ["homed"]


def test_queued_inputs_go_last_and_never_for_a_producer() -> None:
    queued, idle = candidate("queued", next_use=9, queued=True), candidate("idle", next_use=1)
    assert names(choose_demotions([queued, idle], 20, spare_queued=False)) == ["idle", "queued"]
    assert names(choose_demotions([queued, idle], 20, spare_queued=True)) == ["idle"]
    assert names(choose_demotions([queued], 20, spare_queued=True)) == []


def test_the_last_victim_is_right_sized() -> None:
    large, exact, tiny = candidate("large", 100, next_use=9), candidate("exact", 12), candidate("tiny", 3)
    assert names(choose_demotions([large, exact, tiny], 11, spare_queued=False)) == ["exact"]
    assert names(choose_demotions([large, exact, tiny], 60, spare_queued=False)) == ["large"]


def test_of_what_is_short_and_may_grow_the_most_goes_after_what_is_worth_a_move() -> None:
    worth = candidate("worth", 60, place=1)
    least, most = candidate("least", 10, place=9, is_growing=True), candidate("most", 20, place=2, is_growing=True)
    assert names(choose_demotions([least, most, worth], 90, spare_queued=False)) == ["worth", "most", "least"]
    # One that goes because it has the most is never exchanged for one that has less.
    assert names(choose_demotions([least, most], 5, spare_queued=False)) == ["most"]
    assert names(choose_demotions([least, candidate("far", 40, next_use=9)], 5, spare_queued=False)) == ["far"]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 60))
def test_bundles_take_every_batch_once_in_order_and_are_worth_a_move_where_they_can(sizes, enough) -> None:
    found = [sizes[some] for some in bundles(sizes, enough)]
    assert [size for bundle in found for size in bundle] == sizes
    assert all(bundle and (len(bundle) == 1 or sum(bundle[:-1]) < enough) for bundle in found)
    # Whatever is less has a long batch, or nothing, behind it.
    for bundle, following in pairwise([*found, [enough]]):
        assert sum(bundle) >= enough or following[0] >= enough


def test_batches_of_no_bytes_are_left_alone() -> None:
    assert choose_demotions([candidate("nothing", 0)], 5, spare_queued=False) == []


candidates = st.lists(
    st.builds(
        candidate,
        st.text(max_size=3),
        st.integers(0, 50),
        query=st.integers(1, 3),
        next_use=st.integers(0, 5),
        place=st.integers(0, 9),
        queued=st.booleans(),
    ),
    max_size=8,
)


@given(candidates, st.integers(1, 200), st.booleans())
def test_victims_cover_the_shortfall_if_anything_can_and_no_more_than_needed(chosen_from, shortfall, spare) -> None:
    chosen = choose_demotions(chosen_from, shortfall, spare_queued=spare)
    eligible = [one for one in chosen_from if one.nbytes and not (spare and one.queued)]
    freed = sum(one.nbytes for one in chosen)
    assert freed >= min(shortfall, sum(one.nbytes for one in eligible))
    assert all(any(one is other for other in eligible) for one in chosen)
    assert len({id(one) for one in chosen}) == len(chosen)
    # Without its last victim it would not have been enough.
    assert not chosen or sum(one.nbytes for one in chosen[:-1]) < shortfall


def test_the_watermark_has_hysteresis() -> None:
    assert excess(85, 100, start=0.85, stop=0.65) == 0
    assert excess(86, 100, start=0.85, stop=0.65) == 21


IDLE, QUEUED = candidate("idle"), candidate("queued", queued=True)
SMALL, LARGE = State(QueryId(1), 2, "small"), State(QueryId(1), 40, "large")


def test_batches_that_nobody_waits_for_go_before_states_and_states_before_queued_batches() -> None:
    for need in Need:
        assert next_resort([QUEUED, IDLE], [SMALL, LARGE], 20, need=need, limit=100) == [IDLE]
        assert next_resort([QUEUED], [SMALL, LARGE], 20, need=need, limit=100) == LARGE


def test_a_state_that_is_not_worth_it_is_the_last_resort_of_what_must_go_on() -> None:
    assert next_resort([QUEUED], [SMALL], 20, need=Need.CONSUME, limit=100) == [QUEUED]
    assert next_resort([], [SMALL], 20, need=Need.CONSUME, limit=100) == SMALL
    for need in (Need.WATERMARK, Need.PRODUCE):
        assert next_resort([QUEUED], [SMALL], 20, need=need, limit=100) == []
    assert next_resort([], [], 20, need=Need.CONSUME, limit=100) == []


def test_the_watermark_leaves_states_that_a_request_would_take() -> None:
    state = State(QueryId(1), 5, "middling")
    assert next_resort([], [state], 1, need=Need.PRODUCE, limit=100) == state
    assert next_resort([], [state], 1, need=Need.WATERMARK, limit=100) == []


# --------------------------------------------------------------------------------------------- compute


class Ready:
    """A supplier as the list sees it."""

    def __init__(self, *order: int, work: bool = True, relief: bool = False) -> None:
        self.rank = order
        self.listed = False
        self.work = work
        self.relief = relief

    def has_work(self) -> bool:
        return self.work

    def relief_due(self) -> bool:
        return self.relief


def test_oldest_query_first_then_closest_to_the_result_then_the_plan() -> None:
    far = rank(query=1, distance=3, position=0)
    near = rank(query=1, distance=0, position=5)
    beside = rank(query=1, distance=0, position=6)
    younger = rank(query=2, distance=0, position=0)
    assert sorted([younger, beside, far, near]) == [near, beside, far, younger]


def test_who_gives_memory_back_goes_first_while_that_is_due() -> None:
    listed = ReadyList()
    first, giving = Ready(1, 1), Ready(9, 9, relief=True)
    for one in (first, giving):
        listed.offer(one)
    assert listed.best() is giving
    giving.relief = False
    assert listed.best() is first
    listed.offer(giving)
    assert listed.best() is first


def test_the_list_serves_by_rank_and_forgets_who_has_nothing() -> None:
    listed = ReadyList()
    second, first, idle = Ready(1, 2), Ready(1, 1), Ready(0, 0, work=False)
    for one in (second, idle, first):
        listed.offer(one)
    assert listed.best() is first
    assert len(listed) == 2
    assert not idle.listed
    listed.offer(first)
    assert len(listed) == 2
    first.work = second.work = False
    assert listed.best() is None


def test_out_of_memory_first_again_then_in_pieces_then_not_at_all() -> None:
    def remedies(splittable: bool) -> list[Remedy]:
        return [remedy(attempt=attempt, repeatable=True, splittable=splittable) for attempt in range(1, 5)]

    assert remedies(True) == [Remedy.AGAIN, Remedy.SPLIT, Remedy.SPLIT, Remedy.SPLIT]
    assert remedies(False) == [Remedy.AGAIN, Remedy.AGAIN, Remedy.GIVE_UP, Remedy.GIVE_UP]
    assert RETRIES_MAX == 3


def test_what_cannot_be_repeated_fails_at_once() -> None:
    assert remedy(attempt=1, repeatable=False, splittable=True) is Remedy.GIVE_UP


def test_estimates_follow_what_tasks_needed() -> None:
    history = History()
    assert history.estimate(1_000) == 1_000
    for _ in range(RECORDS_MAX):
        history.learn(1_000, 250)
    assert history.estimate(1_000) == pytest.approx(250)
    assert history.estimate(2_000) == pytest.approx(500)


def test_tasks_of_similar_size_weigh_more() -> None:
    history = History()
    for _ in range(32):
        history.learn(1 << 10, 1 << 10)
        history.learn(1 << 20, 1 << 22)
    assert history.estimate(1 << 10) < 2 * (1 << 10)
    assert history.estimate(1 << 20) > 3 * (1 << 20)


def test_a_shortage_raises_the_estimate_at_once() -> None:
    history = History()
    history.learn(1_000, 100)
    before = history.estimate(1_000)
    history.suffered(1_000, 500)
    assert history.estimate(1_000) > 2 * before


def test_a_task_over_nothing_needs_nothing() -> None:
    history = History()
    history.learn(0, 50)
    assert history.estimate(0) == 0


# ---------------------------------------------------------------------------------------------- preload


def scan(order: int, ahead: int, *, depth: int = 4, nbytes: int = 10) -> ScanView:
    return ScanView((order,), ahead, depth, nbytes, f"{order}")


def test_scans_are_served_in_the_order_of_compute_up_to_their_depth() -> None:
    assert choose_fetch([scan(2, 1), scan(1, 1)], count_left=5, bytes_left=100).handle == "1"
    assert choose_fetch([scan(2, 1), scan(1, 4)], count_left=5, bytes_left=100).handle == "2"
    assert choose_fetch([scan(1, 4)], count_left=5, bytes_left=100) is None


def test_budgets_hold_but_a_scan_with_nothing_ahead_may_always_fetch_one() -> None:
    assert choose_fetch([scan(1, 1)], count_left=0, bytes_left=100) is None
    assert choose_fetch([scan(1, 1, nbytes=101)], count_left=5, bytes_left=100) is None
    assert choose_fetch([scan(1, 3), scan(2, 0, nbytes=999)], count_left=0, bytes_left=0).handle == "2"


def test_what_is_fetched_ahead_takes_little_of_a_small_tier() -> None:
    assert fetch_bytes_max(256, 1 << 20) == 256
    assert fetch_bytes_max(256, 800) == 100


def test_promotion_ahead_stays_below_where_demotion_ends() -> None:
    assert promotion_room(40, 100, stop=0.65) == 25
    assert promotion_room(80, 100, stop=0.65) == 0


# ---------------------------------------------------------------------------------------------- network


def test_only_flows_with_credit_send_in_the_order_of_the_plan() -> None:
    blocked, late, early = (
        FlowView((0,), 10, 5, 0, "blocked"),
        FlowView((2,), 5, 5, 0, "late"),
        FlowView((1,), 5, 9, 0, "early"),
    )
    assert choose_send([blocked, late, early]).handle == "early"
    assert choose_send([blocked]) is None


def test_among_equals_the_one_that_waited_longest_sends() -> None:
    assert choose_send([FlowView((1,), 5, 9, 7, "a"), FlowView((1,), 5, 9, 3, "b")]).handle == "b"


# ----------------------------------------------------------------------------------- tasks on the loop


def test_a_task_of_few_rows_is_brief_until_one_was_timed() -> None:
    assert is_brief(rows=1_000, nbytes=10_000, rows_out_max=1_000, row_seconds=0)
    assert not is_brief(rows=100_000, nbytes=10_000, rows_out_max=100_000, row_seconds=0)


def test_what_tasks_took_says_which_are_brief() -> None:
    assert is_brief(rows=16_000, nbytes=10_000, rows_out_max=16_000, row_seconds=1e-9)
    assert not is_brief(rows=1_000, nbytes=10_000, rows_out_max=1_000, row_seconds=1e-5)


@pytest.mark.parametrize("rows_out_max", [None, 10_000_000])
def test_what_a_row_may_become_keeps_a_task_off_the_loop(rows_out_max: int | None) -> None:
    assert not is_brief(rows=10, nbytes=100, rows_out_max=rows_out_max, row_seconds=1e-9)


def test_large_inputs_are_not_brief_whatever_their_rows() -> None:
    assert not is_brief(rows=10, nbytes=10_000_000, rows_out_max=10, row_seconds=0)


def test_what_a_call_costs_is_not_taken_for_the_cost_of_its_few_rows() -> None:
    assert is_brief(rows=1_000, nbytes=8, rows_out_max=1_000, row_seconds=seconds_per_row(0.000_3, 1))
    assert not is_brief(rows=1_000, nbytes=8, rows_out_max=1_000, row_seconds=seconds_per_row(0.3, 1))


# ------------------------------------------------------------------------------------- inputs of a task


def test_a_task_takes_short_batches_by_what_rows_took() -> None:
    assert rows_per_task(0) == rows_per_task(1.0) < rows_per_task(2e-7) < rows_per_task(1e-9)


@given(st.floats(0, 1))
def test_rows_of_a_task_stay_within_what_is_joined(row_seconds: float) -> None:
    assert 1 < rows_per_task(row_seconds) <= JOINED_ROWS_MAX

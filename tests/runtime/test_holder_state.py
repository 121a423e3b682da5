"""Where batches are and who may have them: the table, order, feeds, and random stories against a model."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.fake_stages import rows_batch

from bireme.data.batch import Batch
from bireme.data.ids import BatchId
from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.plan.physical import Take
from bireme.runtime.holder.feed import Run
from bireme.runtime.holder.state import TRANSITIONS, Access, Entry, HolderState, Step

IDS = itertools.count(1)
ROWS = rows_batch([0])


def batch(nbytes: int = 8, rows: int = 1, content: pa.RecordBatch = ROWS) -> Batch:
    return Batch(BatchId(next(IDS)), rows, nbytes, Tier.DEVICE, content)


def state(*takes: Take, producers: int = 1, partitions: int = 1, ordered: bool = False) -> HolderState:
    return HolderState(producers=producers, feeds=takes or (Take.STREAM,), partitions=partitions, ordered=ordered)


# ------------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize(("access", "step"), list(itertools.product(Access, Step)))
def test_every_step_is_in_the_table_or_an_error_with_a_story(access: Access, step: Step) -> None:
    entry = Entry(batch(), 0, 1)
    entry.access = access
    if (access, step) in TRANSITIONS:
        entry.follow(step)
        assert entry.access is TRANSITIONS[access, step]
    else:
        with pytest.raises(EngineBug, match=step.value):
            entry.follow(step)


def test_gone_is_final() -> None:
    assert not [key for key in TRANSITIONS if key[0] is Access.GONE]


# -------------------------------------------------------------------------------------- leases and moves


def test_a_batch_chosen_for_a_move_is_no_candidate_in_the_same_step() -> None:
    holder = state()
    first, second = holder.put(0, 0, [(0, batch()), (0, batch())])
    holder.start_move(first)
    assert list(holder.movable(Tier.DEVICE)) == [second]


def test_a_batch_that_is_read_is_neither_moved_nor_a_candidate() -> None:
    holder = state()
    (entry,) = holder.put(0, 0, [(0, batch())])
    holder.lease(entry)
    assert not list(holder.movable(Tier.DEVICE))
    with pytest.raises(EngineBug):
        holder.start_move(entry)


def test_readers_share_and_the_last_one_frees() -> None:
    holder = state()
    (entry,) = holder.put(0, 0, [(0, batch())])
    holder.feeds[0].pop()
    holder.lease(entry)
    holder.lease(entry)
    assert holder.consume(entry) is None
    assert holder.give_back(entry) is None
    assert holder.give_back(entry) is entry
    assert not holder.entries


def test_a_move_that_ends_on_a_closed_edge_frees() -> None:
    holder = state()
    (entry,) = holder.put(0, 0, [(0, batch())])
    holder.start_move(entry)
    assert holder.close() == []
    moved = entry.batch.moved(Tier.DISK, "ticket")
    assert holder.end_move(entry, moved) is entry
    assert holder.nbytes == 0


def test_a_move_cannot_come_back_with_another_batch() -> None:
    holder = state()
    (entry,) = holder.put(0, 0, [(0, batch())])
    holder.start_move(entry)
    with pytest.raises(EngineBug):
        holder.end_move(entry, batch())


def test_moves_change_what_each_tier_holds() -> None:
    holder = state()
    (entry,) = holder.put(0, 0, [(0, batch(100))])
    holder.start_move(entry)
    holder.end_move(entry, entry.batch.moved(Tier.DISK, "ticket"))
    assert (holder.tier_bytes[Tier.DEVICE], holder.tier_bytes[Tier.DISK], holder.nbytes) == (0, 100, 100)
    holder.check()


# ---------------------------------------------------------------------------------------------- feeds


def test_several_feeds_each_get_every_batch_and_the_last_frees_it() -> None:
    holder = state(Take.STREAM, Take.SERIAL)
    (entry,) = holder.put(0, 0, [(0, batch())])
    assert [feed.pop() for feed in holder.feeds] == [entry, entry]
    assert holder.consume(entry) is None
    assert holder.consume(entry) is entry


def test_a_closed_feed_gives_up_its_share_also_of_what_is_still_held_back() -> None:
    holder = state(Take.STREAM, Take.STREAM, producers=2, ordered=True)
    (early,) = holder.put(1, 0, [(0, batch())])
    (now,) = holder.put(0, 0, [(0, batch())])
    assert holder.close_feed(holder.feeds[1]) == []
    holder.finish(0)
    holder.finish(1)
    assert [holder.feeds[0].pop(), holder.feeds[0].pop()] == [now, early]
    assert [holder.consume(now), holder.consume(early)] == [now, early]


def test_the_last_feed_that_closes_closes_the_edge() -> None:
    holder = state(Take.STREAM, Take.STREAM)
    (entry,) = holder.put(0, 0, [(0, batch())])
    assert holder.close_feed(holder.feeds[0]) == []
    assert holder.close_feed(holder.feeds[1]) == [entry]
    assert holder.closed


def test_a_late_put_is_an_error_that_is_seen() -> None:
    holder = state()
    holder.close()
    with pytest.raises(EngineBug, match="closed edge"):
        holder.put(0, 0, [(0, batch())])


def test_the_same_input_cannot_be_put_twice() -> None:
    holder = state(ordered=True)
    holder.put(0, 0, [])
    with pytest.raises(EngineBug, match="twice"):
        holder.put(0, 0, [])


def test_a_producer_cannot_end_with_a_gap() -> None:
    holder = state(ordered=True)
    holder.put(0, 1, [(0, batch())])
    with pytest.raises(EngineBug, match="without the outputs"):
        holder.finish(0)


def test_partitions_collect_in_order() -> None:
    holder = state(Take.PARTITION, partitions=2, ordered=True)
    second = holder.put(0, 1, [(1, batch()), (0, batch())])
    first = holder.put(0, 0, [(0, batch())])
    assert holder.feeds[0].pop_part(0) == [first[0], second[1]]
    assert holder.feeds[0].pop_part(1) == [second[0]]
    assert holder.feeds[0].waiting == 0


@given(st.integers(1, 3), st.integers(0, 5), st.randoms(use_true_random=False))
def test_an_ordered_edge_gives_everything_in_order_whatever_the_order_of_puts(
    producers: int, inputs: int, rng: random.Random
) -> None:
    holder = state(producers=producers, ordered=True)
    outputs = {
        (producer, sequence): [batch() for _ in range(rng.randint(0, 2))]
        for producer in range(producers)
        for sequence in range(inputs)
    }
    order = list(outputs)
    rng.shuffle(order)
    left = dict.fromkeys(range(producers), inputs)
    for producer in range(producers):
        if not inputs:
            holder.finish(producer)
    for producer, sequence in order:
        holder.put(producer, sequence, [(0, made) for made in outputs[producer, sequence]])
        left[producer] -= 1
        if not left[producer]:
            holder.finish(producer)
    assert holder.finished
    got = [entry.batch for entry in holder.feeds[0].queue]
    assert got == [made for key in sorted(outputs) for made in outputs[key]]
    assert [entry.place for entry in holder.feeds[0].queue] == list(range(len(got)))


# --------------------------------------------------------------------------------------- random stories


# --------------------------------------------------------------------------------------------------- runs


def runs_of(holder: HolderState) -> list[tuple[int, list[Entry]]]:
    return [(run.part, list(run.entries)) for run in holder.runs(Tier.DEVICE)]


def test_batches_that_follow_each_other_in_a_partition_are_a_run() -> None:
    holder = state(Take.PARTITION, partitions=2)
    first, other, second, third = holder.put(0, 0, [(part, batch()) for part in (0, 1, 0, 0)])
    assert runs_of(holder) == [(0, [first, second, third]), (1, [other])]
    holder.start_move(second)
    assert runs_of(holder) == [(0, [first]), (0, [third]), (1, [other])]


def test_batches_whose_columns_have_other_names_are_no_run() -> None:
    """Rows as they came lie beside groups, and only the names of their columns tell which they are."""
    holder = state(Take.PARTITION)
    groups = ROWS.rename_columns(["s0"])
    entries = holder.put(0, 0, [(0, batch(content=content)) for content in (ROWS, ROWS, groups, ROWS)])
    assert runs_of(holder) == [(0, entries[:2]), (0, entries[2:3]), (0, entries[3:])]
    joined = holder.join(Run(0, entries[:2]), batch(rows=2))
    assert runs_of(holder) == [(0, [joined]), (0, entries[2:3]), (0, entries[3:])]


def test_what_is_not_in_the_same_place_of_all_feeds_is_alone() -> None:
    stream = state(Take.STREAM)
    both = state(Take.PARTITION, Take.PARTITION)
    for holder in (stream, both):
        holder.put(0, 0, [(0, batch()), (0, batch())])
    assert [part for part, _ in runs_of(stream)] == [-1, -1]
    assert [part for part, _ in runs_of(both)] == [0]
    (taken, _) = both.feeds[1].pop_part(0)
    assert [part for part, _ in runs_of(both)] == [-1, -1]
    both.lease(taken)
    assert len(runs_of(both)) == 1


def test_a_joined_entry_is_in_the_place_of_its_parts_in_every_feed() -> None:
    holder = state(Take.PARTITION, Take.PARTITION)
    first, *parts, last = holder.put(0, 0, [(0, batch(nbytes)) for nbytes in (1, 2, 3, 4)])
    joined = holder.join(Run(0, parts), batch(5, rows=2))
    assert [feed.parts[0] for feed in holder.feeds] == [[first, joined, last]] * 2
    assert [feed.waiting for feed in holder.feeds] == [3, 3]
    assert (joined.place, joined.unread, holder.nbytes, holder.tier_count[Tier.DEVICE]) == (1, 2, 10, 3)
    assert [part.access for part in parts] == [Access.GONE] * 2
    holder.check()
    assert [holder.consume(joined), holder.consume(joined)] == [None, joined]


def test_once_all_is_there_batches_stay_as_they_are() -> None:
    holder = state(Take.PARTITION)
    entries = holder.put(0, 0, [(0, batch()), (0, batch())])
    assert runs_of(holder) == [(0, entries)]
    holder.finish(0)
    holder.feeds[0].add_part(holder.spread(0, [batch(), batch()]))
    assert [part for part, _ in runs_of(holder)] == [-1] * 4


def test_batches_ahead_of_their_turn_are_no_run() -> None:
    holder = state(Take.PARTITION, ordered=True)
    holder.put(0, 1, [(0, batch()), (0, batch())])
    assert [part for part, _ in runs_of(holder)] == [-1, -1]


class Stories(RuleBasedStateMachine):
    """Any sequence of legal steps keeps the counts right and frees every batch exactly once."""

    def __init__(self) -> None:
        super().__init__()
        self.holder = state(Take.STREAM, Take.STREAM)
        self.sequence = 0
        self.taken: list[Entry] = []
        self.leased: list[Entry] = []
        self.moving: list[Entry] = []
        self.freed: list[BatchId] = []
        self.put_ids: list[BatchId] = []

    def note(self, entry: Entry | None) -> None:
        if entry is not None:
            self.freed.append(entry.batch.id)

    @precondition(lambda self: not self.holder.closed)
    @rule(nbytes=st.integers(0, 9))
    def put(self, nbytes: int) -> None:
        (entry,) = self.holder.put(0, self.sequence, [(0, batch(nbytes))])
        self.put_ids.append(entry.batch.id)
        self.sequence += 1

    @rule(which=st.integers(0, 1))
    def take(self, which: int) -> None:
        feed = self.holder.feeds[which]
        if feed.queue:
            self.taken.append(feed.pop())

    @rule(data=st.data())
    def lease(self, data: st.DataObject) -> None:
        free = [entry for entry in self.taken if entry.access in (Access.IDLE, Access.SHARED)]
        if free:
            entry = data.draw(st.sampled_from(free))
            self.holder.lease(entry)
            self.leased.append(entry)

    @rule()
    def give_back(self) -> None:
        if self.leased:
            self.note(self.holder.give_back(self.leased.pop()))

    @rule()
    def consume(self) -> None:
        if self.taken:
            self.note(self.holder.consume(self.taken.pop(0)))

    @rule(data=st.data())
    def start_move(self, data: st.DataObject) -> None:
        candidates = list(self.holder.movable(Tier.DEVICE)) + list(self.holder.movable(Tier.DISK))
        if candidates:
            entry = data.draw(st.sampled_from(candidates))
            self.holder.start_move(entry)
            self.moving.append(entry)

    @rule(fails=st.booleans())
    def end_move(self, fails: bool) -> None:
        if self.moving:
            entry = self.moving.pop()
            target = Tier.DISK if entry.batch.tier is Tier.DEVICE else Tier.DEVICE
            self.note(self.holder.end_move(entry, entry.batch if fails else entry.batch.moved(target, "x")))

    @rule(which=st.integers(0, 1))
    def close_feed(self, which: int) -> None:
        for entry in self.holder.close_feed(self.holder.feeds[which]):
            self.note(entry)

    @invariant()
    def counts_hold(self) -> None:
        self.holder.check()
        assert len(self.freed) == len(set(self.freed))
        assert sorted([*self.freed, *self.holder.entries]) == self.put_ids

    def teardown(self) -> None:
        for entry in self.holder.close():
            self.note(entry)
        while self.leased:
            self.give_back()
        while self.moving:
            self.end_move(False)
        assert not self.holder.entries
        assert sorted(self.freed) == self.put_ids


Stories.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_stories = Stories.TestCase

"""Bytes per tier: reservations are held, not counted; nothing is lost on any path."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bireme.data.tier import Tier
from bireme.errors import EngineBug
from bireme.runtime.memory.ledger import Ledger, Reservation, Use

LIMIT = 100


def ledger() -> Ledger:
    return Ledger({Tier.DEVICE: LIMIT, Tier.DISK: 1_000})


def test_a_request_over_the_limit_is_refused_and_a_fact_is_not() -> None:
    books = ledger()
    assert books.reserve(Tier.DEVICE, LIMIT, Use.TASK) is not None
    assert books.reserve(Tier.DEVICE, 1, Use.TASK) is None
    fact = books.take(Tier.DEVICE, 7, Use.STATE)
    assert (books.totals[Tier.DEVICE], books.free(Tier.DEVICE), fact.nbytes) == (107, -7, 7)


def test_leaving_the_block_gives_back_also_after_an_error() -> None:
    books = ledger()
    with pytest.raises(RuntimeError), books.take(Tier.DEVICE, 10, Use.TASK):
        raise RuntimeError
    assert (books.live, books.totals[Tier.DEVICE]) == (0, 0)


def test_giving_back_twice_is_harmless_and_using_what_was_given_back_is_a_bug() -> None:
    books = ledger()
    reservation = books.take(Tier.DEVICE, 10, Use.TASK)
    reservation.release()
    reservation.release()
    assert books.live == 0
    with pytest.raises((EngineBug, AttributeError)):
        reservation.resize(5)


def test_carving_moves_bytes_and_takes_what_is_missing_as_a_fact() -> None:
    books = ledger()
    grant = books.take(Tier.DEVICE, 10, Use.TASK)
    batch = grant.carve(8, Use.BATCH)
    more = grant.carve(8, Use.BATCH)
    assert (grant.nbytes, batch.nbytes, more.nbytes, books.totals[Tier.DEVICE]) == (0, 8, 8, 16)
    assert books.used(Tier.DEVICE, Use.BATCH) == 16


def test_absorbing_moves_bytes_between_reservations_and_tells_nobody() -> None:
    books, heard = ledger(), []
    one, other = books.take(Tier.DEVICE, 10, Use.BATCH), books.take(Tier.DEVICE, 5, Use.BATCH)
    books.grown = books.shrunk = heard.append
    one.absorb(other)
    assert (one.nbytes, other.nbytes, books.totals[Tier.DEVICE], books.live, heard) == (15, 0, 15, 1, [])
    other.release()
    with pytest.raises(EngineBug, match="cannot take over"):
        one.absorb(books.take(Tier.DEVICE, 5, Use.TASK))
    with pytest.raises(EngineBug, match="cannot take over"):
        one.absorb(other)


def test_listeners_hear_of_growth_and_of_shrinking_after_the_fact() -> None:
    books, heard = ledger(), []
    books.grown = lambda tier: heard.append(("grown", books.totals[tier]))
    books.shrunk = lambda tier: heard.append(("shrunk", books.totals[tier]))
    reservation = books.take(Tier.DEVICE, 10, Use.TASK)
    reservation.resize(4)
    reservation.release()
    assert heard == [("grown", 10), ("shrunk", 4), ("shrunk", 0)]


def test_the_peak_is_kept() -> None:
    books = ledger()
    books.take(Tier.DEVICE, 30, Use.TASK).release()
    assert (books.peaks[Tier.DEVICE], books.totals[Tier.DEVICE]) == (30, 0)


class Books(RuleBasedStateMachine):
    """Against a plain list of what is held."""

    def __init__(self) -> None:
        super().__init__()
        self.books = ledger()
        self.held: list[Reservation] = []

    @rule(nbytes=st.integers(0, 150), use=st.sampled_from(Use), tier=st.sampled_from([Tier.DEVICE, Tier.DISK]))
    def reserve(self, nbytes: int, use: Use, tier: Tier) -> None:
        fitted = sum(one.nbytes for one in self.held if one.tier is tier) + nbytes <= self.books.limits[tier]
        granted = self.books.reserve(tier, nbytes, use)
        assert (granted is not None) is fitted
        if granted is not None:
            self.held.append(granted)

    @rule(nbytes=st.integers(0, 150), use=st.sampled_from(Use))
    def take(self, nbytes: int, use: Use) -> None:
        self.held.append(self.books.take(Tier.DEVICE, nbytes, use))

    @rule(data=st.data(), nbytes=st.integers(0, 150))
    def resize(self, data: st.DataObject, nbytes: int) -> None:
        if self.held:
            data.draw(st.sampled_from(self.held)).resize(nbytes)

    @rule(data=st.data(), nbytes=st.integers(0, 150), use=st.sampled_from(Use))
    def carve(self, data: st.DataObject, nbytes: int, use: Use) -> None:
        if self.held:
            self.held.append(data.draw(st.sampled_from(self.held)).carve(nbytes, use))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.held:
            gone = data.draw(st.sampled_from(self.held))
            self.held = [one for one in self.held if one is not gone]
            gone.release()

    @invariant()
    def the_books_balance(self) -> None:
        self.books.check()
        for tier in Tier:
            assert self.books.totals[tier] == sum(one.nbytes for one in self.held if one.tier is tier)
            for use in Use:
                held = sum(one.nbytes for one in self.held if one.tier is tier and one.use is use)
                assert self.books.used(tier, use) == held
        assert self.books.live == len(self.held)


Books.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_books = Books.TestCase

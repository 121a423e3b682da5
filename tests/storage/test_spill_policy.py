"""When compression of spills pays: the rule, and what it is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bireme.data.spill_run import Sample
from bireme.storage.spill_policy import Compression, CompressionPolicy, Prices, Rate, SpillHint, Verdict
from bireme.units import MIB

shares = st.floats(0.0, 1.0)
costs = st.floats(1e-12, 1e-6)
idles = st.floats(0.25, 64)


@given(share=shares, seconds=costs, disk=costs, expand=costs, idle=idles, crowd=st.floats(1, 20))
def test_what_pays_still_pays_where_all_is_better(
    share: float, seconds: float, disk: float, expand: float, idle: float, crowd: float
) -> None:
    prices, sample = Prices(disk, expand, idle, crowd), Sample(share, seconds)
    if prices.pays(sample):
        assert disk * (1 - share) > (seconds + expand) * crowd / idle
        for better in (
            prices._replace(disk=disk * 2),
            prices._replace(expand=expand / 2),
            prices._replace(idle=idle * 2),
            prices._replace(crowd=1.0),
        ):
            assert better.pays(sample)
        assert prices.pays(sample._replace(share=share / 2))
    assert not prices.pays(Sample(1.0, seconds))


def told(policy: CompressionPolicy, *, seconds_per_byte: float) -> None:
    """Writes, enough of them that the speed of the disk is known."""
    for _ in range(8):
        policy.writes.start()
        policy.writes.end(MIB, MIB * seconds_per_byte)


def test_a_disk_that_is_not_known_yet_is_not_judged() -> None:
    policy = CompressionPolicy(Compression.AUTO)
    assert policy.prices(SpillHint(1, 2.0), MIB) is Verdict.UNMEASURED
    told(policy, seconds_per_byte=1e-9)
    assert policy.prices(SpillHint(1, 2.0), MIB) == Prices(2e-9, 1e-9, 2.0)
    assert policy.prices(SpillHint(1, 2.0), 1_000) is Verdict.SMALL
    assert policy.prices(SpillHint(1, 0.1), MIB) is Verdict.BUSY


def test_reads_and_expansion_are_counted_once_they_are_known() -> None:
    policy = CompressionPolicy(Compression.AUTO)
    told(policy, seconds_per_byte=1e-9)
    policy.reads.add(16 * MIB, 16 * MIB * 4e-9)
    policy.expands.add(16 * MIB, 16 * MIB * 3e-9)
    prices = policy.prices(SpillHint(1, 1.0), MIB)
    assert isinstance(prices, Prices)
    assert abs(prices.disk - 5e-9) < 1e-12
    assert abs(prices.expand - 3e-9) < 1e-12


def test_an_edge_that_never_pays_is_seldom_asked_and_others_are_not_concerned() -> None:
    policy = CompressionPolicy(Compression.AUTO)
    told(policy, seconds_per_byte=1e-9)
    asked = 0
    for _ in range(200):
        if isinstance(policy.prices(SpillHint("dear", 1.0), MIB), Prices):
            asked += 1
            policy.learn("dear", paid=False)
    assert 4 < asked < 30
    assert isinstance(policy.prices(SpillHint("other", 1.0), MIB), Prices)
    policy.learn("dear", paid=True)
    assert isinstance(policy.prices(SpillHint("dear", 1.0), MIB), Prices)


def test_origins_are_forgotten_in_the_end() -> None:
    policy = CompressionPolicy(Compression.AUTO)
    for origin in range(2_000):
        policy.learn(origin, paid=False)
    assert len(policy._misses) < 1_000


def test_processors_that_others_want_make_it_dearer_for_a_while() -> None:
    policy = CompressionPolicy(Compression.AUTO)
    told(policy, seconds_per_byte=1e-9)
    for _ in range(50):
        policy.note_codec(0.01, 0.05)
    crowded = policy.prices(SpillHint(1, 1.0), MIB)
    assert isinstance(crowded, Prices)
    assert 4 < crowded.crowd < 5.1
    for _ in range(100):
        policy.learn(2, paid=False)
    forgotten = policy.prices(SpillHint(1, 1.0), MIB)
    assert isinstance(forgotten, Prices)
    assert forgotten.crowd < 1.1


def test_seconds_of_calls_side_by_side_are_shared() -> None:
    rate = Rate()
    for _ in range(4):
        rate.start()
    for _ in range(4):
        rate.end(4 * MIB, 1.0)
    found = rate.seconds_per_byte
    assert found is not None
    # 1/4 + 1/3 + 1/2 + 1: those that end last are alone by then.
    assert abs(found - (25 / 12) / (16 * MIB)) < 1e-12


def test_old_figures_fade() -> None:
    rate = Rate()
    rate.add(100 * MIB, 100.0)
    for _ in range(40):
        rate.add(100 * MIB, 1.0)
    found = rate.seconds_per_byte
    assert found is not None
    assert found * 100 * MIB < 1.2

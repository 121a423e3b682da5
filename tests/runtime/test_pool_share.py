"""What kernels keep of memory for reuse gives way to what is reserved."""

from __future__ import annotations

import pyarrow as pa
import pytest

import bireme as bm
from bireme.backends.native import _kernels, pool_quota
from bireme.data.tier import Tier
from bireme.runtime.memory.ledger import Ledger, Use
from bireme.runtime.memory.pool_share import PoolShare
from bireme.units import MIB


class Told:
    """A quota that remembers what it was told."""

    def __init__(self) -> None:
        self.values: list[tuple[int, int]] = []

    def set(self, held_max: int, kept_max: int, /) -> None:
        self.values.append((held_max, kept_max))


def test_the_pool_may_keep_what_is_left_beside_what_pyarrow_holds() -> None:
    ledger, told, outside = Ledger({Tier.DEVICE: 100 * MIB}), Told(), [0]
    share = PoolShare(ledger, told, kept_max=64 * MIB, outside=lambda: outside[0])
    assert told.values == [(96 * MIB, 64 * MIB)]
    for held, left in ((33 * MIB, 64 * MIB), (101 * MIB, 0), (0, 96 * MIB)):
        outside[0] = held
        ledger.take(Tier.DEVICE, MIB, Use.TASK).release()
        assert told.values[-1] == (left, 64 * MIB)
    share.close()
    assert told.values[-1] == (0, 0)
    ledger.take(Tier.DEVICE, MIB, Use.TASK).release()
    assert told.values[-1] == (0, 0)


def test_small_changes_are_not_told() -> None:
    ledger, told, outside = Ledger({Tier.DEVICE: 100 * MIB}), Told(), [0]
    PoolShare(ledger, told, kept_max=64 * MIB, outside=lambda: outside[0])
    for held in range(100):
        outside[0] = held * MIB // 32
        ledger.take(Tier.DEVICE, MIB, Use.TASK).release()
    assert len(told.values) == 1


def test_quotas_of_several_add_up_and_end_with_their_owners() -> None:
    alone = _kernels.pool_statistics()[2]
    first, second = pool_quota(), pool_quota()
    first.set(90 * MIB, 3 * MIB)
    second.set(90 * MIB, 5 * MIB)
    together = _kernels.pool_statistics()[2]
    del first
    assert together - _kernels.pool_statistics()[2] == 3 * MIB
    second.set(0, 0)
    assert _kernels.pool_statistics()[1] <= _kernels.pool_statistics()[2]
    del second
    assert _kernels.pool_statistics()[2] == alone


@pytest.mark.parametrize("limit", ["64MiB", "1GiB"])
def test_a_session_keeps_its_pool_within_its_memory(limit: str) -> None:
    numbers = pa.table({"n": pa.array(range(300_000), pa.int64())})
    with bm.connect(threads=2, memory_limit=limit) as session:
        session.register("t", numbers)
        session.sql("select sum(a.n) from t a join t b on a.n = b.n").collect()
        _, pooled, pooled_max = _kernels.pool_statistics()
        assert pooled <= pooled_max
        assert session.statistics().bytes_held[Tier.DEVICE] == 0

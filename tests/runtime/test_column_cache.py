"""The cache of decoded columns by itself: what stays, what goes first, and that every byte is paid for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bireme.data.ids import QueryId
from bireme.data.tier import Tier
from bireme.observe.event import CacheEvicted
from bireme.observe.recorder import Recorder
from bireme.runtime.holder.column_cache import CachedTable, ColumnCache
from bireme.runtime.memory.ledger import Ledger, Use
from bireme.storage.base import ChunkKey

COLUMN = pa.chunked_array([pa.array([1, 2, 3])])


class House:
    """A cache with its ledger."""

    def __init__(self, bytes_max: int = 100) -> None:
        self.ledger = Ledger({Tier.DEVICE: 1000})
        self.recorder = Recorder(100)
        self.cache = ColumnCache(self.recorder, bytes_max=bytes_max)

    def put(self, row_group: int, nbytes: int, *, table: str = "t", version: str = "1", query: int = 1) -> ChunkKey:
        key = ChunkKey("file", version, row_group, 0)
        room = self.ledger.take(Tier.DEVICE, nbytes, Use.CACHE)
        self.cache.put(key, COLUMN, room, table=table, query=QueryId(query))
        self.check()
        return key

    def has(self, *keys: ChunkKey, query: int = 1) -> list[bool]:
        lease = self.cache.lease(keys, QueryId(query))
        found = [index in lease.found for index in range(len(keys))]
        lease.release()
        return found

    def check(self) -> None:
        self.cache.check()
        assert self.ledger.used(Tier.DEVICE, Use.CACHE) >= self.cache.nbytes

    def reasons(self) -> list[str]:
        return [event.reason for _, event in self.recorder.events() if isinstance(event, CacheEvicted)]


@pytest.fixture
def house() -> House:
    return House()


def test_what_was_put_is_found_until_it_is_dropped(house: House) -> None:
    first, second = house.put(0, 10), house.put(1, 20, table="u")
    assert house.has(first, second) == [True, True]
    assert house.cache.tables() == [CachedTable("t", 1, 10), CachedTable("u", 1, 20)]
    house.cache.drop(lambda table: table == "t")
    assert house.has(first, second) == [False, True]
    house.cache.clear()
    assert house.ledger.live == 0


def test_the_least_recently_used_goes_first_and_only_as_much_as_is_needed(house: House) -> None:
    keys = [house.put(index, 10) for index in range(4)]
    house.has(keys[0])
    assert house.cache.evict(15) == 20
    assert house.has(*keys) == [True, False, False, True]
    assert house.reasons() == ["queries need the memory"]
    house.cache.clear()


def test_what_a_task_reads_stays_until_it_has_read_it(house: House) -> None:
    key = house.put(0, 10)
    lease = house.cache.lease([key], QueryId(1))
    assert house.cache.evict(10) == 0
    house.cache.clear()
    assert house.cache.nbytes == 0
    assert house.ledger.totals[Tier.DEVICE] == 10
    assert lease.found[0] is COLUMN
    lease.release()
    lease.release()
    assert house.ledger.live == 0


def test_a_chunk_that_is_here_already_is_not_paid_for_twice(house: House) -> None:
    house.put(0, 10)
    house.put(0, 10)
    assert house.ledger.totals[Tier.DEVICE] == 10
    house.cache.clear()


def test_a_table_larger_than_the_cache_does_not_push_itself_out(house: House) -> None:
    keys = [house.put(index, 10) for index in range(15)]
    assert house.has(*keys) == [True] * 10 + [False] * 5
    assert house.ledger.totals[Tier.DEVICE] == 100
    assert house.reasons() == []
    house.cache.clear()


def test_what_many_queries_had_no_use_for_makes_way(house: House) -> None:
    keys = [house.put(index, 10) for index in range(10)]
    house.has(keys[3], query=50)
    newer = [house.put(100 + index, 20, query=90) for index in range(2)]
    assert house.has(*newer, keys[3]) == [True, True, True]
    assert house.cache.nbytes <= 100
    assert set(house.reasons()) == {"chunks in use want its place"}
    house.cache.clear()


def test_a_file_that_was_written_anew_takes_the_place_of_its_old_content(house: House) -> None:
    old = house.put(0, 10), house.put(1, 10)
    new = house.put(0, 10, version="2")
    assert house.has(*old, new) == [False, False, True]
    assert house.reasons() == ["the file was written anew"]
    house.cache.clear()


def test_what_never_fits_is_given_back(house: House) -> None:
    assert house.has(house.put(0, 101)) == [False]
    assert house.ledger.live == 0

"""Groups with real stages on the simulated loop, whose sinks are asked for memory and whose partitions are cut.

How much is kept, divided, handed over, passed on ungrouped, cut or merged bit by bit is drawn; the rows are DuckDB's,
and nothing is left behind. `BIREME_SIM_SEEDS` sets how many seeds are run (a twentieth here), `BIREME_SIM_START`
the first.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest
from support import sim_query
from support.disk import MemorySpill
from support.sim_query import QueryRun

from bireme.data.hash_range import HashRange
from bireme.errors import BiremeError
from bireme.observe.event import Demoted, Event, Noted, PartitionCut, StateRelieved
from bireme.operators import group
from bireme.operators.merge_groups import MergeGroups
from bireme.operators.slot_groups import SlotGroups
from bireme.plan.physical import GroupSink
from bireme.runtime import partitions
from bireme.runtime.holder.state import HolderState
from bireme.runtime.pipeline import LivePipeline
from bireme.storage import split_run

_SEEDS = int(os.environ.get("BIREME_SIM_SEEDS", "2000")) // 20
_START = int(os.environ.get("BIREME_SIM_START", "0"))
_PARTS = 5

# Groups and rows that were passed on have columns of the same types: only names tell them apart.
ALIKE = (
    "select k, count(v) as n from a group by k",
    "select k, count(v) as n, count(k) as m from a group by k",
)
QUERIES = (
    "select k, count(*) as n, sum(v) as t, min(s) as least from a group by k",
    "select s, count(*) as n, max(k) as most from a group by s",
    "select k, s, v, count(*) as n from a group by k, s, v",
    "select k, v % 3 as r, sum(v) as t, count(s) as n from a group by k, v % 3",
    "select distinct k, s from a",
    "select count(distinct s) as n from a",
    "select k, count(distinct v) as n, sum(v) as t from a group by k",
    *ALIKE,
    "select count(*) as n, sum(v) as t, min(s) as least from a",
    "select n, count(*) as groups from (select k, count(*) as n from a group by k) as g group by n",
    "select s, k, count(*) as n from a group by s, k having count(*) > 1",
)


def drawn_table(rng: random.Random, *, passing: bool = False) -> pa.Table:
    """A table in chunks, with few or many keys, of which one may have most rows, and NULLs."""
    rows = rng.choice((0, 1, 200, 1_500, 1_500))
    keys, nulls, giant = rng.choice((3, 100, 100_000)), rng.choice((0.0, 0.0, 0.05)), rng.choice((0.0, 0.0, 0.9))
    if passing:
        rows, keys, giant = 1_500, 100_000, 0.0

    def key() -> int | None:
        if rng.random() < nulls:
            return None
        return 0 if rng.random() < giant else rng.randrange(keys)

    numbers = [key() for _ in range(rows)]
    whole = pa.table(
        {
            "k": pa.array(numbers, pa.int64()),
            "s": pa.array([None if number is None else f"a text of {number // 2}" for number in numbers], pa.string()),
            "v": pa.array([rng.randrange(100) for _ in range(rows)], pa.int64()),
        }
    )
    step = 40 if passing else rng.choice((40, 300, 2_000))
    return pa.concat_tables([whole.slice(start, step) for start in range(0, max(1, rows), step)])


class Run(QueryRun):
    """One grouping, with everything that its seed draws; `ways` counts what became of groups.

    With `passing` most rows are passed on ungrouped, and wait beside groups until they are demoted.
    """

    presses = GroupSink

    def __init__(self, seed: int, *, passing: bool = False) -> None:
        rng = random.Random(seed)
        tables, query = {"a": drawn_table(rng, passing=passing)}, rng.choice(ALIKE if passing else QUERIES)
        eager = rng.choice((0.0, 0.3, 0.8))
        self.share = rng.choice((300, 5_000, 1 << 24))
        self.table_bytes_max = rng.choice((0, 20_000, 1 << 24))
        self.look_min = rng.choice((30, 1 << 16))
        self.passing = passing
        low = rng.random() < 0.5
        if passing:
            self.share, self.look_min = 1 << 24, 30
        super().__init__(seed, rng, tables=tables, query=query, eager=eager, low=low or passing)

    def change(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(partitions, "partition_share", lambda limit, *, slots: self.share)
        patch.setattr(group, "_TABLES_IN_MEMORY", 1 << 60)
        patch.setattr(group, "_TABLE_BYTES_MIN", self.table_bytes_max)
        patch.setattr(group, "_GROUPS_LOOK_MIN", self.look_min)
        if self.passing:
            # Many tasks, between which batches may be demoted.
            patch.setattr(split_run, "_RUNS_PER_SLOT_KEEPING_MIN", 1 << 60)
            patch.setattr(LivePipeline, "is_brief", lambda *_: False)

    def count(self, events: Iterable[Event], spill: MemorySpill) -> None:
        for event in events:
            if isinstance(event, PartitionCut | StateRelieved):
                self.ways[type(event).__name__] += 1
            if isinstance(event, Noted) and "left to the merge" in event.text:
                self.ways["passed on"] += 1
            if isinstance(event, Demoted) and event.pieces > 1:
                self.ways["joined"] += 1


def run_all(seeds: range, *, passing: bool = False) -> Counter[str]:
    return sim_query.run_all(seeds, lambda seed: Run(seed, passing=passing))


@pytest.mark.parametrize("part", range(_PARTS))
def test_groups_that_do_not_fit_are_right(part: int) -> None:
    run_all(range(_START + part, _START + _SEEDS, _PARTS))


def test_rows_that_are_passed_on_are_right_beside_groups() -> None:
    went = run_all(range(40), passing=True)
    assert went["passed on"] > 10 < went["joined"], went


def test_the_seeds_go_where_they_claim() -> None:
    went = run_all(range(60))
    ways = ("PartitionCut", "StateRelieved", "passed on", "joined")
    assert all(went[way] for way in ways), went


Patch = pytest.MonkeyPatch
_cut, _add, _hand_over = MergeGroups.cut, MergeGroups.add, SlotGroups.hand_over


def lose_rows_of_cuts(patch: Patch) -> None:
    """The last part of every cut is lost."""
    patch.setattr(MergeGroups, "cut", lambda *args: list(_cut(*args))[:-1])


def double_rows_of_cuts(patch: Patch) -> None:
    """A part of every cut comes twice."""

    def doubled(*args: object) -> list[object]:
        made = list(_cut(*args))  # type: ignore[arg-type]
        return [*made, *made[:1]]

    patch.setattr(MergeGroups, "cut", doubled)


def mistake_ranges(patch: Patch) -> None:
    """The parts of a range are numbered as if it were the first."""
    patch.setattr(HashRange, "part", lambda self, number, parts: HashRange(number, self.total * parts))


def forget_bits(patch: Patch) -> None:
    """Of a partition that is merged bit by bit only the last one counts."""

    def forgetful(self: MergeGroups, batches: Iterable[pa.RecordBatch], sequence: int) -> None:
        self._unended.pop(sequence, None)
        _add(self, batches, sequence)

    patch.setattr(MergeGroups, "add", forgetful)


def keep_what_is_handed_over(patch: Patch) -> None:
    """A range that was handed over still has its groups."""

    def keeping(self: SlotGroups, place: int, count: int) -> list[pa.RecordBatch]:
        states = _hand_over(self, place, count)
        for batch in states:
            self._tables[place].merge(batch)
        return states

    patch.setattr(SlotGroups, "hand_over", keeping)


@pytest.mark.parametrize(
    "plant",
    [lose_rows_of_cuts, double_rows_of_cuts, mistake_ranges, forget_bits, keep_what_is_handed_over],
)
def test_a_planted_fault_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BiremeError)):
        run_all(range(150))


def test_groups_that_were_joined_with_rows_are_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(HolderState, "_kind", lambda *_: 0)
    with pytest.raises((AssertionError, BiremeError)):
        run_all(range(40), passing=True)

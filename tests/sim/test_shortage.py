"""Every task that can be made again finds no memory once, at each place of its work: the rows are DuckDB's.

Real stages run on the simulated loop. What is kept, cut, divided, handed over, brought into order or joined in rounds
is drawn, and so is the place; no query is refused. `BIREME_SIM_SEEDS` sets how many seeds are run (a fortieth here),
`BIREME_SIM_START` the first.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from support import join_cases, sim_query
from support.disk import MemorySpill
from support.shortage import Point, Shortage
from support.sim_query import QueryRun

from bireme.errors import BiremeError
from bireme.observe.event import Event
from bireme.operators import group, ranges, windows
from bireme.plan import lower_sort
from bireme.plan.physical import BuildSink, GroupSink, RangeSink
from bireme.runtime import partitions, rounds
from bireme.runtime.compute.task import Task

_SEEDS = int(os.environ.get("BIREME_SIM_SEEDS", "2000")) // 40
_START = int(os.environ.get("BIREME_SIM_START", "0"))
_PARTS = 5

QUERIES = (
    *join_cases.QUERIES,
    "select k, count(*) as n, sum(v) as t, min(s) as least from b group by k",
    "select k, s, v, count(*) as n from b group by k, s, v",
    "select distinct k, s from b",
    "select k, count(distinct v) as n, sum(v) as t from b group by k",
    "select k, median(v) as m from b group by k",
    "select n, count(*) as groups from (select k, count(*) as n from b group by k) as g group by n",
    "select k, s, v from b order by v, k nulls first, s",
    "select k, s, v from b order by s desc, v, k limit 40 offset 3",
    "select s, v from b order by v + 1",
    "select k, s, v, sum(v) over (partition by k order by v, s) as t from b",
    "select k, v, sum(v) over (order by v) as t, rank() over (order by v) as r from b",
    "select k, v, count(*) over (partition by s) as n, max(v) over () as m from b",
    "select k, v, ntile(5) over (order by k, v) as t from (select distinct k, v from b)",
    "select k, v, s from b qualify rank() over (partition by k order by v) <= 2",
    "select k, v, s from b qualify dense_rank() over (partition by s order by v desc) = 1",
    "select k from a union select k from b",
    "select k, v from b except select k, v from a",
    "select v + 1 as w, s || '!' as t from b where v % 3 = 1",
    "select unnest([k, v]) as e from b",
)
# Windows and sorts of few rows are taken in order, or in ranges, too.
_PIECE_ROWS = 50


class Run(QueryRun):
    """One query, with everything that its seed draws; `ways` counts the tasks that failed, by what they did."""

    presses = (BuildSink, GroupSink, RangeSink)

    def __init__(self, seed: int, *, taking: bool = False) -> None:
        rng = random.Random(seed)
        tables, query = join_cases.drawn_tables(rng), rng.choice(QUERIES)
        eager = rng.choice((0.0, 0.3, 0.8))
        self.share = rng.choice((300, 3_000, 20_000, 1 << 24))
        self.round_bytes_max = rng.choice((100, 1_500, 1 << 20))
        self.table_bytes_max = rng.choice((0, 20_000))
        in_kernels = rng.random() < 0.5
        self.point = Point(rng.choice((1, 2, 3, rng.randrange(4, 12), rng.randrange(12, 120))), in_kernels)
        if taking:
            self.point = Point(rng.choice((1, 2, 4)), in_kernels=False, taking=True)
        super().__init__(seed, rng, tables=tables, query=query, eager=eager, low=rng.random() < 0.5)

    def check(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lower_sort, "_SHARES_IN_MEMORY", 0)
            patch.setattr(lower_sort, "_ROWS_PER_RANGE", 100)
            patch.setattr(lower_sort, "_TOP_ROWS_MAX", 20)
            super().check()

    def change(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("partition_share", "range_share"):
            patch.setattr(partitions, name, lambda limit, *, slots: self.share)
        patch.setattr(rounds, "round_bytes_max", lambda limit: self.round_bytes_max)
        patch.setattr(group, "_TABLES_IN_MEMORY", 1 << 60)
        patch.setattr(group, "_TABLE_BYTES_MIN", self.table_bytes_max)
        patch.setattr(windows, "_PIECE_ROWS_MAX", _PIECE_ROWS)
        patch.setattr(ranges, "_PIECE_ROWS_MIN", _PIECE_ROWS)
        patch.setattr(ranges, "_SAMPLED_EVERY", 8)
        self.shortage = Shortage(self.point, patch)

    def count(self, events: Iterable[Event], spill: MemorySpill) -> None:
        self.ways += self.shortage.failed


def run_all(seeds: range, *, taking: bool = False) -> Counter[str]:
    return sim_query.run_all(seeds, lambda seed: Run(seed, taking=taking))


@pytest.mark.parametrize("part", range(_PARTS))
def test_tasks_that_find_no_memory_once_are_made_again(part: int) -> None:
    run_all(range(_START + part, _START + _SEEDS, _PARTS))


def test_tasks_whose_output_finds_no_memory_are_made_once() -> None:
    assert run_all(range(_START, _START + max(10, _SEEDS // 2)), taking=True), "no output found no memory"


def test_the_seeds_go_where_they_claim() -> None:
    went = run_all(range(49, 62))
    kinds = {name.partition(" ")[0] for name in went}
    assert {"split", "batches", "cut", "bit", "relieve", "finish", "round"} <= kinds, went
    sinks = {name.rpartition(" ")[2] for name in went}
    assert {"EmitSink", "BuildSink", "GroupSink", "MatchSink"} <= sinks, went


def test_a_call_that_is_made_again_though_it_has_given_its_output_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Task._take

    def forgetful(task: Task, contents: Sequence[pa.RecordBatch], slot: int) -> None:
        task._output = None
        take(task, contents, slot)

    monkeypatch.setattr(Task, "_take", forgetful)
    with pytest.raises((AssertionError, BiremeError)):
        run_all(range(60), taking=True)

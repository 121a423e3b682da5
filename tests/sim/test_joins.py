"""Joins with real stages on the simulated loop, whose build sides are asked for memory at drawn moments.

Whatever was in memory and whatever was not, the rows are DuckDB's, nothing is left behind, and no query is refused.
`BIREME_SIM_SEEDS` sets how many seeds are run (a twentieth of them here), `BIREME_SIM_START` the first.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pytest
from support import sim_query
from support.disk import MemorySpill
from support.join_cases import QUERIES, drawn_tables
from support.sim_query import QueryRun

from bireme.observe.event import Event, Promoted, RoundBegun
from bireme.operators.away import Router
from bireme.operators.join_rounds import JoinRounds
from bireme.plan.physical import BuildSink
from bireme.runtime import rounds
from bireme.runtime.preload import executor as preload

_SEEDS = int(os.environ.get("BIREME_SIM_SEEDS", "2000")) // 20
_START = int(os.environ.get("BIREME_SIM_START", "0"))
_PARTS = 5


class Run(QueryRun):
    """One join, with everything that its seed draws; `ways` counts how rounds were done, and what was moved.

    With `ahead` every batch that waits is demoted, and Pre-Load brings back at once what a task will take next.
    """

    presses = BuildSink

    def __init__(self, seed: int, *, ahead: bool = False) -> None:
        rng = random.Random(seed)
        tables, query = drawn_tables(rng), rng.choice(QUERIES)
        eager = 1.0 if ahead else rng.choice((0.0, 0.3, 0.8))
        self.round_bytes_max = rng.choice((100, 1_500, 1 << 20))
        self.ahead = ahead
        low = rng.random() < 0.5
        super().__init__(seed, rng, tables=tables, query=query, eager=eager, low=low or ahead)

    def change(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(rounds, "round_bytes_max", lambda limit: self.round_bytes_max)
        if self.ahead:
            patch.setattr(preload, "promotion_room", lambda *_, **__: 1 << 28)

    def count(self, events: Iterable[Event], spill: MemorySpill) -> None:
        self.ways["demoted"] += spill.writes
        for event in events:
            if isinstance(event, RoundBegun):
                self.ways[event.how] += 1
            elif isinstance(event, Promoted):
                self.ways["ahead"] += event.ahead


def run_all(seeds: range, *, ahead: bool = False) -> Counter[str]:
    return sim_query.run_all(seeds, lambda seed: Run(seed, ahead=ahead))


@pytest.mark.parametrize("part", range(_PARTS))
def test_joins_that_change_over_are_right(part: int) -> None:
    run_all(range(_START + part, _START + _SEEDS, _PARTS))


def test_the_seeds_go_where_they_claim() -> None:
    went = run_all(range(60))
    assert all(went[where] for where in ("skipped", "joined", "cut", "joined block by block", "demoted")), went


def tables_with_low_nulls(rng: random.Random) -> dict[str, pa.Table]:
    """Rows of b whose key is NULL have low values, so that a condition on these selects none for some rows of a."""
    rows: dict[str, list[tuple[int | None, int]]] = {
        name: [(rng.randrange(40), rng.randrange(100)) for _ in range(60)] for name in "ab"
    }
    rows["b"] += [(None, rng.randrange(50)) for _ in range(3)]
    return {
        name: pa.table({"k": pa.array([key for key, _ in some], pa.int64()), "v": [value for _, value in some]})
        for name, some in rows.items()
    }


@pytest.mark.parametrize(
    "query",
    [
        "select a.k, a.v, a.k in (select k from b where b.v > a.v) as m from a",
        "select a.k, a.v from a where a.k not in (select k from b where b.v > a.v)",
    ],
)
def test_membership_among_rows_that_a_condition_selects(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "QUERIES", (query,))
    monkeypatch.setattr(sys.modules[__name__], "drawn_tables", tables_with_low_nulls)
    assert run_all(range(10))["joined block by block"]


def test_what_waits_for_its_round_may_be_brought_back_ahead_of_it() -> None:
    assert run_all(range(60), ahead=True)["ahead"]


def forget_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build rows of later rounds are not told apart by their marks."""
    monkeypatch.setattr(JoinRounds, "unload", lambda rounds, part: [])


def let_all_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row waits for what is not in memory."""
    monkeypatch.setattr(Router, "route", lambda router, batch, keys, aside: batch)


@pytest.mark.parametrize("plant", [forget_the_rest, let_all_pass])
def test_a_planted_fault_is_found(plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_all(range(200))

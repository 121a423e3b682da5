"""FROM with commas and joins in every order: a comma binds weaker than a JOIN; what stands before it can be read."""

from __future__ import annotations

import random

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import QueryError, Unsupported

TABLES = (
    "create table a as select * from (values (1, 10), (2, 20), (null, 30), (3, 10)) t(x, y)",
    "create table b as select * from (values (1, 20), (2, null), (4, 10)) t(x, z)",
    "create table c as select * from (values (2, 20), (3, 30), (3, 10), (null, null)) t(x, w)",
)
VALUES = {"a": "y", "b": "z", "c": "w"}
KINDS = ("", "left", "right", "full", "semi", "anti", "natural", "natural left", "natural full", "cross")
SEEDS = 150
# Of the queries drawn at least so many mean something to DuckDB.
_COMPARED_MIN = 60


class _Draw:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._visible: list[str] = []
        self._count = 0

    def query(self) -> str:
        items = [self._item() for _ in range(self._random.randint(1, 3))]
        return f"select * from {', '.join(items)}"

    def _item(self) -> str:
        text = self._table()
        for _ in range(self._random.randint(0, 2)):
            text += self._join()
        return text

    def _table(self) -> str:
        name = self._random.choice(tuple(VALUES))
        self._count += 1
        alias = f"{name}{self._count}"
        self._visible.append(alias)
        if self._random.random() < 0.15 and len(self._visible) > 1:
            outer = self._column(self._visible[:-1])
            return f"(select x, {VALUES[name]} from {name} where x is distinct from {outer}) {alias}"
        return f"{name} {alias}"

    def _join(self) -> str:
        kind = self._random.choice(KINDS)
        text = f" {kind} join {self._table()}"
        if kind == "cross" or kind.startswith("natural"):
            return text
        if self._random.random() < 0.3:
            return f"{text} using (x)"
        right = self._visible[-1]
        return f"{text} on {self._column([right])} {self._random.choice(('=', '=', '<'))} {self._column(self._visible)}"

    def _column(self, aliases: list[str]) -> str:
        alias = self._random.choice(aliases)
        return f"{alias}.{self._random.choice(('x', VALUES[alias[0]]))}"


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_drawn_lists(first: int, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    compared = 0
    for seed in range(first, first + 50):
        query = _Draw(seed).query()
        try:
            oracle.sql(query).fetchall()
        except duckdb.Error:
            continue
        try:
            check(query, session, oracle)
        except QueryError as error:
            if "not supported" not in str(error):
                raise
            continue
        compared += 1
    assert compared > _COMPARED_MIN * 50 // SEEDS


@pytest.mark.parametrize(
    "query",
    [
        "select * from a natural full join b, a a1 natural full join c",
        "select count(*) from a join b using (x), c join a a1 using (x)",
        "select x from c, a join b using (x)",
        "select * from a, b full join c on b.x = c.x",
        "select * from a, b full join c on a.x = c.x",
        "select * from a, b left join c on a.x = c.x and b.x = c.x, c c1 semi join b b1 on b1.x = a.x",
        "select a.x from a, b join c on a.x = c.x where exists (select 1 from c c1, b b1 join c c2 on b1.x = a.x)",
        "select * from ((select x from a) q join b on q.x = b.x) j order by all",
        "select q.x, b.x from ((select x from a) q left join b on q.x = b.x) order by all",
        "select * from (((select x from a) q join b using (x)) join c using (x)) order by all",
        "select * from ((values (1), (2)) v(x) join a using (x)) order by all",
        "select * from c, ((select x from a) q join b using (x)) j where c.x = j.x order by all",
    ],
)
def test_commas_and_joins(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


def test_rows_by_position_cannot_depend_on_each_other(session: bm.Session) -> None:
    with pytest.raises(Unsupported, match="POSITIONAL JOIN cannot read the left side"):
        session.sql("select * from a positional join (select * from b where x is distinct from a.x) q")

"""Names that are relations, columns, fields, aliases and parameters at once, in generated queries, against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

import duckdb
import pytest
from support.two_engines import check, connect, session_over

import bireme as bm

NAMES = ("a", "b", "t")


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def session(oracle: duckdb.DuckDBPyConnection) -> Iterator[bm.Session]:
    with session_over(oracle, "native") as session:
        yield session


class Writer:
    """Writes queries whose every value is another one, so that an answer tells what a name was."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._values = count(1)

    def query(self) -> str:
        name, source, value = self._name, self._source, self._value
        forms = (
            lambda: f"select {name()} from {source()}",
            lambda: f"select (select {name()} from {source()}) from {source()}",
            lambda: f"select (select (select {name()} from {source()}) from {source()}) from {source()}",
            lambda: f"select list_transform([{value()}], lambda {self._word()}: {name()}) from {source()}",
            lambda: f"select [{name()} for {self._word()} in [{value()}]] from {source()}",
            lambda: f"select {value()} as {self._word()}, {name()} as z from {source()}",
            lambda: f"select {value()} as {self._word()}, (select {name()} from {source()}) as z from {source()}",
            lambda: f"select z from {source()}, lateral (select {name()} as z from {source()}) l",
            lambda: f"select max({name()}) from {source()} group by {name()}",
            lambda: f"select 1 from {source()} where exists (select 1 from {source()} where {name()} is not null)",
        )
        return self._random.choice(forms)()

    def _word(self) -> str:
        return self._random.choice(NAMES)

    def _name(self) -> str:
        return ".".join(self._word() for _ in range(self._random.choice((1, 2, 2, 2, 3, 3, 4))))

    def _value(self, depth: int = 0) -> str:
        if depth == 3 or self._random.random() < 0.5:
            return str(next(self._values))
        fields = self._random.sample(NAMES, self._random.randint(1, 2))
        return "{" + ", ".join(f"'{field}': {self._value(depth + 1)}" for field in fields) + "}"

    def _source(self) -> str:
        aliases = self._random.sample(NAMES, self._random.choice((1, 1, 2)))
        return ", ".join(f"(select {self._columns()}) {alias}" for alias in aliases)

    def _columns(self) -> str:
        columns = self._random.sample(NAMES, self._random.randint(1, 2))
        return ", ".join(f"{self._value()} as {column}" for column in columns)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_name_means_what_it_means_in_duckdb(
    seed: int, session: bm.Session, oracle: duckdb.DuckDBPyConnection
) -> None:
    writer = Writer(seed)
    answered = 0
    for _ in range(150):
        query = writer.query()
        try:
            oracle.execute(query).fetchall()
        except duckdb.Error:
            continue
        answered += 1
        check(query, session, oracle)
    assert answered > 30

"""Any text at all gives a plan or a fault of ours; and what two parsers accept, both understand alike."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect
from support import null_tables
from support.ir_to_sql import to_sql
from support.rows import difference
from support.tpc_data import query_texts

from bireme.errors import BiremeError, QueryError
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql


def words(text: str) -> list[str]:
    tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    return [text[token.start : token.end + 1] for token in tokens]


QUERIES = [words(text) for text in null_tables.small_queries()]
BENCHMARKS = [words(text) for text in query_texts("tpch").values()]
ODD = [
    "'", '"', "$$", "--", "/*", "*/", "[", "]", "{", "}", "->", "=>", ":", "?", "$1", ";", "\\", "é", "\0", "PIVOT",
    "LATERAL", "WITHIN", "MAP", "STRUCT", "lambda", "@", "#1", "DESCRIBE", "SHOW", "ASOF", "1e400", "9" * 50, "0x",
    "1.5e", "b'1'", "X'AB'", "N'a'", "date ''", "grouping(", "1::decimal(50,2)", "1::foo", "interval '1' foo", "E'\\x'",
]  # fmt: skip
POOL = sorted({word for query in QUERIES for word in query})
# Words that change a query in ways that often still make sense.
LIKELY = [
    "a", "b", "s", "t.a", "u.a", "1", "2", "null", "c", "x", "d", "n", "count(*)", "sum(a)", "+", "-", "*", "=", "<",
    "and", "or", "not", "(", ")", ",", "desc", "nulls first", "distinct", "all", "where a > 1", "group by a",
    "having count(*) > 1", "order by 1", "is null", "in (1, 2)", "like 'o%'", "union", "except all", "intersect",
    "left", "full", "using (a)", "case when a then b end", "true", "exists (select 1)", "between 1 and 2", "over ()",
    "over (partition by a order by b)", "::varchar", "||", "%", "^", "is not distinct from", "filter (where a = 1)",
    "rollup (a)", "escape '!'", "interval 1 day", "-1", "1.5", "'x'", "as k", "with q as (select 1 z)",
]  # fmt: skip
# What may give different rows at each run, or other rows where an order has ties.
LOOSE = re.compile(
    r"limit|offset|fetch|row_number|first|last|any_value|lag|lead|ntile|nth_value|rows |array_agg|string_agg"
)

Tables = tuple[duckdb.DuckDBPyConnection, TableCatalog]


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with null_tables.connect() as connection:
        yield connection, null_tables.catalog(connection)


def mutated(query: list[str], draw: random.Random, pool: list[str], changes: int) -> str:
    query = list(query)
    for _ in range(changes):
        place, what = draw.randrange(len(query) + 1), draw.random()
        if what < 0.45 and place < len(query):
            query[place] = draw.choice(pool)
        elif what < 0.75:
            query.insert(place, draw.choice(pool))
        elif what < 0.9:
            del query[place : place + 1]
        else:
            other = draw.choice(QUERIES)
            start = draw.randrange(len(other))
            query[place:place] = other[start : start + draw.randrange(1, 8)]
    return " ".join(query)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_a_broken_query_is_a_fault_with_a_message(draw: random.Random, changes: int) -> None:
    check_text(mutated(draw.choice(QUERIES + BENCHMARKS), draw, POOL + ODD, changes))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(POOL + ODD), max_size=20).map(" ".join)))
def test_any_text_is_a_fault_with_a_message(text: str) -> None:
    check_text(text)
    check_text(f"SELECT {text}")


_CATALOG: list[TableCatalog] = []


def check_text(text: str) -> None:
    if not _CATALOG:
        with null_tables.connect() as connection:
            _CATALOG.append(null_tables.catalog(connection))
    error = fault_of(text, _CATALOG[0])
    if error is None:
        return
    assert str(error)
    if isinstance(error, QueryError) and error.position is not None:
        assert 0 <= error.position.start <= error.position.end <= len(text)


def fault_of(text: str, catalog: TableCatalog) -> BiremeError | None:
    try:
        bind_sql(text, catalog)
    except BiremeError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(4))
def test_what_both_accept_means_the_same(tables: Tables, seed: int) -> None:
    connection, catalog = tables
    draw = random.Random(seed)
    compared = 0
    for _ in range(400):
        text = mutated(draw.choice(QUERIES), draw, LIKELY, 1)
        try:
            plan = bind_sql(text, catalog)
            expected = connection.execute(text).fetchall()
        except (QueryError, duckdb.Error):
            continue
        if LOOSE.search(text.lower()):
            continue
        actual = connection.execute(to_sql(plan)).fetchall()
        assert difference(expected, actual) is None, text
        compared += 1
    assert compared > 10

"""Batches of many vectors: what goes wrong only past the first few rows, or only where values repeat in disorder.

The drawn batches of the other tests are small; these are large and random, and compared with numpy's own answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from bireme.backends.base import Kernels
from bireme.data.schema import Schema
from bireme.data.types import HUGEINT, INT64, STRING, Field
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.physical import AggregateStep, GroupSpec

ROWS = 10_011
WORDS = np.array([f"Brand#{i}{j}" for i in range(1, 6) for j in range(1, 6)])
SCHEMA = Schema((Field("word", STRING), Field("number", INT64)))
WORD, NUMBER = Column(0, STRING), Column(1, INT64)


def text(value: str) -> Literal:
    return Literal(value, STRING)


PREDICATES: dict[str, Expr] = {
    "equal": functions.scalar("eq", [WORD, text("Brand#23")]),
    "in": functions.in_list(WORD, [text("Brand#11"), text("Brand#55"), text("none")]),
    "like": functions.scalar("like", [WORD, text("%#3%")]),
    "less": functions.scalar("lt", [WORD, text("Brand#24")]),
    "both": functions.scalar(
        "and", [functions.scalar("ne", [WORD, text("Brand#31")]), functions.scalar("gt", [NUMBER, Literal(0, INT64)])]
    ),
}


@pytest.fixture(scope="module", params=["plain", "dictionary", "dictionary in disorder", "sliced", "with NULLs"])
def batch(request: pytest.FixtureRequest) -> pa.RecordBatch:
    generator = np.random.default_rng(7)
    codes = generator.integers(0, len(WORDS), ROWS).astype(np.int32)
    mask = generator.random(ROWS) < 0.1 if request.param == "with NULLs" else np.zeros(ROWS, dtype=bool)
    order = generator.permutation(len(WORDS)) if request.param == "dictionary in disorder" else np.arange(len(WORDS))
    dictionary = pa.array(WORDS[order], pa.string())
    words = pa.DictionaryArray.from_arrays(pa.array(np.argsort(order)[codes].astype(np.int32), mask=mask), dictionary)
    column = words.dictionary_decode() if request.param in ("plain", "sliced") else words
    numbers = pa.array(generator.integers(-3, 4, ROWS))
    made = pa.record_batch([column, numbers], SCHEMA.names)
    return made.slice(1_237, ROWS - 2_000) if request.param == "sliced" else made


def expected(name: str, batch: pa.RecordBatch) -> np.ndarray:
    words: Sequence[str | None] = batch.column(0).to_pylist()
    numbers = batch.column(1).to_pylist()
    tests = {
        "equal": lambda w, n: w == "Brand#23",
        "in": lambda w, n: w in ("Brand#11", "Brand#55"),
        "like": lambda w, n: "#3" in w,
        "less": lambda w, n: w < "Brand#24",
        "both": lambda w, n: w != "Brand#31" and n > 0,
    }
    return np.array([w is not None and tests[name](w, n) for w, n in zip(words, numbers, strict=True)])


@pytest.mark.parametrize("name", PREDICATES)
def test_filters_keep_the_right_rows(name: str, backend: Kernels, batch: pa.RecordBatch) -> None:
    program = backend.program(SCHEMA, predicate=PREDICATES[name], exprs=[WORD, NUMBER], names=SCHEMA.names)
    wanted = np.flatnonzero(expected(name, batch))
    kept = program.run(batch)
    for index in range(2):
        assert kept.column(index).to_pylist() == batch.column(index).take(pa.array(wanted)).to_pylist()


@pytest.mark.parametrize("name", PREDICATES)
def test_predicates_as_columns(name: str, backend: Kernels, batch: pa.RecordBatch) -> None:
    program = backend.program(SCHEMA, predicate=None, exprs=[PREDICATES[name]], names=["p"])
    values = program.run(batch).column(0).fill_null(False).to_numpy(zero_copy_only=False)
    assert np.array_equal(values, expected(name, batch))


def test_groups_are_the_right_ones(backend: Kernels, batch: pa.RecordBatch) -> None:
    spec = GroupSpec(
        (STRING,), (AggregateStep("count_star", None, None, INT64), AggregateStep("sum", 1, INT64, HUGEINT))
    )
    table = backend.group_table(spec)
    table.update(batch, 0)
    groups = table.finish()
    found = {
        word: (count, int(total)) for word, count, total in zip(*[c.to_pylist() for c in groups.columns], strict=True)
    }
    counts: dict[str | None, tuple[int, int]] = {}
    for word, number in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
        count, total = counts.get(word, (0, 0))
        counts[word] = (count + 1, total + number)
    assert found == counts

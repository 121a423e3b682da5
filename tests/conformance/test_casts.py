"""Casts between all types that have one, in every backend, against DuckDB; TRY_CAST too."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.batches import EVERY_TYPE, batch_of, corner_batch, schema_of
from support.duck import Duck
from support.evaluation import check_against_duck, columns_of, evaluate

from bireme.backends.base import Kernels
from bireme.backends.reference.values import from_values
from bireme.data import types as t
from bireme.data.types import DataType, Kind
from bireme.plan import functions

# Casts whose meaning differs from DuckDB's on purpose; docs/SEMANTICS.md says how.
DIFFERENT = {
    (Kind.STRING, Kind.BINARY),  # no escapes are read
    (Kind.BINARY, Kind.STRING),
}
EVERY = [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE]


def targets_of(source: DataType) -> list[DataType]:
    """The types that there is a cast to."""
    return [
        target
        for target in EVERY_TYPE
        if source is not target
        and functions.is_castable(source, target)
        and (source.kind, target.kind) not in DIFFERENT
    ]


_TEXTS: dict[Kind, tuple[str, ...]] = {
    Kind.BOOL: ("true", "F", "yes", "no", "1", "0", "t", "tru", "", " true "),
    Kind.DATE: (
        "1995-01-31",
        "1995-1-2",
        "1995/02/03",
        " 2000-02-29 ",
        "2001-02-29",
        "1995-13-01",
        "19950101",
        "1995-01-01x",
    ),
    Kind.TIME: ("10:11:12", "1:2:3", "23:59:59.999999", "10:60:00", "10:11", "x"),
    Kind.TIMESTAMP: (
        "1995-01-31 10:11:12",
        "1995-01-31T10:11:12.5",
        "1995-01-31",
        "1995-01-31 10:11",
        "1995-01-31 25:00:00",
        "x",
        "",
        "1969-12-31 23:59:59.999999",
    ),
    Kind.INTERVAL: (
        "1 day",
        "2 months 3 days",
        "-1 year",
        "01:02:03",
        "1 day 02:00:00.5",
        "3 hours 4 minutes",
        "1.5 days",
        "x",
        "1 dya",
        "2 weeks",
        "1 month ago",
    ),
}
_NUMBERS = (
    "0",
    "1",
    "-1",
    "+5",
    " 42 ",
    "127",
    "128",
    "-129",
    "1.5",
    "2.5",
    "-2.5",
    ".5",
    "5.",
    "1e3",
    "1e-3",
    "99.995",
    "1e400",
    "",
    "-",
    "x",
    "1x",
    "12345678901234567890123",
    "99999999999999999999999999999999999999",
    "1_000",
)


@pytest.mark.parametrize("source", [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE if targets_of(kind)])
def test_corners_as_in_duckdb(backend: Kernels, duck: Duck, source: DataType) -> None:
    batch = corner_batch([source])
    (column,) = columns_of(schema_of([source]))
    targets = targets_of(source)
    among = [f"cast(c0 as {target})" for target in targets]
    for target, sql in zip(targets, among, strict=True):
        check_against_duck(backend, duck, functions.cast(column, target), sql, batch, among=among)


@pytest.mark.parametrize("target", [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE if kind is not t.BINARY])
@pytest.mark.parametrize("safe", [False, True], ids=["cast", "try_cast"])
def test_texts_as_in_duckdb(backend: Kernels, duck: Duck, target: DataType, safe: bool) -> None:
    texts = _TEXTS.get(target.kind, _NUMBERS)
    batch = batch_of([texts], [t.STRING], len(texts))
    (column,) = columns_of(schema_of([t.STRING]))
    sql = f"{'try_cast' if safe else 'cast'}(c0 as {target})"
    check_against_duck(backend, duck, functions.cast(column, target, safe), sql, batch)


@pytest.mark.parametrize("kind", EVERY)
def test_text_reads_back(backend: Kernels, kind: DataType) -> None:
    """What a cast to text writes is read as the same value (of floats and blobs: where DuckDB's form allows it)."""
    if kind.kind in (Kind.BINARY, Kind.FLOAT32):
        kind = t.FLOAT64
    batch = corner_batch([kind])
    (column,) = columns_of(schema_of([kind]))
    text = evaluate(backend, functions.cast(column, t.STRING), batch)
    back = functions.cast(columns_of(schema_of([t.STRING]))[0], kind)
    again = evaluate(backend, back, pa.record_batch([from_values(text.values, t.STRING)], names=["c0"]))
    direct = evaluate(backend, column, batch)
    assert not again.bad
    assert repr(again.values) == repr(direct.values)


def test_dictionary_encoded_text_is_cast(backend: Kernels) -> None:
    array = pa.array(["1", None, "2", "1"]).dictionary_encode().slice(1)
    (column,) = columns_of(schema_of([t.STRING]))
    outcome = evaluate(backend, functions.cast(column, t.INT32), pa.record_batch([array], names=["c0"]))
    assert outcome.values == [None, 2, 1]

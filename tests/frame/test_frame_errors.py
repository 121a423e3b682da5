"""What is wrong with a call is said at that call, by name, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import bireme as bm
from bireme import col
from bireme.errors import ArgumentFault, BiremeError, NameFault, SourceMissing, TypeFault

Call = Callable[[bm.Frame], Any]

WRONG: dict[str, tuple[Call, type[BiremeError], str]] = {
    "unknown column": (lambda f: f.filter(col("amont") > 1), NameFault, "amount"),
    "unknown name": (lambda f: f.select("nothing_like_it"), NameFault, "nothing_like_it"),
    "text plus number": (lambda f: f.select(col("day") * 2), TypeFault, "date"),
    "condition of numbers": (lambda f: f.filter(col("id") + 1), TypeFault, "boolean"),
    "python and": (lambda f: f.filter(col("id") > 1 and col("id") < 3), ArgumentFault, "&"),
    "no predicate": (lambda f: f.filter(), ArgumentFault, "predicate"),
    "name twice": (lambda f: f.select("id", id=col("amount")), ArgumentFault, "alias"),
    "column not grouped": (lambda f: f.group_by("shop").agg(col("id")), ArgumentFault, "id"),
    "aggregate twice": (lambda f: f.group_by("shop").agg(col("id").max().sum()), BiremeError, "aggregate"),
    "no keys": (lambda f: f.group_by(), ArgumentFault, "select"),
    "unknown join": (lambda f: f.join(f, on="id", how="sideways"), ArgumentFault, "sideways"),
    "join without keys": (lambda f: f.join(f), ArgumentFault, "on"),
    "join of types": (lambda f: f.join(f, left_on="day", right_on="id"), TypeFault, "do not compare"),
    "no frame": (lambda f: f.join([1, 2], on="id"), ArgumentFault, "frame"),
    "bad type": (lambda f: f.select(col("id").cast("no_such_type")), BiremeError, "no_such_type"),
    "odd constant": (lambda f: f.filter(col("id") == object()), ArgumentFault, "object"),
    "sum of text": (lambda f: f.select(col("shop").sum()), TypeFault, "sum"),
    "number of flags": (lambda f: f.sort("id", descending=[True, False]), ArgumentFault, "descending"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_call_says_what_is_wrong(name: str, sales: bm.Frame) -> None:
    call, kind, word = WRONG[name]
    with pytest.raises(kind, match=word):
        call(sales)


def test_frames_of_two_sessions_do_not_mix(sales: bm.Frame) -> None:
    with bm.connect(threads=1) as other, pytest.raises(ArgumentFault, match="sessions"):
        sales.join(other.from_arrow(pa.table({"id": [1]})), on="id")


def test_missing_files_are_named(session: bm.Session) -> None:
    with pytest.raises(SourceMissing, match="no/such/file"):
        session.scan_parquet("no/such/file.parquet")


def test_unknown_table_has_a_hint(session: bm.Session) -> None:
    with pytest.raises(NameFault, match="sales"):
        session.table("sale")


def test_what_is_no_table_is_named(session: bm.Session) -> None:
    with pytest.raises(ArgumentFault, match="int"):
        session.register("x", 5)

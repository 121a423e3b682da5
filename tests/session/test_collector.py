"""The collector rests while queries are planned, and is at work again whatever becomes of them."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import bireme
from bireme.collector import collector_at_rest
from bireme.errors import BiremeError


def test_rest_ends_with_what_it_was_for() -> None:
    with collector_at_rest():
        assert not gc.isenabled()
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collector_at_rest():
        _ = 1 / 0
    assert gc.isenabled()


def test_who_has_switched_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_at_work_after_queries_of_many_threads() -> None:
    texts = ["select a from t", "select nothing from t", "select sum(a) from t group by a", "select"] * 10
    with bireme.connect(threads=1) as session:
        session.register("t", pa.table({"a": [1, 2, 3]}))

        def ask(text: str) -> bool:
            try:
                session.sql(text).collect()
            except BiremeError:
                return False
            return True

        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(ask, texts)) == 20
    assert gc.isenabled()

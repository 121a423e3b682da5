"""A session over small tables with NULLs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.small_tables import SALES, SHOPS

import bireme as bm


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        session.register("sales", SALES)
        session.register("shops", SHOPS)
        yield session


@pytest.fixture
def sales(session: bm.Session) -> bm.Frame:
    return session.table("sales")


@pytest.fixture
def shops(session: bm.Session) -> bm.Frame:
    return session.table("shops")

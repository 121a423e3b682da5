"""Puts the check for what is left behind around every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.leaks import Ledgers, watched

_LEDGERS = Ledgers()
_LEDGERS.watch()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    with watched(_LEDGERS):
        yield

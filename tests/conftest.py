"""Puts the check for what is left behind around every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from support.leaks import Ledgers, watched

# How long one example takes says more about the machine than about the code.
settings.register_profile("bireme", deadline=None)
settings.load_profile("bireme")

_LEDGERS = Ledgers()
_LEDGERS.watch()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    with watched(_LEDGERS):
        yield

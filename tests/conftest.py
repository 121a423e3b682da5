"""Puts the check for what is left behind around every test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from support.leaks import Ledgers, watched

# How long one example takes says more about the machine than about the code.
settings.register_profile("bireme", deadline=None)
settings.load_profile("bireme")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tiny-device",
        action="store_true",
        help="sessions that do not say how much memory they may use have that of a few batches, and pages on PINNED",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--tiny-device"):
        os.environ |= {"BIREME_MEMORY_LIMIT": "4MiB", "BIREME_PINNED_LIMIT": "4MiB"}


_LEDGERS = Ledgers()
_LEDGERS.watch()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    with watched(_LEDGERS):
        yield

"""Puts the check for what is left behind around every test, and lets the whole suite use the cores there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support.leaks import Ledgers, watched

# How long one example takes says more about the machine than about the code.
settings.register_profile("bireme", deadline=None)
settings.load_profile("bireme")

# Tests start sessions of two threads and processes of their own; more workers than this would disturb each other.
_WORKERS_MAX = 4


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Runs in several processes unless files, a number of processes or the debugger were asked for.

    Those processes come by here themselves, without a number of their own: they must not start others.
    """
    if (
        "PYTEST_XDIST_WORKER" not in os.environ
        and config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and config.getoption("numprocesses", 0) is None
        and not config.getoption("usepdb")
        and not config.getoption("collectonly")
        and (workers := min(len(os.sched_getaffinity(0)), _WORKERS_MAX)) > 1
    ):
        config.option.numprocesses = workers
        config.option.dist = "worksteal"


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


@pytest.fixture(scope="module")
def spill_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spill")

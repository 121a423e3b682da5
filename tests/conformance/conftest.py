"""Every backend that is there, and the oracle."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from support.duck import Duck

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels


def _backends() -> list[Kernels]:
    found: list[Kernels] = [ReferenceKernels()]
    try:
        native = importlib.import_module("bireme.backends.native")
    except ImportError:
        return found  # not built: the reference is the only backend
    return [*found, native.NativeKernels()]


@pytest.fixture(scope="session", params=_backends(), ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Kernels:
    return request.param


@pytest.fixture(scope="session", params=_backends()[1:], ids=lambda backend: backend.name)
def other(request: pytest.FixtureRequest) -> Kernels:
    """A backend that is not the reference; tests that need one are skipped where there is none."""
    return request.param


@pytest.fixture(scope="session")
def reference() -> ReferenceKernels:
    return ReferenceKernels()


@pytest.fixture(scope="session")
def duck() -> Iterator[Duck]:
    oracle = Duck()
    yield oracle
    oracle.close()

"""Every backend that is there, and the oracle."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.duck import Duck

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels

# Drawing batches is slow on a loaded machine; what is drawn does not depend on the time it takes.
settings.register_profile(
    "conformance",
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


def _backends() -> list[Kernels]:
    found: list[Kernels] = [ReferenceKernels()]
    try:
        native = importlib.import_module("bireme.backends.native")
    except ImportError:
        return found  # not built: the reference is the only backend
    return [*found, native.NativeKernels()]


@pytest.fixture(autouse=True)
def _profile() -> Iterator[None]:
    settings.load_profile("conformance")
    yield
    settings.load_profile("default")


@pytest.fixture(scope="session", params=_backends(), ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Kernels:
    return request.param


@pytest.fixture(scope="session")
def reference() -> ReferenceKernels:
    return ReferenceKernels()


@pytest.fixture(scope="session")
def duck() -> Iterator[Duck]:
    oracle = Duck()
    yield oracle
    oracle.close()

"""How property tests of kernels draw: a number of examples chosen per test, the rest alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings


def drawn(examples: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Settings of a test that draws `examples` inputs; backends and oracles are shared by all of them."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )

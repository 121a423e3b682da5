"""Simulated tiers have room for some hundred bytes, of which what Arrow keeps of a column would be all there is."""

from __future__ import annotations

import pytest

from bireme.data import batch


@pytest.fixture(autouse=True)
def _columns_take_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "COLUMN_BYTES", 0)

"""Which batch to send to whom next, within credit. Decides only.

Rule: flows whose next batch is covered by credit, in the order in which the receivers need them (the plan's order);
among equals the peer that has waited longest, so that no link starves. A flow without credit never holds up another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class FlowView(NamedTuple):
    """A flow as this policy sees it: `next_bytes` of its next batch, `sent_at` the number of the last send on it."""

    rank: tuple[int, ...]
    next_bytes: int
    credit: int
    sent_at: int
    handle: Any


def choose_send(flows: Sequence[FlowView]) -> FlowView | None:
    """The flow to send on now, or None when none has credit for its next batch."""
    covered = [flow for flow in flows if flow.next_bytes <= flow.credit]
    return min(covered, key=lambda flow: (flow.rank, flow.sent_at), default=None)

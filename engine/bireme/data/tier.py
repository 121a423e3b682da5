"""The tiers a batch can lie on, and the order in which batches are demoted through them."""

from __future__ import annotations

from enum import IntEnum


class Tier(IntEnum):
    """Where the bytes of a batch lie; a larger value is further from the kernels.

    `DEVICE` is the memory that kernels compute in (process memory on a CPU host), `PINNED` page-locked host
    pages, `DISK` a spill file. `SOURCE` (byte ranges of a table not read yet) and `PEER` (on another worker)
    are residences a batch can be brought up from but is never demoted to.
    """

    DEVICE = 0
    PINNED = 1
    DISK = 2
    SOURCE = 3
    PEER = 4

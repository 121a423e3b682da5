"""What the planner tells the runtime about each pipeline and edge.

The runtime obeys a hint or records why it did not. Estimates behind the figures are in `statistics`; who fills them
in is `placement`.
"""

from __future__ import annotations

from typing import Final

from bireme.data.choice import Choice
from bireme.data.node import Node, node
from bireme.data.tier import Tier


class DeviceKind(Choice):
    """The kind of device a pipeline should run on; ANY leaves it to the runtime."""

    ANY = "any"
    CPU = "cpu"
    GPU = "gpu"


@node
class Hint(Node):
    """Placement advice for one pipeline or edge.

    `rows_expected` and `bytes_expected` are of the output (of all of it). `next_use` is the position of the first
    consuming pipeline in the expected order of execution (victims are chosen by furthest next use); `last_use` that of
    the last one, after which the bytes are garbage. `partitions` is the number of hash partitions of the output,
    `prefetch_depth` how many inputs Pre-Load keeps ahead. `affinity` names a worker, or none.
    """

    device: DeviceKind = DeviceKind.ANY
    home: Tier = Tier.DEVICE
    rows_expected: int = 0
    bytes_expected: int = 0
    next_use: int = 0
    last_use: int = 0
    partitions: int = 1
    prefetch_depth: int = 4
    affinity: int | None = None


NO_HINT: Final = Hint()

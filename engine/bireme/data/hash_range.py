"""Which partition a hash belongs to, and the range of hashes that a partition is, cut as finely as wanted."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt


class HashRange(NamedTuple):
    """Part `number` of `total` equal ones of all hashes: the rows of a partition, if that is how many there are.
    `total` times the partitions that it is split into stays below `HASH_PARTS_MAX`.
    """

    number: int
    total: int

    def part(self, number: int, parts: int) -> HashRange:
        """Part `number` of `parts` equal ones of it."""
        return HashRange(self.number * parts + number, self.total * parts)


ALL_HASHES: Final = HashRange(0, 1)
HASH_PARTS_MAX: Final = 1 << 32


def partition_of(row_hash: int, partitions: int) -> int:
    """The partition of a hash: its upper 32 bits scaled to the number of partitions (Lemire 2019), so that the
    lower bits stay free for tables inside the partition.
    """
    return ((row_hash >> 32) * partitions) >> 32


def partitions_of(hashes: npt.NDArray[np.uint64], partitions: int) -> npt.NDArray[np.uint64]:
    """`partition_of` of many hashes. Partition p of n is partitions p * k to p * k + k - 1 of n * k."""
    chosen: npt.NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32)
    return chosen

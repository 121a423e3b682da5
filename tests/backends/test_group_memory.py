"""What group tables take of memory follows from their groups, however many rows came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bireme.backends.native import NativeKernels
from bireme.data.types import INT64
from bireme.plan.physical import AggregateStep, GroupSpec

_ROWS = 8_192
_DOMAIN = 2_000_000
_GROUPS = 20_000


def test_rows_that_bring_no_new_keys_pay_for_no_dense_index() -> None:
    table = NativeKernels().group_table(GroupSpec((INT64,), (AggregateStep("count_star", None, None, INT64),)))
    generator = np.random.default_rng(7)
    keys = generator.choice(_DOMAIN, _GROUPS, replace=False)
    most = 0
    for known in range(500, _GROUPS + 1, 500):
        rows = pa.array(generator.choice(keys[:known], _ROWS))
        table.update(pa.record_batch([rows], names=["k"]), 0)
        most = max(most, table.nbytes)
    assert table.groups > _GROUPS // 2
    # A cell of four bytes for each value of the domain would be 8 MB.
    assert most < 3_000_000

"""What group tables take of memory follows from their groups, however many rows came."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.backends.base import GroupTable
from bireme.backends.native import NativeKernels
from bireme.data.types import INT64, STRING, DataType, decimal
from bireme.plan.physical import AggregateStep, GroupSpec
from bireme.units import KIB, MIB

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


def _spec(*keys: DataType) -> GroupSpec:
    return GroupSpec(keys, (AggregateStep("sum", len(keys), INT64, decimal(38, 0)),))


_KEYS = {
    "integer": lambda keys: [pa.array(keys)],
    "pair": lambda keys: [pa.array(keys % 211), pa.array(keys // 211)],
    "text": lambda keys: [pa.array([f"{key:012}" for key in keys.tolist()])],
}
_TYPES = {"integer": (INT64,), "pair": (INT64, INT64), "text": (STRING,)}


def _filled(kind: str, groups: int, *, is_lean: bool = True) -> GroupTable:
    """A table of so many groups with keys out of a wide range, in batches of twice 4,000 rows."""
    table = NativeKernels().group_table(_spec(*_TYPES[kind]), is_lean=is_lean)
    keys = np.random.default_rng(groups).choice(max(50_000, 2 * groups), groups, replace=False)
    for start in range(0, groups, 4_000):
        some = np.concatenate([keys[start : start + 4_000]] * 2)
        columns = [*_KEYS[kind](some), pa.array(some)]
        table.update(pa.record_batch(columns, [f"c{index}" for index in range(len(columns))]), 0)
    return table


@pytest.mark.parametrize("groups", [10, 100, 600, 1_900, 5_000, 30_000])
@pytest.mark.parametrize("kind", list(_KEYS))
def test_a_lean_table_takes_little_beside_its_groups(kind: str, groups: int) -> None:
    table = _filled(kind, groups)
    taken = table.nbytes
    (states,) = table.states(1)
    assert states.num_rows == groups
    # Everything grows by doubling, and keys are found by slots that are half full.
    assert taken <= 3 * states.nbytes + 32 * KIB
    assert table.nbytes <= 4 * KIB


@pytest.mark.parametrize("kind", list(_KEYS))
def test_a_lean_table_has_the_groups_of_any_other(kind: str) -> None:
    width = len(_TYPES[kind])
    order = [(f"c{index}", "ascending") for index in range(width)]
    lean, other = (
        pa.Table.from_batches([_filled(kind, 30_000, is_lean=is_lean).finish()]).sort_by(order)
        for is_lean in (True, False)
    )
    assert lean.equals(other)


def test_keys_of_a_lean_table_may_turn_out_dense_and_sparse_and_be_null() -> None:
    spec = _spec(INT64)
    lean, other = NativeKernels().group_table(spec, is_lean=True), NativeKernels().group_table(spec)
    draw = np.random.default_rng(3)
    for low, high in ((0, 900), (0, 20_000), (-9_000, 60_000), (0, 1 << 50), (5, 6), (0, 70_000)):
        keys = pa.array(draw.integers(low, high, 30_000), mask=draw.random(30_000) < 0.01)
        batch = pa.record_batch([keys, pa.array(np.arange(30_000))], ["c0", "c1"])
        for table in (lean, other):
            table.update(batch, 0)
    found, expected = (pa.Table.from_batches([table.finish()]).sort_by("c0") for table in (lean, other))
    assert found.equals(expected)


def test_groups_in_little_memory_are_rarely_given_up(tmp_path: Path) -> None:
    rows = np.arange(250_000)
    table = pa.table({"k": rows * 7919 % 250_000, "v": rows})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=20_000)
    with bm.connect(threads=2, memory_limit=4 * MIB, spill_folder=tmp_path / "spill") as session:
        session.register("t", tmp_path / "t.parquet")
        text = "select k % 50000 as k, sum(v) as s from t where v % 4 = 1 group by 1 order by 1"
        profile = session.sql(text).explain(analyze=True)
    # There are 60,000 partial groups of some 50 bytes. It was 33 times, when each table had room for all keys.
    times = [int(found) for found in re.findall(r"gave up state (\d+) times", profile)]
    assert sum(times) <= 8

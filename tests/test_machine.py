"""What memory a process may use, as control groups of both versions say it, and the limit that follows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bireme.config import config_from
from bireme.machine import memory_bytes
from bireme.units import GIB, MIB

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def groups(tmp_path: Path, membership: str, limits: dict[str, str]) -> tuple[Path, Path]:
    """A mounted hierarchy with these files, and what `/proc/self/cgroup` says."""
    for name, text in limits.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    told = tmp_path / "cgroup"
    told.write_text(membership)
    return tmp_path / "groups", told


@pytest.mark.parametrize(
    ("membership", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "100000000"}, 100_000_000),
        ("0::/\n", {"memory.max": "max"}, MACHINE),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "200000000"}, 200_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "90000000", "a/memory.max": "200000000"}, 90_000_000),
        ("0::/a\n", {"a/memory.max": "200000000", "a/memory.high": "150000000"}, 150_000_000),
        # In a container: the group that the host knows is mounted as the root.
        ("0::/docker/abc\n", {"memory.max": "70000000"}, 70_000_000),
        ("5:cpu,cpuacct:/x\n4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "60000000"}, 60_000_000),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": str(1 << 63)}, MACHINE),
        ("5:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "60000000"}, MACHINE),
        ("", {"memory.max": "60000000"}, MACHINE),
    ],
)
def test_the_least_of_all_limits_holds(tmp_path: Path, membership: str, limits: dict[str, str], expected: int) -> None:
    assert memory_bytes(*groups(tmp_path, membership, limits)) == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path / "none", tmp_path / "nothing") == MACHINE


@pytest.mark.parametrize("total", [64 * MIB, 256 * MIB, 512 * MIB, 4 * GIB, 512 * GIB])
def test_the_default_limit_leaves_room_for_the_process_around_it(total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bireme.config.memory_bytes", lambda: total)
    limit = config_from(environment={}).memory_bytes_max
    assert limit >= 32 * MIB
    if total >= 256 * MIB:
        assert limit * 1.1 + 150 * MIB <= total
        assert limit <= 0.6 * total

"""One frozen record of every limit and setting, with its unit in its name.

Read once, from arguments and the environment (`BIREME_…`), where a session starts; nothing below asks the
environment again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from bireme.errors import ConfigError
from bireme.machine import memory_bytes
from bireme.records import dataclass
from bireme.units import MIB, parse_bytes

# Theseus' open descendants start demoting at 0.85 of a tier and stop at 0.65.
_WATERMARK_START: Final = 0.85
_WATERMARK_STOP: Final = 0.65
# Below the level to which memory is brought down, so that the cache alone is never what memory is short of.
_CACHE_SHARE: Final = 0.6
# What the interpreter, its libraries and plans take beside the data.
PROCESS_BYTES: Final = 150 * MIB
_DEFAULT_BYTES_MIN: Final = 32 * MIB
_SPILL_BYTES_MAX: Final = 1 << 40
_COMPRESSIONS: Final = ("auto", "off", "lz4")
# An event with what it names takes up to 600 bytes.
_EVENT_BYTES: Final = 640
_EVENT_SHARE: Final = 1 / 64
_EVENT_COUNT_MIN: Final = 1024
_EVENT_COUNT_MAX: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Levers:
    """Which of the engine's optional techniques may be used. Answers are the same with any of them off.

    `clustering`: joins and aggregates work range by range where the ranges of a table's splits hardly overlap.
    `dense_keys`: arrays addressed by the key, and bitmaps, instead of hash tables, where keys lie close together.
    `runtime_filters`: scans drop rows that a join further on cannot match.
    `top_bounds`: scans drop rows that a top-n further on, which has enough others by now, cannot keep.
    `late_columns`: columns are read once it is known which rows are wanted.
    `native_scan`: the backend decodes Parquet itself, as far as rows need it; else pyarrow decodes whole row groups.
    """

    clustering: bool = True
    dense_keys: bool = True
    runtime_filters: bool = True
    top_bounds: bool = True
    late_columns: bool = True
    native_scan: bool = True

    @property
    def off(self) -> tuple[str, ...]:
        """The names of those that may not be used."""
        return tuple([lever.name for lever in fields(self) if not getattr(self, lever.name)])


def levers_from(text: str) -> Levers:
    """Levers as people write them, applied from left to right: `-clustering,-late_columns`, or `none,+dense_keys`.

    Raises ConfigError.
    """
    names = [lever.name for lever in fields(Levers)]
    chosen = dict.fromkeys(names, True)
    for word in text.replace(",", " ").split():
        name = word[1:]
        if word in ("all", "none"):
            chosen = dict.fromkeys(names, word == "all")
        elif word[0] in "+-" and name in chosen:
            chosen[name] = word[0] == "+"
        else:
            raise ConfigError(
                f"levers are switched by + or - and one of {', '.join(names)}, or by all and none, not by {word!r}"
            )
    return Levers(**chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one session.

    `memory_bytes_max` limits what bireme keeps in memory for all queries of a session; `spill_bytes_max` what it may
    write to `spill_folders`, which take batches in turn. `spill_direct` asks for direct IO, past the cache of the
    operating system; `spill_compression` says whether spills are compressed: where that pays, or always ("lz4"), or not
    ("off"). `pinned_bytes_max` is zero on CPU hosts, where DEVICE is process memory; tests emulate the tier by
    setting it. `cache_share_max` is how much of the memory the cache of decoded columns may use, `pool_bytes_max` how
    much of what is free kernels may keep for reuse.
    """

    threads: int
    memory_bytes_max: int
    spill_folders: tuple[Path, ...]
    spill_bytes_max: int
    spill_direct: bool = True
    spill_compression: str = "auto"
    pinned_bytes_max: int = 0
    watermark_start: float = _WATERMARK_START
    watermark_stop: float = _WATERMARK_STOP
    cache_share_max: float = _CACHE_SHARE
    pool_bytes_max: int = 256 * MIB
    io_threads: int = 4
    preload_bytes_max: int = 256 * MIB
    preload_ahead_count_max: int = 48
    result_bytes_max: int = 64 * MIB
    edge_bytes_max: int = 256 * MIB
    receive_bytes_max: int = 16 * MIB
    stall_seconds_max: float = 0.1
    deadlock_seconds_max: float = 5.0
    event_count_max: int = _EVENT_COUNT_MAX
    backend: str = "native"
    levers: Levers = Levers()

    def __post_init__(self) -> None:
        for name in ("threads", "io_threads"):
            if type(getattr(self, name)) is not int:
                raise ConfigError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        if self.threads < 1 or self.io_threads < 1:
            raise ConfigError(f"threads must be at least 1, not {min(self.threads, self.io_threads)}")
        if not 0 < self.watermark_stop <= self.watermark_start <= 1:
            raise ConfigError("the watermarks must satisfy 0 < watermark_stop <= watermark_start <= 1")
        if not self.spill_folders:
            raise ConfigError("there must be a folder to spill to")
        if self.spill_compression not in _COMPRESSIONS:
            raise ConfigError(f"spill_compression is one of {', '.join(_COMPRESSIONS)}, not {self.spill_compression!r}")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name.endswith("_max") and value < 0:
                raise ConfigError(f"{setting.name} must not be negative")


def config_from(
    *,
    threads: int | None = None,
    memory_limit: str | int | None = None,
    spill_folder: str | Path | Sequence[str | Path] | None = None,
    spill_limit: str | int | None = None,
    spill_compression: str | None = None,
    backend: str | None = None,
    levers: Levers | str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """The settings for a session: arguments first, then `BIREME_THREADS`, `BIREME_MEMORY_LIMIT`,
    `BIREME_SPILL_FOLDER` (several, separated as in PATH), `BIREME_SPILL_LIMIT`, `BIREME_SPILL_COMPRESSION`,
    `BIREME_BACKEND` and `BIREME_LEVERS`, then what the machine has. `BIREME_PINNED_LIMIT` emulates that tier, for
    tests. Raises ConfigError.
    """
    env = os.environ if environment is None else environment
    limit = memory_limit if memory_limit is not None else env.get("BIREME_MEMORY_LIMIT")
    spill = spill_limit if spill_limit is not None else env.get("BIREME_SPILL_LIMIT")
    pinned = env.get("BIREME_PINNED_LIMIT")
    memory = parse_bytes(limit) if limit is not None else _default_memory_bytes(memory_bytes())
    return Config(
        threads=_thread_count(threads, env.get("BIREME_THREADS")),
        memory_bytes_max=memory,
        spill_folders=_spill_folders(spill_folder, env),
        spill_bytes_max=parse_bytes(spill) if spill is not None else _SPILL_BYTES_MAX,
        spill_compression=spill_compression or env.get("BIREME_SPILL_COMPRESSION") or "auto",
        pinned_bytes_max=parse_bytes(pinned) if pinned else 0,
        event_count_max=_event_count(memory),
        backend=backend or env.get("BIREME_BACKEND") or "native",
        levers=_levers(levers if levers is not None else env.get("BIREME_LEVERS", "")),
    )


def _thread_count(argument: int | None, variable: str | None) -> int:
    if argument is not None:
        return argument
    if variable is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not variable.isdecimal():
        raise ConfigError(f"BIREME_THREADS must be a whole number, not {variable!r}")
    return int(variable)


def _event_count(memory_bytes_max: int) -> int:
    """Events are beside the limit, as all that Python keeps, so they are few where it is small."""
    return max(_EVENT_COUNT_MIN, min(_EVENT_COUNT_MAX, int(memory_bytes_max * _EVENT_SHARE) // _EVENT_BYTES))


def _usual_spill_folder(env: Mapping[str, str]) -> Path:
    # As the standard library's `tempfile` finds it, which loads much and writes a file to try the folder.
    folders = [env.get("TMPDIR"), env.get("TEMP"), env.get("TMP"), "/tmp", "/var/tmp", "/usr/tmp"]
    usable = (each for each in folders if each and os.path.isdir(each) and os.access(each, os.W_OK | os.X_OK))
    return Path(os.path.abspath(next(usable, os.curdir))) / f"bireme-spill-{os.getuid()}"


def _spill_folders(argument: str | Path | Sequence[str | Path] | None, env: Mapping[str, str]) -> tuple[Path, ...]:
    if argument is None:
        # One folder per user: another's would not be writable.
        named = [part for part in env.get("BIREME_SPILL_FOLDER", "").split(os.pathsep) if part]
        return tuple(map(Path, named)) or (_usual_spill_folder(env),)
    chosen = [argument] if isinstance(argument, (str, os.PathLike)) else argument
    if not isinstance(chosen, Sequence) or not chosen or not all(isinstance(one, (str, os.PathLike)) for one in chosen):
        raise ConfigError(f"spill_folder must be a path or some paths, not {argument!r}")
    return tuple(map(Path, chosen))


def _levers(chosen: Levers | str) -> Levers:
    if isinstance(chosen, Levers):
        return chosen
    if not isinstance(chosen, str):
        raise ConfigError(f"levers are a text such as '-clustering', or a Levers, not {chosen!r}")
    return levers_from(chosen)


def _default_memory_bytes(total: int) -> int:
    """Leaves room for others, and what the process takes beside its limit: a tenth, and the interpreter."""
    return max(_DEFAULT_BYTES_MIN, min(total * 6 // 10, (total - PROCESS_BYTES) * 10 // 11))

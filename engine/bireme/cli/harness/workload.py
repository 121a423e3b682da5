"""What is measured and how: queries over tables, and the engines that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bireme.config import levers_from
from bireme.errors import ConfigError

ENGINES: Final = ("bireme", "duckdb", "polars", "datafusion")
HOT_ENGINES: Final = ("bireme", "duckdb", "polars")


@dataclass(frozen=True, slots=True)
class Workload:
    """Named queries over tables, each of which is one Parquet file.

    `dialects` holds, by query and engine, the text for an engine that writes the same question in another way.
    """

    name: str
    tables: Mapping[str, Path]
    queries: Mapping[str, str]
    dialects: Mapping[tuple[str, str], str]

    def text(self, query: str, engine: EngineChoice) -> str:
        return self.dialects.get((query, engine.name), self.queries[query])


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine of a run. `levers` are those of bireme, as `bireme.config` reads them."""

    name: str
    levers: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}:{self.levers}" if self.levers else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a workload runs. `hot` has every engine read from its own memory: tables that it loads, or what a first run
    of each query, which is not timed, leaves in its cache. `cache` has bireme alone use its cache. With `fresh` each
    run has a process of its own, so that no engine keeps memory while another one runs.
    """

    engines: tuple[EngineChoice, ...]
    threads: int
    memory_limit: str | None = None
    runs: int = 1
    hot: bool = False
    cache: bool = False
    fresh: bool = False


def parse_engines(text: str) -> tuple[EngineChoice, ...]:
    """Reads a list of engines, such as `bireme,bireme:-clustering,duckdb`; ConfigError for unknown ones and levers."""
    engines = []
    for part in dict.fromkeys(part.strip() for part in text.split(",") if part.strip()):
        name, _, levers = part.partition(":")
        if name not in ENGINES or (levers and name != "bireme"):
            raise ConfigError(f"the engines are {', '.join(ENGINES)}, the first also as bireme:LEVERS, not {part!r}")
        levers_from(levers)
        engines.append(EngineChoice(name, levers))
    if not engines:
        raise ConfigError(f"the engines are {', '.join(ENGINES)}; {text!r} names none")
    return tuple(engines)

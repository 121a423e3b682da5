"""Which TPC-H queries a run is about: what people write, parsed; and their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import bireme
from bireme.errors import ConfigError

QUERY_COUNT: Final = 22


def parse_queries(text: str) -> list[int]:
    """Reads a selection such as `1,5-9`; ConfigError for anything else."""
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"cannot read {text!r} as a choice of queries; write for example 1,5-9")
        chosen += range(int(first), int(last if dash else first) + 1)
    wrong = [number for number in chosen if not 1 <= number <= QUERY_COUNT]
    if wrong or not chosen:
        raise ConfigError(f"TPC-H has the queries 1 to {QUERY_COUNT}; {text!r} asks for others")
    return list(dict.fromkeys(chosen))


def query_text(number: int) -> str:
    """The SQL of a TPC-H query with the specification's validation parameters."""
    package = Path(bireme.__file__).parent
    for folder in (package / "queries", package.parents[1] / "queries"):
        path = folder / "tpch" / f"q{number:02}.sql"
        if path.is_file():
            return path.read_text()
    raise ConfigError(f"the text of TPC-H query {number} is missing from this installation of bireme")

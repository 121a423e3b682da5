"""The frame of all micro-benchmarks: the same work on several engines, ns a row and GB/s, beside the byte floor.

A family of cases is a script that ends in

    run_family("group", cases, parser)

where `cases(options)` yields `Case`s. Time is processor time of this process, so that a busy machine disturbs it
little; engines take turns and the least of the runs counts, since whatever else runs only ever adds. Engines are to
use one thread, with their rows in memory before the clock runs, unless the case says otherwise.

The byte floor is the time in which this machine copies the bytes that the work must at least touch: inputs read once,
outputs written once. With `--json` every case and engine gives one JSON line; `micro_records` says what is in it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_COPY_BYTES = 32 << 20


@dataclass(frozen=True, kw_only=True)
class Case:
    """One piece of work. `works` maps the name of an engine to what does it; ours is `bireme`, and comes first.

    `floor_bytes` counts inputs and outputs, each once, in the smallest form in which an engine may hold them.
    """

    name: str
    rows: int
    floor_bytes: int
    works: Mapping[str, Callable[[], object]]


def copy_bytes_per_second() -> float:
    """Bytes read plus bytes written in a second by one thread that copies memory it has touched before."""
    source, target = np.ones(_COPY_BYTES, np.uint8), np.ones(_COPY_BYTES, np.uint8)
    return 2 * _COPY_BYTES / least_seconds({"copy": lambda: np.copyto(target, source)}, runs=9)["copy"]


def least_seconds(works: Mapping[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Processor seconds of each work: they take turns, the first round is not counted, the least of the others is."""
    least = dict.fromkeys(works, float("inf"))
    for run in range(runs + 1):
        for engine, work in works.items():
            start = time.process_time_ns()
            result = work()
            seconds = (time.process_time_ns() - start) / 1e9
            del result  # outside of the time: who frees a result is not who made it
            if run > 0:
                least[engine] = min(least[engine], seconds)
    return least


def micro_records(family: str, case: Case, seconds: Mapping[str, float], copy_speed: float) -> list[dict[str, Any]]:
    """What is written for one case: a record an engine."""
    return [
        {
            "suite": "micro",
            "family": family,
            "case": case.name,
            "engine": engine,
            "rows": case.rows,
            "ns_per_row": taken / case.rows * 1e9,
            "gb_per_second": case.floor_bytes / taken / 1e9,
            "floor_ns_per_row": case.floor_bytes / copy_speed / case.rows * 1e9,
        }
        for engine, taken in seconds.items()
    ]


def family_parser(description: str | None) -> argparse.ArgumentParser:
    """The options of every family; a script adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, default=None, help="also write JSON lines to this file")
    return parser


def run_family(family: str, cases: Callable[[Any], Iterable[Case]], parser: argparse.ArgumentParser) -> None:
    """Measures the chosen cases, prints a line for each, and writes the records."""
    options = parser.parse_args()
    copy_speed = copy_bytes_per_second()
    print(f"{family}: processor ns a row, one copying thread moves {copy_speed / 1e9:.1f} GB/s")
    records = []
    for case in cases(options):
        if options.only not in case.name:
            continue
        seconds = least_seconds(case.works, options.runs)
        found = micro_records(family, case, seconds, copy_speed)
        records += found
        print(_line(case, found), flush=True)
    if options.json is not None:
        options.json.write_text("".join(json.dumps(record) + "\n" for record in records))


def _line(case: Case, records: list[dict[str, Any]]) -> str:
    ours, *others = records
    engines = "  ".join(f"{record['engine']} {record['ns_per_row']:8.2f}" for record in records)
    ratio = f"  ratio {ours['ns_per_row'] / min(r['ns_per_row'] for r in others):5.2f}" if others else ""
    floor = f"floor {ours['floor_ns_per_row']:6.2f}"
    return f"{case.name:42} {case.rows:10} rows  {floor}  {engines}  {ours['gb_per_second']:6.2f} GB/s{ratio}"

"""Everything that is measured here, with one command: JSON lines and one HTML page.

    python bench/all.py --out results [--scale 10] [--rows 10000000] [--runs 5] [--threads 2] [--only hot,clickbench]

Writes `results.jsonl` (a first line about the machine and the command, then one for each query or case and engine) and
`index.html` into the folder. A section that fails is named at the end, in the page as well, and the others still run;
the exit code is then 1. Sections:

    cold        TPC-H at --scale from Parquet files
    cold-small  the same at a tenth of the scale: how the total grows
    small       TPC-H at scale 0.01, and a fresh process with one query: what a query costs besides its rows
    shuffled    TPC-H at --scale with the rows of every table in random order
    hot         TPC-H at --scale from what each engine holds in memory
    levers      TPC-H at a tenth of the scale with each lever of bireme off, and with none
    tpcds       the 99 TPC-DS queries at a tenth of the scale
    clickbench  ClickBench's questions over --rows rows
    h2o         db-benchmark's groupings and joins over --rows rows
    heavy       five queries at --scale whose state is far larger than 512 MB, under that limit
    micro       kernels, on the data of cold-small
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from page import page

from bireme.cli.tpch.data import cache_folder, tpch_folder
from bireme.config import Levers

HERE = Path(__file__).resolve().parent
PEERS = "bireme,duckdb,polars"


@dataclass(frozen=True, slots=True)
class Section:
    """One thing to run: `command` without its `--json`."""

    name: str
    title: str
    command: list[str]


def sections(options: argparse.Namespace) -> list[Section]:
    """All sections, in the order in which they run."""
    small = options.scale / 10
    levers = ",".join(["bireme", *[f"bireme:-{lever.name}" for lever in fields(Levers)], "bireme:none"])
    harness = ["--runs", str(options.runs), "--threads", str(options.threads), "--data", str(options.data)]
    rows = [*harness, "--rows", str(options.rows)]

    def tpch(scale: float, engines: str = PEERS, *more: str) -> list[str]:
        run = [sys.executable, "-m", "bireme.cli.main", "tpch", "--scale", f"{scale:g}", "--engines", engines]
        return [*run, *harness, *more]

    def script(name: str, *more: str) -> list[str]:
        return [sys.executable, str(HERE / name), *more]

    found = [
        Section("cold", f"TPC-H at scale {options.scale:g}, from Parquet", tpch(options.scale)),
        Section("cold-small", f"TPC-H at scale {small:g}, from Parquet", tpch(small)),
        Section(
            "shuffled",
            f"TPC-H at scale {options.scale:g}, rows in random order",
            tpch(options.scale, PEERS, "--shuffled"),
        ),
        Section("hot", f"TPC-H at scale {options.scale:g}, from memory", tpch(options.scale, PEERS, "--hot")),
        Section("levers", f"TPC-H at scale {small:g}, levers of bireme off", tpch(small, levers)),
        Section(
            "tpcds",
            f"TPC-DS at scale {small:g}, from Parquet",
            script("tpcds.py", "--scale", f"{small:g}", *harness),
        ),
        Section("clickbench", f"ClickBench, {options.rows:,} rows", script("clickbench.py", *rows)),
        Section("h2o", f"db-benchmark, {options.rows:,} rows", script("dbbench.py", *rows)),
    ]
    data = options.data / f"tpch-sf{small:g}"
    heavy = ["--scale", f"{options.scale:g}", "--memory-limit", "512MB", *harness]
    found.append(Section("heavy", f"Heavy state at scale {options.scale:g}, 512 MB", script("heavy_state.py", *heavy)))
    runs = ["--runs", str(options.runs)]
    lineitem = str(data / "lineitem.parquet")
    kernels = {
        "scan": [lineitem],
        "decode": [lineitem],
        "expression": [lineitem],
        "tables": ["--data", str(data)],
        "strings": ["--data", str(data)],
        "functions": ["--rows", str(options.rows // 50)],
        "join": ["--rows", str(options.rows // 10), "--probes", str(options.rows // 5 * 2)],
    }
    tiny = str(options.data / "tpch-sf0.01")
    found.append(Section("small", "TPC-H at scale 0.01, and a fresh process", script("small.py", tiny, *runs)))
    for family, arguments in kernels.items():
        found.append(Section(f"micro-{family}", f"Kernels: {family}", script(f"micro/{family}.py", *arguments, *runs)))
    return found


def chosen(options: argparse.Namespace) -> list[Section]:
    """The sections asked for; `micro` is all of its families."""
    every = sections(options)
    wanted = [name for name in options.only.split(",") if name]
    unknown = [name for name in wanted if name != "micro" and name not in [section.name for section in every]]
    if unknown:
        raise SystemExit(f"there are no sections called {', '.join(unknown)}")
    return [
        section
        for section in every
        if not wanted or section.name in wanted or ("micro" in wanted and section.name.startswith("micro-"))
    ]


def run(section: Section, folder: Path) -> tuple[list[dict[str, Any]], str | None]:
    """The records of a section, and what went wrong."""
    lines = folder / f"{section.name}.jsonl"
    lines.unlink(missing_ok=True)
    command = [*section.command, "--json", str(lines)]
    print(f"\n=== {section.title}\n{shlex.join(command)}", flush=True)
    code = subprocess.run(command, check=False).returncode
    found = [json.loads(line) for line in lines.read_text().splitlines()] if lines.is_file() else []
    records = [{"section": section.name, "title": section.title, **record} for record in found]
    return records, None if code == 0 else f"{section.name} ended with exit code {code}"


def about(arguments: list[str]) -> dict[str, Any]:
    """The machine, the versions and the command."""
    packages = ("pyarrow", "duckdb", "polars", "numpy")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "command": shlex.join(["python", "bench/all.py", *arguments]),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--scale", type=float, default=10.0)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=cache_folder(), help="folder that keeps the generated data")
    parser.add_argument("--only", default="", help="sections, separated by commas; all without it")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for scale in (options.scale / 10, 0.01):
        tpch_folder(scale, options.data)
    records: list[dict[str, Any]] = []
    failures = []
    machine = about(arguments)
    for section in chosen(options):
        found, failure = run(section, options.out)
        records += found
        failures += [failure] if failure else []
        # After each section, lest a long run that is broken off leaves nothing.
        lines = [machine | {"failures": failures}, *records]
        (options.out / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (options.out / "index.html").write_text(page(lines[0], records))
    print(f"\n{options.out / 'index.html'}", *failures, sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

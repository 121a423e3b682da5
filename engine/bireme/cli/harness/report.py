"""What a harness run has to say: a table for people, JSON lines for programs, ratios between engines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bireme.units import format_bytes


@dataclass(slots=True)
class QueryReport:
    """One query on one engine, over all runs. `checked` is None where there was nothing to check against."""

    query: str
    engine: str
    seconds: list[float] = field(default_factory=list)
    rows: int = 0
    peak_bytes: int = 0
    checked: bool | None = None
    error: str | None = None

    @property
    def median_seconds(self) -> float:
        return median(self.seconds) if self.seconds else math.nan

    @property
    def failed(self) -> bool:
        return self.error is not None or self.checked is False

    def as_json(self, **context: Any) -> str:
        values = {
            "query": self.query, "engine": self.engine, "seconds": self.seconds, "rows": self.rows,
            "checked": self.checked, "peak_bytes": self.peak_bytes, "error": self.error,
        }  # fmt: skip
        return json.dumps(context | values)


Reports = dict[tuple[str, str], QueryReport]
"""By query and label of the engine."""


def write_json(path: Path, reports: Iterable[QueryReport], **context: Any) -> None:
    """One JSON line per query and engine; `context` (suite, scale, threads, …) is on every line."""
    path.write_text("".join(report.as_json(**context) + "\n" for report in reports))


def print_table(console: Console, title: str, engines: Sequence[str], reports: Reports) -> None:
    """Seconds (medians), rows, whether the answer was right, peak memory; with several engines, ratios to bireme."""
    table = Table(title=title, title_justify="left")
    columns = ["query", "rows", *(name for engine in engines for name in (f"{engine} s", "checked", "peak"))]
    for name in columns:
        table.add_column(name, justify="left" if name == "checked" else "right", no_wrap=True)
    for query in dict.fromkeys(query for query, _ in reports):
        cells = [query, str(reports[query, engines[0]].rows)]
        for engine in engines:
            cells += _cells(reports[query, engine])
        table.add_row(*cells)
    totals = ["all", ""]
    for engine in engines:
        mine = [report for (_, name), report in reports.items() if name == engine]
        totals += [
            f"{sum(report.median_seconds for report in mine if report.seconds):.3f}",
            _verdict(mine),
            _peak(mine),
        ]
    table.add_section()
    table.add_row(*totals)
    # A pipe has no width of its own, and a table that is cut helps nobody.
    console.width = max(console.width, 14 * len(columns))
    console.print(table)
    for line in _failures(reports.values()):
        console.print(line, style="red", markup=False, highlight=False)
    for line in [*ratios(engines, reports), *to_fastest(engines, reports)]:
        console.print(line, highlight=False)


def _cells(report: QueryReport) -> list[str]:
    seconds = "failed" if report.error else f"{report.median_seconds:.3f}"
    return [seconds, {True: "yes", False: "NO", None: "-"}[report.checked], format_bytes(report.peak_bytes)]


def _verdict(reports: Sequence[QueryReport]) -> str:
    right = sum(report.checked is True for report in reports)
    return f"{right} of {len(reports)}"


def _peak(reports: Sequence[QueryReport]) -> str:
    return format_bytes(max((report.peak_bytes for report in reports), default=0))


def _failures(reports: Iterable[QueryReport]) -> list[str]:
    return [f"{report.query} on {report.engine}: {report.error}" for report in reports if report.error is not None]


def ratios(engines: Sequence[str], reports: Reports) -> list[str]:
    """For each engine after the first, how its times compare with the first's, on the queries that both finished."""
    lines = []
    for engine in engines[1:]:
        pairs = [
            (reports[query, engines[0]].median_seconds, report.median_seconds)
            for (query, name), report in reports.items()
            if name == engine and not report.error and not reports[query, engines[0]].error
        ]
        if pairs:
            total = sum(first for first, _ in pairs) / sum(other for _, other in pairs)
            mean = _geometric_mean([first / other for first, other in pairs])
            lines.append(
                f"{engines[0]} / {engine}: total {total:.2f}, geometric mean {mean:.2f} over {len(pairs)} queries"
            )
    return lines


def to_fastest(engines: Sequence[str], reports: Reports) -> list[str]:
    """How the first engine compares, query by query, with the fastest engine of another name."""
    name = engines[0].partition(":")[0]
    peers = [engine for engine in engines if engine.partition(":")[0] != name]
    quotients = {
        query: reports[query, engines[0]].median_seconds / min(times)
        for query in dict.fromkeys(query for query, _ in reports)
        if not reports[query, engines[0]].error
        and (times := [reports[query, peer].median_seconds for peer in peers if not reports[query, peer].error])
    }
    if not quotients or len(peers) < 2:
        return []
    worst = max(quotients, key=lambda query: quotients[query])
    mean = _geometric_mean(list(quotients.values()))
    return [
        f"{engines[0]} / the faster of {' and '.join(peers)}: geometric mean {mean:.2f}, "
        f"worst {quotients[worst]:.2f} ({worst}) over {len(quotients)} queries"
    ]


def _geometric_mean(quotients: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, quotients)) / len(quotients))

"""Measured records as one HTML page: a summary, then a chart and a table for each section; nothing else is loaded.

    python bench/page.py results/results.jsonl > page.html

A chart has a row for each query, with a dot for each engine on a logarithmic scale of seconds (or nanoseconds a row),
and beside it how the first engine compares with the fastest other one: a bar to the left of 1 is faster. Where the
others are the first engine with levers off, notes say what each lever brings.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

COLOURS = ("#0b63b5", "#e0a100", "#c2367a", "#3b8f3e", "#7a5bd0", "#8a8a8a", "#13a3a3")
ROW, LABEL, DOTS, RATIOS, TOP = 18, 170, 430, 260, 28
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """The values of a section by row and engine, the first engine's first. `floors` are marks that no engine passes."""

    name: str
    title: str
    unit: str
    rows: list[str]
    engines: list[str]
    values: dict[tuple[str, str], float]
    floors: dict[str, float]
    notes: list[str]

    @property
    def peers(self) -> list[str]:
        """The engines of another name; `bireme:-clustering` is bireme."""
        return [engine for engine in self.engines if engine.partition(":")[0] != self.engines[0]]

    def ratio(self, row: str) -> float | None:
        """The first engine's value over the least of those of other engines."""
        others = [self.values[row, engine] for engine in self.peers if (row, engine) in self.values]
        ours = self.values.get((row, self.engines[0]))
        return None if ours is None or not others else ours / min(others)


def tables(records: Sequence[Record]) -> list[Table]:
    """A table for each section, in their order."""
    by_section: dict[str, list[Record]] = {}
    for record in records:
        by_section.setdefault(record["section"], []).append(record)
    return [_table(name, found) for name, found in by_section.items()]


def _table(name: str, records: Sequence[Record]) -> Table:
    micro = records[0]["suite"] == "micro"
    row = "case" if micro else "query"
    values, floors, notes = {}, {}, []
    for record in records:
        if record.get("error"):
            notes.append(f"{record[row]} on {record['engine']}: {record['error']}")
        elif micro:
            values[record[row], record["engine"]] = record["ns_per_row"]
            floors[record[row]] = record["floor_ns_per_row"]
        elif record["seconds"]:
            values[record[row], record["engine"]] = median(record["seconds"])
    peaks: dict[str, int] = {}
    for record in records:
        peaks[record["engine"]] = max(peaks.get(record["engine"], 0), record.get("peak_bytes", 0))
    if any(peaks.values()):
        notes.insert(0, "Peak resident memory: " + ", ".join(f"{e} {b / 2**20:,.0f} MiB" for e, b in peaks.items()))
    rows, engines = (list(dict.fromkeys(record[key] for record in records)) for key in (row, "engine"))
    return Table(name, records[0]["title"], "ns a row" if micro else "s", rows, engines, values, floors, notes)


def variants(table: Table) -> list[str]:
    """What each variant of the first engine, with a lever off, costs against all levers on."""
    lines = []
    for engine in table.engines[1:]:
        if engine in table.peers:
            continue
        slower = {
            row: table.values[row, engine] / table.values[row, table.engines[0]]
            for row in table.rows
            if (row, engine) in table.values and (row, table.engines[0]) in table.values
        }
        if slower:
            most = max(slower, key=lambda row: slower[row])
            mean = geometric_mean(slower.values())
            lines.append(f"{engine} takes {mean:.2f} × as long (geometric mean), {slower[most]:.2f} × in {most}")
    return lines


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


# -------------------------------------------------------------------------------------------------- the chart


class Scale:
    """A logarithmic scale over some values, drawn between two positions."""

    def __init__(self, values: Iterable[float], left: float, right: float) -> None:
        present = [value for value in values if value > 0] or [1.0]
        self.low, self.high = math.floor(math.log10(min(present))), math.ceil(math.log10(max(present)))
        self.high = max(self.high, self.low + 1)
        self.left, self.right = left, right

    def at(self, value: float) -> float:
        share = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)

    def ticks(self) -> list[float]:
        return [10.0**exponent for exponent in range(self.low, self.high + 1)]


def chart(table: Table) -> str:
    """The SVG of a table."""
    height = TOP + ROW * len(table.rows) + 8
    scale = Scale([*table.values.values(), *table.floors.values()], LABEL + 10, LABEL + DOTS - 20)
    parts = [_grid(scale, height, ratios=bool(table.peers))]
    for index, row in enumerate(table.rows):
        y = TOP + ROW * index + ROW / 2
        parts.append(f'<text x="{LABEL}" y="{y + 4}" text-anchor="end">{escape(_short(row))}</text>')
        parts += _dots(table, row, scale, y)
        parts += _bar(table.ratio(row), y)
    width = LABEL + DOTS + RATIOS
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'


def _short(label: str) -> str:
    return label if len(label) <= 30 else label[:29] + "…"


def _grid(scale: Scale, height: float, *, ratios: bool) -> str:
    lines = []
    for tick in scale.ticks():
        x = scale.at(tick)
        lines.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height}" class="grid"/>')
        lines.append(f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle">{tick:g}</text>')
    x = _ratio_at(1.0)
    if ratios:
        lines.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height}" class="axis"/>')
        lines.append(f'<text x="{x}" y="{TOP - 12}" text-anchor="middle">1 × the fastest other</text>')
    return "".join(lines)


def _dots(table: Table, row: str, scale: Scale, y: float) -> list[str]:
    parts = []
    if row in table.floors:
        x = scale.at(table.floors[row])
        parts.append(f'<line x1="{x:.1f}" y1="{y - 6}" x2="{x:.1f}" y2="{y + 6}" class="floor"/>')
    # The first engine last, so that no other hides it.
    for index, engine in reversed(list(enumerate(table.engines))):
        value = table.values.get((row, engine))
        if value is not None:
            hint = f"{escape(row)}, {escape(engine)}: {value:.4g} {table.unit}"
            parts.append(
                f'<circle cx="{scale.at(value):.1f}" cy="{y}" r="{5 if index == 0 else 4}" fill="{_colour(index)}">'
                f"<title>{hint}</title></circle>"
            )
    return parts


def _bar(ratio: float | None, y: float) -> list[str]:
    if ratio is None:
        return []
    middle, end = _ratio_at(1.0), _ratio_at(ratio)
    left, width = min(middle, end), abs(end - middle)
    colour = "#2f9e44" if ratio <= 1 else "#c92a2a"
    x, anchor = (end - 4, "end") if ratio <= 1 else (end + 4, "start")
    return [
        f'<rect x="{left:.1f}" y="{y - 5}" width="{width:.1f}" height="10" fill="{colour}"/>',
        f'<text x="{x:.1f}" y="{y + 4}" text-anchor="{anchor}">{ratio:.2f}</text>',
    ]


def _ratio_at(ratio: float) -> float:
    """From an eighth to eight times, by powers of two."""
    exponent = max(-3.0, min(3.0, math.log2(ratio)))
    return LABEL + DOTS + RATIOS / 2 + exponent * (RATIOS / 2 - 40) / 3


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


# ---------------------------------------------------------------------------------------------------- the page


def page(machine: Record, records: Sequence[Record]) -> str:
    """The whole page."""
    found = tables(records)
    body = [
        "<h1>bireme, measured</h1>",
        f"<p>{escape(machine['date'])} · {escape(machine['processor'])}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB · {escape(machine['system'])}, Python {escape(machine['python'])}, "
        + ", ".join(f"{escape(name)} {escape(version)}" for name, version in machine["versions"].items())
        + f"</p><p><code>{escape(machine['command'])}</code></p>",
        *[f'<p class="bad">{escape(failure)}</p>' for failure in machine.get("failures", [])],
        _summary(found),
        *[_section(table) for table in found],
    ]
    return f"<!doctype html><meta charset=utf-8><title>bireme, measured</title><style>{_STYLE}</style>{''.join(body)}\n"


_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222}svg text{font-size:11px;fill:#333}"
    ".grid{stroke:#e4e4e4}.axis{stroke:#888}.floor{stroke:#000;stroke-width:2}table{border-collapse:collapse}"
    "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #eee}"
    "td:first-child,th:first-child{text-align:left}"
    ".bad{color:#c92a2a}.key{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin:0 .3em 0 1em}"
)


def _summary(found: Sequence[Table]) -> str:
    head = "<tr><th>section<th>compared<th>geometric mean<th>worst<th>total of the first engine</tr>"
    return f"<h2>Summary: the first engine over the fastest other</h2><table>{head}{''.join(map(_line, found))}</table>"


def _line(table: Table) -> str:
    ratios = {row: ratio for row in table.rows if (ratio := table.ratio(row)) is not None}
    if not ratios:
        return f"<tr><td>{escape(table.title)}<td>0<td>-<td>-<td>-</tr>"
    worst = max(ratios, key=lambda row: ratios[row])
    total = sum(value for (_, engine), value in table.values.items() if engine == table.engines[0])
    return (
        f'<tr><td><a href="#{escape(table.name)}">{escape(table.title)}</a><td>{len(ratios)} of {len(table.rows)}'
        f"<td>{geometric_mean(ratios.values()):.2f}<td>{ratios[worst]:.2f} ({escape(worst)})"
        f"<td>{f'{total:.2f} s' if table.unit == 's' else '-'}</tr>"
    )


def _section(table: Table) -> str:
    keys = "".join(
        f'<span class="key" style="background:{_colour(index)}"></span>{escape(engine)}'
        for index, engine in enumerate(table.engines)
    )
    head = "".join(f"<th>{escape(engine)}" for engine in table.engines)
    lines = "".join(
        f"<tr><td>{escape(row)}" + "".join(f"<td>{_cell(table, row, engine)}" for engine in table.engines) + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in [*variants(table), *table.notes])
    floor = "; the black mark is the byte floor" if table.floors else ""
    return (
        f'<h2 id="{escape(table.name)}">{escape(table.title)}</h2><p>{table.unit}{floor}{keys}</p>{chart(table)}{notes}'
        f"<details><summary>Figures</summary><table><tr><th>{table.unit}{head}</tr>{lines}</table></details>"
    )


def _cell(table: Table, row: str, engine: str) -> str:
    value = table.values.get((row, engine))
    return "-" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    first, *others = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    sys.stdout.write(page(first, others))

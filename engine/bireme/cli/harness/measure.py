"""Runs a workload: engines take turns query by query, each in a process of its own, and every answer is checked.

Which engine goes first rotates. Answers are checked against DuckDB, which runs unmeasured when it is not among the
engines. An engine that cannot answer a query is left out of it from then on, and its report says why.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from bireme.cli.harness.answers import difference, order_columns
from bireme.cli.harness.engine_process import EngineProcess, read_answer
from bireme.cli.harness.limited import Limited, limited, limited_difference
from bireme.cli.harness.report import QueryReport, Reports
from bireme.cli.harness.workload import EngineChoice, Setup, Workload
from bireme.errors import ConfigError

ORACLE: Final = EngineChoice("duckdb")


def measure(workload: Workload, setup: Setup) -> Reports:
    """The reports by query and label of the engine, in the order of the workload and the setup."""
    reports = {
        (query, engine.label): QueryReport(query, engine.label)
        for query in workload.queries
        for engine in setup.engines
    }
    with tempfile.TemporaryDirectory(prefix="bireme-measure-") as scratch, _Processes(workload, setup) as processes:
        oracle = _Oracle(processes, workload, Path(scratch))
        for run_number in range(setup.runs):
            for count, query in enumerate(workload.queries):
                _progress(run_number * len(workload.queries) + count + 1, setup.runs * len(workload.queries), query)
                turn = (run_number + count) % len(setup.engines)
                for engine in setup.engines[turn:] + setup.engines[:turn]:
                    report = reports[query, engine.label]
                    answer = Path(scratch) / "answer.arrow" if run_number == 0 else None
                    if setup.hot and run_number == 0:
                        processes.of(engine).run(workload.text(query, engine), None)
                    _run_one(processes.of(engine), workload.text(query, engine), report, answer)
                    processes.ran(engine)
                    if answer is not None and report.error is None:
                        oracle.check(report, answer)
                        answer.unlink()
    _progress(0, 0, "")
    return reports


class _Processes:
    """A process for each engine, and one for the oracle; with `fresh` one for each run."""

    def __init__(self, workload: Workload, setup: Setup) -> None:
        self._workload = workload
        self._setup = setup
        self._open: dict[EngineChoice, EngineProcess] = {}

    def __enter__(self) -> _Processes:
        try:
            for engine in self._setup.engines:
                self.of(engine)
                self.ran(engine)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def of(self, engine: EngineChoice) -> EngineProcess:
        """Raises ConfigError where the engine cannot be opened."""
        if engine not in self._open:
            setup = self._setup
            if engine not in setup.engines:  # the oracle, which is not measured
                setup = replace(setup, memory_limit=None, hot=False, cache=False)
            self._open[engine] = EngineProcess(engine, self._workload.tables, setup)
        return self._open[engine]

    def ran(self, engine: EngineChoice) -> None:
        """A run of the engine has ended."""
        if self._setup.fresh:
            self._open.pop(engine).close()

    def _close(self) -> None:
        for process in self._open.values():
            process.close()
        self._open.clear()


def _run_one(process: EngineProcess, sql: str, report: QueryReport, answer: Path | None) -> None:
    if report.error is not None:
        return
    ran = process.run(sql, answer)
    report.error = ran.error
    report.peak_bytes = max(report.peak_bytes, ran.peak_bytes)
    if ran.error is None:
        report.seconds.append(ran.seconds)
        report.rows = ran.rows


class _NoAnswer(Exception):
    """The oracle itself has no answer."""


class _Oracle:
    """Right answers, each asked for once. Those of one query are kept at a time."""

    def __init__(self, processes: _Processes, workload: Workload, scratch: Path) -> None:
        self._processes = processes
        self._workload = workload
        self._scratch = scratch
        self._kept: tuple[str, pa.Table] | None = None
        self._is_there = True
        try:
            processes.of(ORACLE)
        except ConfigError as error:
            print(f"answers are not checked: {error}", file=sys.stderr)
            self._is_there = False

    def check(self, report: QueryReport, answer: Path) -> None:
        """Says in the report whether the answer in the file is right."""
        if not self._is_there:
            return
        sql = self._workload.queries[report.query]
        cut = limited(sql)
        try:
            right = self._answer(sql if cut is None else cut.first)
            ours = read_answer(answer)
            if cut is None:
                differs = difference(ours, right, order_columns(sql))
            else:
                differs = limited_difference(ours, right, cut, order_columns(sql), lambda rows: self._like(cut, rows))
        except _NoAnswer as error:
            print(f"\n{report.query} is not checked: {error}", file=sys.stderr)
            return
        report.checked = differs is None
        if differs is not None:
            report.error = f"wrong answer: {differs}"

    def _answer(self, sql: str) -> pa.Table:
        if self._kept is None or self._kept[0] != sql:
            self._kept = None
            self._kept = sql, self._run(sql)
        return self._kept[1]

    def _like(self, cut: Limited, rows: pa.Table) -> pa.Table:
        """Rows of the query without its limit that may equal the given ones."""
        wanted = self._scratch / "wanted.parquet"
        pq.write_table(rows.rename_columns(cut.column_names(rows.num_columns)), wanted)
        return self._run(cut.rows_like(wanted, rows.schema))

    def _run(self, sql: str) -> pa.Table:
        answer = self._scratch / "right.arrow"
        answer.unlink(missing_ok=True)  # what was read of it stays
        ran = self._processes.of(ORACLE).run(sql, answer)
        self._processes.ran(ORACLE)
        if ran.error is not None:
            raise _NoAnswer(ran.error)
        return read_answer(answer)


def _progress(done: int, total: int, query: str) -> None:
    if not sys.stderr.isatty():
        return
    line = f"\r{done}/{total}  {query} …" if total else "\r"
    print(f"{line:<30}", end="\r", file=sys.stderr, flush=True)

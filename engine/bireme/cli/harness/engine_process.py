"""One engine in a process of its own: requests on standard input, answers on standard output, a JSON line each.

The parent's side is `EngineProcess`. Results travel as Arrow IPC files, outside of the measured time. The child is
started as a module, so nothing of the parent's memory or threads is in its figures.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bireme.cli.harness.engines import Engine, Opening, open_engine
from bireme.cli.harness.workload import EngineChoice, Setup
from bireme.errors import BiremeError, ConfigError


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one query: seconds, rows, and the process's peak resident bytes while it ran; or an error."""

    seconds: float
    rows: int
    peak_bytes: int
    error: str | None = None


class EngineProcess:
    """The parent's handle on a child that runs one engine."""

    def __init__(self, engine: EngineChoice, tables: Mapping[str, Path], setup: Setup) -> None:
        self.engine = engine
        command = [sys.executable, "-m", "bireme.cli.harness.engine_process"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        opened = self._ask(
            engine=engine.name,
            tables={table: str(path) for table, path in tables.items()},
            threads=setup.threads,
            memory_limit=setup.memory_limit,
            hot=setup.hot,
            cache=setup.cache,
            levers=engine.levers,
        )
        if opened.get("error"):
            self.close()
            raise ConfigError(str(opened["error"]))

    def run(self, sql: str, result: Path | None) -> Ran:
        """Runs a query; the result goes to the file `result`, if given."""
        return Ran(**self._ask(sql=sql, result=None if result is None else str(result)))

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._child.wait()
            return {
                "seconds": 0.0,
                "rows": 0,
                "peak_bytes": 0,
                "error": f"the process of {self.engine.label} died ({code})",
            }
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the child."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()


def _serve() -> None:
    opening = json.loads(sys.stdin.readline())
    try:
        tables = {table: Path(path) for table, path in opening.pop("tables").items()}
        engine = open_engine(opening.pop("engine"), Opening(tables=tables, **opening))
    except Exception as error:  # whatever a foreign engine raises is an answer, not a crash
        _answer(error=_text(error))
        return
    _answer(error=None)
    for line in sys.stdin:
        request = json.loads(line)
        _answer(**_run(engine, request["sql"], request["result"]))


def _run(engine: Engine, sql: str, result: str | None) -> dict[str, Any]:
    _forget_peak()
    start = time.perf_counter()
    try:
        table = engine.run(sql)
    except Exception as error:
        return {"seconds": time.perf_counter() - start, "rows": 0, "peak_bytes": peak_bytes(), "error": _text(error)}
    seconds = time.perf_counter() - start
    peak = peak_bytes()
    if result is not None:
        write_answer(table, result)
    return {"seconds": seconds, "rows": table.num_rows, "peak_bytes": peak, "error": None}


def write_answer(table: pa.Table, path: str) -> None:
    """Writes an answer for `read_answer`."""
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read_answer(path: Path) -> pa.Table:
    """The answer that another process wrote. It lies in the file, which may be removed and not be changed."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _text(error: Exception) -> str:
    kind = "" if isinstance(error, BiremeError) else f"{type(error).__name__}: "
    return f"{kind}{error}".strip() or type(error).__name__


def _answer(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def _forget_peak() -> None:
    """Starts a new peak for the resident set; where the kernel offers no such thing, peaks are of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_bytes() -> int:
    """The peak of the resident set of this process."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    _serve()

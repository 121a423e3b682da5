"""One query on one engine, as a process of its own: what it took, as a line of JSON; the answer goes to a file.

    python bench/one_run.py '{"engine": "bireme", "sql": ..., "lineitem": ..., "to": ..., "answer": ..., "limit": ...,
                              "threads": 2, "scratch": ...}'

Only the engine that runs is loaded, so that the peak of the resident set is its own. With `to` the rows go to that
Parquet file, without it to the Arrow file `answer`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import pyarrow as pa

from bireme.cli.harness.engine_process import peak_bytes, write_answer
from bireme.units import parse_bytes


def run_bireme(sql: str, lineitem: str, to: str, limit: str, threads: int, scratch: str) -> pa.Table | None:
    """The answer; or None, and it is in the Parquet file `to`."""
    import bireme

    with bireme.connect(threads=threads, memory_limit=limit, spill_folder=scratch) as session:
        session.register("lineitem", lineitem)
        frame = session.sql(sql)
        if not to:
            return frame.collect()
        frame.sink_parquet(to)
    return None


def run_duckdb(sql: str, lineitem: str, to: str, limit: str, threads: int, scratch: str) -> pa.Table | None:
    """The answer; or None, and it is in the Parquet file `to`."""
    import duckdb

    settings = f"set threads = {threads}; set memory_limit = '{parse_bytes(limit)}B'; set temp_directory = '{scratch}'"
    with duckdb.connect() as connection:
        connection.execute(settings)
        connection.execute(f"create view lineitem as select * from read_parquet('{lineitem}')")
        if not to:
            return connection.sql(sql).to_arrow_table()
        connection.execute(f"copy ({sql}) to '{to}' (format parquet)")
    return None


def main(request: dict[str, Any]) -> None:
    run = {"bireme": run_bireme, "duckdb": run_duckdb}[request.pop("engine")]
    answer = request.pop("answer")
    start = time.perf_counter()
    error, table = None, None
    try:
        table = run(**request)
    except Exception as fault:  # whatever an engine raises is a result
        error = f"{type(fault).__name__}: {fault}"
    seconds = time.perf_counter() - start
    used, peak = resource.getrusage(resource.RUSAGE_SELF), peak_bytes()
    if table is not None:
        write_answer(table, answer)
    figures = {
        "seconds": seconds, "processor_seconds": used.ru_utime + used.ru_stime,
        "rows": 0 if table is None else table.num_rows, "peak_bytes": peak, "error": error,
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

"""Ctrl-C cancels the query and leaves the session usable. In a process of its own: the signal is real."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# Minutes of work each: pairs of all rows, and many matches a row with a residual, inside one task.
QUERIES = (
    "select count(*) from t a, t b where (a.n * b.n) % 7 = 3",
    "select count(*) from t a join t b on a.n % 2 = b.n % 2 and a.n * 3 > b.n",
)
PROGRAM = """
import sys
import pyarrow as pa
import bireme as bm

session = bm.connect(threads=2)
session.register("t", pa.table({"n": list(range(60_000))}))
print("ready", flush=True)
try:
    session.sql(sys.argv[1]).collect()
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(session.sql("select max(n) as m from t").collect().column("m").to_pylist()[0], flush=True)
print(session.statistics().queries, flush=True)
session.close()
"""


@pytest.mark.parametrize("query", QUERIES)
def test_interrupt(query: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, query], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # the query is under way
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=60)
    assert output.split() == ["interrupted", "59999", "0"]
    assert child.returncode == 0

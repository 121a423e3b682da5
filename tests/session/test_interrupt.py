"""Ctrl-C cancels the query and leaves the session usable. In a process of its own: the signal is real."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

PROGRAM = """
import pyarrow as pa
import bireme as bm

session = bm.connect(threads=2)
session.register("t", pa.table({"n": list(range(20_000))}))
print("ready", flush=True)
try:
    # 4e8 pairs: minutes of work.
    session.sql("select count(*) from t a, t b where (a.n * b.n) % 7 = 3").collect()
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(session.sql("select max(n) as m from t").collect().column("m").to_pylist()[0], flush=True)
print(session.statistics().queries, flush=True)
session.close()
"""


def test_interrupt() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # the query is under way
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=60)
    assert output.split() == ["interrupted", "19999", "0"]
    assert child.returncode == 0

"""Lists and texts of all rows: what fits is given, in order and within the promise; what does not is refused by name,
and the next query is answered.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from whole.test_memory_promise import peak_of

import bireme as bm
from bireme.backends.reference.groups import ReferenceGroupTable
from bireme.config import PROCESS_BYTES
from bireme.data.types import STRING, list_of
from bireme.errors import ValueTooLarge
from bireme.plan.physical import AggregateStep, GroupSpec
from bireme.units import MIB

LIMIT = 32 * MIB
ROWS = 400_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of 40 MB, of which nearly all have one key."""
    made = tmp_path_factory.mktemp("values")
    draw = np.random.default_rng(5)
    number = draw.permutation(ROWS)
    texts = [f"{each:0100d}" if each % 7 else None for each in number.tolist()]
    key = np.where(number % 1000 == 0, number // 1000, -1)
    pq.write_table(pa.table({"k": key, "n": number, "s": texts}), made / "t.parquet", row_group_size=20_000)
    return made


FITS = (
    "select list(s) from t where n % 4 = 1",
    "select string_agg(s, ';') from t where n % 4 = 1",
    "select string_agg(s, ';' order by n desc) from t where n % 4 = 1",
    "select string_agg(distinct s, ',' order by s) from t where n % 8 = 1",
    "select list(n order by n) filter (where n % 3 = 0), string_agg(s, ',') from t where n % 8 = 1",
    "select k, list(n), string_agg(s, ','), sum(n), first(n) from t where n % 4 < 1 group by k order by k",
    "select n % 1000 as k, list(s), count(*) from t group by 1 order by 1",
)
TOO_LARGE = (
    ("select list(s) from t", "list()"),
    ("select string_agg(s, ';') from t", "string_agg()"),
    ("select string_agg(s, ';' order by n) from t", "string_agg()"),
    ("select string_agg(distinct s, ',') from t", "string_agg()"),
    ("select list(s) filter (where n > 5) from t", "FILTER"),
    ("select k, string_agg(s, ',') from t group by k", "string_agg()"),
    ("select k, count(*), list(s order by n) from t group by k", "list()"),
)


@pytest.mark.parametrize("text", FITS)
def test_values_that_fit_are_those_of_duckdb(text: str, folder: Path) -> None:
    with bm.connect(threads=2, memory_limit=LIMIT) as session:
        session.register("t", folder / "t.parquet")
        found = session.sql(text).collect()
    with duckdb.connect() as oracle:
        oracle.execute("set threads = 1")
        oracle.execute(f"create view t as from '{folder / 't.parquet'}'")
        expected = oracle.sql(text).fetchall()
    columns = [column.to_pylist() for column in found.columns]
    assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(("text", "name"), TOO_LARGE)
def test_values_that_do_not_fit_are_refused_by_name(text: str, name: str, folder: Path) -> None:
    with bm.connect(threads=2, memory_limit=LIMIT) as session:
        session.register("t", folder / "t.parquet")
        with pytest.raises(ValueTooLarge, match=r"MiB .*raise the memory limit, or aggregate less") as caught:
            session.sql(text).collect()
        assert name in str(caught.value)
        assert session.sql("select count(s) from t where n % 7 > 0").collect().column(0)[0].as_py() == 342_857


def test_a_row_too_large_for_an_encoder_is_refused(folder: Path, tmp_path: Path) -> None:
    with bm.connect(threads=2, memory_limit=LIMIT) as session:
        session.register("t", folder / "t.parquet")
        frame = session.sql("select string_agg(s, ',') from t where n % 4 = 1")
        with pytest.raises(ValueTooLarge, match=r"encoded as Parquet.*raise the memory limit, collect"):
            frame.sink_parquet(tmp_path / "r.parquet")
        assert not (tmp_path / "r.parquet").exists()
        small = session.sql("select string_agg(s, ',') as s from t where n % 16 = 1")
        small.sink_parquet(tmp_path / "r.parquet")
        assert pq.read_table(tmp_path / "r.parquet").equals(small.collect().cast(pa.schema([("s", pa.string())])))


def test_one_long_row_among_short_ones_has_a_row_group_of_its_own(tmp_path: Path) -> None:
    texts = ["x" * (4 * MIB if each == 70 else each) for each in range(128)]
    pq.write_table(pa.table({"i": range(128), "s": texts}), tmp_path / "t.parquet")
    with bm.connect(threads=2, memory_limit=LIMIT) as session:
        session.register("t", tmp_path / "t.parquet")
        session.sql("select i, s || 'y' as s from t").sink_parquet(tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet").column("s").to_pylist() == [text + "y" for text in texts]


def test_more_text_than_arrow_has_room_for_is_refused_before_it_is_copied() -> None:
    text = pa.py_buffer(np.zeros(1 << 30, np.uint8))
    values = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1 << 30], np.int32)), text])
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), values, type=pa.list_(pa.field("item", pa.string())))
    table = ReferenceGroupTable(GroupSpec((), (AggregateStep("collect", 0, STRING, list_of(STRING)),)))
    for place in range(3):
        table.merge(pa.record_batch([lists, pa.array([place], pa.int64())], ["s0", "s1"]))
    with pytest.raises(ValueTooLarge, match="3 GiB"):
        table.finish()


def _length(text: str) -> str:
    """A query that has the value and gives its length only: what is given to a caller is the caller's memory."""
    return f"select length(x) as n from ({text.replace(' from t', ' as x from t', 1)}) as made"


@pytest.mark.parametrize("text", FITS[:4])
def test_values_that_fit_keep_the_promise(text: str, folder: Path, tmp_path: Path) -> None:
    kept = 12 * MIB if "order by" in text else 0
    assert peak_of([_length(text)], tmp_path, limit=LIMIT, tables=folder) <= LIMIT * 11 // 10 + PROCESS_BYTES + kept


_REFUSED = """
import sys
import bireme
from bireme.errors import ValueTooLarge

limit, file, text = sys.argv[1:]
with bireme.connect(threads=2, memory_limit=int(limit)) as session:
    session.register("t", file)
    try:
        session.sql(text).collect()
    except ValueTooLarge:
        print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.parametrize("text", [text for text, _ in TOO_LARGE])
def test_values_that_do_not_fit_are_refused_within_the_promise(text: str, folder: Path) -> None:
    command = [sys.executable, "-c", _REFUSED, str(LIMIT), str(folder / "t.parquet"), text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Rows that are sorted first are in memory of several libraries, which keep some of it.
    kept = 12 * MIB if "order by" in text else 0
    assert int(done.stdout) * 1024 <= LIMIT * 11 // 10 + PROCESS_BYTES + kept

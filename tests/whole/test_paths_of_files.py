"""Tables that queries name by the paths of files: which files these are, now and later; DuckDB as the oracle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.two_engines import rows

import bireme as bm
from bireme.errors import SourceChanged, SourceMissing


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        yield session


def write(path: Path, *numbers: int, row_group_size: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), file, row_group_size=row_group_size)


def duck(text: str) -> list[tuple[object, ...]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        return rows(connection.sql(text).to_arrow_table())


def answer(session: bm.Session, text: str) -> list[tuple[object, ...]]:
    return rows(session.sql(text).collect())


RELATIVE = [
    "'x.parquet'",
    "'*.parquet'",
    "'./x.parquet'",
    "'sub/**/*.parquet'",
    "read_parquet(['x.parquet', 'sub/x.parquet'])",
]


@pytest.mark.parametrize("relation", RELATIVE)
def test_a_relative_path_begins_where_the_process_is_when_a_query_names_it(
    session: bm.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    for place, folder in enumerate(("a", "b")):
        write(tmp_path / folder / "x.parquet", place)
        write(tmp_path / folder / "sub/x.parquet", place + 10)
    text = f"select sum(n) as s from {relation}"
    for folder in ("a", "b", "a"):
        monkeypatch.chdir(tmp_path / folder)
        assert answer(session, text) == duck(text), folder
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceMissing):
        session.sql(text)


@pytest.mark.parametrize("paths", ["x.parquet", "*.parquet", ".", ["x.parquet"], "**"])
def test_a_registered_table_stays_where_it_is(
    session: bm.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str | list[str]
) -> None:
    write(tmp_path / "a/x.parquet", 1)
    write(tmp_path / "b/x.parquet", 2)
    monkeypatch.chdir(tmp_path / "a")
    session.register("t", paths, filename=True)
    monkeypatch.chdir(tmp_path / "b")
    assert answer(session, "from t") == [(1, "x.parquet")]
    write(tmp_path / "a/x.parquet", 3, 4)
    assert answer(session, "from t") == [(3, "x.parquet"), (4, "x.parquet")]


def test_paths_say_of_rows_what_they_say_where_they_are_named(
    session: bm.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "y=1/x.parquet", 1)
    monkeypatch.chdir(tmp_path / "y=1")
    session.register("t", "x.parquet")
    held = session.table("t")
    session.register("t", tmp_path / "y=1/x.parquet")
    assert answer(session, "from t") == [(1, 1)]
    assert rows(held.collect()) == [(1,)]


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_file_that_is_named_in_two_ways_has_two_names(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x.parquet", *range(20_000), row_group_size=500)
    monkeypatch.chdir(tmp_path)
    queries = [
        "select filename, n from {} order by filename, n limit 3",
        "select filename, n from {} order by filename desc, n limit 3",
        "select filename, count(*) as c from {} group by filename order by filename",
        "select count(*) as c from {} where filename = 'x.parquet'",
        "select max(filename) as hi, min(filename) as lo, count(*) as c from {}",
        "select count(*) as c from {} a join (select min(filename) as f from {}) b on a.filename = b.f",
    ]
    with bm.connect(threads=2, backend=backend) as session:
        for pair in (("x.parquet", f"{tmp_path}/x.parquet"), (f"{tmp_path}/x.parquet", "x.parquet")):
            relation = f"read_parquet({list(pair)}, filename = true)"
            for query in queries:
                text = query.replace("{}", relation)
                assert answer(session, text) == duck(text), text


@pytest.mark.parametrize("condition", ["y = 2", "y = 2 and n % 3 = 0", "y > 1 and n > 100", "y + 1 = 3 and n < 1000"])
def test_planning_takes_no_harm_from_files_that_a_query_leaves_out(
    session: bm.Session, tmp_path: Path, condition: str
) -> None:
    """Samples are from anywhere in a table."""
    for y in (1, 2, 3):
        write(tmp_path / f"y={y}/x.parquet", *range(y, 3000))
    path = tmp_path / "y=1/x.parquet"
    expected = duck(f"select count(*) as c, sum(n) as s from '{tmp_path}/*/*.parquet' where {condition} and y = 2")
    text = f"select count(*) as c, sum(n) as s from '{tmp_path}/*/*.parquet' where {condition} and y = 2"
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(bytes(content))
    assert answer(session, text) == expected
    frame = session.sql(text)
    path.unlink()
    assert rows(frame.collect()) == expected


def test_files_that_change_or_go_while_a_frame_waits_are_named(session: bm.Session, tmp_path: Path) -> None:
    for y in (1, 2):
        write(tmp_path / f"y={y}/x.parquet", *range(3000))
    frame = session.sql(f"select sum(n) as s, y from '{tmp_path}/*/*.parquet' group by y")
    write(tmp_path / "y=1/x.parquet", 5)
    with pytest.raises(SourceChanged, match="y=1"):
        frame.collect()
    (tmp_path / "y=1/x.parquet").unlink()
    with pytest.raises((SourceMissing, SourceChanged), match="y=1"):
        frame.collect()


def test_names_of_any_bytes(session: bm.Session, tmp_path: Path) -> None:
    """A value that is no text is named; in the name of a column, a file or a folder between it does no harm."""
    odd = os.fsdecode(b"\xff\xfe")
    write(tmp_path / odd / f"{odd}.parquet", 1)
    assert answer(session, f"from read_parquet('{tmp_path}/*/*.parquet', filename = true)")[0][0] == 1
    write(tmp_path / f"k/{odd}=1/x.parquet", 1)
    with pytest.raises(bm.errors.ConversionFault, match="no text in UTF-8"):
        session.sql(f"from '{tmp_path}/k/*/*.parquet'")
    assert answer(session, f"from read_parquet('{tmp_path}/k/*/*.parquet', hive_partitioning = false)") == [(1,)]


def test_a_pipe_is_no_file_to_wait_for(session: bm.Session, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.parquet")
    with pytest.raises(bm.errors.StorageError, match=r"x\.parquet"):
        session.sql(f"from '{tmp_path}/x.parquet'")

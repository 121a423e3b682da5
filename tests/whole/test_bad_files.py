"""Files that are missing, broken or at odds give a named error that says which, never one of another library."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.errors import BiremeError, SinkFailed, SourceCorrupt, SourceMismatch, SourceMissing

ROWS = 5_000


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        yield session


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.parquet"
    table = pa.table(
        {"a": range(ROWS), "b": [f"text {i % 97}" for i in range(ROWS)], "c": [i / 7 for i in range(ROWS)]}
    )
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True)
    return path


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"a,b\n1,2\n" * 100])
def test_what_is_no_parquet_file(content: bytes, tmp_path: Path, session: bm.Session) -> None:
    path = tmp_path / "odd.parquet"
    path.write_bytes(content)
    with pytest.raises(SourceCorrupt, match=r"odd\.parquet"):
        session.scan_parquet(path).collect()


def test_truncated_file(good: Path, session: bm.Session) -> None:
    good.write_bytes(good.read_bytes()[:-200])
    with pytest.raises(SourceCorrupt, match=r"good\.parquet"):
        session.scan_parquet(good).collect()


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_give_the_right_rows_or_a_named_error(seed: int, good: Path, session: bm.Session) -> None:
    right = pq.read_table(good)
    content = bytearray(good.read_bytes())
    generator = random.Random(seed)
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    good.write_bytes(bytes(content))
    outcome = _rows_or_error(session, good)
    if isinstance(outcome, BiremeError):
        assert "good.parquet" in str(outcome) or "type" in str(outcome)
    else:
        # A flip in metadata that nobody reads changes nothing; one in a page is seen by its checksum.
        assert outcome.rename_columns(right.column_names).equals(right)


def _rows_or_error(session: bm.Session, path: Path) -> pa.Table | BiremeError:
    try:
        return session.scan_parquet(path).collect()
    except BiremeError as error:
        return error


def test_nothing_matches(tmp_path: Path, session: bm.Session) -> None:
    for path in (tmp_path / "none*.parquet", tmp_path / "missing.parquet", tmp_path):
        with pytest.raises(SourceMissing):
            session.register("t", path)


def test_files_of_one_glob_with_different_schemas(good: Path, tmp_path: Path, session: bm.Session) -> None:
    pq.write_table(pa.table({"a": [[1]], "c": [1.0]}), tmp_path / "other.parquet")
    frame = session.scan_parquet(tmp_path / "*.parquet")
    assert frame.select("c").collect().num_rows == ROWS + 1
    for column, story in (("a", r"other\.parquet': column 'a'"), ("b", r"other\.parquet' has no column 'b'")):
        with pytest.raises(SourceMismatch, match=story):
            frame.select(column).collect()


def test_a_file_that_changes_is_noticed(good: Path, session: bm.Session) -> None:
    session.register("changing", good)
    count = "select count(*) as n from changing"
    assert session.sql(count).collect().to_pydict() == {"n": [ROWS]}
    pq.write_table(pa.table({"a": [1], "b": ["x"], "c": [0.5]}), good)
    assert session.sql(count).collect().to_pydict() == {"n": [1]}


def test_unwritable_output_leaves_nothing(good: Path, tmp_path: Path, session: bm.Session) -> None:
    frame = session.scan_parquet(good)
    with pytest.raises(SinkFailed, match="nowhere"):
        frame.sink_parquet(tmp_path / "nowhere" / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.parquet"]


def test_a_failing_query_leaves_no_output(good: Path, tmp_path: Path, session: bm.Session) -> None:
    frame = session.scan_parquet(good).with_columns(d=(bm.col("b") + "x").cast(int))
    with pytest.raises(BiremeError):
        frame.sink_parquet(tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.parquet"]


def test_read_only_spill_folder(good: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with bm.connect(threads=1, spill_folder=blocked / "spill", memory_limit="256MiB") as session:
        # Nothing needs to spill, so nothing is wrong.
        assert session.scan_parquet(good).select(n=bm.count()).collect().to_pydict() == {"n": [ROWS]}

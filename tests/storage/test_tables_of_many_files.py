"""What a table of many files keeps and looks at, and what does not grow with their number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bireme.data.schema import Schema
from bireme.data.types import BOOL, INT64
from bireme.errors import Overflow, SourceMismatch
from bireme.plan.expr import Call, Column, Expr, Literal
from bireme.plan.read_options import read_options
from bireme.storage import parquet_footer
from bireme.storage.parquet import ParquetSource, open_parquet
from bireme.storage.parquet_file import read_file
from bireme.storage.parquet_footer import Footer, read_footer
from bireme.storage.shaped_split import Evaluate


def write(path: Path, table: pa.Table, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def wide(columns: int, rows: int) -> pa.Table:
    return pa.table({f"c{column}": pa.array(range(rows), pa.int64()) for column in range(columns)})


def test_files_that_say_the_same_of_columns_share_it(tmp_path: Path) -> None:
    for rows in (0, 1, 1000):
        write(tmp_path / f"{rows}.parquet", wide(3, rows), row_group_size=100)
    write(tmp_path / "other.parquet", wide(4, 5))
    files = [read_file(str(tmp_path / f"{name}.parquet")) for name in (0, 1, 1000, "other")]
    assert [file.rows for file in files] == [0, 1, 1000, 5]
    assert files[0].description is files[1].description is files[2].description
    assert files[3].description is not files[0].description
    assert [len(file.schema) for file in files] == [3, 3, 3, 4]


def test_a_query_looks_only_at_what_footers_say_of_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in range(6):
        write(tmp_path / f"{place}.parquet", wide(20, 40), row_group_size=4)
    source = open_parquet(tmp_path)
    asked: list[int] = []
    real = Footer.chunk
    monkeypatch.setattr(Footer, "chunk", lambda self, group, leaf: asked.append(leaf) or real(self, group, leaf))
    source.sample([3])
    assert source.statistics().columns[5].minimum == 0
    source.splits([3, 5], [])
    assert set(asked) == {3, 5}


def partitioned(tmp_path: Path, count: int, evaluate: Evaluate) -> ParquetSource:
    for place in range(count):
        write(tmp_path / f"y={place}/x.parquet", wide(1, 3))
    return open_parquet(tmp_path, read_options({}), evaluate)


SECOND_IS_ODD = Call("eq", (Call("mod", (Column(1, INT64), Literal(2, INT64)), INT64), Literal(1, INT64)), BOOL)


def test_a_condition_over_partitions_is_worked_out_for_all_files_at_once(tmp_path: Path) -> None:
    calls: list[int] = []

    def evaluate(expr: Expr, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
        calls.append(batch.num_rows)
        assert expr is not SECOND_IS_ODD, "it is over the columns it uses"
        return pa.array([value % 2 == 1 for value in batch.column(0).to_pylist()])

    source = partitioned(tmp_path, 20, evaluate)
    assert len(source.splits([0, 1], [SECOND_IS_ODD])) == 10
    assert calls == [20]
    assert len(source.splits([0, 1], [SECOND_IS_ODD])) == 10
    assert calls == [20], "what was found is kept"


def test_a_condition_that_fails_leaves_no_file_out_that_it_fails_for(tmp_path: Path) -> None:
    calls: list[int] = []

    def evaluate(expr: Expr, batch: pa.RecordBatch, schema: Schema) -> pa.Array:
        calls.append(batch.num_rows)
        values = batch.column(0).to_pylist()
        if 6 in values:
            raise Overflow("6")
        return pa.array([None if value == 3 else value % 2 == 1 for value in values])

    source = partitioned(tmp_path, 16, evaluate)
    left = {split.path.split("/")[-2] for split in source.splits([0, 1], [SECOND_IS_ODD])}
    assert left == {"y=6", *(f"y={value}" for value in (1, 5, 7, 9, 11, 13, 15))}
    assert len(calls) <= 9, "halves, and halves of these"


def test_what_files_lack_is_told_of_the_file_that_is_read(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", wide(2, 3))
    for place in range(1, 4):
        write(tmp_path / f"{place}.parquet", wide(1, 3))
    source = open_parquet(tmp_path)
    assert len(source.splits([0], [])) == 4
    with pytest.raises(SourceMismatch, match=r"1\.parquet' has no column 'c1'.*it has 'c0'"):
        source.splits([1], [])


@pytest.mark.parametrize("options", [{}, {"write_page_index": True}, {"use_dictionary": False}])
def test_chunks_of_todays_writers_are_read_as_usual_ones(tmp_path: Path, options: dict[str, Any]) -> None:
    texts = pa.table({"t": ["a", None, "b"], "n": [1, 2, None], "m": pa.array([1.5, 2.5, 3.5])})
    must = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("t", pa.string(), nullable=False)])
    write(tmp_path / "0.parquet", texts, **options)
    write(tmp_path / "1.parquet", pa.table({"n": [1, 2], "t": ["x", "y"]}, schema=must), **options)
    expected = [read_footer(read_file(str(tmp_path / f"{place}.parquet")).footer) for place in range(2)]
    for footer in expected:
        for leaf in range(footer.chunk_count(0)):
            position = footer._chunks[leaf]
            plain = parquet_footer._chunk_of_fields(parquet_footer.read_struct(footer._data, position)[0])
            found, _ = parquet_footer._read_chunk(footer._data, position)
            assert isinstance(found, tuple), "laid out as usual"
            chunk = parquet_footer._chunk_of_match(*found)
            assert chunk.are_codes == plain.are_codes
            assert replace(chunk, pages=None) == replace(plain, pages=None)

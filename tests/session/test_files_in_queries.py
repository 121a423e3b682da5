"""Queries that name files themselves, and statements that ask what tables and columns there are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.errors import BiremeError, QueryError, SourceCorrupt, SourceMissing, TypeFault, Unsupported

COLUMNS = (
    "1::tinyint a, 2::ubigint b, 1.5::decimal(20,3) c, 1.5::float d, 'x' e, 'x'::blob f, date '2020-01-01' g, "
    "timestamp '2020-01-01 00:00:00' h, time '01:02:03' i, true j, [1, 2] k, [['x']] l"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, values in (("one", [1, 2]), ("two", [3])):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "select x from '{}/one.parquet' order by x",
        'select one.x from "{}/one.parquet" order by one.x',
        "select t.x from '{}/one.parquet' t order by x",
        "select sum(x) as x from '{}/*.parquet'",
        "select x from read_parquet('{}/*.parquet') order by x",
        "select read_parquet.x from read_parquet('{}/two.parquet')",
        "select t.x, t.file_row_number from read_parquet('{}/*.parquet', file_row_number = true) t order by all",
        "select x from parquet_scan(['{}/one.parquet', '{}/two.parquet']) order by x",
        "select a.x, b.x as y from '{}/one.parquet' a join '{}/*.parquet' b on a.x <= b.x order by all",
        "with one as (from '{}/two.parquet') select * from one",
    ],
)
def test_files_are_tables(folder: Path, text: str) -> None:
    text = text.replace("{}", str(folder))
    with bm.connect(threads=1) as session:
        ours = session.sql(text).collect().to_pylist()
        assert session.tables() == []
    assert ours == duckdb.sql(text).to_arrow_table().to_pylist()


def test_a_registered_name_comes_first(folder: Path) -> None:
    with bm.connect(threads=1) as session:
        session.register("x.parquet", pa.table({"y": [7]}))
        assert session.sql("from 'x.parquet'").collect().to_pylist() == [{"y": 7}]


def test_a_file_that_changes_is_read_as_it_is_now(folder: Path) -> None:
    text = f"from '{folder}/one.parquet'"
    with bm.connect(threads=1) as session:
        assert session.sql(text).collect().num_rows == 2
        saved = session.sql(text).serialize()
        assert session.deserialize(saved).collect().num_rows == 2
        pq.write_table(pa.table({"y": ["new"]}), folder / "one.parquet")
        assert session.sql(text).collect().to_pylist() == [{"y": "new"}]
        (folder / "one.parquet").unlink()
        with pytest.raises(SourceMissing, match="one"):
            session.sql(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("from 'nowhere/*.parquet'", SourceMissing),
        ("from 'nowhere.parquet'", SourceMissing),
        ("from read_parquet('nowhere')", SourceMissing),
        ("from read_parquet([])", TypeFault),
        ("from read_parquet()", TypeFault),
        ("from read_parquet('a', 'b')", TypeFault),
        ("from read_parquet(1)", TypeFault),
        ("from read_parquet(['a', null])", TypeFault),
        ("from read_parquet('x.parquet', compression = true)", TypeFault),
        ("from read_parquet('x.parquet', filename := NULL)", TypeFault),
        ("from read_parquet('x.parquet', 'y.parquet', filename := true)", TypeFault),
        ("from read_csv('x.csv')", Unsupported),
        ("from '{}/text.parquet'", SourceCorrupt),
        ("show databases", Unsupported),
        ("show tables from x", Unsupported),
        ("describe nothing", QueryError),
    ],
)
def test_what_cannot_be_read_is_a_named_error(folder: Path, text: str, error: type[BiremeError]) -> None:
    (folder / "text.parquet").write_text("not Parquet at all")
    with bm.connect(threads=1) as session, pytest.raises(error):
        session.sql(text.replace("{}", str(folder)))


@pytest.mark.parametrize("text", ["describe {}", "desc {}", "describe ({})", "from (describe {})"])
def test_describe_says_what_duckdb_says(text: str) -> None:
    with bm.connect(threads=1) as session:
        ours = session.sql(text.replace("{}", f"select {COLUMNS}")).collect()
    theirs = duckdb.sql(f"describe select {COLUMNS}").to_arrow_table()
    for column in ("column_name", "column_type"):
        assert ours[column].to_pylist() == theirs[column].to_pylist()
    assert ours.column_names == theirs.column_names


def test_nullable_columns_are_said_to_be(folder: Path) -> None:
    schema = pa.schema([pa.field("must", pa.int32(), nullable=False), pa.field("may", pa.int32())])
    pq.write_table(pa.table({"must": [1], "may": [None]}, schema=schema), folder / "n.parquet")
    with bm.connect(threads=1) as session:
        shown = session.sql(f"describe '{folder}/n.parquet'").collect()
    assert shown["null"].to_pylist() == ["NO", "YES"]


def test_show_tables_is_asked_anew() -> None:
    with bm.connect(threads=1) as session:
        assert session.sql("show tables").collect().num_rows == 0
        session.register("b", pa.table({"x": [1]}))
        session.register("A", pa.table({"x": [1]}))
        assert session.sql("show tables").collect()["name"].to_pylist() == ["A", "b"]
        session.drop("b")
        assert session.sql("SHOW TABLES").collect()["name"].to_pylist() == ["A"]

"""Files as other writers leave them, sound or not: the rows that pyarrow reads, or an error that names the file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.footers import (
    BINARY,
    COLUMN_INDEX_LENGTH,
    COLUMN_INDEX_OFFSET,
    COLUMNS,
    COMPRESSED_SIZE,
    CONVERTED_TYPE,
    CREATED_BY,
    DATA_OFFSET,
    DICTIONARY_OFFSET,
    I32,
    I64,
    KEY_VALUES,
    LIST,
    LOGICAL_TYPE,
    META_DATA,
    NUM_ROWS,
    NUM_VALUES,
    OFFSET_INDEX_OFFSET,
    ROW_GROUPS,
    SCHEMA,
    STATISTICS,
    TRUE,
    Fields,
    chunks,
    edited,
    encoded,
    footer_offset,
)

import bireme as bm
from bireme.errors import BiremeError, SourceCorrupt, Unsupported

ROWS = 3000


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        yield session


def content_of(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "number": pa.array([None if i % 7 == 3 else i % 100 for i in range(ROWS)], pa.int32()),
            "text": [f"t{i % 13}" for i in range(ROWS)],
            "list": [list(range(i % 4)) for i in range(ROWS)],
        }
    )


def meets(session: bm.Session, path: Path, expected: pa.Table) -> None:
    """All rows, the rows of some numbers, and groups are those of `expected`, a table with a column "number"."""
    assert session.scan_parquet(path).collect().to_pylist() == expected.to_pylist()
    session.register("t", path)
    numbers = [value for value in expected["number"].to_pylist() if value is not None]
    for wanted in (min(numbers), numbers[len(numbers) // 2], max(numbers)):
        for comparison, count in (("=", numbers.count(wanted)), (">=", sum(value >= wanted for value in numbers))):
            found = session.sql(f"select count(*) as n from t where number {comparison} {wanted}").collect()
            assert found.to_pydict() == {"n": [count]}, (comparison, wanted)
    found = session.sql("select min(number) as low, max(number) as high, count(number) as n from t").collect()
    assert found.to_pylist() == [{"low": min(numbers), "high": max(numbers), "n": len(numbers)}]


def test_a_file_that_says_it_has_no_rows_while_its_row_groups_have_some(
    tmp_path: Path, session: bm.Session, table: pa.Table
) -> None:
    def edit(footer: Fields) -> None:
        footer[NUM_ROWS] = [I64, 0]

    path = tmp_path / "t.parquet"
    path.write_bytes(edited(content_of(table, row_group_size=1000), edit))
    meets(session, path, table)


def test_any_other_number_of_rows_is_damage(tmp_path: Path, session: bm.Session, table: pa.Table) -> None:
    def edit(footer: Fields) -> None:
        footer[NUM_ROWS] = [I64, ROWS - 1]

    path = tmp_path / "t.parquet"
    path.write_bytes(edited(content_of(table), edit))
    with pytest.raises(SourceCorrupt, match=r"t\.parquet"):
        session.scan_parquet(path)


@pytest.mark.parametrize(
    ("writer", "is_short"),
    [
        (b"parquet-mr", True),
        (b"parquet-mr version 1.2.8 (build 1)", True),
        (b"parquet-mr version 1.1.0", True),
        (b"parquet-mr version 1.2.9", False),
        (b"parquet-mr version 1.13.0", False),
    ],
)
def test_chunks_of_old_writers_are_longer_than_they_say(
    tmp_path: Path, session: bm.Session, table: pa.Table, writer: bytes, is_short: bool
) -> None:
    def edit(footer: Fields) -> None:
        footer[CREATED_BY] = [BINARY, writer]
        for chunk in chunks(footer):
            chunk[META_DATA][1][COMPRESSED_SIZE][1] -= 15  # about the header of a dictionary page

    path = tmp_path / "t.parquet"
    path.write_bytes(edited(content_of(table, row_group_size=1000), edit))
    if is_short:
        meets(session, path, table)
    else:
        with pytest.raises(SourceCorrupt, match=r"t\.parquet.*column"):
            session.scan_parquet(path).collect()


def test_a_chunk_outside_of_the_file_ends_its_query_and_no_other(tmp_path: Path, table: pa.Table) -> None:
    def edit(footer: Fields) -> None:
        last = chunks(footer)[-3]
        last[META_DATA][1][COMPRESSED_SIZE][1] = 1 << 40

    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    content = content_of(table, row_group_size=10)
    good.write_bytes(content)
    bad.write_bytes(edited(content, edit))
    with bm.connect(threads=2) as session:
        for _ in range(3):
            with pytest.raises(SourceCorrupt, match=r"bad\.parquet.*row group 299, column 'number'"):
                session.scan_parquet(bad).collect()
            assert session.scan_parquet(good).collect().num_rows == ROWS


@pytest.mark.parametrize("count", [-1, None])
def test_pages_of_a_writer_without_statistics_are_not_all_null(
    tmp_path: Path, session: bm.Session, table: pa.Table, count: int | None
) -> None:
    """parquet-mr marks each page as one of NULLs then, with -1 NULLs in it."""
    content = content_of(table, write_page_index=True, data_page_size=1000, write_statistics=True)
    pages = {1: [LIST, [TRUE, [b"\x01"] * 2]], 2: [LIST, [BINARY, [b""] * 2]], 3: [LIST, [BINARY, [b""] * 2]]}
    pages[4] = [I32, 1]
    if count is not None:
        pages[5] = [LIST, [I64, [count] * 2]]
    index = encoded(pages)
    # An offset index of two pages: that of the file itself says where; only its length in rows counts here.
    half = encoded({1: [LIST, [12, [{1: [I64, 4], 2: [I32, 10], 3: [I64, first]} for first in (0, ROWS // 2)]]]})

    def edit(footer: Fields) -> None:
        start = footer_offset(content)
        for chunk in chunks(footer):
            chunk[META_DATA][1].pop(12, None)  # statistics
            chunk[COLUMN_INDEX_OFFSET], chunk[COLUMN_INDEX_LENGTH] = [I64, start], [I32, len(index)]
            chunk[OFFSET_INDEX_OFFSET], chunk[OFFSET_INDEX_OFFSET + 1] = [I64, start + len(index)], [I32, len(half)]

    path = tmp_path / "t.parquet"
    path.write_bytes(edited(content, edit, before_footer=index + half))
    meets(session, path, table)


@pytest.mark.parametrize(
    ("converted", "kind"), [(11, pa.uint8()), (12, pa.uint16()), (15, pa.int8()), (16, pa.int16())]
)
def test_bounds_outside_of_a_narrow_type_prove_nothing(
    tmp_path: Path, session: bm.Session, converted: int, kind: pa.DataType
) -> None:
    def edit(footer: Fields) -> None:
        del footer[KEY_VALUES]  # the Arrow schema
        element = footer[SCHEMA][1][1][1]
        element.pop(LOGICAL_TYPE, None)
        element[CONVERTED_TYPE] = [I32, converted]
        for chunk in chunks(footer):
            known = chunk[META_DATA][1][STATISTICS][1]
            known[5] = known[6] = [BINARY, (70_000).to_bytes(4, "little")]

    path = tmp_path / "t.parquet"
    numbers = [index % 100 for index in range(ROWS)]
    path.write_bytes(edited(content_of(pa.table({"number": pa.array(numbers, pa.int32())}), row_group_size=100), edit))
    expected = pq.read_table(path)
    assert expected.schema.field("number").type == kind
    meets(session, path, expected)


def test_moments_of_a_writer_that_moves_their_bounds(tmp_path: Path, session: bm.Session) -> None:
    def edit(footer: Fields) -> None:
        footer[CREATED_BY] = [BINARY, b"Parquet.Net version 4.25.0 (build 1)"]
        for chunk in chunks(footer):
            known = chunk[META_DATA][1][STATISTICS][1]
            known[5] = known[6] = [BINARY, (1_000_000).to_bytes(8, "little")]

    path = tmp_path / "t.parquet"
    table = pa.table({"moment": pa.array([0, 0, 2_000_000], pa.timestamp("us"))})
    path.write_bytes(edited(content_of(table), edit))
    session.register("t", path)
    found = session.sql("select count(*) as n from t where moment < timestamp '1970-01-01 00:00:01'").collect()
    assert found.to_pydict() == {"n": [2]}


def test_a_struct_without_fields_is_refused_by_name(tmp_path: Path, session: bm.Session) -> None:
    """pyarrow does not write one, but others do: a group that has lost its children."""

    def edit(footer: Fields) -> None:
        elements = footer[SCHEMA][1][1]
        del footer[KEY_VALUES]
        del footer[7]  # the order of each leaf
        del elements[3]  # the child of "empty"
        elements[2][5] = [I32, 0]
        footer[ROW_GROUPS][1][1][0][COLUMNS][1][1].pop(1)

    path = tmp_path / "t.parquet"
    table = pa.table({"a": [1, 2], "empty": [{"x": 1}, {"x": 2}], "b": [3, 4]})
    path.write_bytes(edited(content_of(table), edit))
    with pytest.raises(Unsupported, match=r"t\.parquet.*'empty'.*without fields"):
        session.scan_parquet(path)


def test_a_dictionary_offset_of_zero_is_none(tmp_path: Path, session: bm.Session, table: pa.Table) -> None:
    def edit(footer: Fields) -> None:
        for chunk in chunks(footer):
            chunk[META_DATA][1][DICTIONARY_OFFSET] = [I64, 0]

    path = tmp_path / "t.parquet"
    path.write_bytes(edited(content_of(table, use_dictionary=False), edit))
    meets(session, path, table)


def test_pages_beyond_four_gibibytes(tmp_path: Path, session: bm.Session, table: pa.Table) -> None:
    """A hole before the pages costs nothing, but offsets no longer fit 32 bits."""
    hole = (4 << 30) + 12_345
    content = content_of(table, row_group_size=1000, write_page_index=False)

    def edit(footer: Fields) -> None:
        for chunk in chunks(footer):
            chunk[2] = [I64, 0]
            described = chunk[META_DATA][1]
            described[DATA_OFFSET][1] += hole
            if DICTIONARY_OFFSET in described:
                described[DICTIONARY_OFFSET][1] += hole

    path = tmp_path / "t.parquet"
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(hole)
        file.write(edited(content, edit))
    assert os.stat(path).st_size > hole
    meets(session, path, table)


def test_row_groups_without_rows(tmp_path: Path, session: bm.Session, table: pa.Table) -> None:
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for piece in (table[:0], table[:1000], table[:0], table[1000:], table[:0]):
            writer.write_table(piece)
    meets(session, path, table)


def test_columns_with_odd_names(tmp_path: Path, session: bm.Session) -> None:
    names = ["", " ", 'quo"ted', "a.b", "ż", "number", "select", "x" * 300, "new\nline"]
    path = tmp_path / "t.parquet"
    expected = pa.table([list(range(index, index + 5)) for index in range(len(names))], names=names)
    pq.write_table(expected, path)
    meets(session, path, expected)
    for name in names[1:]:
        quoted = '"' + name.replace('"', '""') + '"'
        found = session.sql(f"select {quoted} from t where {quoted} > 3").collect()
        assert found.column(0).to_pylist() == [value for value in expected[name].to_pylist() if value > 3]


def test_what_no_page_can_be_is_named(tmp_path: Path, session: bm.Session, table: pa.Table) -> None:
    """A chunk without bytes, pages that start in the magic, a length below zero, a wrong number of values."""
    wrong = (
        {COMPRESSED_SIZE: 0},
        {DATA_OFFSET: 0, DICTIONARY_OFFSET: 0},
        {COMPRESSED_SIZE: -5},
        {DATA_OFFSET: -1},
        {NUM_VALUES: 0},
    )
    path = tmp_path / "t.parquet"
    content = content_of(table)
    for changes in wrong:
        for column in range(len(table.schema)):

            def edit(footer: Fields, changes: dict[int, int] = changes, column: int = column) -> None:
                described = footer[ROW_GROUPS][1][1][0][COLUMNS][1][1][column][META_DATA][1]
                for field, value in changes.items():
                    described[field] = [I64, value]

            path.write_bytes(edited(content, edit))
            with pytest.raises(BiremeError, match=r"t\.parquet.*column") as raised:
                session.scan_parquet(path).collect()
            assert isinstance(raised.value, SourceCorrupt)

"""Late columns: which top-ns read them, and that answers stay, also where a key that was taken for unique is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.rows import difference
from support.tpc_data import query_texts, tables, tpch_folder

import bireme as bm
from bireme.plan.rules import late_columns

ROWS = 5_000
# Dense, and unique; dense in range and row count, but not unique; and with NULLs.
WIDE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "twin": pa.array([row - row % 2 if 0 < row < ROWS - 1 else row for row in range(ROWS)], pa.int64()),
        "v": pa.array([(row * 7919) % 5003 if row % 11 else None for row in range(ROWS)], pa.int64()),
        "text": [f"text of row {row}" if row % 5 else None for row in range(ROWS)],
        "more": [f"more of {row % 97}" for row in range(ROWS)],
    }
)
OTHER = pa.table(
    {
        "w": pa.array([(row * 31) % (ROWS + 500) if row % 13 else None for row in range(2 * ROWS)], pa.int64()),
        "x": pa.array([row % 1000 for row in range(2 * ROWS)], pa.int64()),
        "note": [f"note {row}" for row in range(2 * ROWS)],
    }
)
LATE = [
    "select * from wide order by v desc nulls last, id limit 7",
    "select text, v, more from wide where v % 3 = 1 order by v, id limit 5 offset 3",
    "select text, note, x from wide join other on id = w order by x, note limit 9",
    "select text, note, x from other left join (select * from wide where v > 9) on id = w order by x, note limit 9",
    "select note, text from other right join wide on id = w order by id desc, note limit 4",
    "select id, text, more, sum(x) s from wide join other on id = w group by id, text, more "
    "order by s desc, id limit 6",
    "select id, upper(text) u, text, more, max(note) m from wide join other on id = w where v < 4000 "
    "group by id, text, more order by m, id limit 6",
    "select text, more from wide where id in (select w from other) order by v desc nulls last, id limit 5",
    "select text from wide where v > 100000 order by v limit 5",
]
# `twin` is taken for unique, as it has as many rows as values in its range.
WRONG = (
    "select twin, text, more, max(note) m from wide join other on id = w group by twin, text, more order by m limit 6"
)
Engines = tuple[duckdb.DuckDBPyConnection, "bm.Session"]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are read late wherever that is possible."""
    monkeypatch.setattr(late_columns, "_SAVED_BYTES_MIN", 0)
    monkeypatch.setattr(late_columns, "_DROPPED_FACTOR", 0.0)


@pytest.fixture(params=["memory", "files", "reference"])
def engines(request: pytest.FixtureRequest, eager: None, tmp_path: Path) -> Iterator[Engines]:
    backend = "reference" if request.param == "reference" else "native"
    with duckdb.connect(config={"threads": 1}) as connection, bm.connect(threads=2, backend=backend) as session:
        for name, table in {"wide": WIDE, "other": OTHER}.items():
            connection.register(name, table)
            if request.param == "memory":
                session.register(name, table)
                continue
            folder = tmp_path / name
            folder.mkdir()
            # Two files of several row groups each: rows are numbered through.
            pq.write_table(table.slice(0, 1500), folder / "a.parquet", row_group_size=400)
            pq.write_table(table.slice(1500), folder / "b.parquet", row_group_size=700)
            session.register(name, folder)
        yield connection, session


def check(engines: Engines, text: str) -> None:
    expected = engines[0].execute(text).fetchall()
    answer = engines[1].sql(text).collect()
    actual = list(zip(*[column.to_pylist() for column in answer.columns], strict=True))
    assert difference(expected, actual, ordered=True) is None, text


def test_late_columns_change_no_answer(engines: Engines) -> None:
    late = 0
    for text in LATE:
        check(engines, text)
        late += "RowNumbers" in engines[1].sql(text).explain()
    assert late >= 7


def test_a_key_that_is_not_unique_is_found_out(engines: Engines) -> None:
    assert "Assume" in engines[1].sql(WRONG).explain()
    assert "given up" in engines[1].sql(WRONG).explain(analyze=True)
    check(engines, WRONG)
    check(engines, WRONG.replace("order by m", "having count(*) > 1 order by m"))


def test_rows_come_from_the_splits_that_have_them(engines: Engines) -> None:
    profile = engines[1].sql("select * from wide order by v, id limit 2").explain(analyze=True)
    lines = [line for line in profile.splitlines() if "scan wide:" in line]
    assert len(lines) == 2
    tasks = [int(line.partition("scan wide: ")[2].split()[0]) for line in lines]
    assert tasks[1] <= 3  # two splits at most, and the end of the build


def test_rows_of_a_large_row_group_keep_their_numbers(eager: None, tmp_path: Path) -> None:
    count = 300_000
    table = pa.table(
        {
            "v": pa.array([(row * 7919) % 300_007 for row in range(count)], pa.int64()),
            "text": [f"row {row}" for row in range(count)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=count)
    with bm.connect(threads=2) as session:
        session.register("t", tmp_path / "a.parquet")
        frame = session.sql("select text, v from t order by v desc limit 3")
        assert "RowNumbers" in frame.explain()
        best = sorted(zip(table["v"].to_pylist(), table["text"].to_pylist(), strict=True), reverse=True)[:3]
        assert frame.collect()["text"].to_pylist() == [text for _, text in best]


def test_benchmark_queries(eager: None) -> None:
    folder = tpch_folder()
    late = 0
    with bm.connect(threads=2) as session, bm.connect(threads=2, levers="-late_columns") as plain:
        for name, path in tables(folder).items():
            session.register(name, path)
            plain.register(name, path)
        for text in query_texts("tpch").values():
            if "limit" not in text.lower():
                continue
            rows = [
                list(zip(*[c.to_pylist() for c in each.sql(text).collect().columns], strict=True))
                for each in (plain, session)
            ]
            assert difference(*rows, ordered=True) is None, text
            late += "RowNumbers" in session.sql(text).explain()
    assert late >= 3


def test_little_is_not_worth_a_second_look() -> None:
    with bm.connect(threads=1) as session:
        session.register("wide", WIDE)
        assert "RowNumbers" not in session.sql(LATE[0]).explain()

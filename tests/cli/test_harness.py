"""The harness sees wrong answers, allows those that a limit leaves open, and shuffles without losing a row."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bireme.cli.harness.answers import order_columns
from bireme.cli.harness.limited import limited, limited_difference
from bireme.cli.harness.measure import measure
from bireme.cli.harness.report import QueryReport, to_fastest
from bireme.cli.harness.workload import EngineChoice, Setup, Workload, parse_engines
from bireme.cli.tpch.shuffle import shuffle_file
from bireme.errors import ConfigError


def test_choices_of_engines() -> None:
    chosen = parse_engines("bireme, bireme:-clustering -late_columns,duckdb")
    assert [engine.label for engine in chosen] == ["bireme", "bireme:-clustering -late_columns", "duckdb"]
    for wrong in ("", "mysql", "duckdb:-clustering", "bireme:-oars"):
        with pytest.raises(ConfigError):
            parse_engines(wrong)


# ------------------------------------------------------------------------------------------------------- limits

# By c descending: b and d tie at 5, then a and e at 3, then f.
COUNTS = pa.table({"k": ["a", "b", "d", "e", "f"], "c": [3, 5, 5, 3, 1]})


def _verdict(sql: str, ours: pa.Table, tmp_path: Path) -> str | None:
    connection = duckdb.connect()
    connection.register("t", COUNTS)
    cut = limited(sql)
    assert cut is not None

    def like(rows: pa.Table) -> pa.Table:
        wanted = tmp_path / "wanted.parquet"
        pq.write_table(rows.rename_columns(cut.column_names(rows.num_columns)), wanted)
        return connection.sql(cut.rows_like(wanted, rows.schema)).to_arrow_table()

    return limited_difference(ours, connection.sql(cut.first).to_arrow_table(), cut, order_columns(sql), like)


def _rows(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"k": [row[0] for row in rows], "c": [row[1] for row in rows]})


@pytest.mark.parametrize(
    ("clause", "ours", "right"),
    [
        ("order by c desc limit 3", [("b", 5), ("d", 5), ("a", 3)], True),
        ("order by c desc limit 3", [("d", 5), ("b", 5), ("e", 3)], True),
        ("order by c desc limit 3", [("b", 5), ("b", 5), ("a", 3)], False),
        ("order by c desc limit 3", [("b", 5), ("d", 5), ("f", 1)], False),
        ("order by c desc limit 3", [("b", 5), ("d", 5), ("z", 3)], False),
        ("order by c desc limit 3", [("b", 5), ("a", 3), ("d", 5)], False),
        ("order by c desc limit 3", [("b", 5), ("d", 5)], False),
        ("order by c desc limit 2", [("d", 5), ("b", 5)], True),
        ("order by c desc limit 2 offset 1", [("d", 5), ("e", 3)], True),
        ("order by c desc limit 2 offset 1", [("b", 5), ("a", 3)], True),
        ("order by c desc limit 2 offset 1", [("a", 3), ("e", 3)], False),
        ("order by c desc limit 9", [("b", 5), ("d", 5), ("a", 3), ("e", 3), ("f", 1)], True),
        ("order by c desc limit 2 offset 7", [], True),
        ("limit 2", [("f", 1), ("a", 3)], True),
        ("limit 2", [("f", 1), ("f", 1)], False),
    ],
)
def test_limits_leave_only_ties_open(clause: str, ours: list[tuple[str, int]], right: bool, tmp_path: Path) -> None:
    table = _rows(*ours) if ours else COUNTS.slice(0, 0)
    assert (_verdict(f"select k, c from t {clause}", table, tmp_path) is None) is right


def test_a_key_that_is_not_shown_decides_too(tmp_path: Path) -> None:
    query = "select k from t order by c desc limit 3"
    assert _verdict(query, pa.table({"k": ["d", "b", "e"]}), tmp_path) is None
    assert "missing" in str(_verdict(query, pa.table({"k": ["d", "a", "e"]}), tmp_path))


def test_numbers_behind_a_star_are_left_as_they_are(tmp_path: Path) -> None:
    assert _verdict("select * from t order by 2, 1 limit 1", _rows(("f", 1)), tmp_path) is None
    assert "not one of those" in str(_verdict("select * from t order by 2, 1 limit 1", _rows(("z", 1)), tmp_path))


@pytest.mark.parametrize("key", ["c", "2", "c + 0"])
@pytest.mark.parametrize(("second", "right"), [(("d", -5), True), (("e", -3), False)])
def test_keys_are_names_and_numbers_of_what_is_shown(
    key: str, second: tuple[str, int], right: bool, tmp_path: Path
) -> None:
    """`c` here is the sum, of which the rows of `t` that have such a name know nothing; -5 is there twice."""
    query = f"select k, -sum(c) as c from t group by k order by {key} limit 1"
    if key == "c + 0":
        query = f"select k, -sum(t.c) as d from t group by k order by {key.replace('c', 'd')} limit 1"
    assert (_verdict(query, _rows(second), tmp_path) is None) is right


# ------------------------------------------------------------------------------------------------------ whole runs


@pytest.mark.parametrize("fresh", [False, True])
def test_engines_answer_and_a_refusal_is_said(tmp_path: Path, fresh: bool) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(COUNTS, path)
    workload = Workload(
        "toy",
        {"t": path},
        {"sum": "select sum(c) as s from t", "odd": "select k from t where no_such = 1"},
        {("sum", "polars"): "select 17 as s from t limit 1"},
    )
    setup = Setup(engines=parse_engines("bireme,bireme:-clustering,polars"), threads=1, runs=2, fresh=fresh)
    reports = measure(workload, setup)
    for label in ("bireme", "bireme:-clustering", "polars"):
        assert reports["sum", label].checked
        assert len(reports["sum", label].seconds) == 2
        assert reports["odd", label].failed
    assert "no_such" in str(reports["odd", "bireme"].error)


def test_an_engine_with_a_wrong_answer_is_not_a_peer() -> None:
    def report(query: str, engine: str, seconds: float, error: str | None = None) -> QueryReport:
        return QueryReport(query, engine, [seconds], error=error)

    reports = {
        (query, engine): report(query, engine, seconds, error)
        for query, engine, seconds, error in [
            ("A", "bireme", 1.0, None), ("A", "duckdb", 2.0, None), ("A", "polars", 4.0, None),
            ("B", "bireme", 4.0, None), ("B", "duckdb", 2.0, None), ("B", "polars", 1.0, "wrong answer"),
        ]
    }  # fmt: skip
    (line,) = to_fastest(["bireme", "duckdb", "polars"], reports)
    assert f"geometric mean {math.sqrt(0.5 * 2):.2f}, worst 2.00 (B)" in line


def test_workload_texts_by_engine() -> None:
    workload = Workload("w", {}, {"q": "plain"}, {("q", "polars"): "other"})
    assert workload.text("q", EngineChoice("polars")) == "other"
    assert workload.text("q", EngineChoice("bireme", "none")) == "plain"


# -------------------------------------------------------------------------------------------------------- shuffling


def test_shuffled_files_hold_the_same_rows_in_the_same_layout(tmp_path: Path) -> None:
    source, first, second = tmp_path / "t.parquet", tmp_path / "1.parquet", tmp_path / "2.parquet"
    table = pa.table({"k": np.arange(5_000), "text": [f"{value % 7}" for value in range(5_000)]})
    pq.write_table(table, source, row_group_size=1_200, compression="zstd", use_dictionary=["text"])
    for target in (first, second):
        shuffle_file(source, target, pile_rows=1_000)
    written = pq.read_table(first)
    assert written.equals(pq.read_table(second))
    assert written["k"].to_pylist() != table["k"].to_pylist()
    assert written.sort_by("k").equals(table)
    # No stretch of the new order keeps the old one: the correlation of old and new positions is that of chance.
    assert abs(np.corrcoef(written["k"].to_numpy(), np.arange(5_000))[0, 1]) < 0.1
    layouts = [
        [
            (column.compression, column.has_dictionary_page, metadata.row_group(group).num_rows)
            for group in range(metadata.num_row_groups)
            for column in map(metadata.row_group(group).column, range(metadata.num_columns))
        ]
        for metadata in (pq.read_metadata(source), pq.read_metadata(first))
    ]
    assert layouts[0] == layouts[1]


def test_an_empty_table_stays_empty(tmp_path: Path) -> None:
    source, target = tmp_path / "t.parquet", tmp_path / "s.parquet"
    pq.write_table(pa.table({"k": pa.array([], pa.int64())}), source)
    shuffle_file(source, target, pile_rows=10)
    assert pq.read_table(target).num_rows == 0

"""The command line: inputs, outputs, formats, exit codes, and what the harness says."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tpc_data import tpch_folder

from bireme.cli.harness.answers import difference, order_columns
from bireme.cli.main import main
from bireme.cli.tpch.selection import parse_queries
from bireme.errors import ConfigError

LONG_TO_LOAD = (
    "pandas", "rich", "duckdb", "polars", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "pyarrow.fs",
    "tempfile", "shutil", "secrets", "difflib", "calendar",
    "bireme.backends.reference", "bireme.frontend.frame", "bireme.plan.explain", "bireme.plan.wire",
    "bireme.runtime.network.executor", "bireme.storage.arrow_table", "bireme.storage.series",
)  # fmt: skip
# Beside the standard library, bireme, and these, a process of its own loads nothing.
LOADED = ("pyarrow", "numpy", "sqlglot", "uvloop", "mypy_extensions")
QUERY = "select b, sum(a) as total from t group by b order by b"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "parts").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "x"]}), folder / "t.parquet")
    for number in range(2):
        pq.write_table(pa.table({"k": [number]}), folder / "parts" / f"{number}.parquet")
    return folder


def rows(captured: pytest.CaptureFixture[str]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(captured.readouterr().out)))


def test_csv_to_a_pipe(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-t", f"t={data / 't.parquet'}", QUERY]) == 0
    assert rows(capfd) == [["b", "total"], ["x", "4"], ["y", "2"]]


@pytest.mark.parametrize("format", ["csv", "json", "arrow", "table"])
def test_a_query_that_fails_at_once_prints_no_rows(format: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--format", format, "select 'a'::int as x"]) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "cannot convert" in captured.err


def test_a_folder_registers_files_and_folders(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--data", str(data), "select count(*) as c from parts, t"]) == 0
    assert rows(capfd) == [["c"], ["6"]]


def test_a_table_for_people(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-t", f"t={data / 't.parquet'}", "--format", "table", QUERY]) == 0
    output = capfd.readouterr().out
    assert "total" in output
    assert "2 rows" in output


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl"])
def test_files(suffix: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / f"out.{suffix}"
    assert main(["sql", "-t", f"t={data / 't.parquet'}", "-o", str(path), "select a, b from t order by a"]) == 0
    if suffix == "parquet":
        assert pq.read_table(path).to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "x"]}
    elif suffix == "arrow":
        with pa.OSFile(str(path)) as source:
            assert pa.ipc.open_file(source).read_all().num_rows == 3
    elif suffix == "csv":
        assert len(path.read_text().splitlines()) == 4
    else:
        assert [json.loads(line) for line in path.read_text().splitlines()][2] == {"a": 3, "b": "x"}


def test_the_query_from_a_file_and_from_standard_input(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q.sql").write_text(QUERY)
    assert main(["sql", "--data", str(data), "-f", str(tmp_path / "q.sql")]) == 0
    from_file = rows(capfd)
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    assert main(["sql", "--data", str(data)]) == 0
    assert rows(capfd) == from_file == [["b", "total"], ["x", "4"], ["y", "2"]]


def test_explain(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--data", str(data), "--explain", QUERY]) == 0
    assert "pipeline 0" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["select nope from t"], 1, "nope"),
        (["selec 1"], 1, "selec"),
        (["select a +"], 1, "line 1"),
        (["-t", "broken", "select 1"], 2, "NAME=PATH"),
        (["-t", "u=missing.parquet", "select 1"], 1, "missing.parquet"),
        (["--memory-limit", "lots", "select 1"], 2, "lots"),
        (["-f", "missing.sql"], 1, "missing.sql"),
        (["-o", "out.xyz", "select 1"], 2, "xyz"),
    ],
)
def test_errors_have_messages_and_exit_codes(
    arguments: list[str], code: int, word: str, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "-t", f"t={data / 't.parquet'}", *arguments]) == code
    captured = capfd.readouterr()
    assert word in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_tpch_checks_and_writes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tpch_folder()
    data = tmp_path / "cache"
    data.mkdir()
    (data / "tpch-sf0.01").symlink_to(folder)
    lines = tmp_path / "out.jsonl"
    arguments = ["tpch", "--scale", "0.01", "--queries", "1,6", "--runs", "2", "--engines", "bireme,duckdb"]
    assert main([*arguments, "--threads", "1", "--data", str(data), "--json", str(lines)]) == 0
    reports = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {(report["query"], report["engine"]) for report in reports} == {
        (query, engine) for query in ("Q1", "Q6") for engine in ("bireme", "duckdb")
    }
    assert all(report["checked"] and len(report["seconds"]) == 2 and report["peak_bytes"] > 0 for report in reports)
    assert "geometric mean" in capfd.readouterr().out


def test_choices_of_queries() -> None:
    assert parse_queries("1,5-7, 22") == [1, 5, 6, 7, 22]
    for wrong in ("0", "23", "a", "3-", ""):
        with pytest.raises(ConfigError):
            parse_queries(wrong)


def test_a_wrong_answer_is_seen() -> None:
    right = pa.table({"a": [1, 2, 3], "b": [0.1, 0.2, 0.3]})
    assert difference(right, right, [0]) is None
    assert difference(pa.table({"a": [1, 2, 3], "b": [0.1, 0.2, 0.30000000001]}), right, [0]) is None
    assert "rows" in str(difference(right.slice(0, 2), right, [0]))
    assert difference(pa.table({"a": [1, 2, 3], "b": [0.1, 0.2, 0.4]}), right, [0]) is not None
    swapped = pa.table({"a": [2, 1, 3], "b": [0.2, 0.1, 0.3]})
    assert difference(swapped, right, []) is None
    assert difference(swapped, right, [0]) is not None
    near = pa.table({"a": [1, 1], "b": [98.652879, 98.652992]})
    assert difference(near.take([1, 0]), near, []) is None
    assert order_columns("select x, y as z from t order by z desc, x") == [1, 0]
    assert order_columns("select x, min(y), count(*) as z from t group by x order by z") == [2]


def modules_of(arguments: list[str], *, own_process: bool) -> list[str]:
    """What the command line loads, beside what Python itself does at its start."""
    program = f"""
import json, sys
first = set(sys.modules)
from bireme.cli.main import main
code = main({arguments!r}, own_process={own_process})
print(json.dumps(sorted(set(sys.modules) - first)), file=sys.stderr)
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stderr)
    return modules


def test_a_query_loads_nothing_that_takes_long_and_is_not_needed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2, 2, None], "s": ["ab", "b", None, "abc"]}), tmp_path / "t.parquet")
    text = (
        "select a.k, count(*) as n from t a left join t b on a.k = b.k and a.s <> b.s "
        "where a.s like '%b%' and a.k not in (select k from t where k > 1) group by a.k order by n desc limit 3"
    )
    loaded = modules_of(["sql", "-t", f"t={tmp_path}/t.parquet", text], own_process=True)
    assert not {*LONG_TO_LOAD, "importlib.metadata", "email", "cloudpickle", "sqlglot.diff"}.intersection(loaded)
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {*LOADED, "bireme"}
    assert not {name for name in packages if not name.startswith(("_", "cython"))}
    # Where other code may run, libraries are loaded whole.
    assert "importlib.metadata" in modules_of(["sql", "-t", f"t={tmp_path}/t.parquet", text], own_process=False)


def test_what_a_process_of_its_own_spares_is_there_when_it_is_asked_for(data: Path) -> None:
    program = """
import sys
from bireme.cli import loading
loading.load()
import difflib, importlib.metadata
import sqlglot, sqlglot.diff
from sqlglot.dialects import dialect
assert sqlglot.diff.diff(sqlglot.parse_one("select a"), sqlglot.parse_one("select b"))
assert type(dialect.entry_points()) is type(importlib.metadata.entry_points())
assert difflib.get_close_matches("ab", ["abc"]) == ["abc"]
try:
    dialect.Dialect.get_or_raise("duckdbb")
except ValueError as error:
    assert "Did you mean duckdb?" in str(error), error
else:
    sys.exit("a dialect was found that there is not")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("library", "what"),
    [
        ("import importlib.metadata as m\nfound = m.entry_points()", "library.found is not None"),
        ("from importlib import metadata\nfound = metadata.entry_points()", "library.found is not None"),
        ("import sqlglot\nfound = sqlglot.diff(sqlglot.parse_one('1'), sqlglot.parse_one('2'))", "library.found"),
        ("import sqlglot.diff\nimport sqlglot\nfound = sqlglot.diff", "callable(library.found)"),
        ("from importlib.metadata import version", "library.version('pyarrow')"),
        ("import difflib\nfound = difflib.SequenceMatcher", "library.found"),
        ("import difflib, sys\ndel sys.modules['difflib']", "library"),
        ("import nowhere", "True"),
    ],
    ids=["calls", "calls of a package", "calls a function of a package", "has a function", "wants more",
         "wants more of a module", "takes a module away", "is broken"],
)  # fmt: skip
def test_libraries_that_want_what_a_process_of_its_own_spares(library: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(library)
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from bireme.cli import loading
loading._LIBRARIES = ("library", *loading._LIBRARIES)
loading.load()
import difflib, importlib.metadata, bireme
assert bireme.connect(threads=1).sql("select 1 as a").collect().num_rows == 1
assert difflib.SequenceMatcher and importlib.metadata.version("pyarrow")
if {what!r} != "True":
    import library
    assert {what}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("columns", ["", "0", "-5", "1", "12", "x", "\u00b2", "100"])
@pytest.mark.parametrize("terminal", [None, 0, 1, 72])
def test_help_on_terminals_of_all_widths(
    columns: str, terminal: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def size(*_: int) -> os.terminal_size:
        if terminal is None:
            raise OSError("not a terminal")
        return os.terminal_size((terminal, 24))

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "get_terminal_size", size)
    with pytest.raises(SystemExit) as ended:
        main(["sql", "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "--spill-compression" in printed
    if columns == "100":
        assert 72 < max(map(len, printed.splitlines())) <= 98


@pytest.mark.parametrize(("query", "code"), [("select a from t", 0), ("select nothing from t", 1), ("select", 1)])
def test_a_process_ends_with_all_of_its_output(query: str, code: int, tmp_path: Path) -> None:
    numbers = list(range(50_000))
    pq.write_table(pa.table({"a": numbers}), tmp_path / "t.parquet")
    command = [sys.executable, "-m", "bireme.cli.main", "sql", "-t", f"t={tmp_path}/t.parquet", query]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    if code == 0:
        assert done.stdout.split() == ['"a"', *map(str, numbers)]
    else:
        assert done.stderr.startswith("bireme: ")

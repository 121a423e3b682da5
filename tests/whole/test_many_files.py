"""Tables of many Parquet files: partitions in the names of folders, columns by name, casts; DuckDB as the oracle."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from support.two_engines import rows

import bireme as bm
from bireme.errors import ArgumentFault, BiremeError, ConversionFault, SourceMismatch

Files = Mapping[str, pa.Table]


@pytest.fixture(scope="module", params=["native", "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[bm.Session]:
    with bm.connect(backend=request.param, threads=2, memory_limit="256MiB") as session:
        yield session


@pytest.fixture(scope="module")
def native() -> Iterator[bm.Session]:
    with bm.connect(threads=2, memory_limit="256MiB") as session:
        yield session


def write(folder: Path, files: Files, **options: Any) -> None:
    for name, table in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)


def duck(text: str) -> pa.Table:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set timezone = 'UTC'")
    return connection.sql(text).to_arrow_table()


def check(session: bm.Session, text: str) -> list[Any]:
    """The rows, once they are those of DuckDB, in whatever order; names and order of the columns as well."""
    ours, theirs = session.sql(text).collect(), duck(text)
    assert list(map(str.lower, ours.column_names)) == list(map(str.lower, theirs.column_names)), text
    assert sorted(rows(ours), key=repr) == sorted(rows(theirs), key=repr), text
    return rows(ours)


def n(*values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"n": pa.array(values, kind or pa.int64())})


# --------------------------------------------------------------------------------------------- partitions


def names(session: bm.Session, text: str) -> list[tuple[str, str]]:
    described = session.sql(f"describe from {text}").collect()
    return list(zip(described["column_name"].to_pylist(), described["column_type"].to_pylist(), strict=True))


TEXTS = {
    "numbers": ["1", "-5", "0", "9223372036854775807", "-9223372036854775808", " 7", "7 "],
    "a number too large": ["9223372036854775808", "1"],
    "leading zeros": ["01", "2"],
    "signs": ["+5", "5"],
    "floats": ["1.5", "2"],
    "digits and more": ["1_000", "5e0", "1"],
    "dates": ["2024-01-02", "2024-1-3", "0024-05-06"],
    "no dates": ["2024-13-01", "2024-01-01"],
    "moments": ["2024-01-02 03:04:05", "2024-01-02 03:04:05.25"],
    "dates and moments": ["2024-01-02", "2024-01-02 03:04:05"],
    "dates and numbers": ["2024-01-02", "5"],
    "nothing": ["", "1"],
    "NULLs and numbers": ["__HIVE_DEFAULT_PARTITION__", "1", "NULL"],
    "NULLs and dates": ["__HIVE_DEFAULT_PARTITION__", "2024-01-01", "null"],
    "NULLs and moments": ["__HIVE_DEFAULT_PARTITION__", "2024-01-01 00:00:00"],
    "NULLs and texts": ["__HIVE_DEFAULT_PARTITION__", "x", "NULL"],
    "NULLs alone": ["__HIVE_DEFAULT_PARTITION__"],
    "codes": ["a%20b", "%C3%A4", "a+b", "%zz", "a%", "%2F", "2024%2D01%2D02"],
    "moments in codes": ["2024-01-02 03%3A04%3A05", "2024-01-02%2000%3A00%3A00"],
    "hexadecimal numbers": ["0x10", "5"],
    "booleans": ["true", "false"],
    "texts": ["ä", "Ω x", "'", '"'],
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("option", ["", ", hive_types_autocast = false", ", hive_types = {'y': varchar}"])
def test_values_and_types_of_partitions(native: bm.Session, tmp_path: Path, texts: list[str], option: str) -> None:
    write(tmp_path, {f"y={text}/{place}.parquet": n(place) for place, text in enumerate(texts)})
    relation = f"read_parquet('{tmp_path}/*/*.parquet'{option})"
    check(native, f"from {relation}")
    assert names(native, relation) == [(row[0], row[1]) for row in duckdb.sql(f"describe from {relation}").fetchall()]


TREES: dict[str, Files] = {
    "two keys": {"y=1/m=a/x.parquet": n(1), "y=2/m=b/x.parquet": n(2)},
    "in another order": {"y=1/z=a/x.parquet": n(1), "z=b/y=2/x.parquet": n(2)},
    "a key that comes twice": {"y=1/y=2/x.parquet": n(1)},
    "folders between": {"y=1/more/x.parquet": n(1), "y=2/x.parquet": n(2)},
    "several signs": {"y=1=2/x.parquet": n(1), "=3/x.parquet": n(2)},
    "in the name of the file alone": {"a/y=1.parquet": n(1)},
    "not of all": {"y=1/x.parquet": n(1), "x.parquet": n(2)},
    "other keys": {"y=1/x.parquet": n(1), "z=1/x.parquet": n(2)},
    "a key in two cases": {"Y=1/y=2/x.parquet": n(1), "y=3/Y=4/x.parquet": n(2)},
    "keys with capitals": {"Y=1/x.parquet": n(1), "y=1/x.parquet": n(2)},
    "a key that is a column": {
        "n=5/x.parquet": pa.table({"n": [1], "m": [2]}),
        "n=6/x.parquet": pa.table({"n": [3], "m": [4]}),
    },
    "a key that is a column with capitals": {"N=5/x.parquet": pa.table({"n": ["a"], "m": [2]})},
    "a key that is a column of one": {"m=5/x.parquet": n(1), "m=6/x.parquet": pa.table({"n": [3], "m": [4]})},
    "files without rows": {"y=1/x.parquet": n(), "y=2/x.parquet": n(2)},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_trees_of_folders(session: bm.Session, tmp_path: Path, tree: Files) -> None:
    write(tmp_path, tree)
    check(session, f"from '{tmp_path}/**/*.parquet'")
    check(session, f"from read_parquet('{tmp_path}/**/*.parquet', hive_partitioning = false)")
    check(session, f"from read_parquet('{tmp_path}/**/*.parquet', filename = true, file_row_number = true)")


def test_paths_are_shown_as_they_were_asked_for(
    native: bm.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1), "y=2/x.parquet": n(2)})
    monkeypatch.chdir(tmp_path)
    check(native, "from read_parquet('*/*.parquet', filename = true)")
    check(native, f"from read_parquet(['y=1/x.parquet', '{tmp_path}/y=2/x.parquet'], filename = 'place')")
    monkeypatch.chdir(tmp_path / "y=1")
    assert check(native, "from 'x.parquet'") == [(1,)], "the folder is not in the path"


@pytest.mark.parametrize(
    ("options", "error", "story"),
    [
        ({"hive_partitioning": True}, SourceMismatch, r"'.*z=1/x\.parquet' has no folder 'y=…'"),
        ({"hive_types": {"y": "integer"}}, SourceMismatch, "not partitioned by the same keys"),
        ({"hive_typos": True}, ArgumentFault, "no option 'hive_typos'.*there are filename, .*union_by_name"),
        ({"hive_types": {"y": "integer"}, "hive_partitioning": False}, ArgumentFault, "hive_partitioning = false"),
        ({"hive_types": {"y": "no type"}}, ArgumentFault, "'y': there is no type"),
        ({"hive_types": {"y": "integer[]"}}, ArgumentFault, r"is no integer\[\]"),
        ({"hive_types": {"y": 5}}, ArgumentFault, "written as a text"),
        ({"hive_types": "y"}, ArgumentFault, "names types"),
        ({"union_by_name": "perhaps"}, ArgumentFault, "true or false"),
        ({"filename": 2}, ArgumentFault, "name of the column"),
        ({"filename": ""}, ArgumentFault, "name of the column"),
        ({"filename": "N"}, ArgumentFault, "adds a column 'N'"),
        ({"filename": "file_row_number", "file_row_number": True}, ArgumentFault, "adds a column"),
    ],
)
def test_options_that_cannot_be_are_named(
    native: bm.Session, tmp_path: Path, options: dict[str, Any], error: type[BiremeError], story: str
) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1), "z=1/x.parquet": n(2)})
    with pytest.raises(error, match=story):
        native.scan_parquet(tmp_path / "*/*.parquet", **options)
    with pytest.raises(error, match=story):
        native.register("bad", tmp_path / "*/*.parquet", **options)


@pytest.mark.parametrize(
    ("option", "story"),
    [
        ("hive_types = {'z': integer}", "no partition column 'z'; there are 'y'"),
        ("hive_types = {'y': blue}", "no type 'blue'"),
        ("hive_types = 5", "are written as"),
        ("hive_types = {}", "."),
        ("nothing = 5", "no option 'nothing'"),
        ("filename = NULL", "constant"),
        ("filename = n", "."),
        ("filename = true, filename := true", "twice"),
        ("filename = 'y'", "adds a column 'y'"),
        ("file_row_number = 'a'", "true or false"),
    ],
)
def test_options_of_a_query_that_cannot_be_are_named(
    native: bm.Session, tmp_path: Path, option: str, story: str
) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1)})
    with pytest.raises(bm.errors.QueryError, match=story):
        native.sql(f"from read_parquet('{tmp_path}/*/*.parquet', {option})")


@pytest.mark.parametrize(
    "option",
    [
        "hive_types = {'y': smallint}",
        "hive_types = {'y': 'double'}",
        "hive_types = {y: blob}",
        "hive_types_autocast = 0",
        "hive_partitioning = 1",
        "hive_partitioning := false",
        "hive_partitioning => true",
        "FILENAME = true",
        "filename = 'where from'",
        "filename = false",
        "file_row_number = true, filename = true, union_by_name = true",
    ],
)
def test_options_of_a_query(native: bm.Session, tmp_path: Path, option: str) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1, 2), "y=20/x.parquet": n(2)})
    for function in ("read_parquet", "parquet_scan"):
        check(native, f"from {function}('{tmp_path}/*/*.parquet', {option})")
        check(native, f"from {function}(['{tmp_path}/y=20/x.parquet', '{tmp_path}/y=1/x.parquet'], {option})")


def test_a_key_that_is_a_column_asked_for_is_named(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"file_row_number=1/filename=2/x.parquet": n(1)})
    for option in ("file_row_number", "filename"):
        with pytest.raises(ArgumentFault, match=f"adds a column '{option}'"):
            native.scan_parquet(tmp_path, **{option: True})


def test_a_value_that_is_not_of_the_type_asked_for_is_named(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1), "y=b/x.parquet": n(2)})
    with pytest.raises(ConversionFault, match=r"y=b of '.*y=b/x\.parquet' is not named after a integer"):
        native.scan_parquet(tmp_path, hive_types={"y": "integer"})


def test_the_calls_of_python_take_the_same_options(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1), "y=2/x.parquet": pa.table({"m": ["a"]})})
    options: dict[str, Any] = {
        "union_by_name": True,
        "filename": "f",
        "file_row_number": True,
        "hive_types": {"y": "tinyint"},
    }
    native.register("t", tmp_path, **options)
    text = "union_by_name = true, filename = 'f', file_row_number = true, hive_types = {'y': tinyint}"
    expected = duck(f"from read_parquet('{tmp_path}/*/*.parquet', {text})")
    for found in (native.sql("from t").collect(), native.scan_parquet(tmp_path, **options).collect()):
        assert found.column_names == expected.column_names
        assert rows(found) == rows(expected)
    saved = native.sql("from t").serialize()
    assert rows(native.deserialize(saved).collect()) == rows(expected)
    text = f"from read_parquet('{tmp_path}/*/*.parquet', {text})"
    assert rows(native.deserialize(native.sql(text).serialize()).collect()) == rows(expected)
    with pytest.raises(ArgumentFault, match="no path but Table"):
        native.register("t", n(1), filename=True)


def test_partitions_that_come_and_go_are_noticed(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"y=1/x.parquet": n(1)})
    native.register("growing", tmp_path)
    text = f"from '{tmp_path}/*/*.parquet'"
    assert rows(native.sql(text).collect()) == rows(native.sql("from growing").collect()) == [(1, 1)]
    write(tmp_path, {"y=a/x.parquet": n(2)})
    assert rows(native.sql(text).collect()) == rows(native.sql("from growing").collect()) == [(1, "1"), (2, "a")]
    (tmp_path / "y=1/x.parquet").unlink()
    assert rows(native.sql(text).collect()) == [(2, "a")]


# ------------------------------------------------------------------------------------------------ pruning


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 files of three row groups; `late` is narrower in some files and has to be cast there."""
    folder = tmp_path_factory.mktemp("sales")
    numbers = itertools.count()
    for year, month in itertools.product((2023, 2024), range(1, 13)):
        ids = [next(numbers) for _ in range(600)]
        table = pa.table(
            {
                "id": ids,
                "late": pa.array(ids, pa.int32() if month % 2 else pa.int64()),
                "price": pa.array([Decimal(one % 977).scaleb(-2) for one in ids], pa.decimal128(9, 3 - month % 2)),
                "what": [f"thing {one % 7}" if one % 5 else None for one in ids],
            }
        )
        write(folder, {f"year={year}/month={month}/x.parquet": table}, row_group_size=200)
    return folder


FILTERS = {
    "year = 2024": 36,
    "year = 2024 and month = 3": 3,
    "month in (1, 2)": 12,
    "year > 2024": 0,
    "year is null": 0,
    "month % 6 = 0": 12,
    "year * 100 + month between 202312 and 202401": 6,
    "year::varchar || '-' || month = '2023-7'": 3,
    "year = 2023 and id >= 6800": 2,
    "year = 2024 and late < 7400": 1,
    "late = 14000": 1,
    "not (year = 2023) and month <> 12": 33,
    "year = 2023 or month = 12": 39,
    "filename like '%month=12/%' and year = 2024": 72,
    "file_row_number >= 400": 24,
    "file_row_number between 20 and 40 and month = 1": 2,
}


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_over_partitions_skip_files(session: bm.Session, sales: Path, condition: str) -> None:
    relation = f"read_parquet('{sales}/**/*.parquet', filename = true, file_row_number = true)"
    check(session, f"select * exclude (filename) from {relation} where {condition}")
    check(session, f"select count(*) as c, sum(id) as s, max(late) as l from {relation} where {condition}")


@pytest.mark.parametrize("condition", [one for one in FILTERS if "filename" not in one])
def test_what_is_skipped_is_not_read(native: bm.Session, sales: Path, condition: str) -> None:
    native.register("sales", sales, filename=True, file_row_number=True)
    source = native._tables.find("sales")[1]
    plan = native.sql(f"select id from sales where {condition}").explain(physical=True, analyze=True)
    dag = native._planner.plan(native.sql(f"select id from sales where {condition}")._plan)[1]
    scans = [each for each in dag.pipelines if hasattr(each.source, "columns")]
    left = [len(source.splits(each.source.columns, each.source.filters)) for each in scans]
    assert left == [FILTERS[condition]] or (not left and FILTERS[condition] == 0), plan


def test_a_damaged_partition_is_no_matter_to_others(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {f"y={y}/x.parquet": n(*range(y, 2000)) for y in (1, 2)})
    path = tmp_path / "y=1/x.parquet"
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(bytes(content))
    native.register("half", tmp_path)
    assert native.sql("select count(n) as c from half where y = 2").collect().to_pydict() == {"c": [1998]}
    with pytest.raises(bm.errors.SourceCorrupt, match="y=1"):
        native.sql("select sum(n) as c from half").collect()


QUERIES = [
    "select year, month, count(*) as c, sum(price) as p from {} group by all",
    "select year, count(distinct what) as c, min(late) as lo, max(late) as hi from {} group by year",
    "select what, year, avg(price) as p from {} where late % 3 = 0 group by all",
    "select a.id, b.what, b.month from {} a join {} b on a.id = b.late and b.month = a.month where a.id % 100 = 7",
    "select a.id from {} a where a.year = (select max(year) from {}) and a.late in (select id from {} where month = 2)",
    "select id, what, price, month from {} order by price desc, id limit 20",
    "select id, year from {} order by year desc, month, late desc limit 5",
    "select month, year from {} order by id desc limit 3",
    "select count(*) as c from {}",
    "select count(*) as c from {} where year = 2023",
    "select year from {} where month = 4",
    "select min(year) as a, max(month) as b, min(late) as c, max(price) as d from {}",
    "select distinct year, month from {}",
    "select year, month, id, row_number() over (partition by year order by late desc) as r from {} qualify r <= 2",
    "select year, sum(id) over (partition by month order by late rows 1 preceding) as s from {} where id % 50 = 3",
    "select * from {} where what is null and price > 9.5 and year = 2024",
    "select late, count(*) as c from {} group by late having c > 1",
    "select late // 100 as k, sum(late) as s from {} group by k",
    "select lower(what) as w, max(file_row_number) as m, min(filename) as f from {} group by w",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_over_partitions(session: bm.Session, sales: Path, query: str) -> None:
    relation = f"read_parquet('{sales}/**/*.parquet', filename = true, file_row_number = true)"
    check(session, query.replace("{}", relation))


@pytest.mark.parametrize("levers", ["-native_scan", "-late_columns", "-runtime_filters", "-clustering"])
def test_queries_without_one_of_the_levers(sales: Path, levers: str) -> None:
    with bm.connect(threads=2, memory_limit="256MiB", levers=levers) as session:
        for query in QUERIES:
            relation = f"read_parquet('{sales}/**/*.parquet', filename = true, file_row_number = true)"
            check(session, query.replace("{}", relation))


def test_what_is_cached_is_what_is_read(sales: Path) -> None:
    with bm.connect(threads=2) as session:
        session.register("sales", sales, filename=True, file_row_number=True)
        session.register("plain", sales, hive_types={"month": "varchar"}, union_by_name=True)
        session.table("sales").cache()
        session.table("plain").cache()
        for _ in range(2):
            for query in QUERIES:
                relation = f"read_parquet('{sales}/**/*.parquet', filename = true, file_row_number = true)"
                expected = duck(query.replace("{}", relation))
                found = session.sql(query.replace("{}", "sales")).collect()
                assert sorted(rows(found), key=repr) == sorted(rows(expected), key=repr)
            text = "select sum(late) as l, max(month) as m, sum(price) as p from {}"
            relation = f"read_parquet('{sales}/**/*.parquet', hive_types = {{'month': varchar}}, union_by_name = true)"
            assert rows(session.sql(text.replace("{}", "plain")).collect()) == rows(duck(text.replace("{}", relation)))


def test_in_little_memory_large_row_groups_are_cast_as_they_come(tmp_path: Path) -> None:
    count = 1_500_000
    ids = pa.array(range(count), pa.int64())
    files = {
        "y=1/x.parquet": pa.table({"id": ids.cast(pa.int32()), "t": ids.cast(pa.string())}),
        "y=2/x.parquet": pa.table({"t": ids.cast(pa.string()), "id": ids}),
    }
    write(tmp_path, files, row_group_size=count)
    with bm.connect(threads=2, memory_limit="32MiB") as session:
        session.register("t", tmp_path, file_row_number=True, filename=True)
        text = (
            "select y, count(*) as c, sum(id) as s, sum(file_row_number) as f, min(t) as lo, max(t) as hi, "
            "count(distinct filename) as n from {} where id % 3 = 1 group by y"
        )
        found = session.sql(text.replace("{}", "t")).collect()
        relation = f"read_parquet('{tmp_path}/*/*.parquet', file_row_number = true, filename = true)"
        assert sorted(rows(found)) == sorted(rows(duck(text.replace("{}", relation))))


def test_statistics_are_those_of_what_is_read(native: bm.Session, sales: Path) -> None:
    native.register("sales", sales, filename=True, file_row_number=True)
    source = native._tables.find("sales")[1]
    known = dict(zip(source.schema.names, source.statistics().columns, strict=True))
    assert (known["year"].minimum, known["year"].maximum, known["year"].distinct) == (2023, 2024, 2.0)
    assert (known["month"].minimum, known["month"].maximum, known["month"].distinct) == (1, 12, 12.0)
    assert (known["late"].minimum, known["late"].maximum, known["late"].null_count) == (0, 14_399, 0)
    assert known["late"].clustered
    assert not known["month"].clustered
    assert (known["price"].minimum, known["price"].maximum) == (None, None), "one of the casts rounds"
    assert known["price"].null_count == 0
    assert (known["file_row_number"].minimum, known["file_row_number"].maximum) == (0, 599)
    assert known["filename"].distinct == 24.0
    estimated = native._planner.context().estimates
    scan = native.sql("select * from sales where year = 2024 and month = 5")._plan
    assert 200 < estimated.rows(native._planner.optimize(scan)) < 1800


# ------------------------------------------------------------------------------------- columns by their names


MIXED: dict[str, Files] = {
    "order": {"a.parquet": pa.table({"a": [1], "b": ["x"]}), "b.parquet": pa.table({"b": ["y"], "a": [2]})},
    "capitals": {"a.parquet": pa.table({"a": [1]}), "b.parquet": pa.table({"A": [2]})},
    "more in others": {"a.parquet": pa.table({"a": [1]}), "b.parquet": pa.table({"b": ["y"], "a": [2]})},
    "wider": {"a.parquet": n(1, kind=pa.int8()), "b.parquet": n(100, kind=pa.int64())},
    "narrower": {"a.parquet": n(2**40), "b.parquet": n(100, None, kind=pa.int8())},
    "unsigned": {"a.parquet": n(1, kind=pa.uint64()), "b.parquet": n(100, None, kind=pa.int64())},
    "texts and numbers": {"a.parquet": n("x", kind=pa.string()), "b.parquet": n(100, None)},
    "floats": {"a.parquet": n(1), "b.parquet": n(2.5, 3.5, -2.5, None, kind=pa.float64())},
    "float and double": {"a.parquet": n(1.5, kind=pa.float32()), "b.parquet": n(2.5, None, kind=pa.float64())},
    "scales": {
        "a.parquet": n(Decimal("1.5"), kind=pa.decimal128(5, 1)),
        "b.parquet": n(Decimal("2.255"), Decimal("-2.25"), None, kind=pa.decimal128(9, 3)),
    },
    "wide decimals": {
        "a.parquet": n(Decimal("1.5"), kind=pa.decimal128(5, 1)),
        "b.parquet": n(Decimal("-2.25"), None, kind=pa.decimal128(30, 3)),
    },
    "dates and moments": {
        "a.parquet": n(datetime.date(2024, 1, 2), kind=pa.date32()),
        "b.parquet": n(datetime.datetime(2024, 1, 2, 3), None, kind=pa.timestamp("us")),
    },
    "moments and dates": {
        "a.parquet": n(datetime.datetime(2024, 1, 2, 3), None, kind=pa.timestamp("us")),
        "b.parquet": n(datetime.date(2024, 1, 2), None, kind=pa.date32()),
    },
    "units": {
        "a.parquet": n(datetime.datetime(2024, 1, 2, 3), kind=pa.timestamp("us")),
        "b.parquet": n(datetime.datetime(2024, 1, 2, 3), None, kind=pa.timestamp("ms")),
    },
    "booleans": {"a.parquet": n(True, kind=pa.bool_()), "b.parquet": n(5, 0, None)},
    "booleans and floats": {"a.parquet": n(True, kind=pa.bool_()), "b.parquet": n(2.5, 0.0, None)},
    "decimals and booleans": {
        "a.parquet": n(Decimal("1.5"), kind=pa.decimal128(5, 1)),
        "b.parquet": n(True, None, kind=pa.bool_()),
    },
    "NULLs of no type": {"a.parquet": n("x", kind=pa.string()), "b.parquet": n(None, None, kind=pa.null())},
    "lists": {
        "a.parquet": n([1], kind=pa.list_(pa.int32())),
        "b.parquet": n([5, None], None, kind=pa.list_(pa.int64())),
    },
    "structs": {
        "a.parquet": pa.table({"n": [{"x": 1, "y": 2}]}),
        "b.parquet": pa.table({"n": [{"y": 3, "x": 4}, None]}),
    },
    "fields of structs": {"a.parquet": pa.table({"n": [{"x": 1, "y": 2}]}), "b.parquet": pa.table({"n": [{"y": 3}]})},
    "dictionaries": {
        "a.parquet": n("x", "y", kind=pa.string()),
        "b.parquet": pa.table({"n": pa.array(["z", None, "z"]).dictionary_encode()}),
    },
    "texts that are numbers": {"a.parquet": n(1), "b.parquet": n("12", " 7 ", None, kind=pa.string())},
    "no rows in the first": {"a.parquet": n(kind=pa.int32()), "b.parquet": n(2, None)},
    "no rows in the second": {"a.parquet": n(2, None), "b.parquet": n(kind=pa.float64())},
}


@pytest.mark.parametrize("files", MIXED.values(), ids=list(MIXED))
def test_the_first_file_gives_the_columns_or_all_do(session: bm.Session, tmp_path: Path, files: Files) -> None:
    write(tmp_path, files)
    for option in ("", ", union_by_name = true", ", union_by_name = true, filename = true, file_row_number = true"):
        relation = f"read_parquet('{tmp_path}/*.parquet'{option})"
        check(session, f"from {relation}")
        column = files["a.parquet"].column_names[0]
        check(session, f"from {relation} where {column} is not null")


def test_a_column_that_a_file_lacks_is_missed_where_it_is_read(session: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"a.parquet": pa.table({"a": [1], "b": ["x"]}), "b.parquet": n(1, 2).rename_columns(["a"])})
    text = f"from '{tmp_path}/*.parquet'"
    assert check(session, f"select a {text}") == [(1.0,), (1.0,), (2.0,)]
    check(session, f"select count(*) as c {text}")
    for query in (text, f"select b {text}", f"select a {text} where b = 'x'", f"select max(b) as b {text}"):
        with pytest.raises(SourceMismatch, match=r"b\.parquet' has no column 'b'.*union_by_name"):
            session.sql(query).collect()
    check(session, f"from read_parquet('{tmp_path}/*.parquet', union_by_name = true)")


@pytest.mark.parametrize(
    ("first", "second", "error", "story"),
    [
        (n(1, kind=pa.int32()), n(2**40), ConversionFault, r"b\.parquet': column 'n' is bigint there.*integer"),
        (n(1), n("12", "x", kind=pa.string()), ConversionFault, r"b\.parquet': column 'n' is varchar there.*'x'"),
        (n(1, kind=pa.uint8()), n(-1), ConversionFault, r"b\.parquet': column 'n' is bigint there.*utinyint"),
        (
            n(Decimal("1.5"), kind=pa.decimal128(3, 1)),
            n(Decimal("12345.5"), kind=pa.decimal128(9, 1)),
            ConversionFault,
            r"b\.parquet': column 'n' is decimal\(9,1\) there.*decimal\(3,1\)",
        ),
        (
            n([1], kind=pa.list_(pa.int64())),
            n(5),
            SourceMismatch,
            r"b\.parquet': column 'n' is bigint there and bigint\[\]",
        ),
        (
            n(datetime.date(2024, 1, 1), kind=pa.date32()),
            n(5),
            SourceMismatch,
            r"b\.parquet': column 'n' is bigint there and date",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    session: bm.Session, tmp_path: Path, first: pa.Table, second: pa.Table, error: type[BiremeError], story: str
) -> None:
    first = first.append_column("o", pa.array([1]))
    second = second.append_column("o", pa.array([2] * second.num_rows))
    write(tmp_path, {"a.parquet": first, "b.parquet": second})
    text = f"from '{tmp_path}/*.parquet'"
    check(session, f"select o {text}")
    for query in (text, f"select count(n) as c {text}", f"select o {text} where n is not null"):
        with pytest.raises(error, match=story):
            session.sql(query).collect()
    with pytest.raises(duckdb.Error):
        duck(text)


def test_types_that_do_not_go_together_are_named(native: bm.Session, tmp_path: Path) -> None:
    write(tmp_path, {"a.parquet": n(datetime.date(2024, 1, 1), kind=pa.date32()), "b.parquet": n(5)})
    with pytest.raises(SourceMismatch, match=r"b\.parquet': column 'n' is bigint there and date in a file before it"):
        native.scan_parquet(tmp_path, union_by_name=True)


def test_a_cast_in_a_partition_that_is_left_out_does_not_fail(session: bm.Session, tmp_path: Path) -> None:
    write(
        tmp_path,
        {"y=1/x.parquet": n(1, kind=pa.int32()), "y=2/x.parquet": n(2**40), "y=3/x.parquet": pa.table({"m": [1]})},
    )
    assert check(session, f"from '{tmp_path}/*/*.parquet' where y = 1") == [(1.0, 1.0)]


# --------------------------------------------------------------------------------------------- drawn layouts

KINDS: dict[str, list[pa.DataType]] = {
    "i": [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()],
    "f": [pa.float32(), pa.float64(), pa.int32()],
    "d": [pa.decimal128(6, 1), pa.decimal128(9, 3), pa.decimal128(20, 2), pa.int32()],
    "t": [pa.date32(), pa.timestamp("us"), pa.timestamp("ms")],
    "s": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
}


def value(column: str, number: int) -> Any:
    match column:
        case "i":
            return number % 120
        case "f":
            return number % 64
        case "d":
            return Decimal(number % 500) / 4
        case "t":
            return datetime.datetime(2024, 1, 1) + datetime.timedelta(days=number % 50)
        case _:
            return f"text {number % 30}"


def column_of(name: str, kind: pa.DataType, count: int, seed: int) -> pa.Array:
    numbers = [(seed * 7919 + place * 31) % 100_003 if seed % 2 else place for place in range(count)]
    values = [None if (number + seed) % 9 == 0 else value(name, number) for number in numbers]
    if pa.types.is_integer(kind):
        values = [None if each is None else int(each) for each in values]
    if pa.types.is_decimal(kind):
        step = Decimal(1).scaleb(-kind.scale)
        values = [None if each is None else each.quantize(step) for each in values]
    if pa.types.is_date(kind):
        values = [None if each is None else each.date() for each in values]
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[dict[str, pa.Table], dict[str, Any], str]:
    """Files by path, how they are written, and the options to read them with."""
    is_union = draw(st.booleans())
    keys = draw(st.sampled_from([(), ("y",), ("y", "r"), ("i",)]))
    wanted = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5, unique=True))
    files = {}
    for place in range(draw(st.integers(1, 4))):
        names = draw(st.permutations(wanted))
        if is_union:
            names = names[: draw(st.integers(1, len(names)))]
        count = draw(st.sampled_from([0, 1, 40, 700]))
        columns = {
            name: column_of(name, draw(st.sampled_from(KINDS[name])), count, draw(st.integers(0, 9))) for name in names
        }
        folders = [f"{key}={draw(st.sampled_from(PARTITIONS[key]))}/" for key in keys]
        files[f"{''.join(folders)}{place}.parquet"] = pa.table(columns)
    written = {"row_group_size": draw(st.sampled_from([100, 1000])), "use_dictionary": draw(st.booleans())}
    options = [
        f"union_by_name = {is_union}",
        *draw(st.sets(st.sampled_from(["filename = true", "file_row_number = true"]))),
    ]
    return files, written, ", ".join(sorted(options))


PARTITIONS = {"y": ["1", "2", "30"], "r": ["a", "__HIVE_DEFAULT_PARTITION__", "b%20c"], "i": ["5", "6"]}
CONDITIONS = {
    "y": ["y = 2", "y > 1", "y % 2 = 0"],
    "r": ["r is null", "r = 'b c'", "r < 'b'"],
    "i": ["i = 5", "i between 3 and 40", "i is null", "i > 1000"],
    "f": ["f > 20", "f = 7"],
    "d": ["d < 30.5", "d = 1.3", "d is not null"],
    "t": ["t < timestamp '2024-01-09'", "t = date '2024-02-01'"],
    "s": ["s = 'text 3'", "s like 'text 1%'", "s is null"],
    "file_row_number": ["file_row_number < 30", "file_row_number = 150"],
}


@pytest.mark.parametrize("backend", ["native", "reference"])
@settings(max_examples=25, deadline=None)
@given(drawn=layouts(), data=st.data())
def test_drawn_files(tmp_path_factory: pytest.TempPathFactory, backend: str, drawn: Any, data: st.DataObject) -> None:
    files, written, options = drawn
    folder = tmp_path_factory.mktemp("drawn")
    write(folder, files, **written)
    relation = f"read_parquet('{folder}/**/*.parquet', {options})"
    # Joins of many rows may spill, and what they spill to is the session's for as long as that lives.
    with bm.connect(backend=backend, threads=1, memory_limit="256MiB") as session:
        check(session, f"from {relation}")
        found = session.sql(f"from {relation} limit 0").collect().column_names
        known = [name for name in found if name in CONDITIONS]
        for _ in range(3):
            asked = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True)) if known else []
            where = " and ".join([data.draw(st.sampled_from(CONDITIONS[name])) for name in asked]) or "true"
            check(session, f"from {relation} where {where}")
            key = data.draw(st.sampled_from(found))
            check(session, f"select {key}, count(*) as c from {relation} where {where} group by {key}")
        ordered = ", ".join(
            f"count({name}) as c{at}, min({name}) as l{at}, max({name}) as h{at}" for at, name in enumerate(found)
        )
        check(session, f"select {ordered} from {relation}")
        key = data.draw(st.sampled_from(found))
        check(session, f"select count(*) as c from {relation} a join {relation} b on a.{key} = b.{key}")


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_file_named_twice_is_read_twice(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": range(5_000), "s": [f"text {i % 7}" for i in range(5_000)]}), path, row_group_size=700
    )
    listed = f"read_parquet(['{path}', '{tmp_path}/*.parquet'], file_row_number = true)"
    queries = (
        f"select count(*), sum(a), count(distinct s) from {listed}",
        f"select s, count(*), min(a) from {listed} where a > 4000 group by s order by s",
        f"select x.a, x.file_row_number, y.s from {listed} x join '{path}' y using (a) where y.a < 40 order by all",
        f"select a, s from {listed} order by a desc, s limit 7",
    )
    with duckdb.connect() as oracle, bm.connect(threads=2, backend=backend) as session:
        for query in queries:
            for _ in range(2):
                assert rows(session.sql(query).collect()) == rows(oracle.sql(query).to_arrow_table()), query

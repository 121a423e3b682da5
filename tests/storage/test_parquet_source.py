"""A table of Parquet files as planner and runtime see it: which files, which bytes, which facts, which version."""

import datetime
import operator
import os
import random
import tracemalloc
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parquet_files import COLUMNS, duckdb_file, fetch, polars_file, read_rows, table_of

from bireme.data.types import BOOL, INT64, STRING, decimal
from bireme.errors import ArgumentFault, SourceChanged, SourceMismatch, SourceMissing
from bireme.plan.expr import Call, Column, InList, Literal
from bireme.storage.parquet import open_parquet
from bireme.storage.parquet_file import parse_metadata, read_file
from bireme.storage.parquet_footer import read_footer
from bireme.storage.parquet_plain_footer import plain_footer

MONEY = decimal(15, 2)


def write(path, table, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


def numbers(*values):
    return pa.table({"n": pa.array(values, pa.int64())})


# ----------------------------------------------------------------------------------------- which files


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "t/b.parquet", numbers(2))
    write(tmp_path / "t/a.parquet", numbers(1))
    write(tmp_path / "t/sub/c.parquet", numbers(3))
    write(tmp_path / "t/_temporary/x.parquet", numbers(-1))
    write(tmp_path / "t/.hidden.parquet", numbers(-1))
    (tmp_path / "t/readme.txt").write_text("no table")
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.parquet", [1]),
        ("*.parquet", [1, 2]),
        ("?.parquet", [1, 2]),
        ("[b-z].parquet", [2]),
        ("**/*.parquet", [1, 2, 3]),
        ("**", [1, 2, 3]),
        ("", [1, 2, 3]),
        ("s*", [3]),
        ("sub", [3]),
    ],
)
def test_paths_globs_and_folders(folder, pattern, expected):
    table = open_parquet(os.path.join(folder, pattern))
    assert [row[0] for row in read_rows(table, [0])] == expected
    assert table.split_count() == len(expected)
    assert table.statistics().rows == len(expected)


def test_lists_keep_their_order_and_take_a_file_as_often_as_it_is_named(folder):
    table = open_parquet([folder / "b.parquet", folder, str(folder / "a.parquet")])
    assert [row[0] for row in read_rows(table, [0])] == [2, 1, 2, 3, 1]


def test_a_file_whose_name_looks_like_a_glob(tmp_path):
    write(tmp_path / "odd[1]*.parquet", numbers(7))
    assert read_rows(open_parquet(tmp_path / "odd[1]*.parquet"), [0]) == [(7,)]


@pytest.mark.parametrize("missing", ["nothing.parquet", "*.csvx", "no/such/folder", "**/*.nothing"])
def test_what_is_not_there_is_named(folder, missing):
    with pytest.raises(SourceMissing, match=r"no file|holds no file"):
        open_parquet(folder / missing)


def test_a_folder_without_tables_is_named(tmp_path):
    (tmp_path / "note.txt").write_text("")
    with pytest.raises(SourceMissing, match="holds no file named"):
        open_parquet(tmp_path)


@pytest.mark.parametrize("what", ["", "*", "**/*.parquet", "*/*.parquet", "year=2024/a.parquet"])
def test_folders_that_name_a_column_and_its_value_give_one(tmp_path, what):
    write(tmp_path / "t/year=2024/a.parquet", numbers(1))
    table = open_parquet(os.path.join(tmp_path / "t", what))
    assert (table.schema.names, table.schema.types) == (("n", "year"), (INT64, INT64))
    assert read_rows(table, [0, 1]) == [(1, 2024)]
    assert read_rows(table, [1, 1]) == [(2024, 2024)]


@pytest.mark.parametrize("wrong", [[], "", "a\0b", [1], b"bytes"])
def test_what_is_no_path_is_refused(wrong):
    with pytest.raises(ArgumentFault):
        open_parquet(wrong)


def test_many_files_are_one_table(tmp_path):
    for number in range(40):
        write(tmp_path / f"{number:02}.parquet", numbers(number, number + 1000))
    table = open_parquet(tmp_path)
    assert [row[0] for row in read_rows(table, [0])][::2] == list(range(40))
    few = Call("lt", (Column(0, INT64), Literal(5, INT64)), BOOL)
    assert len(table.splits([0], [few])) == 5


# --------------------------------------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"m": pa.array([1], pa.int64())}), r"b\.parquet' has no column 'n'.*it has 'm'"),
        (pa.table({"n": [[1]]}), r"b\.parquet'.*'n' is bigint\[\] there and bigint in the table"),
    ],
)
def test_files_that_lack_a_column_are_named_where_it_is_read(tmp_path, other, message):
    write(tmp_path / "a.parquet", numbers(1))
    write(tmp_path / "b.parquet", other)
    table = open_parquet(tmp_path)
    with pytest.raises(SourceMismatch, match=message):
        table.splits([0], [])
    assert len(table.splits([], [])) == 2
    assert table.sample([0]).column(0).to_pylist() in ([1], [None])


def test_nullability_and_layout_may_differ(tmp_path):
    strict = pa.schema([pa.field("s", pa.string(), nullable=False), pa.field("d", pa.decimal128(9, 2), nullable=False)])
    row = {"s": ["x"], "d": [Decimal("1.50")]}
    write(tmp_path / "a.parquet", pa.table(row, strict), store_decimal_as_integer=True)
    loose = pa.schema({"s": pa.large_string(), "d": pa.decimal128(9, 2)})
    write(tmp_path / "b.parquet", pa.table({"s": [None], "d": [Decimal("2.50")]}, loose))
    write(
        tmp_path / "c.parquet",
        pa.table({"s": pa.array(["z"]).dictionary_encode(), "d": row["d"]}).cast(
            pa.schema({"s": pa.dictionary(pa.int32(), pa.string()), "d": pa.decimal128(9, 2)})
        ),
    )
    table = open_parquet(tmp_path)
    assert [field.nullable for field in table.schema] == [True, True]
    assert read_rows(table, [0, 1]) == [("x", Decimal("1.50")), (None, Decimal("2.50")), ("z", Decimal("1.50"))]
    known = table.statistics().columns[1]
    assert (known.minimum, known.maximum, known.null_count) == (Decimal("1.50"), Decimal("2.50"), 0)


def test_no_rows_and_no_row_groups(tmp_path):
    write(tmp_path / "empty.parquet", numbers())
    table = open_parquet(tmp_path / "empty.parquet")
    assert table.splits([0], []) == []
    assert table.statistics().rows == 0
    assert table.statistics().columns[0].minimum is None
    assert table.sample([0]).num_rows == 0
    write(tmp_path / "more.parquet", numbers(5))
    assert read_rows(open_parquet(tmp_path), [0]) == [(5,)]


# ---------------------------------------------------------------------------------------- which bytes


@pytest.fixture
def wide(tmp_path):
    rng = random.Random(3)
    rows = 4000
    table = pa.table(
        {
            "id": range(rows),
            "blob": [rng.randbytes(60) for _ in range(rows)],
            "word": [f"w{i % 11}" for i in range(rows)],
            "nested": [[i, i] for i in range(rows)],
            "x": [rng.random() for _ in range(rows)],
        }
    )
    write(tmp_path / "t.parquet", table, row_group_size=1000, compression="none")
    return open_parquet(tmp_path / "t.parquet")


@pytest.mark.parametrize("columns", [[0], [1], [2], [3], [0, 2], [4, 0], [0, 1, 2, 3, 4]])
def test_only_the_chunks_of_the_columns_are_read(wide, columns):
    metadata = pq.read_metadata(wide.files[0].path)
    leaves = [leaf for column in columns for leaf in wide.files[0].leaves[column]]
    for group, split in enumerate(wide.splits(columns, [])):
        chunks = [metadata.row_group(group).column(leaf) for leaf in leaves]
        wanted = set()
        for chunk in chunks:
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            wanted.update(range(start, start + chunk.total_compressed_size))
        asked = {position for r in split.ranges for position in range(r.offset, r.end)}
        assert wanted <= asked
        # Only gaps that cost less than a request are read as well.
        assert len(asked) - len(wanted) <= 64 * 1024 * (len(columns) - 1)
        assert len(split.ranges) <= len(columns)
        assert list(split.ranges) == sorted(split.ranges)
        assert split.rows == 1000


def test_distant_columns_are_separate_ranges(wide):
    (first, *_) = wide.splits([0, 4], [])
    assert len(first.ranges) == 2
    blob = wide.files[0].chunk_range(0, 1)
    assert all(r.end <= blob.offset or r.offset >= blob.end for r in first.ranges)


def test_decoding_reads_nothing_but_the_buffers(wide, monkeypatch):
    split = wide.splits([0, 2], [])[1]
    buffers = fetch(split)
    os.unlink(wide.files[0].path)
    monkeypatch.setattr(os, "open", lambda *_, **__: pytest.fail("decode opened a file"))
    (batch,) = split.decode(buffers)
    assert batch.column(0).to_pylist() == list(range(1000, 2000))


def test_filters_skip_row_groups(wide):
    def kept(*filters):
        return [split.row_group for split in wide.splits([2, 0], list(filters))]

    identity = Column(1, INT64)
    assert kept(Call("ge", (identity, Literal(3000, INT64)), BOOL)) == [3]
    assert kept(InList(identity, (Literal(5, INT64), Literal(2500, INT64)))) == [0, 2]
    assert kept(Call("is_null", (identity,), BOOL)) == []
    assert kept(Call("like", (Column(0, STRING), Literal("w1%", STRING)), BOOL)) == [0, 1, 2, 3]
    assert kept(Call("starts_with", (Column(0, STRING), Literal("x", STRING)), BOOL)) == []


@pytest.mark.parametrize("seed", range(15))
def test_pruned_files_lose_no_row(tmp_path, seed):
    """Filters on generated files of three writers, against reading everything."""
    rng = random.Random(seed)
    kinds = dict(rng.sample([item for item in COLUMNS.items() if item[0] not in ("time", "binary", "instant")], 4))
    table = table_of(90, rng, columns=kinds, null_share=rng.choice([0, 0.3]))
    if rng.random() < 0.7:
        table = table.sort_by(next(iter(kinds)))
    path = tmp_path / "t.parquet"
    match rng.randrange(3):
        case 0:
            write(path, table, row_group_size=9, version=rng.choice(["1.0", "2.6"]))
        case 1:
            duckdb_file(table, path, ", row_group_size 2048")
        case _:
            polars_file(table, path, row_group_size=9)
    source = open_parquet(path)
    columns = range(4)
    everything = read_rows(source, columns)
    for _ in range(40):
        index = rng.randrange(4)
        kind = source.schema[index].type
        value = rng.choice(everything)[index]
        if value is None or kind.is_float or (kind.kind.value == "timestamp" and kind.unit == "ns"):
            continue
        function = rng.choice(["eq", "lt", "le", "gt", "ge"])
        predicate = Call(function, (Column(index, kind), Literal(value, kind)), BOOL)
        test = getattr(operator, function)
        expected = [row for row in everything if row[index] is not None and test(key(row[index]), key(value))]
        found = read_rows(source, columns, [predicate])
        kept = [row for row in found if row[index] is not None and test(key(row[index]), key(value))]
        assert str(kept) == str(expected)


def key(value):
    return value.encode() if isinstance(value, str) else value


# --------------------------------------------------------------------------------------- which facts


@pytest.mark.parametrize("writer", ["pyarrow", "pyarrow 1.0", "duckdb", "polars"])
def test_statistics_against_duckdb(tmp_path, writer):
    rng = random.Random(5)
    names = ["int32", "int64", "uint32", "uint64", "decimal", "wide decimal", "string", "date", "timestamp", "bool"]
    table = table_of(500, rng, columns={name: COLUMNS[name] for name in names})
    path = tmp_path / "t.parquet"
    if writer == "duckdb":
        duckdb_file(table, path, ", row_group_size 2048")
    elif writer == "polars":
        polars_file(table, path, row_group_size=100)
    else:
        write(path, table, row_group_size=100, version="1.0" if writer.endswith("1.0") else "2.6")
    known = open_parquet(path).statistics()
    connection = duckdb.connect()
    assert known.rows == 500
    for name, column in zip(names, known.columns, strict=True):
        low, high, nulls = connection.sql(
            f'select min("{name}"), max("{name}"), count(*) filter ("{name}" is null) from \'{path}\''
        ).fetchall()[0]
        assert column.null_count in (nulls, None)
        # Bounds may be wider than the values: long strings are cut off.
        assert column.minimum is None or column.minimum <= low
        assert column.maximum is None or column.maximum >= high
        if name not in ("string", "wide decimal"):
            assert (column.minimum, column.maximum) == (low, high)
    connection.close()


def test_floats_have_no_maximum_since_a_nan_may_hide(tmp_path):
    write(tmp_path / "t.parquet", pa.table({"x": [1.0, float("nan"), 3.0]}))
    source = open_parquet(tmp_path / "t.parquet")
    known = source.statistics().columns[0]
    assert (known.minimum, known.maximum) == (1.0, None)
    from bireme.data.types import FLOAT64

    beyond = Call("gt", (Column(0, FLOAT64), Literal(9.0, FLOAT64)), BOOL)
    assert len(source.splits([0], [beyond])) == 1


def test_clustered_is_a_matter_of_overlap(tmp_path):
    rng = random.Random(1)
    rows = 1000
    table = pa.table(
        {
            "sorted": [i // 3 for i in range(rows)],
            "reversed": [-i for i in range(rows)],
            "random": [(rng.random() < 0.5 and i) or -i for i in range(rows)],
            "constant": [7] * rows,
        }
    )
    write(tmp_path / "t.parquet", table, row_group_size=50)
    found = [column.clustered for column in open_parquet(tmp_path / "t.parquet").statistics().columns]
    assert found == [True, True, False, False]
    write(tmp_path / "one.parquet", table)
    assert not any(column.clustered for column in open_parquet(tmp_path / "one.parquet").statistics().columns)


def test_statistics_without_any(tmp_path):
    write(tmp_path / "t.parquet", numbers(1, 2, None), write_statistics=False)
    source = open_parquet(tmp_path / "t.parquet")
    known = source.statistics().columns[0]
    assert (known.minimum, known.maximum, known.null_count) == (None, None, None)
    never = Call("gt", (Column(0, INT64), Literal(9, INT64)), BOOL)
    assert len(source.splits([0], [never])) == 1


def test_the_sample_is_small_the_same_and_aligned(tmp_path):
    rows = 60_000
    table = pa.table({"a": range(rows), "b": [str(i) for i in range(rows)], "c": [i % 5 for i in range(rows)]})
    write(tmp_path / "t.parquet", table, row_group_size=10_000)
    source = open_parquet(tmp_path / "t.parquet")
    both = source.sample([0, 1])
    assert both.num_rows == 2048
    assert [str(value) for value in both.column(0).to_pylist()] == both.column(1).to_pylist()
    again = open_parquet(tmp_path / "t.parquet").sample([1, 2, 0])
    assert again.column(0).equals(both.column(1))
    assert again.column(2).equals(both.column(0))
    assert source.sample([]).num_rows == 2048
    assert both.schema.names == ["a", "b"]


def test_the_sample_of_a_table_in_order_of_time_is_spread(tmp_path):
    start = datetime.date(2000, 1, 1)
    days = [start + datetime.timedelta(i // 100) for i in range(60_000)]
    write(tmp_path / "t.parquet", pa.table({"day": days, "n": range(60_000)}), row_group_size=5_000)
    sample = open_parquet(tmp_path / "t.parquet").sample([1])
    values = sample.column(0).to_pylist()
    assert len(values) == 3 * (2048 // 3)
    assert len({value // 5_000 for value in values}) == 3


# ------------------------------------------------------------------------------------------- versions


def test_a_changed_file_is_a_new_version(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, numbers(1))
    before = open_parquet(path)
    assert before.refresh() is before
    write(path, numbers(1, 2))
    after = before.refresh()
    assert after.version != before.version
    assert read_rows(after, [0]) == [(1,), (2,)]
    with pytest.raises(SourceChanged, match=r"t\.parquet.*changed"):
        read_rows(before, [0])


def test_a_new_file_in_a_folder_is_a_new_version_and_old_footers_are_kept(tmp_path):
    write(tmp_path / "a.parquet", numbers(1))
    before = open_parquet(tmp_path)
    write(tmp_path / "b.parquet", numbers(2))
    after = before.refresh()
    assert after.version != before.version
    assert after.files[0] is before.files[0]
    assert read_rows(after, [0]) == [(1,), (2,)]
    assert read_rows(before, [0]) == [(1,)], "the old table still stands: its file did not change"
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(SourceMissing):
        after.refresh()


def test_a_replaced_file_is_noticed_even_with_equal_size_and_time(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, numbers(1))
    status = path.stat()
    source = open_parquet(path)
    write(tmp_path / "other.parquet", numbers(2))
    (tmp_path / "other.parquet").replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert source.refresh() is not source


# -------------------------------------------------------------------------------------------- footers


@pytest.mark.parametrize("seed", range(20))
def test_our_reading_of_footers_against_pyarrow(tmp_path, seed):
    rng = random.Random(seed)
    table = table_of(60, rng, null_share=0.3)
    path = tmp_path / "t.parquet"
    match seed % 3:
        case 0:
            write(
                path,
                table,
                row_group_size=20,
                use_dictionary=rng.random() < 0.5,
                write_statistics=rng.random() < 0.7,
                write_page_index=rng.random() < 0.5,
                compression=rng.choice(["none", "zstd"]),
                store_decimal_as_integer=rng.random() < 0.5,
            )
        case 1:
            duckdb_file(table.drop_columns(["time", "instant"]), path)
        case _:
            polars_file(table, path, row_group_size=20)
    file = read_file(str(path))
    theirs = pq.read_metadata(path)
    ours = read_footer(file.footer)
    assert ours.created_by == (theirs.created_by or "")
    assert ours.rows == [theirs.row_group(group).num_rows for group in range(theirs.num_row_groups)]
    for group in range(theirs.num_row_groups):
        assert ours.chunk_count(group) == theirs.num_columns
        for leaf in range(theirs.num_columns):
            expected, found = theirs.row_group(group).column(leaf), ours.chunk(group, leaf)
            assert found.values == expected.num_values
            assert found.length == expected.total_compressed_size
            assert found.stored_bytes == expected.total_uncompressed_size
            assert found.data_offset == expected.data_page_offset
            assert (found.dictionary_offset or None) == (expected.dictionary_page_offset or None)
            if expected.statistics is not None and expected.statistics.has_null_count:
                assert found.nulls == expected.statistics.null_count
            if expected.statistics is not None and expected.statistics.has_min_max:
                assert found.low is not None or found.low_old is not None


def test_the_plain_footer_only_forgets_decimals_and_the_arrow_schema(tmp_path):
    table = table_of(30, random.Random(1))
    write(tmp_path / "t.parquet", table, store_decimal_as_integer=True, row_group_size=10)
    file = read_file(str(tmp_path / "t.parquet"))
    copy = plain_footer(file.footer)
    plain = parse_metadata(copy)
    types = dict(zip(table.column_names, plain.schema.to_arrow_schema().types, strict=True))
    assert (types["small decimal"], types["decimal"]) == (pa.int32(), pa.int64())
    assert types["wide decimal"] == pa.decimal128(38, 10)
    assert b"ARROW:schema" not in plain.metadata
    assert read_footer(copy).rows == read_footer(file.footer).rows
    for leaf in range(plain.num_columns):
        assert read_footer(copy).chunk(1, leaf) == read_footer(file.footer).chunk(1, leaf)
    assert plain_footer(b"") is None
    assert plain_footer(b"\x15\x04\x29") is None


def test_a_footer_takes_little_more_memory_than_its_bytes(tmp_path):
    write(tmp_path / "t.parquet", table_of(400, random.Random(1)), row_group_size=1)
    footer = read_file(str(tmp_path / "t.parquet")).footer
    tracemalloc.start()
    try:
        found = read_footer(footer)
        taken, _ = tracemalloc.get_traced_memory()
        assert found.chunk(399, 1).values == 1
    finally:
        tracemalloc.stop()
    assert taken < len(footer) // 2
    half = read_footer(found.cut(range(100, 300)))
    assert half.rows == found.rows[100:300]
    assert half.chunk(199, 2) == found.chunk(299, 2)
    assert found.cut(range(400)) == footer

"""The native scan of Parquet against decoding whole row groups and filtering afterwards, on files of random make."""

import random
import re
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parquet_files import COLUMNS, duckdb_file, fetch, polars_file, table_of
from support.scans import decoded, drawn_predicate, filter_by, rows_of, scanned

from bireme.backends.base import ColumnFault
from bireme.backends.native import NativeKernels
from bireme.data.record import plain
from bireme.data.types import BOOL, INT32, INT64
from bireme.errors import DataError, Overflow, SourceCorrupt
from bireme.plan.expr import Call, Column, Expr, InList, Literal
from bireme.plan.functions import scalar
from bireme.session import connect
from bireme.storage import parquet_bloom, parquet_pages, parquet_split
from bireme.storage.parquet import open_parquet
from bireme.storage.parquet_bloom import xxh64


@pytest.fixture(autouse=True)
def small_row_groups_are_asked_too(monkeypatch):
    """Whatever their rows, so that small files show what the index and Bloom filters of large ones do."""
    monkeypatch.setattr(parquet_split, "_ASKED_ROWS_MIN", 0)


def written(folder, seed: int) -> tuple[pa.Table, str]:
    """A file of a random table by a random writer."""
    rng = random.Random(seed)
    names = rng.sample(sorted(COLUMNS), rng.randint(2, 6))
    columns = {f"{name}{copy}": COLUMNS[name] for name in names for copy in range(rng.randint(1, 2))}
    table = table_of(rng.choice([1, 50, 700]), rng, null_share=rng.choice([0, 0.2, 1]), columns=columns)
    path = str(folder / f"{seed}.parquet")
    match rng.randrange(4):
        case 0:
            polars_file(table, path, compression=rng.choice(["snappy", "zstd"]), row_group_size=300)
        case 1 if not {"time", "instant"} & set(names):
            duckdb_file(table, path, f", compression {rng.choice(['snappy', 'zstd', 'uncompressed'])}")
            table = pq.read_table(path)
        case _:
            pq.write_table(
                table,
                path,
                compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4"]),
                data_page_version=rng.choice(["1.0", "2.0"]),
                use_dictionary=rng.random() < 0.7,
                row_group_size=rng.choice([40, 1000]),
                store_decimal_as_integer=rng.random() < 0.5,
                data_page_size=rng.choice([64, 1024, None]),
                dictionary_pagesize_limit=rng.choice([64, None]),
                write_page_index=rng.random() < 0.5,
                write_page_checksum=rng.random() < 0.5,
            )
    return table, path


@pytest.mark.parametrize("seed", range(40))
def test_the_rows_are_those_of_decoding_everything(tmp_path, seed):
    table, path = written(tmp_path, seed)
    rng = random.Random(seed + 1000)
    source = open_parquet(path)
    schema = source.schema
    for _ in range(6):
        predicate = drawn_predicate(schema, table, rng)
        exprs: list[Expr] = [Column(index, schema[index].type) for index in rng.choices(range(len(schema)), k=3)]
        exprs.append(Call("is_null", (Column(0, schema[0].type),), BOOL))
        options = {"is_late": rng.random() < 0.8, "rows_max": rng.choice([7, 64, 1 << 17])}
        for split in source.splits(range(len(schema)), []):
            batches = scanned(split, schema, predicate, exprs, **options)
            assert all(0 < batch.num_rows <= options["rows_max"] for batch in batches)
            assert str(rows_of(batches)) == str(rows_of(decoded(split, schema, predicate, exprs))), predicate


@pytest.mark.parametrize("seed", range(30))
def test_filters_drop_only_rows_without_an_equal_key(tmp_path, seed):
    table, path = written(tmp_path, seed + 500)
    rng = random.Random(seed)
    source = open_parquet(path)
    schema = source.schema
    keys = [index for index, field in enumerate(schema) if not field.type.is_float]
    if not keys:
        return
    chosen = tuple(rng.sample(keys, rng.randint(1, min(2, len(keys)))))
    everything = [Column(index, field.type) for index, field in enumerate(schema)]
    predicate = drawn_predicate(schema, table, rng)
    for split in source.splits(range(len(schema)), []):
        rows = decoded(split, schema, predicate, everything)
        built = decoded(split, schema, None, [everything[index] for index in chosen])[0].slice(
            3, rng.choice([1, 5, 200])
        )
        build = pa.RecordBatch.from_arrays([plain(column) for column in built.columns], names=built.schema.names)
        held = set(rows_of([build]))
        kept = rows_of(scanned(split, schema, predicate, everything, filters=[filter_by(build, chosen)]))
        wanted = [row for row in rows_of(rows) if tuple(row[index] for index in chosen) in held]
        wanted = [row for row in wanted if None not in [row[index] for index in chosen]]
        assert str([row for row in kept if tuple(row[index] for index in chosen) in held]) == str(wanted)
        assert len(kept) <= sum(batch.num_rows for batch in rows)


def test_a_filter_that_drops_nothing_is_switched_off_and_it_is_said(tmp_path):
    rows = 120_000
    pq.write_table(pa.table({"k": pa.array([row % 1000 for row in range(rows)])}), tmp_path / "t.parquet")
    source = open_parquet(tmp_path / "t.parquet")
    key = Column(0, INT64)
    everything = filter_by(pa.record_batch([pa.array(range(1000), pa.int64())], names=["k"]), (0,))
    scan = NativeKernels().scan(
        source.schema, predicate=None, exprs=[key], names=["k"], filters=[everything], is_late=True
    )
    assert scan.fallbacks == ()
    (split,) = source.splits([0], [])
    for _ in range(3):
        batches, _ = scan.run(split.encoded(), fetch(split), 1 << 17)
        assert sum(batch.num_rows for batch in batches) == rows
    assert "the filter by a table drops too little and was switched off" in scan.fallbacks


def test_a_condition_that_can_fail_is_asked_only_of_rows_that_the_others_keep(tmp_path):
    big = 2**31 - 1
    pq.write_table(pa.table({"a": pa.array([1, big, 2, None], pa.int32()), "b": [0, 1, 0, 0]}), tmp_path / "t.parquet")
    source = open_parquet(tmp_path / "t.parquet")
    (split,) = source.splits([0, 1], [])
    a, b = Column(0, INT32), Column(1, INT64)
    overflows = Call("gt", (Call("add", (a, Literal(1, INT32)), INT32), Literal(2, INT32)), BOOL)
    guard = scalar("=", [b, Literal(0, INT64)])
    guarded = Call("and", (overflows, guard), BOOL)
    assert rows_of(scanned(split, source.schema, guarded, [a])) == [(2,)]
    with pytest.raises(Overflow):
        scanned(split, source.schema, overflows, [a])


def test_text_that_is_not_ascii_and_functions_without_a_kernel(tmp_path):
    words = ["a", "Ä", None, "b", "é"] * 30
    pq.write_table(pa.table({"s": words, "n": list(range(150))}), tmp_path / "t.parquet")
    source = open_parquet(tmp_path / "t.parquet")
    (split,) = source.splits([0, 1], [])
    s, n = Column(0, source.schema[0].type), Column(1, INT64)
    predicate = scalar("=", [scalar("lower", [s]), Literal("ä", s.type)])
    exprs: list[Expr] = [n, scalar("upper", [s]), scalar("reverse", [s])]
    assert rows_of(scanned(split, source.schema, predicate, exprs)) == rows_of(
        decoded(split, source.schema, predicate, exprs)
    )


@pytest.mark.parametrize("seed", range(24))
def test_damaged_bytes_are_named_or_harmless(tmp_path, seed):
    table, path = written(tmp_path, seed + 900)
    rng = random.Random(seed)
    source = open_parquet(path)
    schema = source.schema
    everything: list[Expr] = [Column(index, field.type) for index, field in enumerate(schema)]
    for split in source.splits(range(len(schema)), []):
        whole = fetch(split)
        for _ in range(8):
            buffers = [pa.py_buffer(_damaged(buffer.to_pybytes(), rng)) for buffer in whole]
            scan = NativeKernels().scan(
                schema,
                predicate=drawn_predicate(schema, table, rng),
                exprs=everything,
                names=schema.names,
                filters=(),
                is_late=True,
            )
            try:
                batches, _ = scan.run(split.encoded(), buffers, 1 << 17)
            except ColumnFault as fault:
                error = split.damage(fault.column, fault.story)
                check_place(error, path, schema[fault.column].name)
            except DataError:
                pass
            else:
                # Where nothing tells that a bit was turned, values are others, but text is text and codes have entries.
                for column in [column for batch in batches for column in batch.columns]:
                    column.validate(full=column.type in (pa.string(), pa.dictionary(pa.int32(), pa.string())))


def check_place(error: Exception, path: str, column: str) -> None:
    assert isinstance(error, SourceCorrupt)
    assert all(word in str(error) for word in (path, column, "row group"))


def _damaged(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def test_a_damaged_page_ends_the_query_with_its_place(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": list(range(5000)), "b": [f"word {row}" for row in range(5000)]})
    pq.write_table(table, path, row_group_size=2000, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[content.index(b"word 2500")] = ord("v")
    path.write_bytes(content)
    with connect(threads=1) as session:
        session.register("t", str(path))
        assert session.sql("select count(a) from t").collect().column(0).to_pylist() == [5000]
        with pytest.raises(SourceCorrupt, match=r"t\.parquet', row group 1, column 'b'"):
            session.sql("select max(b) from t").collect()


def test_what_is_not_native_is_said(tmp_path):
    table = pa.table({"a": [1, 2], "t": pa.array([1, 2], pa.float16()), "l": [[1], []]})
    pq.write_table(table, tmp_path / "t.parquet")
    with connect(threads=1) as session:
        session.register("t", str(tmp_path / "t.parquet"))
        assert "decoded by pyarrow" not in session.sql("select a from t where a > 1").explain(analyze=True)
        assert "nested columns are decoded by pyarrow" in session.sql("select a, l from t").explain(analyze=True)
        assert "float stored as FIXED_LEN_BYTE_ARRAY is decoded by pyarrow" in session.sql("select t from t").explain(
            analyze=True
        )


def test_the_lever_leaves_decoding_to_pyarrow(tmp_path):
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "t.parquet")
    for levers, is_native in (("all", True), ("-native_scan", False)):
        with connect(threads=1, levers=levers) as session:
            session.register("t", str(tmp_path / "t.parquet"))
            frame = session.sql("select a from t where a > 1")
            assert frame.collect().column(0).to_pylist() == [2, 3]
            assert ("conditions dropped 1 rows" in frame.explain(analyze=True)) is is_native


def test_large_row_groups_are_read_in_parts_that_share_their_bytes(tmp_path):
    rows = 300_000
    table = pa.table({"n": list(range(rows)), "s": [f"w{row % 777}" for row in range(rows)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=rows)
    source = open_parquet(tmp_path / "t.parquet")
    schema = source.schema
    parts = source.splits([1, 0], [], rows_max=1 << 17)
    assert [part.rows for part in parts] == [100_000] * 3
    assert all(part.ranges is parts[0].ranges and part.sharers == 3 for part in parts)
    exprs: list[Expr] = [Column(0, schema[1].type), Column(1, schema[0].type)]
    odd = scalar("=", [scalar("%", [exprs[1], Literal(2, INT64)]), Literal(1, INT64)])
    found = [row for part in parts for row in rows_of(scanned(part, schema.select([1, 0]), odd, exprs))]
    assert found == [(f"w{row % 777}", row) for row in range(1, rows, 2)]
    assert [row for part in parts for row in rows_of(list(part.decode(fetch(part))))][::1000] == [
        (f"w{row % 777}", row) for row in range(0, rows, 1000)
    ]
    with connect(threads=2) as session:
        session.register("t", str(tmp_path / "t.parquet"))
        answer = session.sql("select count(*), sum(n), min(s) from t where n >= 150000 and s <> 'w0'")
        wanted = [row for row in range(150_000, rows) if row % 777]
        assert [column.to_pylist() for column in answer.collect().columns] == [[len(wanted)], [sum(wanted)], ["w1"]]


def test_row_groups_outside_of_the_range_of_a_join_table_are_skipped(tmp_path):
    pq.write_table(pa.table({"k": list(range(10_000)), "v": [1] * 10_000}), tmp_path / "t.parquet", row_group_size=1000)
    pq.write_table(pa.table({"k": [4100, 4900], "w": [1, 2]}), tmp_path / "d.parquet")
    for levers, rows in (("all", "1 k"), ("-runtime_filters", "10 k")):
        with connect(threads=1, levers=levers) as session:
            session.register("t", str(tmp_path / "t.parquet"))
            session.register("d", str(tmp_path / "d.parquet"))
            joined = session.sql("select sum(t.v) as s from t join d on t.k = d.k")
            assert joined.collect().column(0).to_pylist() == [2]
            assert re.search(rf"scan t: \d+ tasks, {rows} → ", joined.explain(analyze=True))


def test_many_small_row_groups_are_read_in_runs(tmp_path):
    rows = 5000
    pq.write_table(
        pa.table({"n": list(range(rows)), "k": [row // 7 for row in range(rows)]}),
        tmp_path / "t.parquet",
        row_group_size=50,
    )
    for backend in ("native", "reference"):
        with connect(threads=2, backend=backend) as session:
            session.register("t", str(tmp_path / "t.parquet"))
            kept = session.sql("select n from t where n % 3 = 0")
            assert kept.collect().column(0).to_pylist() == list(range(0, rows, 3))
            assert re.search(r"scan t: \d+ tasks, 5 k → 1.67 k rows", kept.explain(analyze=True))
            groups = session.sql("select k, count(*) as c, min(n) as low from t group by k order by k").collect()
            assert groups.column(2).to_pylist() == list(range(0, rows, 7))
            assert groups.column(1).to_pylist() == [7] * (rows // 7) + [rows % 7]


@pytest.mark.parametrize("row_group_size", [3000, 20_000])
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_are_skipped_by_the_page_index(tmp_path, row_group_size, nulls):
    rows = 20_000
    kept = [None if nulls and row % 5 == 0 else row for row in range(rows)]
    table = pa.table(
        {
            "n": kept,
            "s": [None if value is None else f"{value:06}" for value in kept],
            "d": pa.array([None if v is None else Decimal(v) for v in kept], pa.decimal128(12, 2)),
            "v": list(range(rows)),
        }
    )
    for index in (True, False):
        pq.write_table(
            table,
            tmp_path / "t.parquet",
            row_group_size=row_group_size,
            data_page_size=2000,
            write_page_index=index,
            write_batch_size=100,
            use_dictionary=False,
        )
        with connect(threads=1) as session:
            session.register("t", str(tmp_path / "t.parquet"))
            wanted = [row for row in range(rows) if kept[row] is not None and 7001 <= row < 7500]
            for condition in (
                "n >= 7001 and n < 7500",
                "s between '007001' and '007499'",
                "d > 7000.5 and d < 7499.5",
                "n in (" + ", ".join(map(str, wanted)) + ")",
            ):
                frame = session.sql(f"select v from t where {condition}")
                assert frame.collect().column(0).to_pylist() == wanted
            source = open_parquet(tmp_path / "t.parquet")
            n = Column(0, INT64)
            filters = [scalar(">=", [n, Literal(7001, INT64)]), scalar("<", [n, Literal(7500, INT64)])]
            found = [rows for split in source.splits([0], filters) for _, rows in split.encoded().ranges]
            assert (sum(found) < 2000) is index
            assert session.sql("select v from t where v is null").collect().num_rows == 0


def test_a_page_index_that_is_no_index_proves_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"n": list(range(5000))}), path, data_page_size=500, write_page_index=True, write_batch_size=50
    )
    source = open_parquet(path)
    chunk = source.files[0].chunk(0, 0)
    content = bytearray(path.read_bytes())
    for place in (chunk.column_index, chunk.offset_index):
        content[place[0] : sum(place)] = b"\xff" * place[1]
    path.write_bytes(content)
    with connect(threads=1) as session:
        session.register("t", str(path))
        assert session.sql("select n from t where n between 10 and 12").collect().column(0).to_pylist() == [10, 11, 12]


def write_small_pages(path, row_group_rows):
    """Ascending numbers, in many pages a row group, with page indexes."""
    pq.write_table(
        pa.table({"n": list(range(5000))}),
        path,
        row_group_size=row_group_rows,
        data_page_size=500,
        write_page_index=True,
        write_batch_size=50,
        use_dictionary=False,
    )


@pytest.mark.parametrize(("kept_max", "reads_again"), [(16_384, 0), (1, 2 * 2 * 10)])
def test_page_indexes_are_read_once_and_not_all_are_kept(tmp_path, monkeypatch, kept_max, reads_again):
    path = tmp_path / "t.parquet"
    write_small_pages(path, row_group_rows=500)
    reads = []
    plainly = parquet_pages._read
    monkeypatch.setattr(parquet_pages, "_read", lambda file, place: reads.append(place) or plainly(file, place))
    monkeypatch.setattr(parquet_pages, "_PAGES_KEPT_MAX", kept_max)
    source = open_parquet(path)
    # Of both the statistics of row groups leave open whether all rows meet them.
    filters = [
        scalar("=", [scalar("%", [Column(0, INT64), Literal(divisor, INT64)]), Literal(0, INT64)]) for divisor in (2, 3)
    ]

    def ranges() -> list[tuple[tuple[int, int], ...]]:
        return [split.encoded().ranges for split in source.splits([0], filters)]

    first = ranges()
    assert len(reads) == 2 * 10
    assert [ranges() for _ in range(2)] == [first, first]
    assert len(reads) == 2 * 10 + reads_again


def test_pages_are_asked_only_about_what_their_row_groups_leave_open(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    write_small_pages(path, row_group_rows=1000)
    asked = []
    plainly = parquet_pages._read
    monkeypatch.setattr(parquet_pages, "_read", lambda file, place: asked.append(place) or plainly(file, place))
    monkeypatch.setattr(parquet_split, "_ASKED_ROWS_MIN", 100)
    source = open_parquet(path)
    filters = [
        scalar(">=", [Column(0, INT64), Literal(1500, INT64)]),
        scalar("<", [Column(0, INT64), Literal(4000, INT64)]),
    ]
    found = [split.encoded().ranges for split in source.splits([0], filters)]
    assert len(asked) == 2  # both indexes of the second row group
    assert [sum(count for _, count in ranges) for ranges in found] == [500, 1000, 1000]


def test_small_row_groups_are_not_asked_about(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"n": list(range(5000))}), path, data_page_size=500, write_page_index=True, write_batch_size=50
    )
    filters = [scalar("<", [Column(0, INT64), Literal(7, INT64)])]

    def ranges() -> list[tuple[int, int]]:
        return [one for split in open_parquet(path).splits([0], filters) for one in split.encoded().ranges]

    assert ranges() != [(0, 5000)]
    monkeypatch.setattr(parquet_split, "_ASKED_ROWS_MIN", 5001)
    assert ranges() == [(0, 5000)]


def test_row_groups_are_skipped_by_bloom_filters(tmp_path):
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            f"""copy (select (i * 7919 % 20011)::integer as n, 'key ' || (i * 7919 % 20011) as s, i as v
                from range(20000) t(i))
                to '{path}' (format parquet, row_group_size 4096, dictionary_size_limit 100000)"""
        )
    table = pq.read_table(path)
    source = open_parquet(path)
    assert source.files[0].chunk(0, 0).bloom is not None
    present = table.column(0).to_pylist()
    n, s = Column(0, INT32), Column(1, source.schema[1].type)
    for value in (present[0], present[9000], 20010, 15, -1):
        for condition in (
            scalar("=", [n, Literal(value, INT32)]),
            InList(n, (Literal(value, INT32), Literal(None, INT32))),
            scalar("=", [Literal(f"key {value}", s.type), s]),
        ):
            encoded = [split.encoded() for split in source.splits([0, 1], [condition])]
            groups = {row // 4096 for row, other in enumerate(present) if other == value}
            assert len([one for one in encoded if one.ranges]) <= len(groups) + 1
        with connect(threads=1) as session:
            session.register("t", str(path))
            for condition in (f"n = {value}", f"s = 'key {value}'", f"n in ({value}, -5)"):
                rows = session.sql(f"select v from t where {condition}").collect().column(0).to_pylist()
                assert rows == [row for row, other in enumerate(present) if other == value]


def test_bloom_filters_are_read_once_for_a_question(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            f"copy (select (i * 7919 % 20011)::integer as n from range(20000) t(i)) to '{path}' "
            "(format parquet, row_group_size 4096, dictionary_size_limit 100000)"
        )
    source, reads = open_parquet(path), []
    read = parquet_bloom.LocalByteSource.read
    monkeypatch.setattr(
        parquet_bloom.LocalByteSource, "read", lambda self, asked: (reads.append(asked), read(self, asked))[1]
    )

    def asked_for(value: int) -> list[bool]:
        condition = scalar("=", [Column(0, INT32), Literal(value, INT32)])
        return [bool(split.encoded().ranges) for split in source.splits([0], [condition])]

    first = asked_for(9000)
    once = len(reads)
    assert 0 < once <= source.split_count()
    assert asked_for(9000) == first
    assert len(reads) == once
    asked_for(9001)
    assert len(reads) > once
    monkeypatch.setattr(parquet_bloom, "_ANSWERS_KEPT_MAX", 2)
    asked_for(16)
    assert all(len(file.decoder.blooms._kept) <= 2 for file in source._files)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_of_bloom_filters(text, hashed):
    assert xxh64(text) == hashed

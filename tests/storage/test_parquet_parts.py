"""Parts of a row group that are read by their pages have its rows, however a file is laid out or damaged."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parquet_files import COLUMNS, fetch, table_of
from support.scans import drawn_predicate, rows_of, scanned

from bireme.backends.base import ColumnFault, ColumnUnread
from bireme.errors import BiremeError, SourceChanged
from bireme.plan.expr import Column
from bireme.plan.tree import all_columns
from bireme.storage.parquet import ParquetSource, open_parquet
from bireme.storage.parquet_page_places import page_places


def written(folder: Path, seed: int, rows: int = 1500) -> tuple[pa.Table, str]:
    """One row group of many pages, of which each column has others."""
    rng = random.Random(seed)
    names = rng.sample(sorted(COLUMNS), rng.randint(1, 4))
    columns = {name: COLUMNS[name] for name in names}
    table = table_of(rows, rng, null_share=rng.choice([0, 0.2, 1]), columns=columns)
    path = str(folder / f"{seed}.parquet")
    pq.write_table(
        table,
        path,
        compression=rng.choice(["none", "snappy", "zstd"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        use_dictionary=rng.random() < 0.5,
        row_group_size=rows,
        data_page_size=rng.choice([64, 512]),
        write_batch_size=rng.choice([16, 100]),
        dictionary_pagesize_limit=rng.choice([64, None]),
        write_page_index=rng.random() < 0.5,
    )
    return table, path


def parts_of(source: ParquetSource, bytes_max: int) -> list[Any]:
    return list(source.splits(range(len(source.schema)), [], bytes_max=bytes_max))


@pytest.mark.parametrize("seed", range(30))
def test_parts_have_the_rows_of_their_row_group(tmp_path: Path, seed: int) -> None:
    table, path = written(tmp_path, seed)
    rng = random.Random(seed)
    source = open_parquet(path)
    schema = source.schema
    (whole,) = source.splits(range(len(schema)), [])
    parts = parts_of(source, rng.choice([1500, 6000, 20_000]))
    assert [part.first_row for part in parts] == [0, *[part.first_row + part.rows for part in parts][:-1]]
    assert sum(part.rows for part in parts) == whole.rows
    exprs: list[Any] = list(all_columns(schema))
    for predicate in (None, drawn_predicate(schema, table, rng)):
        rows_max = rng.choice([7, 1 << 17])
        found = [rows_of(scanned(part, schema, predicate, exprs, rows_max=rows_max)) for part in parts]
        assert str([row for rows in found for row in rows]) == str(rows_of(scanned(whole, schema, predicate, exprs)))
    some = rng.choice(parts)
    assert str(rows_of(list(some.decode(fetch(some))))) == str(rows_of(scanned(some, schema, None, exprs)))
    column = rng.randrange(len(schema))
    narrow = some.part([column])
    expected = rows_of(scanned(some, schema, None, [Column(column, schema[column].type)]))
    assert str(rows_of(scanned(narrow, narrow.schema, None, list(all_columns(narrow.schema))))) == str(expected)


@pytest.mark.parametrize("has_index", [True, False])
def test_a_part_needs_only_the_bytes_of_its_pages(tmp_path: Path, has_index: bool) -> None:
    path = str(tmp_path / "t.parquet")
    table = pa.table({"a": range(50_000), "b": [float(row) for row in range(50_000)]})
    pq.write_table(
        table, path, row_group_size=50_000, use_dictionary=False, data_page_size=4096, write_page_index=has_index,
        compression="none",
    )  # fmt: skip
    source = open_parquet(path)
    whole = sum(chunk.length for chunk in source.splits([0, 1], [])[0].ranges)
    parts = parts_of(source, 100_000)
    sizes = [sum(chunk.length for chunk in part.ranges) for part in parts]
    assert len(parts) > 10
    assert max(sizes) < whole // 8
    assert sum(sizes) < 1.1 * whole


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_dictionary_that_was_given_up_is_read_only_with_pages_of_codes(
    tmp_path: Path, has_index: bool, version: str
) -> None:
    """However large dictionaries are beside a part, there are parts, and all together are hardly more to read."""
    path = str(tmp_path / "t.parquet")
    draw = random.Random(1)
    table = pa.table({name: [draw.randrange(1 << 60) for _ in range(60_000)] for name in "abc"})
    pq.write_table(
        table, path, data_page_size=4096, dictionary_pagesize_limit=32_768, write_page_index=has_index,
        compression="none", data_page_version=version, write_batch_size=500,
    )  # fmt: skip
    source = open_parquet(path)
    whole = sum(chunk.length for chunk in source.splits(range(3), [])[0].ranges)
    parts = parts_of(source, 60_000)
    assert len(parts) > 30
    sizes = [sum(chunk.length for chunk in part.ranges) for part in parts]
    assert sum(sizes) < 1.5 * whole
    assert max(sizes[10:]) < 3 * 32_768
    rows = [
        row for part in parts for row in rows_of(scanned(part, source.schema, None, list(all_columns(source.schema))))
    ]
    assert rows == list(zip(*table.to_pydict().values(), strict=True))


def test_dictionaries_that_all_pages_need_make_parts_larger_but_never_one_of_all_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    draw = random.Random(1)
    words = [f"word {draw.randrange(1 << 60)}" for _ in range(600)]
    table = pa.table({name: [draw.choice(words) for _ in range(60_000)] for name in "abc"})
    pq.write_table(table, path, data_page_size=1024, write_batch_size=500, compression="none")
    source = open_parquet(path)
    whole = sum(chunk.length for chunk in source.splits(range(3), [])[0].ranges)
    for bytes_max in range(5_000, 100_000, 10_000):
        parts = parts_of(source, bytes_max)
        sizes = [sum(chunk.length for chunk in part.ranges) for part in parts]
        assert len(parts) > 2
        assert sum(sizes) <= 2 * whole
        assert max(sizes) < whole // 2


@pytest.mark.parametrize("limit", [1, 1 << 40])
def test_what_pyarrow_decodes_is_read_page_by_page_where_it_is_large(tmp_path: Path, limit: int) -> None:
    path = str(tmp_path / "t.parquet")
    draw = random.Random(1)
    lists = [[{"x": draw.randrange(1 << 60), "y": f"y{row}"}] * draw.randrange(3) for row in range(30_000)]
    table = pa.table(
        {"l": lists, "m": pa.array([[(f"k{row}", row)] for row in range(30_000)], pa.map_(pa.string(), pa.int64()))}
    )
    pq.write_table(table, path, data_page_size=1024)
    source = open_parquet(path)
    (split,) = parts_of(source, limit)
    assert bool(split.ranges) == (limit > 1)
    found = pa.Table.from_batches(list(split.decode(fetch(split))))
    assert found.to_pylist() == table.to_pylist()
    narrow = split.part([1])
    found = pa.Table.from_batches(list(narrow.decode(fetch(narrow))))
    assert found.to_pylist() == table.select([1]).to_pylist()


def test_a_file_that_changes_while_it_is_read_page_by_page_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"l": [[row] for row in range(100_000)]}), path)
    (split,) = parts_of(open_parquet(path), 1)
    pq.write_table(pa.table({"l": [[row] for row in range(90_000)]}), path)
    with pytest.raises(SourceChanged):
        list(split.decode(()))


def test_places_are_those_of_the_index_with_or_without_it(tmp_path: Path) -> None:
    table = pa.table({"a": [row % 1000 for row in range(20_000)], "s": [f"text {row}" for row in range(20_000)]})
    rows = []
    for has_index in (True, False):
        path = str(tmp_path / f"{has_index}.parquet")
        pq.write_table(table, path, data_page_size=1024, write_page_index=has_index)
        file = open_parquet(path).files[0]
        for leaf in range(2):
            places, whole = page_places(file, 0, leaf), file.chunk_range(0, leaf)
            assert places is not None
            assert places.dictionary is not None
            assert places.dictionary == (whole.offset, places.offsets[0] - whole.offset)
            assert places.offsets[-1] == whole.end
            assert len(places.offsets) > 5
            rows.append(places.first_rows)
    assert rows[:2] == rows[2:]


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_named_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Bytes of pages, of their headers, and of indexes."""
    _, path = written(tmp_path, seed, rows=300)
    content = bytearray(Path(path).read_bytes())
    rng = random.Random(seed)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(rng.choice([1, 3, 20])):
        content[rng.randrange(4, footer)] = rng.randrange(256)
    Path(path).write_bytes(content)
    source = open_parquet(path)
    exprs: list[Any] = list(all_columns(source.schema))
    for part in parts_of(source, 1000):
        try:
            batches = scanned(part, source.schema, None, exprs)
        except (BiremeError, ColumnFault, ColumnUnread):
            continue
        assert sum(batch.num_rows for batch in batches) == part.rows


def test_splits_are_quick_where_few_chunks_are_looked_at_and_no_pages(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": range(10_000), "b": range(10_000)}), path, row_group_size=20)
    source = open_parquet(path)
    assert not source.are_splits_quick([0, 1], None)
    assert source.are_splits_quick([0], None)
    assert source.are_splits_quick([0], 1 << 20)
    assert not source.are_splits_quick([0], 100)

"""Tables made up here in the manner of h2o.ai's db-benchmark: one to group, four to join.

    python bench/h2o.py FOLDER [--rows 10000000]

The table to group has keys of 100 values, of `rows / 100` values and two measures of small whole numbers and one of
six decimal places. The table on the left of joins has `rows` rows, those on the right a millionth, a thousandth and
all of that; nine in ten of its keys are found there. Keys as whole numbers and as texts, in random order.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 108
CHUNK_ROWS = 1 << 20
ROW_GROUP_ROWS = 1 << 17
SMALL_KEYS = 100

Ints = npt.NDArray[np.int64]


def texts(keys: Ints, digits: int) -> pa.Array:
    """`id` and the key with leading zeros."""
    numbers = pc.utf8_lpad(pa.array(keys).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise("id", numbers, "")


def _whole(keys: Ints) -> pa.Array:
    return pa.array(keys.astype(np.int32))


def grouped(rows: int) -> Iterator[pa.Table]:
    """The table to group."""
    many = max(1, rows // SMALL_KEYS)
    for first in range(0, rows, CHUNK_ROWS):
        random = np.random.default_rng([SEED, first])
        count = min(CHUNK_ROWS, rows - first)

        def keys(below: int, random: np.random.Generator = random, count: int = count) -> Ints:
            return random.integers(1, below + 1, count)

        yield pa.table(
            {
                "id1": texts(keys(SMALL_KEYS), 3),
                "id2": texts(keys(SMALL_KEYS), 3),
                "id3": texts(keys(many), 10),
                "id4": _whole(keys(SMALL_KEYS)),
                "id5": _whole(keys(SMALL_KEYS)),
                "id6": _whole(keys(many)),
                "v1": _whole(keys(5)),
                "v2": _whole(keys(15)),
                "v3": pa.array(np.round(random.random(count) * 100, 6)),
            }
        )


class JoinKeys:
    """Keys of three sizes: nine tenths of each side are found on the other, a tenth is its own."""

    def __init__(self, rows: int) -> None:
        self.rows = {"small": max(10, rows // 1_000_000), "medium": max(10, rows // 1_000), "big": rows}

    def left(self, size: str, random: np.random.Generator, count: int) -> Ints:
        return random.integers(1, self.rows[size] + 1, count)

    def right(self, size: str) -> Ints:
        """All keys of the right table, each once, in random order."""
        rows = self.rows[size]
        return np.random.default_rng([SEED, rows]).permutation(np.arange(1, rows + 1) + rows // 10)


def joined(rows: int) -> Iterator[pa.Table]:
    """The table on the left."""
    keys = JoinKeys(rows)
    # Each big key once, as in the original: the join of both big tables is one to one.
    big = np.random.default_rng(SEED).permutation(np.arange(1, rows + 1))
    for first in range(0, rows, CHUNK_ROWS):
        random = np.random.default_rng([SEED, first, 1])
        third = big[first : first + CHUNK_ROWS]
        one, two = (keys.left(size, random, len(third)) for size in ("small", "medium"))
        yield _with_texts({"id1": one, "id2": two, "id3": third}, {"v1": random.random(len(third))})


def right(rows: int, size: str) -> Iterator[pa.Table]:
    """The table on the right of a size."""
    keys = JoinKeys(rows)
    own = keys.right(size)
    below = ["small", "medium", "big"]
    for first in range(0, len(own), CHUNK_ROWS):
        random = np.random.default_rng([SEED, first, 2, keys.rows[size]])
        part = own[first : first + CHUNK_ROWS]
        columns = {
            f"id{at + 1}": keys.left(each, random, len(part)) for at, each in enumerate(below[: below.index(size)])
        }
        columns[f"id{below.index(size) + 1}"] = part
        yield _with_texts(columns, {"v2": random.random(len(part))})


def _with_texts(keys: dict[str, Ints], measures: dict[str, npt.NDArray[np.float64]]) -> pa.Table:
    """Keys as whole numbers, then the same keys as texts, then measures."""
    columns = {name: _whole(values) for name, values in keys.items()}
    columns |= {f"id{int(name[2:]) + 3}": texts(values, 0) for name, values in keys.items()}
    return pa.table(columns | {name: pa.array(np.round(values * 100, 6)) for name, values in measures.items()})


def h2o_files(folder: Path, rows: int) -> dict[str, Path]:
    """The files by table, made now if they are not there yet."""
    made: dict[str, Callable[[], Iterator[pa.Table]]] = {
        "grouped": lambda: grouped(rows),
        "x": lambda: joined(rows),
        "small": lambda: right(rows, "small"),
        "medium": lambda: right(rows, "medium"),
        "big": lambda: right(rows, "big"),
    }
    home = folder / f"h2o-{rows}"
    home.mkdir(parents=True, exist_ok=True)
    files = {name: home / f"{name}.parquet" for name in made}
    for name, tables in made.items():
        if not files[name].is_file():
            print(f"making {files[name]} …", flush=True)
            _write(files[name], tables())
    return files


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    """A file is complete or not there."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        beside, writer = Path(scratch) / path.name, None
        for table in tables:
            writer = writer or pq.ParquetWriter(beside, table.schema, compression="snappy", write_page_index=True)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        assert writer is not None
        writer.close()
        beside.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    print(*h2o_files(options.folder, options.rows).values(), sep="\n")


if __name__ == "__main__":
    main()

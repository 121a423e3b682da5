"""Joins of made-up tables, build and probe, on one thread: nanoseconds a row of both sides.

    PYTHONPATH=engine python bench/micro/join.py [--rows 1000000] [--probes 4000000] [--only NAME] [--runs 5]

The build side has keys of one kind and a payload of 8 bytes; the stream has keys of which half match, and 8 bytes of
its own. Everything is in memory before the clock runs: ours as batches of 122,880 rows, DuckDB's as tables of its own,
Polars' as frames. Every engine makes all rows of the result.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Literal

os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from frame import Case, family_parser, run_family

from bireme.backends.base import ProbePlan
from bireme.backends.native import joins
from bireme.data.schema import Schema
from bireme.data.types import DataType, Field, from_arrow
from bireme.plan.relation import JoinKind

Numbers = npt.NDArray[np.int64]

BATCH_ROWS = 122_880
SPREAD = 1_000_003_000_017


class Bench:
    """Both sides of one join, for all engines."""

    def __init__(self, build: pa.Table, probe: pa.Table) -> None:
        pa.set_cpu_count(1)
        self.tables = {"build": build, "probe": probe}
        self.keys = [name for name in build.column_names if name.startswith("k")]
        self.duck = duckdb.connect()
        self.duck.execute("set threads = 1")
        self.frames = {}
        for name, table in self.tables.items():
            self.duck.register("source", table)
            self.duck.execute(f"create table {name} as select * from source")
            self.duck.unregister("source")
            frame = pl.from_arrow(table)
            assert isinstance(frame, pl.DataFrame)
            self.frames[name] = frame

    def case(self, name: str, kind: JoinKind) -> Case:
        works = {
            "bireme": lambda: self.ours(kind),
            "duckdb": lambda: self.duck.sql(self.sql(kind)).to_arrow_table(),
            "polars": lambda: self.frames["probe"].join(self.frames["build"], on=self.keys, how=_POLARS[kind]),
        }
        rows = sum(table.num_rows for table in self.tables.values())
        return Case(name=name, rows=rows, floor_bytes=sum(table.nbytes for table in self.tables.values()), works=works)

    def sql(self, kind: JoinKind) -> str:
        chosen = "p.*" if kind is JoinKind.SEMI else "p.*, b.v"
        on = " and ".join(f"p.{key} = b.{key}" for key in self.keys)
        return f"select {chosen} from probe p {kind.value} join build b on {on}"

    def ours(self, kind: JoinKind) -> object:
        schemas = {name: _schema(table) for name, table in self.tables.items()}
        types = [schemas["build"][at].type for at in range(len(self.keys))]
        build = joins.join_build(types, schemas["build"], 0)
        assert build is not None
        for index, batch in enumerate(self.tables["build"].to_batches(max_chunksize=BATCH_ROWS)):
            build.add(index, [batch.select(self.keys)], [batch])
        build.start(1)
        made = build.work()
        assert made is not None
        stream = tuple(range(len(self.keys) + 1))
        kept = () if kind is JoinKind.SEMI else (len(self.keys),)
        names = tuple(f"c{at}" for at in range(len(stream) + len(kept)))
        plan = ProbePlan(
            kind, len(self.keys), 0, False, None, schemas["probe"], schemas["build"], stream, kept, names, None
        )
        prober = joins.prober(plan, made[0])
        assert prober is not None
        batches = self.tables["probe"].to_batches(max_chunksize=BATCH_ROWS)
        return [list(prober.run(batch, batch.select(self.keys))) for batch in batches]


_POLARS: dict[JoinKind, Literal["inner", "left", "semi"]] = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left",
    JoinKind.SEMI: "semi",
}


def _schema(table: pa.Table) -> Schema:
    return Schema(tuple(Field(field.name, _plain(field.type)) for field in table.schema))


def _plain(kind: pa.DataType) -> DataType:
    return from_arrow(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _bench(rng: np.random.Generator, build: list[pa.Array], probe: list[pa.Array]) -> Bench:
    names = [f"k{at}" for at in range(len(build))]
    rows, probes = len(build[0]), len(probe[0])
    return Bench(
        pa.table([*build, pa.array(rng.integers(0, 1 << 40, rows))], names=[*names, "v"]),
        pa.table([*probe, pa.array(rng.integers(0, 1 << 40, probes))], names=[*names, "w"]),
    )


def _texts(values: Numbers) -> pa.Array:
    return pc.binary_join_element_wise("customer number", pa.array(values).cast(pa.string()), " ")


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """A form of keys each, and the kinds of joins over one of them."""
    rng = np.random.default_rng(1)
    rows, probes = options.rows, options.probes
    inner, drawn = JoinKind.INNER, rng.integers(0, 2 * rows, probes)
    every = np.arange(rows)
    numbers = {
        "in order, no gaps": (every, drawn),
        "in order, every fourth": (every * 4, drawn * 2),
        "any order, no gaps": (rng.permutation(rows), drawn),
        "any order, every tenth": (rng.permutation(rows) * 10, drawn * 5),
        "any order, far apart": (rng.permutation(rows) * SPREAD, drawn * SPREAD),
        "clustered probes": (every * 4, np.sort(drawn) * 2),
        "each four times": (rng.permutation(rows) // 4, drawn),
    }
    for name, (build, probe) in numbers.items():
        sides = _bench(rng, [pa.array(build)], [pa.array(probe)])
        yield sides.case(f"inner: {name}", inner)
        if name == "any order, no gaps":
            yield sides.case(f"semi: {name}", JoinKind.SEMI)
            yield sides.case(f"left: {name}", JoinKind.LEFT)
    two = [pa.array(rng.permutation(rows) // 100), pa.array(every % 100)]
    yield _bench(rng, two, [pa.array(drawn // 100), pa.array(drawn % 100)]).case("inner: two numbers", inner)
    few = min(rows, 100_000)
    texts = _texts(rng.permutation(few))
    probed = rng.integers(0, 2 * few, min(probes, 1_000_000))
    yield _bench(rng, [texts], [_texts(probed)]).case("inner: texts", inner)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--probes", type=int, default=4_000_000)
    run_family("join", cases, parser)

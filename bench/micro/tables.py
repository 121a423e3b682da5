"""Native tables against DuckDB on one thread: nanoseconds per row of grouping, joining, sorting and taking.

    PYTHONPATH=engine python bench/micro/tables.py --data DIR [--only NAME] [--runs 5]

DIR holds lineitem.parquet, orders.parquet and customer.parquet of TPC-H at scale 1. All have their rows in
memory before the clock runs: ours as batches of 122,880 rows in the engine's layouts, DuckDB's as tables of its own,
Polars' as frames.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from frame import Case, family_parser, run_family

from bireme.backends.native import joins, tables
from bireme.data.types import FLOAT64, HUGEINT, INT64, STRING, DataType, decimal, from_arrow, to_arrow
from bireme.plan.physical import AggregateStep, GroupSpec

BATCH_ROWS = 122_880
MONEY = decimal(15, 2)


class Bench:
    """The data of all cases, and the cases."""

    def __init__(self, data: Path) -> None:
        pa.set_cpu_count(1)
        self.duck = duckdb.connect()
        self.duck.execute("set threads = 1")
        self.polars = pl.SQLContext()
        self.data = data
        rng = np.random.default_rng(1)
        self.lineitem = self._load(
            "lineitem",
            "l_orderkey l_partkey l_suppkey l_quantity l_extendedprice l_discount l_tax l_returnflag l_linestatus "
            "l_shipdate",
            {"l_returnflag", "l_linestatus"},
        )
        self.orders = self._load("orders", "o_orderkey o_custkey o_totalprice o_orderdate", set())
        self.customer = self._load("customer", "c_custkey c_mktsegment c_name", set())
        count = 1_500_000
        self.sparse = pa.table({"k": rng.permutation(count) * 1_000_003_000_017 + 5, "v": np.arange(count)})
        self.probes = pa.table({"k": rng.choice(self.sparse.column(0).to_numpy(), 4 * count)})
        self.shuffled = pa.table({"k": rng.integers(0, 2**62, 6_000_000) % 1_500_000 * 1_000_003_000_017})
        for name in ("sparse", "probes", "shuffled"):
            self.duck.register(f"{name}_arrow", getattr(self, name))
            self.duck.execute(f"create table {name} as select * from {name}_arrow")
            self.polars.register(name, pl.from_arrow(getattr(self, name)))

    def _load(self, table: str, columns: str, encoded: set[str]) -> pa.Table:
        names = columns.split()
        path = self.data / f"{table}.parquet"
        self.duck.execute(f"create table {table} as select {', '.join(names)} from '{path}'")
        self.polars.register(table, pl.read_parquet(path, columns=names))
        loaded = pq.read_table(path, columns=names, read_dictionary=sorted(encoded))
        arrays = []
        for column in loaded.columns:
            encoded_column = pa.types.is_dictionary(column.type)
            arrays.append(column if encoded_column else column.cast(to_arrow(from_arrow(column.type))))
        return pa.table(arrays, names=names)

    def batches(self, table: pa.Table, columns: str) -> list[pa.RecordBatch]:
        return table.select(columns.split()).to_batches(max_chunksize=BATCH_ROWS)

    def whole(self, table: pa.Table, columns: str) -> pa.RecordBatch:
        return table.select(columns.split()).combine_chunks().to_batches()[0]

    def group(self, name: str, table: pa.Table, keys: str, steps: list[AggregateStep], args: str, sql: str) -> Case:
        batches = self.batches(table, f"{keys} {args}")
        spec = GroupSpec(tuple(from_arrow(batches[0].schema.field(key).type) for key in keys.split()), tuple(steps))

        def ours() -> object:
            grouped = tables.NativeGroupTable(spec)
            for index, batch in enumerate(batches):
                grouped.update(batch, index << 40)
            return grouped.finish()

        arrow = for_arrow(*batches)
        chosen = [arrow_aggregate(each, arrow.column_names) for each in steps]
        plain = {"pyarrow": lambda: arrow.group_by(keys.split(), use_threads=False).aggregate(chosen)}
        return self.case(name, table.num_rows, sum(batch.nbytes for batch in batches), ours, sql, plain if keys else {})

    def build(
        self, name: str, build: pa.RecordBatch, probe: list[pa.RecordBatch], sql: str, *, semi: bool = False
    ) -> Case:
        def ours() -> object:
            table = joins.NativeJoinTable.of_keys(build, null_equal_count=0)
            if semi:
                return [table.contains(batch) for batch in probe]
            return [table.match(batch) for batch in probe]

        inputs = build.nbytes + sum(batch.nbytes for batch in probe)
        rows = build.num_rows + sum(batch.num_rows for batch in probe)
        left, right, kind = for_arrow(*probe), for_arrow(build), "left semi" if semi else "inner"
        keys = left.column_names, right.column_names
        plain = {"pyarrow": lambda: left.join(right, *keys, join_type=kind, use_threads=False)}
        return self.case(name, rows, inputs, ours, sql, plain)

    def sort(self, name: str, table: pa.Table, keys: str, limit: int | None, sql: str) -> Case:
        whole = self.whole(table, keys)
        flags = [False] * whole.num_columns
        by = [(key, "ascending") for key in keys.split()]
        frame = pl.from_arrow(whole)
        assert isinstance(frame, pl.DataFrame)
        order = whole.nbytes + 8 * min(whole.num_rows, limit or whole.num_rows)
        arrow, names = for_arrow(whole), keys.split()
        others: dict[str, Callable[[], object]] = {
            "polars": lambda: frame.bottom_k(limit, by=names) if limit else frame.select(pl.arg_sort_by(names)),
            "pyarrow": lambda: (
                pc.select_k_unstable(arrow, k=limit, sort_keys=by) if limit else pc.sort_indices(arrow, sort_keys=by)
            ),
        }

        def ours() -> object:
            return tables.sort_rows(whole, flags, flags, limit, NO_FALLBACK)

        return self.case(name, whole.num_rows, order, ours, sql, others)

    def take(self, name: str, table: pa.Table, columns: str) -> Case:
        whole = self.whole(table, columns)
        rows = np.random.default_rng(2).permutation(whole.num_rows)
        frame, order, places = pl.from_arrow(whole), pa.array(rows), pl.Series(rows)
        assert isinstance(frame, pl.DataFrame)
        works = {
            "bireme": lambda: tables.take(whole, order),
            "polars": lambda: frame[places],
            "pyarrow": lambda: whole.take(order),
        }
        return Case(name=name, rows=whole.num_rows, floor_bytes=2 * whole.nbytes + 8 * whole.num_rows, works=works)

    def case(
        self,
        name: str,
        rows: int,
        floor_bytes: int,
        ours: Callable[[], object],
        sql: str,
        others: Mapping[str, Callable[[], object]],
    ) -> Case:
        """A case in which DuckDB, and Polars where nothing else is given, run `sql`."""
        works = {
            "bireme": ours,
            "duckdb": lambda: self.duck.sql(sql).to_arrow_table(),
            "polars": lambda: self.polars.execute(sql, eager=True),
        }
        return Case(name=name, rows=rows, floor_bytes=floor_bytes, works=works | dict(others))

    def cases(self) -> Iterator[Case]:
        yield from self._group_cases()
        yield from self._join_cases()
        yield from self._order_cases()

    def _group_cases(self) -> Iterator[Case]:
        yield from self._sum_cases()
        yield from self._number_key_cases()
        yield from self._text_key_cases()

    def _sum_cases(self) -> Iterator[Case]:
        """Many sums over few groups, and over all rows."""
        measures = "l_quantity l_extendedprice l_discount l_tax"
        q1 = [
            *(step("sum", at, MONEY) for at in (2, 3, 4, 5)),
            *(step("avg", at, MONEY) for at in (2, 3, 4)),
            step("count_star"),
        ]
        yield self.group(
            "group: Q1's flags",
            self.lineitem,
            "l_returnflag l_linestatus",
            q1,
            measures,
            "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_discount), sum(l_tax), "
            "avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) from lineitem group by all",
        )
        yield self.group(
            "group: none, sums",
            self.lineitem,
            "",
            [shifted(each, -2) for each in q1],
            measures,
            "select sum(l_quantity), sum(l_extendedprice), sum(l_discount), sum(l_tax), avg(l_quantity), "
            "avg(l_extendedprice), "
            "avg(l_discount), count(*) from lineitem",
        )

    def _number_key_cases(self) -> Iterator[Case]:
        yield self.group(
            "group: l_orderkey (clustered)",
            self.lineitem,
            "l_orderkey",
            [step("sum", 1, MONEY)],
            "l_quantity",
            "select l_orderkey, sum(l_quantity) from lineitem group by all",
        )
        yield self.group(
            "group: l_partkey (random, dense)",
            self.lineitem,
            "l_partkey",
            [step("sum", 1, MONEY)],
            "l_quantity",
            "select l_partkey, sum(l_quantity) from lineitem group by all",
        )
        yield self.group(
            "group: l_partkey, l_suppkey",
            self.lineitem,
            "l_partkey l_suppkey",
            [step("sum", 2, MONEY)],
            "l_quantity",
            "select l_partkey, l_suppkey, sum(l_quantity) from lineitem group by all",
        )
        yield self.group(
            "group: 1.5 M sparse random",
            self.shuffled,
            "k",
            [step("count_star")],
            "",
            "select k, count(*) from shuffled group by all",
        )

    def _text_key_cases(self) -> Iterator[Case]:
        yield self.group(
            "group: c_mktsegment (plain)",
            self.customer,
            "c_mktsegment",
            [step("count_star")],
            "",
            "select c_mktsegment, count(*) from customer group by all",
        )
        yield self.group(
            "group: c_name (all distinct)",
            self.customer,
            "c_name",
            [step("max", 1, INT64)],
            "c_custkey",
            "select c_name, max(c_custkey) from customer group by all",
        )
        yield self.group(
            "group: c_name, c_custkey, c_mktsegment",
            self.customer,
            "c_name c_custkey c_mktsegment",
            [step("count_star")],
            "",
            "select c_name, c_custkey, c_mktsegment, count(*) from customer group by all",
        )
        yield self.group(
            "group: min, max of strings",
            self.customer,
            "c_mktsegment",
            [step("min", 1, STRING), step("max", 1, STRING)],
            "c_name",
            "select c_mktsegment, min(c_name), max(c_name) from customer group by all",
        )

    def _join_cases(self) -> Iterator[Case]:
        lines = self.batches(self.lineitem, "l_orderkey")
        orders = self.whole(self.orders, "o_orderkey")
        yield self.build(
            "join: lineitem with orders (dense)",
            orders,
            lines,
            "select count(o_custkey) from lineitem, orders where l_orderkey = o_orderkey",
        )
        yield self.build(
            "semi: lineitem in orders",
            orders,
            lines,
            "select count(*) from lineitem where l_orderkey in (select o_orderkey from orders)",
            semi=True,
        )
        yield self.build(
            "join: orders with lineitem (many)",
            self.whole(self.lineitem, "l_orderkey"),
            self.batches(self.orders, "o_orderkey"),
            "select count(l_partkey) from orders left join lineitem on l_orderkey = o_orderkey",
        )
        yield self.build(
            "join: sparse random keys",
            self.whole(self.sparse, "k"),
            self.batches(self.probes, "k"),
            "select sum(v) from probes, sparse where probes.k = sparse.k",
        )
        yield self.build(
            "join: strings",
            self.whole(self.customer, "c_name"),
            self.batches(self.customer, "c_name"),
            "select count(b.c_custkey) from customer a, customer b where a.c_name = b.c_name",
        )
        yield self.build(
            "join: two keys",
            self.whole(self.orders, "o_orderkey o_custkey"),
            self.batches(self.orders, "o_orderkey o_custkey"),
            "select count(b.o_totalprice) from orders a, orders b "
            "where a.o_orderkey = b.o_orderkey and a.o_custkey = b.o_custkey",
        )

    def _order_cases(self) -> Iterator[Case]:
        def ordered(keys: str, table: str) -> str:
            return f"select rowid from {table} order by {keys.replace(' ', ', ')}"

        for keys in ("o_totalprice", "o_orderdate", "o_orderdate o_totalprice", "o_custkey o_orderkey"):
            yield self.sort(f"sort: {keys}", self.orders, keys, None, ordered(keys, "orders"))
        yield self.sort("sort: sparse int64", self.sparse, "k", None, ordered("k", "sparse"))
        yield self.sort("sort: c_name", self.customer, "c_name", None, ordered("c_name", "customer"))
        yield self.sort(
            "top 100: o_totalprice",
            self.orders,
            "o_totalprice",
            100,
            "select o_totalprice from orders order by o_totalprice limit 100",
        )
        yield self.take("take: 4 columns, random", self.orders, "o_orderkey o_custkey o_totalprice o_orderdate")
        yield self.take("take: c_name, random", self.customer, "c_name")


def for_arrow(*batches: pa.RecordBatch) -> pa.Table:
    """A table with decimals in 128 bits: pyarrow's kernels know no narrower ones."""
    table = pa.Table.from_batches(batches)
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            wide = pa.decimal128(field.type.precision, field.type.scale)
            table = table.set_column(index, field.name, table.column(index).cast(wide))
    return table


def arrow_aggregate(step: AggregateStep, names: list[str]) -> tuple[str | list[str], str]:
    function = {"count_star": "count_all", "avg": "mean"}.get(step.function, step.function)
    return ([] if step.arg is None else names[step.arg], function)


NO_FALLBACK: object = None


def step(function: str, arg: int | None = None, kind: DataType | None = None) -> AggregateStep:
    results = {"count_star": INT64, "avg": FLOAT64}
    result = results.get(function) or kind
    if function == "sum":
        result = HUGEINT if kind is INT64 else decimal(38, kind.scale if kind else 0)
    assert result is not None
    return AggregateStep(function, arg, kind, result)


def shifted(original: AggregateStep, by: int) -> AggregateStep:
    arg = None if original.arg is None else original.arg + by
    return AggregateStep(original.function, arg, original.arg_type, original.type)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    return Bench(options.data).cases()


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    run_family("tables", cases, parser)

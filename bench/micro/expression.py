"""Filter and projection of TPC-H Q1 and Q6 over decoded columns in memory, beside DuckDB, Polars and pyarrow.

    python bench/micro/expression.py path/to/lineitem.parquet

Every engine starts from columns in memory and computes the same columns. DuckDB takes their minimum where they are,
since handing out Arrow costs it more.
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable, Iterator
from decimal import Decimal

os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from frame import Case, family_parser, run_family

from bireme.backends.native import NativeKernels
from bireme.data import types as t
from bireme.data.layout import to_engine
from bireme.data.schema import Schema
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal
from bireme.storage.base import BATCH_ROWS_MAX

CODED = ("l_returnflag", "l_linestatus")
COLUMNS = (*CODED, "l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_shipdate")


def load(path: str) -> list[pa.RecordBatch]:
    """Batches in the engine's layout: decimals in 64 bits, the two flags dictionary-encoded."""
    table = pq.read_table(path, columns=list(COLUMNS), read_dictionary=list(CODED)).combine_chunks()
    schema = Schema.from_arrow(table.schema)
    arrays = [to_engine(column.chunk(0), field.type) for column, field in zip(table.columns, schema, strict=True)]
    whole = pa.RecordBatch.from_arrays(arrays, list(COLUMNS))
    return [whole.slice(start, BATCH_ROWS_MAX) for start in range(0, whole.num_rows, BATCH_ROWS_MAX)]


def bireme_programs(schema: Schema) -> dict[str, Callable[[pa.RecordBatch], pa.RecordBatch]]:
    column = {field.name: Column(index, field.type) for index, field in enumerate(schema)}
    price, discount, tax = column["l_extendedprice"], column["l_discount"], column["l_tax"]
    one = Literal(1, t.INT32)

    def call(name: str, *args: Expr) -> Expr:
        return functions.scalar(name, list(args))

    def money(text: str) -> Literal:
        return Literal(Decimal(text), t.decimal(15, 2))

    paid = call("*", price, call("-", one, discount))
    charge = call("*", paid, call("+", one, tax))
    flags = [column[name] for name in CODED]
    q1 = (
        call("<=", column["l_shipdate"], Literal(datetime.date(1998, 9, 2), t.DATE)),
        [*flags, column["l_quantity"], price, paid, charge, discount],
    )
    q6 = (
        functions.conjunction(
            [
                call(">=", column["l_shipdate"], Literal(datetime.date(1994, 1, 1), t.DATE)),
                call("<", column["l_shipdate"], Literal(datetime.date(1995, 1, 1), t.DATE)),
                functions.between(discount, money("0.05"), money("0.07")),
                call("<", column["l_quantity"], money("24")),
            ]
        ),
        [call("*", price, discount)],
    )
    kernels = NativeKernels()
    made = {}
    for name, (predicate, exprs) in {"q1": q1, "q6": q6}.items():
        names = [f"x{index}" for index in range(len(exprs))]
        made[name] = kernels.program(schema, predicate=predicate, exprs=exprs, names=names).run
    return made


READ = {"q1": list(COLUMNS), "q6": ["l_shipdate", "l_discount", "l_quantity", "l_extendedprice"]}
SQL = {
    "q1": "select l_returnflag, l_linestatus, l_quantity, l_extendedprice, l_extendedprice * (1 - l_discount) paid, "
    "l_extendedprice * (1 - l_discount) * (1 + l_tax) charge, l_discount from lines "
    "where l_shipdate <= date '1998-09-02'",
    "q6": "select l_extendedprice * l_discount x from lines where l_shipdate >= date '1994-01-01' "
    "and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24",
}


def plain_table(batches: list[pa.RecordBatch]) -> pa.Table:
    """The columns with decimals in 128 bits, as others know them."""
    fields = [(f.name, pa.decimal128(15, 2) if pa.types.is_decimal(f.type) else f.type) for f in batches[0].schema]
    return pa.Table.from_batches(batches).cast(pa.schema(fields))


def duckdb_work(connection: duckdb.DuckDBPyConnection, name: str) -> Callable[[], object]:
    aliases = [str(column[0]) for column in connection.execute(SQL[name] + " limit 0").description]
    outputs = ", ".join(f"min({alias})" for alias in aliases)
    return lambda: connection.execute(f"select {outputs} from ({SQL[name]})").fetchall()


def pyarrow_q1(batch: pa.RecordBatch) -> None:
    kept = batch.filter(pc.less_equal(batch["l_shipdate"], datetime.date(1998, 9, 2)))
    one = pa.scalar(Decimal(1), pa.decimal64(3, 2))
    paid = pc.multiply(
        kept["l_extendedprice"].cast(pa.float64()), pc.subtract(one, kept["l_discount"]).cast(pa.float64())
    )
    pc.multiply(paid, pc.add(one, kept["l_tax"]).cast(pa.float64()))


def pyarrow_q6(batch: pa.RecordBatch) -> None:
    def number(text: str) -> pa.Scalar:
        return pa.scalar(Decimal(text), pa.decimal64(15, 2))

    tests = (
        pc.greater_equal(batch["l_shipdate"], datetime.date(1994, 1, 1)),
        pc.less(batch["l_shipdate"], datetime.date(1995, 1, 1)),
        pc.greater_equal(batch["l_discount"], number("0.05")),
        pc.less_equal(batch["l_discount"], number("0.07")),
        pc.less(batch["l_quantity"], number("24")),
    )
    mask = tests[0]
    for test in tests[1:]:
        mask = pc.and_(mask, test)
    kept = batch.select(["l_extendedprice", "l_discount"]).filter(mask)
    pc.multiply(kept["l_extendedprice"], kept["l_discount"])


def cases(options: argparse.Namespace) -> Iterator[Case]:
    pa.set_cpu_count(1)
    batches = load(options.path)
    plain = plain_table(batches)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", plain)
    connection.execute("create table lines as select * from source")
    context = pl.SQLContext(lines=pl.from_arrow(plain))
    programs = bireme_programs(Schema.from_arrow(batches[0].schema))
    arrow = {"q1": pyarrow_q1, "q6": pyarrow_q6}
    for name in ("q1", "q6"):
        run, other = programs[name], arrow[name]
        works = {
            "bireme": lambda run=run: [run(batch) and None for batch in batches],
            "duckdb": duckdb_work(connection, name),
            "polars": lambda name=name: context.execute(SQL[name], eager=True),
            "pyarrow": lambda other=other: [other(batch) for batch in batches],
        }
        read = sum(batch.select(READ[name]).nbytes for batch in batches)
        written = sum(run(batch).nbytes for batch in batches)
        yield Case(name=name, rows=plain.num_rows, floor_bytes=read + written, works=works)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("path")
    run_family("expression", cases, parser)

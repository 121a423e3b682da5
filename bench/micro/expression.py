"""Filter and projection of TPC-H Q1 and Q6 over decoded columns in memory: nanoseconds a row, ours against DuckDB's and
pyarrow's.

    python bench/micro/expression.py path/to/lineitem.parquet [--runs 9]

One thread. Every engine gets the same Arrow columns and gives Arrow columns back; the figure is the least of the runs.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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


def best(run: Callable[[], object], runs: int, rows: int) -> float:
    """The least processor time of a run, in nanoseconds a row."""
    times = []
    for _ in range(runs):
        start = time.process_time_ns()
        run()
        times.append(time.process_time_ns() - start)
    return min(times) / rows


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


SQL = {
    "q1": "select l_returnflag, l_linestatus, l_quantity, l_extendedprice, l_extendedprice * (1 - l_discount) paid, "
    "l_extendedprice * (1 - l_discount) * (1 + l_tax) charge, l_discount from lines "
    "where l_shipdate <= date '1998-09-02'",
    "q6": "select l_extendedprice * l_discount x from lines where l_shipdate >= date '1994-01-01' "
    "and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24",
}


def duckdb_ns(batches: list[pa.RecordBatch], name: str, runs: int, rows: int) -> float:
    """DuckDB from a table of its own; the results are counted where they are, since handing out Arrow costs it more."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    source = pa.Table.from_batches(batches).cast(
        pa.schema(
            [(f.name, pa.decimal128(15, 2) if pa.types.is_decimal(f.type) else f.type) for f in batches[0].schema]
        )
    )
    connection.register("source", source)
    connection.execute("create table lines as select * from source")
    aliases = [str(column[0]) for column in connection.execute(SQL[name] + " limit 0").description]
    outputs = ", ".join(f"min({alias})" for alias in aliases)
    return best(lambda: connection.execute(f"select {outputs} from ({SQL[name]})").fetchall(), runs, rows)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    batches = load(options.path)
    rows = sum(batch.num_rows for batch in batches)
    programs = bireme_programs(Schema.from_arrow(batches[0].schema))
    arrow = {"q1": pyarrow_q1, "q6": pyarrow_q6}
    print(f"{rows} rows, nanoseconds a row")
    for name in ("q1", "q6"):
        run, plain = programs[name], arrow[name]
        ours = best(lambda run=run: [run(batch) and None for batch in batches], options.runs, rows)
        theirs = best(lambda plain=plain: [plain(batch) for batch in batches], options.runs, rows)
        duck = duckdb_ns(batches, name, options.runs, rows)
        print(f"{name}: bireme {ours:.2f}, duckdb {duck:.2f}, pyarrow {theirs:.2f}")


if __name__ == "__main__":
    main()

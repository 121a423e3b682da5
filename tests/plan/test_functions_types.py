"""Types of calls, for all pairs of types, as DuckDB gives them; differences on purpose are in docs/SEMANTICS.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest

from bireme.data import types as t
from bireme.data.types import DataType, Kind, from_arrow, to_result_arrow
from bireme.errors import TypeFault
from bireme.plan import functions
from bireme.plan.expr import Column, Literal

NUMBERS = (
    t.INT8,
    t.INT16,
    t.INT32,
    t.INT64,
    t.UINT8,
    t.UINT16,
    t.UINT32,
    t.UINT64,
    t.FLOAT32,
    t.FLOAT64,
    t.decimal(4, 1),
    t.decimal(15, 2),
    t.decimal(18, 4),
    t.decimal(30, 6),
)
OTHERS = (t.BOOL, t.STRING, t.BINARY, t.DATE, t.TIME, t.TIMESTAMP, t.INTERVAL)
EVERY = (*NUMBERS, *OTHERS)
OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%"}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        columns = [pa.array([], to_result_arrow(kind)) for kind in EVERY]
        opened.register("t", pa.table(columns, names=[f"c{index}" for index in range(len(EVERY))]))
        yield opened


def asked(connection: duckdb.DuckDBPyConnection, expressions: Sequence[str]) -> list[DataType | None]:
    """The types that DuckDB gives expressions over columns of t, None where it has none; all of them in one query where
    none fails, else each half by itself.
    """
    if not expressions:
        return []
    listed = ", ".join(f"{expression} as x{index}" for index, expression in enumerate(expressions))
    try:
        answer = connection.sql(f"select {listed} from t").to_arrow_table()
    except (duckdb.BinderException, duckdb.ConversionException, duckdb.NotImplementedException):
        if len(expressions) == 1:
            return [None]
        middle = len(expressions) // 2
        return asked(connection, expressions[:middle]) + asked(connection, expressions[middle:])
    return [from_arrow(field.type) for field in answer.schema]


def differences(connection: duckdb.DuckDBPyConnection, cases: Sequence[tuple[DataType | None, str]]) -> list[str]:
    """The cases (our type, the SQL) that DuckDB types otherwise."""
    wanted = asked(connection, [sql for _, sql in cases])
    return [f"{sql}: {got}, not {kind}" for (got, sql), kind in zip(cases, wanted, strict=True) if got is not kind]


def c(kind: DataType) -> str:
    return f"c{EVERY.index(kind)}"


def column(kind: DataType) -> Column:
    return Column(EVERY.index(kind), kind)


def bound(name: str, *kinds: DataType) -> DataType | None:
    try:
        return functions.scalar(name, [column(kind) for kind in kinds]).type
    except TypeFault:
        return None


@pytest.mark.parametrize("name", OPERATORS)
def test_arithmetic_of_numbers(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    pairs = [(left, right) for left in NUMBERS for right in NUMBERS]
    cases = [(bound(name, left, right), f"{c(left)} {OPERATORS[name]} {c(right)}") for left, right in pairs]
    assert not differences(connection, cases)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_of_dates_and_intervals(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    kinds = (t.DATE, t.TIME, t.TIMESTAMP, t.INTERVAL, t.INT32, t.INT64, t.FLOAT64, t.STRING, t.BOOL)
    pairs = [(left, right) for left in kinds for right in kinds if not (left.is_numeric and right.is_numeric)]
    cases = [(bound(name, left, right), f"{c(left)} {OPERATORS[name]} {c(right)}") for left, right in pairs]
    assert not differences(connection, cases)


def test_common_types(connection: duckdb.DuckDBPyConnection) -> None:
    pairs = [(left, right) for left in EVERY for right in EVERY]
    cases = [(bound("coalesce", left, right), f"coalesce({c(left)}, {c(right)})") for left, right in pairs]
    assert not differences(connection, cases)


def test_what_compares_for_order(connection: duckdb.DuckDBPyConnection) -> None:
    pairs = [(left, right) for left in EVERY for right in EVERY]
    cases = [(bound("lt", left, right), f"{c(left)} < {c(right)}") for left, right in pairs]
    assert not differences(connection, cases)


def aggregated(name: str, kind: DataType) -> DataType | None:
    try:
        return functions.aggregate(name, [column(kind)]).type
    except TypeFault:
        return None


AGGREGATES = (
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "first",
    "any_value",
    "stddev",
    "var_pop",
    "bool_and",
    "median",
    "mode",
    "string_agg",
)


# An average of dates keeps microseconds; those of times and intervals are not offered.
DIFFERENT_AGGREGATES = {("avg", t.DATE), ("avg", t.TIME), ("avg", t.INTERVAL)}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    kinds = [kind for kind in EVERY if (name, kind) not in DIFFERENT_AGGREGATES]
    assert not differences(connection, [(aggregated(name, kind), f"{name}({c(kind)})") for kind in kinds])


def test_integer_constants_take_the_column_s_type(connection: duckdb.DuckDBPyConnection) -> None:
    cases = []
    for kind in NUMBERS[:10]:
        for value in (1, 200, 40_000, 3_000_000_000):
            constant = Literal(value, t.INT32 if value < 1 << 31 else t.INT64)
            got = functions.scalar("coalesce", [column(kind), constant]).type
            cases.append((got, f"coalesce({c(kind)}, {value})"))
    assert not differences(connection, cases)


def test_decimal_products_stay_within_64_bits_where_both_factors_do() -> None:
    def product(left: DataType, right: DataType) -> DataType:
        return functions.scalar("multiply", [Column(0, left), Column(1, right)]).type

    assert product(t.decimal(15, 2), t.decimal(16, 2)) is t.decimal(18, 4)
    assert product(t.decimal(18, 10), t.decimal(18, 9)) is t.decimal(36, 19)
    with pytest.raises(TypeFault, match="decimal places"):
        product(t.decimal(38, 20), t.decimal(38, 20))


def test_every_kind_has_a_parsed_name() -> None:
    for kind in (*EVERY, t.HUGEINT, t.timestamp("s"), t.timestamp("ns")):
        assert functions.parse_type(str(kind)) is kind
    assert functions.parse_type("Decimal( 15 , 2 )") is t.decimal(15, 2)
    assert functions.parse_type("varchar(20)") is t.STRING
    assert functions.parse_type("double  precision") is t.FLOAT64
    assert functions.parse_type("integer[]").kind is Kind.LIST
    for wrong in ("intger", "decimal(39,1)", "decimal(3,4)", "decimal(a)", "date(3)", "", "int)"):
        with pytest.raises(TypeFault):
            functions.parse_type(wrong)

"""Binding calls: constants that take the type beside them, casts that fold, messages, names, the catalog."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from bireme.data import types as t
from bireme.data.schema import Schema
from bireme.data.types import Field
from bireme.errors import NameFault, TypeFault
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Call, Case, Cast, Column, Expr, InList, Interval, Literal
from bireme.plan.nullable import is_nullable

NAMES = {
    "i8": t.INT8,
    "i32": t.INT32,
    "i64": t.INT64,
    "u8": t.UINT8,
    "f": t.FLOAT32,
    "d": t.FLOAT64,
    "p": t.decimal(15, 2),
    "h": t.HUGEINT,
    "s": t.STRING,
    "day": t.DATE,
    "ts": t.TIMESTAMP,
    "b": t.BOOL,
    "span": t.INTERVAL,
}
COLUMNS = {name: Column(index, kind) for index, (name, kind) in enumerate(NAMES.items())}


def integer(value: int) -> Literal:
    return Literal(value, t.INT32)


def text(value: str) -> Literal:
    return Literal(value, t.STRING)


NULL = Literal(None, t.NULL)


def call(name: str, *args: Expr | str) -> Expr:
    return functions.scalar(name, [COLUMNS[arg] if isinstance(arg, str) else arg for arg in args])


# ---------------------------------------------------------------------------------------------- constants


def test_a_text_beside_a_date_is_a_date() -> None:
    assert call("=", "day", text("1995-01-31")) is call("=", "day", Literal(datetime.date(1995, 1, 31), t.DATE))
    with pytest.raises(TypeFault, match=r"'1995-13-31'.*date"):
        call("<", "day", text("1995-13-31"))


def test_an_integer_beside_a_decimal_needs_no_cast() -> None:
    assert call("<", "p", integer(24)) is call("<", "p", Literal(Decimal("24.00"), t.decimal(15, 2)))
    product = call("*", "p", call("-", integer(1), "p"))
    assert product.type is t.decimal(18, 4)
    assert "Cast" not in repr(product)


@pytest.mark.parametrize(
    ("name", "kind"), [("i8", t.INT8), ("u8", t.UINT8), ("f", t.FLOAT32), ("d", t.FLOAT64), ("i64", t.INT64)]
)
def test_an_integer_takes_the_column_s_type(name: str, kind: t.DataType) -> None:
    assert call("+", name, integer(1)).type is kind
    assert call(">", name, integer(1)) is call(">", name, Literal(1.0 if kind.is_float else 1, kind))


def test_an_integer_that_does_not_fit_widens_the_column() -> None:
    assert call("=", "i8", integer(1000)) is call("=", Cast(COLUMNS["i8"], t.INT32), integer(1000))


def test_a_decimal_that_does_not_fit_widens_the_column() -> None:
    wide = t.decimal(16, 3)
    constant = Literal(Decimal("1.234"), t.decimal(4, 3))
    assert call(">", "p", constant) is Call("gt", (Cast(COLUMNS["p"], wide), Literal(Decimal("1.234"), wide)), t.BOOL)


def test_null_takes_the_type_beside_it() -> None:
    assert call("=", "day", NULL) is call("=", "day", Literal(None, t.DATE))
    assert call("+", "p", NULL).type is t.decimal(16, 2)
    assert call("coalesce", NULL, "s").type is t.STRING
    assert call("||", "s", NULL).type is t.STRING
    assert call("=", NULL, NULL) is Literal(None, t.BOOL)


def test_a_moved_date_is_a_date_beside_dates() -> None:
    year_later = call("+", Literal(datetime.date(1994, 1, 1), t.DATE), Literal(Interval(12, 0, 0), t.INTERVAL))
    assert year_later is Literal(datetime.datetime(1995, 1, 1), t.TIMESTAMP)
    assert call("<", "day", year_later) is call("<", "day", Literal(datetime.date(1995, 1, 1), t.DATE))
    noon = Literal(datetime.datetime(1995, 1, 1, 12), t.TIMESTAMP)
    assert call("<", "day", noon) is Call("lt", (Cast(COLUMNS["day"], t.TIMESTAMP), noon), t.BOOL)


def test_month_ends_are_kept() -> None:
    january = Literal(datetime.date(2020, 1, 31), t.DATE)
    month = Literal(Interval(1, 0, 0), t.INTERVAL)
    assert call("+", january, month) is Literal(datetime.datetime(2020, 2, 29), t.TIMESTAMP)


# -------------------------------------------------------------------------------------------------- casts


@pytest.mark.parametrize(
    ("value", "source", "target", "wanted"),
    [
        ("42", t.STRING, t.INT32, 42),
        ("2.5", t.STRING, t.INT32, 3),
        ("1.239", t.STRING, t.decimal(5, 2), Decimal("1.24")),
        (2.5, t.FLOAT64, t.INT32, 2),
        (Decimal("-2.5"), t.decimal(2, 1), t.INT32, -3),
        (Decimal("1.50"), t.decimal(3, 2), t.STRING, "1.50"),
        (1e16, t.FLOAT64, t.STRING, "1e+16"),
        ("1995-01-31 10:11", t.STRING, t.TIMESTAMP, datetime.datetime(1995, 1, 31, 10, 11)),
        (datetime.datetime(1969, 12, 31, 23), t.TIMESTAMP, t.DATE, datetime.date(1969, 12, 31)),
        ("1 month -2 days 03:00:00", t.STRING, t.INTERVAL, Interval(1, -2, 10_800_000_000_000)),
        (None, t.NULL, t.DATE, None),
        (True, t.BOOL, t.decimal(3, 1), Decimal("1.0")),
        (10**37, t.HUGEINT, t.STRING, str(10**37)),
    ],
)
def test_a_constant_is_cast_at_once(value: object, source: t.DataType, target: t.DataType, wanted: object) -> None:
    constant = Literal(Decimal(value) if source is t.HUGEINT else value, source)  # type: ignore[arg-type]
    assert functions.cast(constant, target) is Literal(wanted, target)  # type: ignore[arg-type]


def test_a_cast_that_fails_is_kept_for_the_rows_that_reach_it() -> None:
    assert functions.cast(text("abc"), t.INT32) is Cast(text("abc"), t.INT32)
    assert functions.cast(text("abc"), t.INT32, safe=True) is Literal(None, t.INT32)


def test_a_cast_to_the_same_type_is_the_same_object() -> None:
    assert functions.cast(COLUMNS["p"], t.decimal(15, 2)) is COLUMNS["p"]


@pytest.mark.parametrize(
    ("source", "target"), [("i32", t.DATE), ("day", t.INT32), ("span", t.TIMESTAMP), ("d", t.BINARY)]
)
def test_a_cast_that_does_not_exist(source: str, target: t.DataType) -> None:
    with pytest.raises(TypeFault, match="no cast from"):
        functions.cast(COLUMNS[source], target)


def test_coercion_never_loses() -> None:
    assert functions.coerce(COLUMNS["i8"], t.INT64) is Cast(COLUMNS["i8"], t.INT64)
    assert functions.coerce(COLUMNS["i32"], t.decimal(12, 2)).type is t.decimal(12, 2)
    for name, target in (
        ("i64", t.INT32),
        ("i64", t.decimal(18, 0)),
        ("d", t.FLOAT32),
        ("ts", t.DATE),
        ("i32", t.STRING),
        ("p", t.INT64),
    ):
        with pytest.raises(TypeFault, match=r"write cast"):
            functions.coerce(COLUMNS[name], target)


def test_common_types_of_set_operations() -> None:
    assert functions.common_type([t.INT32, t.INT64, t.NULL]) is t.INT64
    assert functions.common_type([t.decimal(15, 2), t.INT32, t.decimal(4, 3)]) is t.decimal(16, 3)
    assert functions.common_type([t.DATE, t.TIMESTAMP]) is t.TIMESTAMP
    assert functions.common_type([]) is t.NULL
    with pytest.raises(TypeFault, match="integer and date"):
        functions.common_type([t.INT32, t.DATE])


# ------------------------------------------------------------------------------------------ names and sugar


@pytest.mark.parametrize(
    ("alias", "args", "canonical"),
    [
        ("SUBSTR", ("s", integer(1)), "substring"),
        ("Pow", ("d", "d"), "power"),
        ("<>", ("s", "s"), "ne"),
        ("mod", ("i32", "i32"), "modulo"),
        ("len", ("s",), "length"),
        ("dayofmonth", ("day",), "day"),
        ("strpos", ("s", "s"), "position"),
        ("nvl", ("s", "s"), ""),
    ],
)
def test_aliases(alias: str, args: tuple[Expr | str, ...], canonical: str) -> None:
    got = call(alias, *args)
    if canonical:
        assert isinstance(got, Call)
        assert got.function == canonical


def test_sugar() -> None:
    assert call("extract", text("YEAR"), "day") is call("year", "day")
    assert call("date_part", text("dow"), "day") is call("dayofweek", "day")
    assert isinstance(call("nullif", "i32", integer(0)), Case)
    assert isinstance(call("if", "b", "i32", integer(0)), Case)
    assert call("between", "i32", integer(1), integer(3)) is call(
        "and", call(">=", "i32", integer(1)), call("<=", "i32", integer(3))
    )
    assert isinstance(functions.in_list(COLUMNS["s"], [text("a"), text("b"), text("a")]), InList)
    assert call("and", "b", call("and", "b", call("not", "b"))) is call("and", "b", call("not", "b"))
    assert call("coalesce", "s") is COLUMNS["s"]


def test_case_values_share_a_type() -> None:
    got = functions.case([(COLUMNS["b"], COLUMNS["p"])], integer(0))
    assert got is Case(((COLUMNS["b"], COLUMNS["p"]),), Literal(Decimal("0.00"), t.decimal(15, 2)), t.decimal(15, 2))
    assert functions.case([(COLUMNS["b"], integer(1))], Literal(Decimal("2.5"), t.decimal(2, 1))).type is t.decimal(
        11, 1
    )
    with pytest.raises(TypeFault, match="CASE mixes"):
        functions.case([(COLUMNS["b"], COLUMNS["day"])], COLUMNS["i32"])


@pytest.mark.parametrize(
    ("name", "args", "fault", "message"),
    [
        ("lowr", ("s",), NameFault, 'did you mean "lower"'),
        ("frobnicate", (), NameFault, 'no function "frobnicate"$'),
        ("sum", ("i32",), NameFault, "is an aggregate"),
        ("row_number", (), NameFault, r"over \(…\)"),
        ("lower", ("i32",), TypeFault, r"lower\(integer\).*lower\(varchar\)"),
        ("+", ("s", integer(1)), TypeFault, r"no varchar \+ integer"),
        ("year", (text("1995-01-01"),), TypeFault, "year"),
        ("date_trunc", (text("mont"), "day"), TypeFault, 'did you mean "month"'),
        ("round", ("p", "i32"), TypeFault, "constant"),
        ("<", ("s", "i32"), TypeFault, "varchar and integer"),
        ("coalesce", ("s", "i32"), TypeFault, "coalesce mixes"),
        ("and", ("s", "b"), TypeFault, "condition"),
        ("like", ("s", text("a"), text("ab")), TypeFault, "one character"),
        ("regexp_matches", ("s", text("a"), text("q")), TypeFault, "option"),
    ],
)
def test_what_is_wrong_says_so(name: str, args: tuple[Expr | str, ...], fault: type[Exception], message: str) -> None:
    with pytest.raises(fault, match=message):
        call(name, *args)


# ---------------------------------------------------------------------------------------------- aggregates


def aggregate(name: str, *args: str, **how: object) -> Aggregation:
    return functions.aggregate(name, [COLUMNS[arg] for arg in args], **how)  # type: ignore[arg-type]


def test_aggregate_types() -> None:
    assert aggregate("sum", "i32").type is t.HUGEINT
    assert aggregate("SUM", "p").type is t.decimal(38, 2)
    assert aggregate("avg", "p") is Aggregation("avg", (COLUMNS["p"],), t.FLOAT64)
    assert aggregate("count") is Aggregation("count_star", (), t.INT64)
    assert aggregate("stddev", "i32").args[0].type is t.FLOAT64


def test_distinct_and_order_that_change_nothing_are_dropped() -> None:
    assert aggregate("max", "s", distinct=True) is aggregate("max", "s")
    assert aggregate("count", "s", distinct=True).distinct
    assert aggregate("sum", "i32", order=[functions_key("i32")]) is aggregate("sum", "i32")
    assert aggregate("first", "i32", order=[functions_key("i32")]).order


def functions_key(name: str) -> object:
    from bireme.plan.expr import SortKey

    return SortKey(COLUMNS[name])


def test_count_if_is_a_filtered_count() -> None:
    assert aggregate("count_if", "b") is Aggregation("count_star", (), t.INT64, filter=COLUMNS["b"])


@pytest.mark.parametrize(
    ("name", "args"),
    [("sum", ("s",)), ("avg", ("b",)), ("bool_and", ("i32",)), ("corr", ("d",)), ("count", ("i32", "s"))],
)
def test_aggregates_of_wrong_types(name: str, args: tuple[str, ...]) -> None:
    with pytest.raises(TypeFault):
        aggregate(name, *args)


def test_windows() -> None:
    lag = functions.window("lag", [COLUMNS["p"], integer(2), integer(0)])
    assert lag.args == (COLUMNS["p"], Literal(2, t.INT64), Literal(Decimal("0.00"), t.decimal(15, 2)))
    assert functions.window("sum", [COLUMNS["i32"]]) is aggregate("sum", "i32")
    with pytest.raises(TypeFault, match="neither DISTINCT nor FILTER"):
        functions.window("rank", [], filter=COLUMNS["b"])
    with pytest.raises(NameFault, match="row_number"):
        functions.window("row_numbr", [])


# ----------------------------------------------------------------------------------------- facts and docs


SCHEMA = Schema(tuple([Field(name, kind, name != "i32") for name, kind in NAMES.items()]))


@pytest.mark.parametrize(
    ("expr", "nullable"),
    [
        (call("+", "i32", integer(1)), False),
        (call("+", "i64", integer(1)), True),
        (call("is_null", "i64"), False),
        (call("coalesce", "i64", "i32"), False),
        (call("coalesce", "i64", "i8"), True),
        (call("concat", "s", "i64"), False),
        (call("greatest", "i64", "i32"), False),
        (call("try_strptime", text("x"), text("y")), True),
        (call("nullif", "i32", integer(1)), True),
        (functions.in_list(COLUMNS["i32"], [integer(1)]), False),
        (functions.cast(COLUMNS["i32"], t.INT8, safe=True), True),
        (call("is_distinct", "i64", "i64"), False),
    ],
)
def test_nullability_follows_the_null_rules(expr: Expr, nullable: bool) -> None:
    assert is_nullable(expr, SCHEMA) is nullable


def test_the_catalog_documents_every_function() -> None:
    entries = functions.catalog()
    assert {entry.kind for entry in entries} == {"scalar", "aggregate", "window"}
    for entry in entries:
        assert entry.doc.endswith("."), entry
        assert entry.signatures, entry
        assert entry.name == entry.name.lower()
    assert len({(entry.kind, entry.name) for entry in entries}) == len(entries)


def test_what_can_fail() -> None:
    assert functions.can_fail(call("+", "i32", "i32"))  # type: ignore[arg-type]
    assert not functions.can_fail(call("+", "d", "d"))  # type: ignore[arg-type]
    assert not functions.can_fail(call("=", "d", "d"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("l_ordrkey", '; did you mean "l_orderkey"?'), ("zzz", ""), ("ORDERS", '; did you mean "orders"?')],
)
def test_hints(name: str, hint: str) -> None:
    assert functions.suggest(name, ["l_orderkey", "orders", "part"]) == hint

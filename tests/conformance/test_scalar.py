"""Scalar functions of every backend against DuckDB: all pairs of corner values, then drawn batches."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import batches, corner_batch, schema_of
from support.drawn import drawn
from support.duck import RELATIVE_ERROR_MAX, Duck
from support.evaluation import check_against_backend, check_against_duck, columns_of

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.types import DataType
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal

D4, D15, D18, D30 = t.decimal(4, 1), t.decimal(15, 2), t.decimal(18, 4), t.decimal(30, 6)


@dataclass(frozen=True)
class Example:
    """A function over columns of some types, what follows them as constants, and its SQL with {0}, {1} for columns."""

    function: str
    types: tuple[DataType, ...]
    sql: str
    constants: tuple[object, ...] = ()
    error_max: float = RELATIVE_ERROR_MAX

    def build(self) -> Expr:
        args: list[Expr] = [*columns_of(schema_of(self.types)), *(constant(value) for value in self.constants)]
        return functions.scalar(self.function, args)

    @property
    def text(self) -> str:
        return self.sql.format(*(f"c{index}" for index in range(len(self.types))))

    def __str__(self) -> str:
        return self.text.replace("c0", str(self.types[0]), 1) if len(self.types) == 1 else f"{self.text}:{self.types}"


def constant(value: object) -> Literal:
    kinds = {bool: t.BOOL, int: t.INT32, float: t.FLOAT64, str: t.STRING}
    return Literal(value, kinds[type(value)])  # type: ignore[arg-type]


def binary(function: str, symbol: str, *pairs: tuple[DataType, DataType]) -> list[Example]:
    return [Example(function, pair, f"{{0}} {symbol} {{1}}") for pair in pairs]


def unary(sql: str, *types: DataType, error_max: float = RELATIVE_ERROR_MAX) -> list[Example]:
    return [Example(sql.partition("(")[0], (kind,), sql, error_max=error_max) for kind in types]


INTEGERS = (t.INT8, t.INT16, t.INT32, t.INT64, t.UINT8, t.UINT32, t.UINT64)
ALIKE = tuple((kind, kind) for kind in (*INTEGERS, t.FLOAT64, t.FLOAT32, D15, D18, t.HUGEINT))
MIXED = (
    (t.INT32, t.INT64),
    (t.INT8, t.UINT8),
    (t.UINT64, t.INT64),
    (t.INT32, t.FLOAT64),
    (t.INT64, t.FLOAT32),
    (D4, D15),
    (D15, t.INT32),
    (D30, D15),
    (D15, t.FLOAT64),
    (t.INT64, D15),
)
COMPARED = (
    *(
        (kind, kind)
        for kind in (
            t.BOOL,
            *INTEGERS,
            t.FLOAT64,
            t.FLOAT32,
            D15,
            D30,
            t.STRING,
            t.DATE,
            t.TIMESTAMP,
            t.TIME,
            t.INTERVAL,
        )
    ),
    (t.INT32, t.FLOAT64),
    (D4, D15),
    (t.INT8, t.INT64),
    (t.DATE, t.TIMESTAMP),
)
NUMBERS = (t.INT8, t.INT32, t.INT64, t.FLOAT64, t.FLOAT32, D15, D30)

ARITHMETIC = [
    *binary("add", "+", *ALIKE, *MIXED, (t.DATE, t.INT32), (t.INTERVAL, t.INTERVAL)),
    *binary("subtract", "-", *ALIKE, *MIXED, (t.DATE, t.DATE), (t.DATE, t.INT32), (t.TIMESTAMP, t.TIMESTAMP)),
    *binary("multiply", "*", *ALIKE, *(pair for pair in MIXED if pair != (t.UINT64, t.INT64))),
    *binary("divide", "/", *ALIKE, *MIXED),
    *binary(
        "int_divide",
        "//",
        (t.INT8, t.INT8),
        (t.INT32, t.INT32),
        (t.INT64, t.INT64),
        (t.UINT64, t.UINT64),
        (t.FLOAT64, t.FLOAT64),
    ),
    *binary(
        "modulo",
        "%",
        (t.INT8, t.INT8),
        (t.INT32, t.INT32),
        (t.INT64, t.INT64),
        (t.FLOAT64, t.FLOAT64),
        (D15, D15),
        (D4, D15),
    ),
    *binary("bitwise_and", "&", *ALIKE[:7], (t.INT8, t.INT64)),
    *binary("bitwise_or", "|", *ALIKE[:7]),
    *binary("shift_right", ">>", *ALIKE[:7]),
    *binary("shift_left", "<<", *ALIKE[:7]),
    *[Example("bitwise_xor", pair, "xor({0}, {1})") for pair in ALIKE[:7]],
    *[Example("negate", (kind,), "-{0}") for kind in (*INTEGERS[:4], t.FLOAT64, D15, t.INTERVAL)],
    *[Example("bitwise_not", (kind,), "~{0}") for kind in INTEGERS],
    *binary("multiply", "*", (t.INTERVAL, t.INT32)),
    *binary("divide", "/", (t.INTERVAL, t.INT32)),
    *[
        Example(function, (t.INTERVAL,), f"{{0}} {symbol} {factor}::double", (factor,))
        for function, symbol in (("multiply", "*"), ("divide", "/"))
        for factor in (1.37, -0.3, 1e3)
    ],
]
COMPARISONS = [
    *binary("eq", "=", *COMPARED),
    *binary("lt", "<", *COMPARED),
    *binary("ge", ">=", *COMPARED[:12]),
    *binary("ne", "<>", *COMPARED[:12]),
    *binary("le", "<=", (t.FLOAT64, t.FLOAT64)),
    *binary("gt", ">", (t.STRING, t.STRING)),
    *binary("is_distinct", "is distinct from", *COMPARED[:14]),
    *binary("is_not_distinct", "is not distinct from", *COMPARED[:14]),
    *binary("and", "and", (t.BOOL, t.BOOL)),
    *binary("or", "or", (t.BOOL, t.BOOL)),
    Example("and", (t.BOOL,) * 3, "{0} and {1} and {2}"),
    Example("or", (t.BOOL,) * 3, "{0} or {1} or {2}"),
    Example("not", (t.BOOL,), "not {0}"),
    *[
        Example(f"is_{test}", (kind,), f"{{0}} is {test.replace('_', ' ')}")
        for test in ("null", "not_null")
        for kind in (t.INT32, t.STRING, t.BOOL)
    ],
    *[
        Example(f"is_{test}", (t.BOOL,), f"{{0}} is {test.replace('_', ' ')}")
        for test in ("true", "not_true", "false", "not_false")
    ],
    *[
        Example(function, types, f"{function}({', '.join(f'{{{i}}}' for i in range(len(types)))})")
        for function in ("coalesce", "greatest", "least")
        for types in ((t.INT32,) * 3, (t.FLOAT64, t.FLOAT64), (t.STRING, t.STRING), (D15, D4), (t.DATE, t.DATE))
    ],
    Example("nullif", (t.INT32, t.INT32), "nullif({0}, {1})"),
    Example("nullif", (t.FLOAT64, t.FLOAT64), "nullif({0}, {1})"),
    Example("if", (t.BOOL, t.INT32, t.INT64), "if({0}, {1}, {2})"),
    Example("between", (t.INT32,) * 3, "{0} between {1} and {2}"),
]
NUMERIC = [
    *unary("abs({0})", *NUMBERS),
    *unary("sign({0})", *NUMBERS),
    *unary("floor({0})", *NUMBERS),
    *unary("ceil({0})", *NUMBERS),
    *unary("trunc({0})", *NUMBERS),
    *unary("round({0})", *NUMBERS),
    *[
        Example(function, (kind,), f"{function}({{0}}, {digits})", (digits,))
        for function in ("round", "trunc")
        for kind in (t.INT32, t.FLOAT64, D15)
        for digits in (1, 2, -1, -3)
    ],
    *[
        Example(name, (t.FLOAT64,), f"{name}({{0}})", error_max=1e-9)
        for name in (
            "sqrt",
            "cbrt",
            "ln",
            "log10",
            "log2",
            "exp",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "degrees",
            "radians",
        )
    ],
    Example("is_nan", (t.FLOAT64,), "isnan({0})"),
    Example("is_inf", (t.FLOAT64,), "isinf({0})"),
    Example("is_finite", (t.FLOAT64,), "isfinite({0})"),
    Example("power", (t.FLOAT64, t.FLOAT64), "power({0}, {1})", error_max=1e-9),
    Example("power", (t.INT32, t.INT32), "power({0}, {1})", error_max=1e-9),
    Example("atan2", (t.FLOAT64, t.FLOAT64), "atan2({0}, {1})"),
    Example("log", (t.FLOAT64,), "log({0})"),
    *unary("bit_count({0})", *INTEGERS[:4]),
    *[Example(name, (kind,), f"{name}({{0}})") for name in ("hex", "bin") for kind in (t.INT8, t.INT64, t.UINT64)],
    *[Example(name, (t.INT64, t.INT64), f"{name}({{0}}, {{1}})") for name in ("gcd", "lcm")],
    Example("factorial", (t.INT8,), "factorial({0})"),
]
PATTERNS = ("a%", "%a", "%b%", "_", "%", "", "a_c", "%a%c%", "ä%", "%\\_%", "日__", "abc", "%%a", "_%_")
TEXT = [
    *[
        Example(function, (t.STRING,), f"{function}({{0}})")
        for function in ("lower", "upper", "length", "trim", "ltrim", "rtrim", "ascii")
    ],
    Example("octet_length", (t.STRING,), "strlen({0})"),
    *[Example("like", (t.STRING,), f"{{0}} like '{pattern}'", (pattern,)) for pattern in PATTERNS],
    *[Example("ilike", (t.STRING,), f"{{0}} ilike '{pattern}'", (pattern,)) for pattern in ("A%", "%Ä%", "aB_")],
    Example("like", (t.STRING,), "{0} like 'a!%%' escape '!'", ("a!%%", "!")),
    Example("like", (t.STRING,), "{0} like 'a\\%' escape '\\'", ("a\\%", "\\")),
    Example("like", (t.STRING, t.STRING), "{0} like {1}"),
    Example("starts_with", (t.STRING, t.STRING), "starts_with({0}, {1})"),
    Example("ends_with", (t.STRING, t.STRING), "ends_with({0}, {1})"),
    Example("contains", (t.STRING, t.STRING), "contains({0}, {1})"),
    Example("position", (t.STRING, t.STRING), "strpos({0}, {1})"),
    Example("concat_op", (t.STRING, t.STRING), "{0} || {1}"),
    Example("concat_op", (t.STRING, t.INT32), "{0} || {1}"),
    Example("concat", (t.STRING, t.STRING, t.INT32), "concat({0}, {1}, {2})"),
    Example("concat_ws", (t.STRING, t.STRING, t.STRING), "concat_ws({0}, {1}, {2})"),
    *[Example("substring", (t.STRING,), f"substring({{0}}, {start})", (start,)) for start in (1, 2, 0, -1, -2, -10, 5)],
    *[
        Example("substring", (t.STRING,), f"substring({{0}}, {start}, {length})", (start, length))
        for start in (1, 2, 0, -1, -2, -10, 5)
        for length in (0, 1, 2, -1, -3, 100)
    ],
    *[
        Example(function, (t.STRING,), f"{function}({{0}}, {count})", (count,))
        for function in ("left", "right")
        for count in (0, 1, 3, -1, -3, 50)
    ],
    *[
        Example(function, (t.STRING,), f"{function}({{0}}, {count}, 'xä')", (count, "xä"))
        for function in ("lpad", "rpad")
        for count in (0, 2, 5, -1)
    ],
    Example("lpad", (t.STRING,), "lpad({0}, 3, '')", (3, "")),
    Example("repeat", (t.STRING,), "repeat({0}, 3)", (3,)),
    Example("repeat", (t.STRING,), "repeat({0}, -1)", (-1,)),
    Example("replace", (t.STRING,), "replace({0}, 'a', 'xy')", ("a", "xy")),
    Example("replace", (t.STRING,), "replace({0}, '', 'x')", ("", "x")),
    *[
        Example("split_part", (t.STRING,), f"split_part({{0}}, ',', {index})", (",", index))
        for index in (1, 2, 3, 0, -1, -2, 9)
    ],
    Example("split_part", (t.STRING,), "split_part({0}, '', 2)", ("", 2)),
    Example("trim", (t.STRING,), "trim({0}, 'ab')", ("ab",)),
    Example("chr", (t.INT32,), "chr({0})"),
    *[
        Example("regexp_matches", (t.STRING,), f"regexp_matches({{0}}, '{p}')", (p,))
        for p in ("a.c", "^a", "[0-9]+", "b$", "ä")
    ],
    Example("regexp_matches", (t.STRING,), "regexp_matches({0}, 'A', 'i')", ("A", "i")),
    Example("regexp_full_match", (t.STRING,), "regexp_full_match({0}, '[a-c]*')", ("[a-c]*",)),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '([ab])', '<\\1>')", ("([ab])", "<\\1>")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, 'a', 'x', 'g')", ("a", "x", "g")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '^(?:a)?(.)', '<\\1>')", ("^(?:a)?(.)", "<\\1>")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '^*[ab]', 'x')", ("^*[ab]", "x")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '^a|b', 'x')", ("^a|b", "x")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '^', 'x', 'l')", ("^", "x", "l")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, '(^.)+|..', '<\\1>')", ("(^.)+|..", "<\\1>")),
    Example("regexp_replace", (t.STRING,), "regexp_replace({0}, 'b*?', '\\0-', 'g')", ("b*?", "\\0-", "g")),
    Example("regexp_full_match", (t.STRING,), "regexp_full_match({0}, 'A.*', 'is')", ("A.*", "is")),
    Example("regexp_extract", (t.STRING,), "regexp_extract({0}, '(a)(b)?', 2)", ("(a)(b)?", 2)),
    Example("regexp_extract", (t.STRING,), "regexp_extract({0}, 'a.', 0, 'l')", ("a.", 0, "l")),
    Example("regexp_extract", (t.STRING,), "regexp_extract({0}, '[0-9]+')", ("[0-9]+",)),
]
UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "decade",
    "century",
    "millennium",
    "isoyear",
    "millisecond",
    "microsecond",
)
PARTS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofweek",
    "isodow",
    "dayofyear",
    "isoyear",
    "yearweek",
    "decade",
    "century",
)
CLOCK = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")
TEMPORAL = [
    *[Example(part, (kind,), f"{part}({{0}})") for part in PARTS for kind in (t.DATE, t.TIMESTAMP)],
    *[Example(part, (kind,), f"{part}({{0}})") for part in CLOCK for kind in (t.TIMESTAMP, t.TIME)],
    *[Example(part, (t.INTERVAL,), f"{part}({{0}})") for part in ("year", "quarter", "month", "day", *CLOCK)],
    Example("epoch", (t.DATE,), "epoch({0})"),
    Example("epoch_ms", (t.TIMESTAMP,), "epoch_ms({0})"),
    *[Example("last_day", (kind,), "last_day({0})") for kind in (t.DATE, t.TIMESTAMP)],
    Example("dayname", (t.DATE,), "dayname({0})"),
    Example("monthname", (t.DATE,), "monthname({0})"),
    Example("make_date", (t.INT32, t.INT8, t.INT8), "make_date({0}, {1}, {2})"),
    Example("make_time", (t.INT8, t.INT8, t.FLOAT64), "make_time({0}, {1}, {2})"),
    Example("age", (t.TIMESTAMP, t.TIMESTAMP), "age({0}, {1})"),
    *[
        Example("strftime", (kind,), f"strftime({{0}}, '{f}')", (f,))
        for kind in (t.DATE, t.TIMESTAMP)
        for f in ("%Y-%m-%d", "%d.%m.%y %H:%M:%S.%f", "%j %U %W %V %G %u %w", "%a %A %b %B %I %p %-d %-m %-H %%")
    ],
    Example("strptime", (t.STRING,), "strptime({0}, '%Y-%m-%d')", ("%Y-%m-%d",)),
    Example("try_strptime", (t.STRING,), "try_strptime({0}, '%Y-%m-%d')", ("%Y-%m-%d",)),
    *binary("add", "+", (t.DATE, t.INTERVAL), (t.TIMESTAMP, t.INTERVAL), (t.TIME, t.INTERVAL), (t.DATE, t.TIME)),
    *binary("subtract", "-", (t.DATE, t.INTERVAL), (t.TIMESTAMP, t.INTERVAL), (t.INTERVAL, t.INTERVAL)),
    Example("to_days", (t.INT32,), "to_days({0})"),
    Example("to_months", (t.INT32,), "to_months({0})"),
    Example("to_hours", (t.INT8,), "to_hours({0})"),
]
FAMILIES = {
    "arithmetic": ARITHMETIC,
    "comparison": COMPARISONS,
    "numeric": NUMERIC,
    "text": TEXT,
    "temporal": TEMPORAL,
}
EVERY = [
    pytest.param(example, id=f"{family}-{example}") for family, examples in FAMILIES.items() for example in examples
]


def asked_with(example: Example) -> list[str]:
    """The SQL of all examples over the same columns, so that the oracle is asked once for all of them."""
    alike = [other.text for examples in FAMILIES.values() for other in examples if other.types == example.types]
    return list(dict.fromkeys(alike))


@pytest.mark.parametrize("example", EVERY)
def test_corners_as_in_duckdb(backend: Kernels, duck: Duck, example: Example) -> None:
    batch = corner_batch(example.types)
    check_against_duck(
        backend, duck, example.build(), example.text, batch, among=asked_with(example), error_max=example.error_max
    )


# Overloads that DuckDB lacks, or that give another type there.
DRAWN = [
    *[
        ("add", pair)
        for pair in ((t.INT32, t.INT32), (t.INT64, t.INT64), (D15, D18), (t.FLOAT64, t.FLOAT64), (t.UINT64, t.UINT64))
    ],
    *[("subtract", pair) for pair in ((t.INT16, t.INT16), (D30, D30), (t.DATE, t.DATE))],
    *[
        ("multiply", pair)
        for pair in ((t.INT64, t.INT64), (D15, D15), (D30, D15), (t.UINT64, t.INT64), (t.HUGEINT, t.HUGEINT))
    ],
    *[("divide", pair) for pair in ((D15, D18), (t.INT64, t.INT64))],
    *[("int_divide", pair) for pair in ((t.INT64, t.INT64), (t.HUGEINT, t.HUGEINT))],
    *[("modulo", pair) for pair in ((t.INT64, t.INT64), (D15, D4), (t.FLOAT64, t.FLOAT64))],
    *[
        (name, (kind, kind))
        for name in ("eq", "lt", "greatest")
        for kind in (t.STRING, t.FLOAT64, D30, t.BINARY, t.INTERVAL, t.TIMESTAMP, t.BOOL)
    ],
    ("like", (t.STRING, t.STRING)),
    ("position", (t.STRING, t.STRING)),
    ("concat", (t.STRING, t.INT64, t.DATE)),
    ("hash", (t.INT32, t.STRING, D30)),
    ("reverse", (t.STRING,)),
    ("upper", (t.STRING,)),
    ("date_trunc month", (t.DATE,)),
]
DRAWN += [
    (f"{name} {unit}", (t.TIMESTAMP,) * count)
    for unit in UNITS
    for name, count in (("date_trunc", 1), ("date_diff", 2))
]


def build_drawn(name: str, types: tuple[DataType, ...]) -> Expr:
    function, _, unit = name.partition(" ")
    columns: list[Expr] = list(columns_of(schema_of(types)))
    return functions.scalar(function, [constant(unit), *columns] if unit else columns)


@pytest.mark.parametrize(("name", "types"), [pytest.param(name, types, id=f"{name}-{types}") for name, types in DRAWN])
@drawn(8)
@given(data=st.data())
def test_drawn_values_agree(
    other: Kernels, reference: ReferenceKernels, name: str, types: tuple[DataType, ...], data: st.DataObject
) -> None:
    check_against_backend(other, reference, build_drawn(name, types), data.draw(batches(types)))


def sql_of_unit(name: str, unit: str) -> str:
    return f"{name}('{unit}', c0)" if name == "date_trunc" else f"{name}('{unit}', c0, c1)"


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in (t.DATE, t.TIMESTAMP)])
@pytest.mark.parametrize("name", ["date_trunc", "date_diff", "date_sub"])
@pytest.mark.parametrize("unit", UNITS)
def test_units_as_in_duckdb(backend: Kernels, duck: Duck, name: str, unit: str, kind: DataType) -> None:
    types = (kind,) if name == "date_trunc" else (kind, kind)
    batch = corner_batch(types)
    among = [sql_of_unit(name, other) for other in UNITS]
    check_against_duck(backend, duck, build_drawn(f"{name} {unit}", types), sql_of_unit(name, unit), batch, among=among)

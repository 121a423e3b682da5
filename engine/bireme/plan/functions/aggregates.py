"""Aggregates and functions of windows only: arguments and result types.

What their partial states are is in `backends.base`. Sums of integers and decimals have 38 digits, and an average of
exact numbers is exact until its last division.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bireme.data.types import (
    BOOL,
    DATE,
    DECIMAL128_DIGITS,
    FLOAT32,
    FLOAT64,
    HUGEINT,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    UINT32,
    DataType,
    Kind,
    decimal,
    list_of,
)
from bireme.errors import TypeFault
from bireme.plan.expr import Aggregation, Expr, Literal
from bireme.plan.functions.casting import cast, coerce
from bireme.plan.functions.order_keys import has_order, order_key
from bireme.plan.functions.quantiles import fractions, interpolated
from bireme.plan.functions.registry import AggregateFunction, Args, wrong_arguments

Binder = Callable[[Args], Aggregation]


def _typed(arg: Expr) -> Expr:
    """An argument that is the constant NULL, or a column of nothing else, as an integer."""
    return cast(arg, INT32) if arg.type is NULL else arg


def _one(
    name: str, signatures: tuple[str, ...], takes: Callable[[DataType], bool], make: Callable[[Expr], Aggregation]
) -> Binder:
    """Binds an aggregate of one argument of a type that `takes` accepts."""

    def bind(args: Args) -> Aggregation:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        arg = _typed(args[0])
        # A string constant has no type of its own that could be aggregated by accident.
        if not takes(arg.type):
            raise wrong_arguments(name, args, signatures)
        return make(arg)

    return bind


def _is_plain(kind: DataType) -> bool:
    return not kind.is_nested


def _count(args: Args) -> Aggregation:
    if not args:
        return Aggregation("count_star", (), INT64)
    if len(args) > 1:
        raise TypeFault("count takes one value; count the rows of a subquery with DISTINCT to count combinations")
    return Aggregation("count", args, INT64)


def _count_star(args: Args) -> Aggregation:
    if args:
        raise wrong_arguments("count_star", args, ("count(*) → bigint",))
    return Aggregation("count_star", (), INT64)


def _count_if(args: Args) -> Aggregation:
    if len(args) != 1:
        raise wrong_arguments("count_if", args, ("count_if(boolean) → bigint",))
    return Aggregation("count_star", (), INT64, filter=coerce(args[0], BOOL))


def _sum(arg: Expr) -> Aggregation:
    kind = arg.type
    if kind.is_float:
        return Aggregation("sum", (cast(arg, FLOAT64),), FLOAT64)
    if kind.kind is Kind.DECIMAL:
        return Aggregation("sum", (arg,), decimal(DECIMAL128_DIGITS, kind.scale))
    return Aggregation("sum", (cast(arg, INT8) if kind is BOOL else arg,), HUGEINT)


def _avg(arg: Expr) -> Aggregation:
    if arg.type is DATE or arg.type is TIMESTAMP:
        return Aggregation("avg", (cast(arg, TIMESTAMP),), TIMESTAMP)
    return Aggregation("avg", (cast(arg, FLOAT64) if arg.type is FLOAT32 else arg,), FLOAT64)


def _sum_function() -> AggregateFunction:
    signatures = (
        "sum(integer or boolean) → decimal(38,0)",
        "sum(decimal(p,s)) → decimal(38,s)",
        "sum(double) → double",
    )
    bind = _one("sum", signatures, lambda kind: kind.is_numeric or kind is BOOL, _sum)
    return AggregateFunction("sum", bind, signatures, "The sum; NULL over no value.")


def _avg_function() -> AggregateFunction:
    signatures = ("avg(number) → double", "avg(date or timestamp) → timestamp")
    bind = _one("avg", signatures, lambda kind: kind.is_numeric or kind in (DATE, TIMESTAMP), _avg)
    return AggregateFunction("avg", bind, signatures, "The mean; NULL over no value.", ("mean",))


def _kept(name: str, doc: str, *aliases: str, ordered: bool = False, any_type: bool = False) -> AggregateFunction:
    """An aggregate that gives one of its values."""
    signatures = (f"{name}(any) → the same type",)
    takes = (lambda _: True) if any_type else has_order
    bind = _one(name, signatures, takes, lambda arg: Aggregation(name, (arg,), arg.type))
    return AggregateFunction(name, bind, signatures, doc, aliases, ignores_distinct=True, ignores_order=not ordered)


def _truth(name: str, doc: str, *aliases: str) -> AggregateFunction:
    signatures = (f"{name}(boolean) → boolean",)
    bind = _one(
        name, signatures, lambda kind: kind is BOOL or kind is INT32, lambda arg: _as_truth(name, arg, signatures)
    )
    return AggregateFunction(name, bind, signatures, doc, aliases, ignores_distinct=True)


def _as_truth(name: str, arg: Expr, signatures: tuple[str, ...]) -> Aggregation:
    if arg.type is not BOOL and not (isinstance(arg, Literal) and arg.value is None):
        raise wrong_arguments(name, (arg,), signatures)
    return Aggregation(name, (cast(arg, BOOL),), BOOL)


def _doubles(name: str, doc: str, *aliases: str, count: int = 1, result: DataType = FLOAT64) -> AggregateFunction:
    """An aggregate of doubles."""
    signatures = (f"{name}({', '.join(['number'] * count)}) → {result}",)

    def bind(args: Args) -> Aggregation:
        values = tuple([_typed(arg) for arg in args])
        if len(values) != count or not all(value.type.is_numeric for value in values):
            raise wrong_arguments(name, args, signatures)
        return Aggregation(name, tuple([cast(value, FLOAT64) for value in values]), result)

    return AggregateFunction(name, bind, signatures, doc, aliases)


# ------------------------------------------------------------------------------------------ quantiles


def _quantile(name: str, doc: str, *aliases: str, interpolates: bool) -> AggregateFunction:
    signatures = (f"{name}(any, double constant)", f"{name}(any, list of double constants) → list")

    def bind(args: Args) -> Aggregation:
        if len(args) != 2 or args[0].type.is_nested:
            raise wrong_arguments(name, args, signatures)
        arg = _typed(args[0])
        fraction, result = fractions(name, args[1]), interpolated(arg.type) if interpolates else arg.type
        return Aggregation(name, (arg, fraction), list_of(result) if fraction.type.is_nested else result)

    return AggregateFunction(name, bind, signatures, doc, aliases)


def _median() -> AggregateFunction:
    signatures = ("median(any)",)
    bind = _one("median", signatures, _is_plain, lambda arg: Aggregation("median", (arg,), interpolated(arg.type)))
    return AggregateFunction("median", bind, signatures, "The value in the middle.")


# ------------------------------------------------------------------------------------ what order decides


def _string_agg(args: Args) -> Aggregation:
    signatures = ("string_agg(any, varchar constant) → varchar",)
    if len(args) not in (1, 2) or args[0].type.is_nested:
        raise wrong_arguments("string_agg", args, signatures)
    separator = coerce(args[1], STRING) if len(args) == 2 else Literal(",", STRING)
    if not isinstance(separator, Literal):
        raise TypeFault("the separator of string_agg must be a constant")
    return Aggregation("string_agg", (cast(_typed(args[0]), STRING), separator), STRING)


def _array_agg(args: Args) -> Aggregation:
    if len(args) != 1:
        raise wrong_arguments("array_agg", args, ("array_agg(any) → list",))
    arg = _typed(args[0])
    return Aggregation("array_agg", (arg,), list_of(arg.type))


def _extreme(name: str, doc: str, *aliases: str) -> AggregateFunction:
    """arg_min and arg_max."""
    signatures = (f"{name}(any, any) → the type of the first",)

    def bind(args: Args) -> Aggregation:
        if len(args) != 2 or not has_order(args[1].type):
            raise wrong_arguments(name, args, signatures)
        return Aggregation(name, (_typed(args[0]), order_key(_typed(args[1]))), _typed(args[0]).type)

    return AggregateFunction(name, bind, signatures, doc, aliases, ignores_distinct=True, ignores_order=False)


# ---------------------------------------------------------------------------------------------- counts


def _typed_by(
    name: str,
    doc: str,
    result: Callable[[DataType], DataType],
    takes: Callable[[DataType], bool],
    *aliases: str,
    ignores_distinct: bool = False,
) -> AggregateFunction:
    """An aggregate of one argument, of a result that depends on its type."""
    signatures = (f"{name}(any)",)
    bind = _one(name, signatures, takes, lambda arg: Aggregation(name, (arg,), result(arg.type)))
    return AggregateFunction(name, bind, signatures, doc, aliases, ignores_distinct=ignores_distinct)


def _distinct_count() -> AggregateFunction:
    """approx_count_distinct: exact here."""
    signatures = ("approx_count_distinct(any) → bigint",)
    bind = _one("approx_count_distinct", signatures, has_order, lambda arg: Aggregation("count", (arg,), INT64, True))
    return AggregateFunction("approx_count_distinct", bind, signatures, "How many different values there are.")


def _same(kind: DataType) -> DataType:
    return kind


AGGREGATES: Final = (
    AggregateFunction("count", _count, ("count(any) → bigint", "count(*) → bigint"), "How many values are not NULL."),
    AggregateFunction("count_star", _count_star, ("count(*) → bigint",), "How many rows there are.", ("count(*)",)),
    AggregateFunction(
        "count_if", _count_if, ("count_if(boolean) → bigint",), "For how many rows it is TRUE.", ("countif",)
    ),
    _sum_function(),
    _avg_function(),
    _kept("min", "The least value; NULL over no value."),
    _kept("max", "The greatest value; NULL over no value."),
    _kept("any_value", "A value that is not NULL.", ordered=True, any_type=True),
    _kept("first", "The first row's value, also NULL.", "arbitrary", ordered=True, any_type=True),
    _kept("last", "The last row's value, also NULL.", ordered=True, any_type=True),
    _truth("bool_and", "Whether all are TRUE; NULL over no value.", "logical_and"),
    _truth("bool_or", "Whether one is TRUE; NULL over no value.", "logical_or"),
    _doubles("var_samp", "The variance of a sample; NULL for fewer than two values.", "variance"),
    _doubles("var_pop", "The variance of all values."),
    _doubles("stddev_samp", "The standard deviation of a sample; NULL for fewer than two values.", "stddev"),
    _doubles("stddev_pop", "The standard deviation of all values."),
    _doubles("corr", "The correlation of two variables; NaN where one is constant.", count=2),
    _doubles("covar_samp", "The covariance of a sample.", count=2),
    _doubles("covar_pop", "The covariance of all values.", count=2),
    *(
        _doubles(f"regr_{part}", f"{doc} The first argument depends on the second.", count=2)
        for part, doc in (
            ("slope", "The slope of the least-squares line."),
            ("intercept", "Where the least-squares line meets the axis."),
            ("r2", "The square of the correlation."),
            ("avgx", "The mean of the second argument."),
            ("avgy", "The mean of the first argument."),
            ("sxx", "The sum of squares of the second argument about its mean."),
            ("syy", "The sum of squares of the first argument about its mean."),
            ("sxy", "The sum of products about the means."),
        )
    ),
    _doubles("regr_count", "How many pairs there are.", count=2, result=UINT32),
    _doubles("skewness", "The skewness of a sample."),
    _doubles("kurtosis", "The excess kurtosis of a sample."),
    _doubles("kurtosis_pop", "The excess kurtosis of all values."),
    _doubles("sem", "The standard error of the mean."),
    _doubles("product", "The product of all values."),
    _doubles("mad", "The median of how far the values are from their median."),
    _median(),
    _quantile(
        "quantile_cont",
        "The value at a fraction of the order, interpolated.",
        "percentile_cont",
        interpolates=True,
    ),
    _quantile(
        "quantile_disc",
        "The value at a fraction of the order.",
        "percentile_disc",
        "quantile",
        "approx_quantile",
        interpolates=False,
    ),
    replace(_typed_by("mode", "The most frequent value; of several the first.", _same, has_order), ignores_order=False),
    _typed_by("entropy", "The entropy of the values, in bits.", lambda _: FLOAT64, _is_plain),
    AggregateFunction(
        "string_agg",
        _string_agg,
        ("string_agg(any, varchar constant) → varchar",),
        "All values as one text.",
        ("group_concat", "listagg"),
        ignores_order=False,
    ),
    AggregateFunction(
        "array_agg",
        _array_agg,
        ("array_agg(any) → list",),
        "All values as a list, NULLs too; NULL over no row.",
        ("list",),
        ignores_order=False,
    ),
    _extreme("arg_max", "The first argument where the second is greatest.", "max_by", "argmax"),
    _extreme("arg_min", "The first argument where the second is least.", "min_by", "argmin"),
    _extreme("arg_max_null", "As arg_max, but the first argument may be NULL."),
    _extreme("arg_min_null", "As arg_min, but the first argument may be NULL."),
    _distinct_count(),
    *(
        _typed_by(
            f"bit_{word}",
            f"All values combined by bitwise {word}.",
            _same,
            lambda kind: kind.is_integer,
            ignores_distinct=word != "xor",
        )
        for word in ("and", "or", "xor")
    ),
)

# ---------------------------------------------------------------------------------------------- windows


def _rank(name: str, doc: str, result: DataType) -> AggregateFunction:
    signatures = (f"{name}() → {result}",)

    def bind(args: Args) -> Aggregation:
        if args:
            raise wrong_arguments(name, args, signatures)
        return Aggregation(name, (), result)

    return AggregateFunction(name, bind, signatures, doc)


def _ntile(args: Args) -> Aggregation:
    if len(args) != 1:
        raise wrong_arguments("ntile", args, ("ntile(bigint) → bigint",))
    return Aggregation("ntile", (coerce(args[0], INT64),), INT64)


def _shifted(name: str, doc: str) -> AggregateFunction:
    """lag and lead: the value, how many rows away (1 if not given), and what stands where there is no such row."""
    signatures = (f"{name}(any, bigint, any) → the type of the first",)

    def bind(args: Args) -> Aggregation:
        if not 1 <= len(args) <= 3:
            raise wrong_arguments(name, args, signatures)
        arg = _typed(args[0])
        offset = coerce(args[1], INT64) if len(args) > 1 else Literal(1, INT64)
        default = cast(args[2], arg.type) if len(args) > 2 else Literal(None, arg.type)
        return Aggregation(name, (arg, offset, default), arg.type)

    return AggregateFunction(name, bind, signatures, doc)


def _framed(name: str, doc: str, *aliases: str) -> AggregateFunction:
    signatures = (f"{name}(any) → the same type",)
    bind = _one(name, signatures, lambda _: True, lambda arg: Aggregation(name, (arg,), arg.type))
    return AggregateFunction(name, bind, signatures, doc, aliases, ignores_order=False)


def _nth_value(args: Args) -> Aggregation:
    if len(args) != 2:
        raise wrong_arguments("nth_value", args, ("nth_value(any, bigint) → the type of the first",))
    arg = _typed(args[0])
    return Aggregation("nth_value", (arg, coerce(args[1], INT64)), arg.type)


WINDOWS: Final = (
    _rank("row_number", "The number of the row in its partition, from 1.", INT64),
    _rank("rank", "The number of rows before the first peer, plus 1.", INT64),
    _rank("dense_rank", "The number of the group of peers, from 1.", INT64),
    _rank("percent_rank", "(rank - 1) / (rows - 1), 0 for a single row.", FLOAT64),
    _rank("cume_dist", "The share of rows up to the last peer.", FLOAT64),
    AggregateFunction(
        "ntile", _ntile, ("ntile(bigint) → bigint",), "Which of so many nearly equal buckets the row is in."
    ),
    _shifted("lag", "The value so many rows before."),
    _shifted("lead", "The value so many rows after."),
    _framed("first_value", "The value of the frame's first row."),
    _framed("last_value", "The value of the frame's last row."),
    AggregateFunction(
        "nth_value",
        _nth_value,
        ("nth_value(any, bigint)",),
        "The value of the frame's row of that number.",
        ignores_order=False,
    ),
)

"""Moments: covariance, correlation, regression, skewness and kurtosis, from variances, means and sums of powers.

With a = var(x + y) and b = var(x - y) the covariance is (a - b) / 4; where var(x) and var(y) are there, it is half of
what a is more than both. Means may be as large as they like, but where x varies 10^k times as much as y, k of the 16
digits are lost. Skewness and kurtosis come from sums of powers, as in
DuckDB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from bireme.data.types import FLOAT64, UINT32
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Case, Expr
from bireme.plan.nullable import is_nullable
from bireme.plan.relation import Aggregate
from bireme.plan.rules.spelling import Finish, Numbers, Speller, Spelling, counted, double, is_null, null, scalar


def _pair(call: Aggregation, rel: Aggregate) -> tuple[Expr, Expr]:
    """Both variables, NULL unless both are there: a pair counts only as a whole."""
    first, second = call.args
    return _where_present(first, second, rel), _where_present(second, first, rel)


def _where_present(value: Expr, other: Expr, rel: Aggregate) -> Expr:
    if not is_nullable(other, rel.input.schema):
        return value
    return Case(((is_null(other), null(value.type)),), value, value.type)


def _variance_of_sum(call: Aggregation, rel: Aggregate, variance: str) -> list[Aggregation]:
    x, y = _pair(call, rel)
    arguments = [scalar("+", x, y), scalar("-", x, y)]
    return [functions.aggregate(variance, [arg], filter=call.filter) for arg in arguments]


def _of_each(call: Aggregation, rel: Aggregate, function: str) -> list[Aggregation]:
    return [functions.aggregate(function, [arg], filter=call.filter) for arg in _pair(call, rel)]


def _covariance(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    variance = "var_samp" if call.function == "covar_samp" else "var_pop"
    return Spelling(_variance_of_sum(call, rel, variance), _covariance_of)


def _covariance_of(columns: Sequence[Expr]) -> Expr:
    return scalar("*", scalar("-", columns[0], columns[1]), double(0.25))


def _correlation(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    spreads = [*_variance_of_sum(call, rel, "var_pop")[:1], *_of_each(call, rel, "var_pop")]
    return Spelling(spreads, lambda columns: _correlation_of(*columns))


def _correlation_of(of_sum: Expr, of_first: Expr, of_second: Expr) -> Expr:
    """From three variances. NaN where one variable is constant: the digits that are lost must not look like a
    correlation.
    """
    scale = scalar("*", scalar("sqrt", of_first), scalar("sqrt", of_second))
    twice = scalar("-", scalar("-", of_sum, of_first), of_second)
    quotient = scalar("/", scalar("*", twice, double(0.5)), scale)
    return Case(((scalar("=", scale, double(0.0)), double(math.nan)),), quotient, FLOAT64)


# ---------------------------------------------------------------------------------------------- regression

# The dependent variable comes first: its columns are the first of each pair.


def _slope(columns: Sequence[Expr]) -> Expr:
    """NaN where the independent variable is constant."""
    return scalar("/", _covariance_of(columns), columns[3])


def _unless_zero(value: Expr) -> Expr:
    return scalar("nullif", value, double(0.0))


def _intercept(columns: Sequence[Expr]) -> Expr:
    """NULL where the independent variable is constant."""
    value = scalar("-", columns[4], scalar("*", _slope(columns), columns[5]))
    return Case(((scalar("=", columns[3], double(0.0)), null(FLOAT64)),), value, FLOAT64)


def _fit(columns: Sequence[Expr]) -> Expr:
    square = scalar("power", _correlation_of(columns[0], columns[2], columns[3]), double(2.0))
    flat = scalar("=", columns[2], double(0.0))
    vertical = scalar("=", columns[3], double(0.0))
    return Case(((vertical, null(FLOAT64)), (flat, double(1.0))), square, FLOAT64)


def _regression(finish: Finish) -> Callable[[Aggregation, Aggregate, Numbers], Spelling]:
    def spell(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
        spreads = [*_variance_of_sum(call, rel, "var_pop"), *_of_each(call, rel, "var_pop")]
        return Spelling([*spreads, *_of_each(call, rel, "avg"), *_of_each(call, rel, "count")[:1]], finish)

    return spell


def _times_rows(value: Expr, columns: Sequence[Expr]) -> Expr:
    return scalar("*", value, functions.cast(columns[6], FLOAT64))


# ----------------------------------------------------------------------------------------- sums of powers


def _powers(call: Aggregation, rel: Aggregate, numbers: Numbers, *, count: int, finish: Finish) -> Spelling:
    """The count, and the sums of the first powers."""
    value = functions.cast(counted(call), FLOAT64)
    parts = [functions.aggregate("count", [value])]
    power = value
    for _ in range(count):
        parts.append(functions.aggregate("sum", [power]))
        power = scalar("*", power, value)
    return Spelling(parts, finish)


def _spread(columns: Sequence[Expr]) -> tuple[Expr, Expr, Expr]:
    """n, 1/n, and the mean square of what the values differ from their mean."""
    rows = functions.cast(columns[0], FLOAT64)
    share = scalar("/", double(1.0), rows)
    mean_square = scalar("*", share, scalar("-", columns[2], _product(columns[1], columns[1], share)))
    return rows, share, mean_square


def _product(*factors: Expr) -> Expr:
    product = factors[0]
    for factor in factors[1:]:
        product = scalar("*", product, factor)
    return product


def _skewness(columns: Sequence[Expr]) -> Expr:
    rows, share, square = _spread(columns)
    cube = scalar("greatest", _product(square, square, square), double(0.0))
    third = scalar(
        "+",
        scalar("-", columns[3], _product(double(3.0), columns[2], columns[1], share)),
        _product(double(2.0), columns[1], columns[1], columns[1], share, share),
    )
    factor = scalar(
        "/", scalar("sqrt", scalar("*", rows, _less(rows, 1.0))), scalar("nullif", _less(rows, 2.0), double(0.0))
    )
    value = scalar("/", _product(factor, share, third), scalar("sqrt", cube))
    few = scalar("<=", rows, double(2.0))
    constant = scalar("=", cube, double(0.0))
    return Case(((few, null(FLOAT64)), (constant, null(FLOAT64))), value, FLOAT64)


def _less(value: Expr, by: float) -> Expr:
    return scalar("-", value, double(by))


def _kurtosis(columns: Sequence[Expr], *, of_sample: bool) -> Expr:
    rows, share, square = _spread(columns)
    total = columns[1]
    fourth = scalar("-", columns[4], _product(double(4.0), columns[3], total, share))
    fourth = scalar("+", fourth, _product(double(6.0), columns[2], total, total, share, share))
    fourth = scalar("-", fourth, _product(double(3.0), total, total, total, total, share, share, share))
    ratio = scalar("/", scalar("*", share, fourth), _unless_zero(scalar("*", square, square)))
    few = scalar("<=", rows, double(3.0 if of_sample else 1.0))
    unknown = scalar("or", few, scalar("<=", square, double(0.0)))
    if not of_sample:
        return Case(((unknown, null(FLOAT64)),), _less(ratio, 3.0), FLOAT64)
    excess = scalar("-", _product(scalar("+", rows, double(1.0)), ratio), scalar("*", double(3.0), _less(rows, 1.0)))
    freedom = _unless_zero(scalar("*", _less(rows, 2.0), _less(rows, 3.0)))
    value = scalar("/", scalar("*", _less(rows, 1.0), excess), freedom)
    return Case(((unknown, null(FLOAT64)),), value, FLOAT64)


def _standard_error(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    value = functions.cast(counted(call), FLOAT64)
    parts = [functions.aggregate("stddev_pop", [value]), functions.aggregate("count", [value])]
    return Spelling(parts, lambda c: scalar("/", c[0], scalar("sqrt", functions.cast(c[1], FLOAT64))))


SPELLERS: Final[dict[str, Speller]] = {
    "covar_pop": _covariance,
    "covar_samp": _covariance,
    "corr": _correlation,
    "regr_slope": _regression(_slope),
    "regr_intercept": _regression(_intercept),
    "regr_r2": _regression(_fit),
    "regr_avgy": _regression(lambda columns: columns[4]),
    "regr_avgx": _regression(lambda columns: columns[5]),
    "regr_count": _regression(lambda columns: functions.cast(columns[6], UINT32)),
    "regr_syy": _regression(lambda columns: _times_rows(columns[2], columns)),
    "regr_sxx": _regression(lambda columns: _times_rows(columns[3], columns)),
    "regr_sxy": _regression(lambda columns: _times_rows(_covariance_of(columns), columns)),
    "skewness": partial(_powers, count=3, finish=_skewness),
    "kurtosis": partial(_powers, count=4, finish=partial(_kurtosis, of_sample=True)),
    "kurtosis_pop": partial(_powers, count=4, finish=partial(_kurtosis, of_sample=False)),
    "sem": _standard_error,
}

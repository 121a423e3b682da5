"""Functions of several expressions in one row: Polars' names for functions of the registry."""

from __future__ import annotations

from functools import reduce
from typing import Any

from bireme.errors import ArgumentFault
from bireme.frontend.expression import Expression, tree_of
from bireme.frontend.expression_tree import Function, Summary


def _listed(exprs: tuple[Any, ...], call: str) -> list[Expression]:
    flat = [each for given in exprs for each in (given if isinstance(given, (list, tuple)) else [given])]
    if not flat:
        raise ArgumentFault(f"{call} needs at least one expression")
    return [Expression(tree_of(each, strings_are_columns=True)) for each in flat]


def _function(name: str, exprs: list[Expression]) -> Expression:
    return Expression(Function(name, tuple([each._tree for each in exprs])))


def coalesce(*exprs: Any) -> Expression:
    """The first value that is not NULL."""
    return _function("coalesce", _listed(exprs, "coalesce()"))


def max_horizontal(*exprs: Any) -> Expression:
    """The greatest value that is not NULL."""
    return _function("greatest", _listed(exprs, "max_horizontal()"))


def min_horizontal(*exprs: Any) -> Expression:
    """The least value that is not NULL."""
    return _function("least", _listed(exprs, "min_horizontal()"))


def sum_horizontal(*exprs: Any) -> Expression:
    """The sum of the values that are not NULL."""
    return reduce(lambda a, b: a + b, [each.fill_null(0) for each in _listed(exprs, "sum_horizontal()")])


def all_horizontal(*exprs: Any) -> Expression:
    """Whether all are TRUE, three-valued."""
    return reduce(lambda a, b: a & b, _listed(exprs, "all_horizontal()"))


def any_horizontal(*exprs: Any) -> Expression:
    """Whether any is TRUE, three-valued."""
    return reduce(lambda a, b: a | b, _listed(exprs, "any_horizontal()"))


def concat_str(*exprs: Any, separator: str = "", ignore_nulls: bool = False) -> Expression:
    """The texts of all values, one after the other; NULL where one is, unless they are ignored."""
    listed = [each.cast("varchar") for each in _listed(exprs, "concat_str()")]
    if ignore_nulls:
        return _function("concat_ws", [Expression(tree_of(separator)), *listed])
    between: list[Expression] = [listed[0]]
    for each in listed[1:]:
        between += [Expression(tree_of(separator)), each]
    return reduce(lambda a, b: _function("concat_op", [a, b]), between)


def corr(a: Any, b: Any) -> Expression:
    """The correlation of two columns."""
    return _summary("corr", a, b)


def cov(a: Any, b: Any, ddof: int = 1) -> Expression:
    """The covariance of two columns."""
    if ddof not in (0, 1):
        raise ArgumentFault(f"ddof must be 1 (sample) or 0 (population), not {ddof!r}")
    return _summary("covar_samp" if ddof else "covar_pop", a, b)


def _summary(function: str, a: Any, b: Any) -> Expression:
    args = tuple([tree_of(each, strings_are_columns=True) for each in (a, b)])
    return Expression(Summary(function, args))

"""Functions of several expressions in one row: Polars' names for functions of the registry."""

from __future__ import annotations

from functools import reduce
from typing import Any

from bireme.errors import ArgumentFault
from bireme.frontend.expression import Expression, lit, tree_of
from bireme.frontend.expression_summaries import by_ddof
from bireme.frontend.expression_tree import Summary
from bireme.frontend.resolve import output_name, several_in


def _listed(exprs: tuple[Any, ...], call: str) -> list[Expression]:
    flat = [each for given in exprs for each in (given if isinstance(given, (list, tuple)) else [given])]
    if not flat:
        raise ArgumentFault(f"{call} needs at least one expression")
    return [Expression(tree_of(each, strings_are_columns=True)) for each in flat]


def _function(name: str, exprs: list[Expression]) -> Expression:
    return exprs[0]._call(name, *exprs[1:])


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
        return lit(separator)._call("concat_ws", *listed)
    return reduce(lambda a, b: a._call("concat_op", separator)._call("concat_op", b), listed)


def corr(a: Any, b: Any) -> Expression:
    """The correlation of two columns."""
    return _summary("corr", a, b)


def cov(a: Any, b: Any, ddof: int = 1) -> Expression:
    """The covariance of two columns."""
    return _summary(by_ddof("covar", ddof), a, b)


def _summary(function: str, a: Any, b: Any) -> Expression:
    args = tuple([tree_of(each, strings_are_columns=True) for each in (a, b)])
    return Expression(Summary(function, args))


def struct(*exprs: Any, **named: Any) -> Expression:
    """A struct of several expressions; its fields are called as columns of them would be."""
    renamed = [Expression(tree_of(each, strings_are_columns=True)).alias(name) for name, each in named.items()]
    given = _listed((*exprs, *renamed), "struct()")
    parts = [part for each in given for part in (lit(output_name(tree_of(each))), each)]
    made = _function("struct_pack", parts)
    # Which columns several are, and so their names, is known when the expression meets a frame.
    return made if several_in(tree_of(given[0])) else made.alias(output_name(tree_of(given[0])))

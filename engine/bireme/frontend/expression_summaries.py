"""Methods of expressions that make one value of many rows: Polars' names for SQL's aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bireme.errors import ArgumentFault
from bireme.frontend.expression_methods import Methods
from bireme.frontend.expression_tree import Summary

if TYPE_CHECKING:
    from bireme.frontend.expression import Expression


class SummaryMethods(Methods):
    """Aggregates."""

    __slots__ = ()

    def _summary(self, function: str, *others: Any, distinct: bool = False) -> Expression:
        return self._made(Summary(function, (self._tree, *map(self._given, others)), distinct))

    def count(self) -> Expression:
        """How many values are not NULL."""
        return self._summary("count")

    def sum(self) -> Expression:
        """The sum; NULL where there is no value, as in SQL. Integers sum exactly, as decimal(38,0)."""
        return self._summary("sum")

    def mean(self) -> Expression:
        return self._summary("avg")

    def min(self) -> Expression:
        return self._summary("min")

    def max(self) -> Expression:
        return self._summary("max")

    def first(self) -> Expression:
        """The value of the first row, in the order of the input."""
        return self._summary("first")

    def last(self) -> Expression:
        """The value of the last row, in the order of the input."""
        return self._summary("last")

    def std(self, ddof: int = 1) -> Expression:
        return self._summary(by_ddof("stddev", ddof))

    def var(self, ddof: int = 1) -> Expression:
        return self._summary(by_ddof("var", ddof))

    def any(self) -> Expression:
        return self._summary("bool_or")

    def all(self) -> Expression:
        return self._summary("bool_and")

    def n_unique(self) -> Expression:
        """How many different values there are; NULL counts as one."""
        has_null = self._call("is_null").cast(int).max()
        return self._summary("count", distinct=True) + has_null.fill_null(0)

    def null_count(self) -> Expression:
        """How many values are NULL."""
        return self.len() - self.count()

    def len(self) -> Expression:
        """How many rows there are."""
        return self._made(Summary("count_star", ()))

    def median(self) -> Expression:
        return self._summary("median")

    def quantile(self, quantile: float, interpolation: str = "nearest") -> Expression:
        """The quantile: "linear" between two values, or "lower", which is a value of the column."""
        functions = {"linear": "quantile_cont", "lower": "quantile_disc"}
        if interpolation not in functions:
            raise ArgumentFault(f"interpolation must be one of {', '.join(functions)}, not {interpolation!r}")
        return self._summary(functions[interpolation], float(quantile))

    def mode(self) -> Expression:
        """The most frequent value; the first of several in the order of rows."""
        return self._summary("mode")

    def product(self) -> Expression:
        return self._summary("product")

    def skew(self) -> Expression:
        """The skewness of a sample, as SQL has it."""
        return self._summary("skewness")

    def implode(self) -> Expression:
        """A list of all values, in the order of rows."""
        return self._summary("array_agg")

    def approx_n_unique(self) -> Expression:
        return self.n_unique()

    def nan_max(self) -> Expression:
        return self._summary("max")


def by_ddof(function: str, ddof: int) -> str:
    """The aggregate of a sample or of all values."""
    if ddof not in (0, 1):
        raise ArgumentFault(f"ddof must be 1 (sample) or 0 (population), not {ddof!r}")
    return f"{function}_{'samp' if ddof else 'pop'}"

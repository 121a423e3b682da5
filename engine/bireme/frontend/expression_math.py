"""Methods of expressions that compute numbers, and that replace values: Polars' names for functions of the registry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bireme.frontend.expression_methods import Methods

if TYPE_CHECKING:
    from bireme.frontend.expression import Expression


class MathMethods(Methods):
    """Numbers, one row at a time."""

    __slots__ = ()

    def __abs__(self) -> Expression:
        return self.abs()

    def abs(self) -> Expression:
        return self._call("abs")

    def round(self, decimals: int = 0) -> Expression:
        return self._call("round", decimals)

    def floor(self) -> Expression:
        return self._call("floor")

    def ceil(self) -> Expression:
        return self._call("ceil")

    def sqrt(self) -> Expression:
        return self._call("sqrt")

    def exp(self) -> Expression:
        return self._call("exp")

    def log(self, base: float = math.e) -> Expression:
        """The logarithm; natural unless a base is given."""
        return self._call("ln") if base == math.e else self._call("ln") / math.log(base)

    def log10(self) -> Expression:
        return self._call("log10")

    def log1p(self) -> Expression:
        return (self._call("add", 1.0)).log()

    def cbrt(self) -> Expression:
        return self._call("cbrt")

    def pow(self, exponent: Any) -> Expression:
        return self._call("power", exponent)

    def sin(self) -> Expression:
        return self._call("sin")

    def cos(self) -> Expression:
        return self._call("cos")

    def tan(self) -> Expression:
        return self._call("tan")

    def cot(self) -> Expression:
        return self._call("cot")

    def arcsin(self) -> Expression:
        return self._call("asin")

    def arccos(self) -> Expression:
        return self._call("acos")

    def arctan(self) -> Expression:
        return self._call("atan")

    def sinh(self) -> Expression:
        return self._call("sinh")

    def cosh(self) -> Expression:
        return self._call("cosh")

    def tanh(self) -> Expression:
        return self._call("tanh")

    def degrees(self) -> Expression:
        return self._call("degrees")

    def radians(self) -> Expression:
        return self._call("radians")

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> Expression:
        """At least `lower_bound` and at most `upper_bound`; NULL stays NULL."""
        value = self._made(self._tree)
        clipped = value
        if lower_bound is not None:
            clipped = clipped._call("greatest", lower_bound)
        if upper_bound is not None:
            clipped = clipped._call("least", upper_bound)
        return self._when(value.is_not_null(), clipped)

    def is_nan(self) -> Expression:
        return self._call("isnan")

    def is_not_nan(self) -> Expression:
        return self._call("isnan")._call("not")

    def is_finite(self) -> Expression:
        return self._call("isfinite")

    def is_infinite(self) -> Expression:
        return self._call("isinf")

    def fill_nan(self, value: Any) -> Expression:
        """With `value` in place of NaN."""
        return self._when(self.is_nan(), value, self)

    def hash(self) -> Expression:
        """The engine's hash; never NULL."""
        return self._call("hash")

    def sign(self) -> Expression:
        return self._call("sign")

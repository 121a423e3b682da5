"""What quantiles are given and give: fractions of all values, and the type of what lies between two of them."""

from __future__ import annotations

from bireme.data.types import DATE, FLOAT64, HUGEINT, INTERVAL, STRING, TIMESTAMP, DataType, Kind, list_of
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import cast, coerce


def interpolated(kind: DataType) -> DataType:
    """The type of a value between two values."""
    if kind is HUGEINT:
        return FLOAT64
    if kind.kind is Kind.DECIMAL or kind.is_float or kind in (STRING, INTERVAL, TIMESTAMP):
        return kind
    return TIMESTAMP if kind is DATE else FLOAT64 if kind.is_numeric else kind


def fractions(name: str, given: Expr) -> Expr:
    """The fraction of a quantile, or a list of several."""
    if given.type.kind is not Kind.LIST:
        fraction = coerce(given, FLOAT64)
        if not isinstance(fraction, Literal):
            raise TypeFault(f"the fraction of {name} must be a constant")
        return fraction
    items = given.args if isinstance(given, Call) and given.function == "list_value" else ()
    each = [cast(item, FLOAT64) for item in items]
    if not each or not all(isinstance(item, Literal) and item.value is not None for item in each):
        raise TypeFault(f"the fractions of {name} must be a list of constants")
    return Call("list_value", tuple(each), list_of(FLOAT64))

"""Numbers that a query must name as constants: how many rows LIMIT leaves, where a series ends, a sample's size."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from bireme.data.exact_decimal import EXACT
from bireme.errors import ClauseFault, QueryError, Unsupported
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.syntax import Node, located
from bireme.plan.expr import Call, Cast, Expr, Literal

# No table has more rows; larger limits mean the same.
_ROWS_MAX: Final = (1 << 63) - 1


def row_count(node: Node, clause: str, block: Block) -> int | None:
    """The whole number that a constant expression is; None for NULL, which means no limit."""
    context = Context(block, Scope([], ()), clause)
    try:
        value = whole_number(context.bind(node), clause)
        if value is None:
            return None
        if value < 0:
            raise ClauseFault(f"{clause} cannot be negative")
        return min(value, _ROWS_MAX)
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def number(node: Node, clause: str, block: Block) -> Decimal | None:
    """The number that a constant expression is; None for NULL."""
    context = Context(block, Scope([], ()), clause)
    try:
        value = _evaluate(context.bind(node), clause)
        return None if value is None else Decimal(value)
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def whole_number(expr: Expr, clause: str) -> int | None:
    """The whole number that a constant expression is."""
    value = _evaluate(expr, clause)
    if value is not None and value != int(value):
        raise ClauseFault(f"{clause} needs a whole number, not {value}")
    return None if value is None else int(value)


_ARITHMETIC: Final = frozenset({"add", "subtract", "multiply", "negate"})


def _evaluate(expr: Expr, clause: str) -> int | Decimal | None:
    match expr:
        case Literal(value) if value is None:
            return None
        case Literal(int() | Decimal() as value):
            return value
        case Literal(str() as value) if value.strip().isdecimal():
            return int(value)
        case Cast(arg):
            return _evaluate(arg, clause)
        case Call(function, args) if function in _ARITHMETIC:
            values = [_evaluate(arg, clause) for arg in args]
            return None if None in values else _apply(function, values)  # type: ignore[arg-type]
    raise Unsupported(f"{clause} takes a constant whole number")


def _apply(function: str, values: Sequence[int | Decimal]) -> int | Decimal:
    if function == "negate":
        return EXACT.minus(values[0])
    a, b = values
    if function == "add":
        return EXACT.add(a, b)
    return EXACT.subtract(a, b) if function == "subtract" else EXACT.multiply(a, b)

"""Numbers that a query must know to be planned: how many rows LIMIT leaves, where a series ends, a sample's size."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from bireme.data.exact_decimal import EXACT
from bireme.data.schema import Schema
from bireme.data.types import INT64
from bireme.errors import ClauseFault, QueryError, TypeFault, Unsupported
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.correlation import depths
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.syntax import Node, located
from bireme.plan.expr import Call, Cast, Expr, Literal
from bireme.plan.relation import Project, Values

# No table has more rows; larger limits mean the same.
_ROWS_MAX: Final = (1 << 63) - 1


def row_count(node: Node, clause: str, block: Block) -> int | None:
    """The whole number that a constant expression is; None for NULL, which means no limit."""
    context = Context(block, Scope([], ()), clause)
    try:
        return _count(context.bind(node), clause)
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def rows_wanted(node: Node, clause: str, block: Block) -> int | None:
    """The whole number that an expression is, rounded half to even where it is not constant and is looked up."""
    context = Context(block, Scope([], ()), clause)
    try:
        expr = context.bind(node)
        if _is_constant(expr):
            return _count(expr, clause)
        value = _number_of(expr, clause, block)
        return None if value is None else _count(Literal(round(value), INT64), clause)
    except QueryError as error:
        located(error, node, block.statement.text)
        raise


def _count(expr: Expr, clause: str) -> int | None:
    value = whole_number(expr, clause)
    if value is None:
        return None
    if value < 0:
        raise ClauseFault(f"{clause} cannot be negative")
    return min(value, _ROWS_MAX)


def _number_of(expr: Expr, clause: str, block: Block) -> Decimal | None:
    value = _evaluate(expr, clause) if _is_constant(expr) else looked_up(expr, clause, block)
    try:
        return None if value is None else Decimal(str(value))
    except ArithmeticError:
        raise TypeFault(f"{clause} needs a number, not {value!r}") from None


def looked_up(expr: Expr, clause: str, block: Block) -> object:
    """The value of an expression that reads nothing around it: a query runs for it."""
    if any(depths(expr)):
        raise Unsupported(f"{clause} with columns of a query around it is not supported; compute it in a subquery")
    (value,) = block.statement.values(Project(Values(((),), Schema(())), (expr,), ("value",)))
    return value


def _is_constant(expr: Expr) -> bool:
    match expr:
        case Literal():
            return True
        case Cast(arg):
            return _is_constant(arg)
        case Call(function, args):
            return function in _ARITHMETIC and all(map(_is_constant, args))
    return False


def number(node: Node, clause: str, block: Block) -> Decimal | None:
    """The number that an expression is, looked up where it is not constant; None for NULL."""
    context = Context(block, Scope([], ()), clause)
    try:
        expr = context.bind(node)
        return _number_of(expr, clause, block)
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

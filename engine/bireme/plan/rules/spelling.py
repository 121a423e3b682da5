"""What the rules that spell aggregates by others share: parts to compute, and how the value comes from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bireme.data.types import BOOL, FLOAT64, DataType
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Call, Case, Column, Expr, Literal, WindowCall
from bireme.plan.relation import Aggregate

Finish = Callable[[Sequence[Expr]], Expr]
"""The value of a call from the columns of its parts."""


class Spelling(NamedTuple):
    """Aggregates to compute instead of one, and its value from theirs."""

    parts: list[Aggregation]
    finish: Finish


Speller = Callable[[Aggregation, Aggregate, "Numbers"], Spelling | None]
"""What spells one call of an aggregate; None where it can stay as it is."""


class Numbers:
    """Columns that windows add to the input of an aggregate, for its parts to read."""

    are_offered = True

    def __init__(self, width: int) -> None:
        self._width = width
        self.calls: dict[WindowCall, Expr] = {}

    def add(self, call: WindowCall) -> Expr:
        """The column that `call` will be."""
        return self.calls.setdefault(call, Column(self._width + len(self.calls), call.call.type))


class NoNumbers(Numbers):
    """Where there can be no such columns."""

    are_offered = False

    def __init__(self) -> None:
        super().__init__(0)


def first_part(columns: Sequence[Expr]) -> Expr:
    return columns[0]


def scalar(name: str, *args: Expr) -> Expr:
    return functions.scalar(name, list(args))


def double(value: float) -> Literal:
    return Literal(value, FLOAT64)


def null(kind: DataType) -> Literal:
    return Literal(None, kind)


def is_null(value: Expr) -> Expr:
    return Call("is_null", (value,), BOOL)


def where(condition: Expr | None, value: Expr) -> Expr:
    """The value where the condition is TRUE (or there is none), else NULL."""
    return value if condition is None else Case(((condition, value),), null(value.type), value.type)


def counted(call: Aggregation) -> Expr:
    """The value that an aggregate is of, NULL in rows that do not count."""
    return where(call.filter, call.args[0])

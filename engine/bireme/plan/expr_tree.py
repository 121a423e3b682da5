"""Walking and rebuilding expressions; one of which nothing changes comes back as the same object.

Rule: a traversal never enters the plans inside subquery expressions unless its name says so. Columns used by an
expression are kept as a bit mask (bit `i` for column `i`), known of every expression. The traversals themselves are in
C++ (`native/nodes`); they go by what each class says of its fields.

What expressions there are is in `expr`; relations are walked in `tree`, which offers all of this too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from bireme.data.node import (
    column_mask,
    columns_in,
    flattened,
    holds_subquery,
    map_expr,
    map_operands,
    mask_of,
    operands,
    remap,
    shift,
    substitute,
    walk,
)
from bireme.data.types import BOOL
from bireme.plan.expr import Call, Expr, Literal

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "ExprMap",
    "column_mask",
    "columns_in",
    "columns_used",
    "conjoin",
    "conjuncts",
    "disjoin",
    "disjuncts",
    "equal",
    "holds_subquery",
    "is_call",
    "map_expr",
    "map_operands",
    "mask_of",
    "negate",
    "operands",
    "remap",
    "shift",
    "substitute",
    "unchanged",
    "walk",
]

ExprMap = Callable[[Expr], Expr]

TRUE: Final = Literal(True, BOOL)
FALSE: Final = Literal(False, BOOL)
UNKNOWN: Final = Literal(None, BOOL)


def unchanged(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether two sequences of equal length hold the same objects."""
    for a, b in zip(old, new, strict=True):  # noqa: SIM110  (a loop is twice as fast as all())
        if a is not b:
            return False
    return True


def columns_used(expr: Expr) -> frozenset[int]:
    """The positions of the columns that `expr` reads."""
    return frozenset(columns_in(column_mask(expr)))


def conjuncts(predicate: Expr | None) -> list[Expr]:
    """The parts of a conjunction, without repetitions and TRUE; nested ones are flattened."""
    if predicate is None:
        return []
    parts = flattened(predicate, "and")
    return [part for part in parts if part is not TRUE] if TRUE in parts else parts


def disjuncts(predicate: Expr) -> list[Expr]:
    """The parts of a disjunction, without repetitions; nested ones are flattened."""
    return flattened(predicate, "or")


def conjoin(parts: Sequence[Expr]) -> Expr | None:
    """The conjunction of `parts`; None for none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return Call("and", tuple(parts), BOOL)


def disjoin(parts: Sequence[Expr]) -> Expr:
    """The disjunction of `parts`, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts), BOOL)


def negate(predicate: Expr) -> Expr:
    """NOT, three-valued."""
    return Call("not", (predicate,), BOOL)


def equal(left: Expr, right: Expr) -> Expr:
    """The SQL comparison `left = right`."""
    return Call("eq", (left, right), BOOL)


def is_call(expr: Expr, function: str) -> bool:
    """Whether `expr` is a call of `function`."""
    return expr.__class__ is Call and expr.function == function

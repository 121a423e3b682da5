"""Walking and rebuilding expressions; one of which nothing changes comes back as the same object.

Rule: a traversal never enters the plans inside subquery expressions unless its name says so. Columns used by an
expression are kept as a bit mask (bit `i` for column `i`), remembered on the expression.

What expressions there are is in `expr`; relations are walked in `tree`, which offers all of this too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from bireme.data.types import BOOL
from bireme.plan.expr import (
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    InList,
    Literal,
    OuterColumn,
    QuantifiedSubquery,
    ScalarSubquery,
)
from bireme.plan.relation import Rel

ExprMap = Callable[[Expr], Expr]

TRUE: Final = Literal(True, BOOL)
FALSE: Final = Literal(False, BOOL)
UNKNOWN: Final = Literal(None, BOOL)


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `expr`, in the order of evaluation; plans of subqueries are not among them."""
    kind = expr.__class__
    if kind is Call:
        return expr.args  # type: ignore[attr-defined,no-any-return]
    if kind in _LEAVES:
        return ()
    match expr:
        case Cast(arg):
            return (arg,)
        case Case(branches, default):
            return (*[part for branch in branches for part in branch], default)
        case InList(arg, items):
            return (arg, *items)
        case QuantifiedSubquery(inner):
            return inner
    return ()


_LEAVES: Final = frozenset({Column, Literal, OuterColumn, ScalarSubquery, Exists})


def map_operands(expr: Expr, change: ExprMap) -> Expr:
    """`expr` with `change` applied to each of its operands."""
    kind = expr.__class__
    if kind is Call:
        args: tuple[Expr, ...] = expr.args  # type: ignore[attr-defined]
        changed = tuple([change(arg) for arg in args])
        return expr if unchanged(args, changed) else Call(expr.function, changed, expr.type)  # type: ignore[attr-defined]
    if kind in _LEAVES:
        return expr
    match expr:
        case Cast(arg, type_, safe):
            new = change(arg)
            return expr if new is arg else Cast(new, type_, safe)
        case Case(branches, default, type_):
            pairs = tuple([(change(condition), change(value)) for condition, value in branches])
            rest = change(default)
            if rest is default and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(pairs, branches, strict=True)):
                return expr
            return Case(pairs, rest, type_)
        case InList(arg, items, type_):
            new, changed = change(arg), tuple([change(item) for item in items])
            return expr if new is arg and unchanged(items, changed) else InList(new, changed, type_)
        case QuantifiedSubquery(inner, comparison, quantifier, plan, type_):
            changed = tuple([change(operand) for operand in inner])
            return (
                expr if unchanged(inner, changed) else QuantifiedSubquery(changed, comparison, quantifier, plan, type_)
            )
    return expr


def unchanged(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether two sequences of equal length hold the same objects."""
    for a, b in zip(old, new, strict=True):  # noqa: SIM110  (a loop is twice as fast as all())
        if a is not b:
            return False
    return True


def map_expr(expr: Expr, change: ExprMap) -> Expr:
    """`expr` rebuilt from the leaves up, `change` applied to every part after its operands."""
    return change(map_operands(expr, lambda part: map_expr(part, change)))


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything inside it, outermost first; plans of subqueries are not entered."""
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(operands(part)))


def column_mask(expr: Expr) -> int:
    """The columns `expr` reads, as a bit mask. Outer columns are not among them."""
    if expr.__class__ is Column:
        return 1 << expr.index
    try:
        return expr._memo >> 1  # type: ignore[attr-defined,no-any-return]
    except AttributeError:
        return _learn(expr) >> 1


def holds_subquery(expr: Expr) -> bool:
    """Whether a subquery of any kind is inside `expr`."""
    if expr.__class__ is Column:
        return False
    try:
        return expr._memo & 1 == 1  # type: ignore[attr-defined,no-any-return]
    except AttributeError:
        return _learn(expr) & 1 == 1


def _learn(expr: Expr) -> int:
    """Remembers of `expr` its mask and, in the lowest bit, whether it holds a subquery."""
    known = 1 if expr.__class__ in _SUBQUERIES else 0
    for part in operands(expr):
        if part.__class__ is Column:
            known |= 2 << part.index
        else:
            try:
                known |= part._memo  # type: ignore[attr-defined]
            except AttributeError:
                known |= _learn(part)
    object.__setattr__(expr, "_memo", known)
    return known


_SUBQUERIES: Final = frozenset({ScalarSubquery, Exists, QuantifiedSubquery})


def columns_in(mask: int) -> list[int]:
    """The positions in a mask, ascending."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def mask_of(exprs: Iterable[Expr]) -> int:
    """The columns that any of `exprs` reads."""
    mask = 0
    for expr in exprs:
        mask |= column_mask(expr)
    return mask


def columns_used(expr: Expr) -> frozenset[int]:
    """The positions of the columns that `expr` reads."""
    return frozenset(columns_in(column_mask(expr)))


def substitute(expr: Expr, replacements: Sequence[Expr]) -> Expr:
    """`expr` with column `i` replaced by `replacements[i]`: what it means below a projection."""
    if expr.__class__ is Column:
        return replacements[expr.index]
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: substitute(part, replacements))


def remap(expr: Expr, positions: Sequence[int] | dict[int, int]) -> Expr:
    """`expr` with column `i` moved to `positions[i]`."""
    if expr.__class__ is Column:
        new = positions[expr.index]
        return expr if new == expr.index else Column(new, expr.type)
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: remap(part, positions))


def shift(expr: Expr, by: int) -> Expr:
    """`expr` with every column moved by `by` positions."""
    if by == 0:
        return expr
    if expr.__class__ is Column:
        return Column(expr.index + by, expr.type)
    if not column_mask(expr):
        return expr
    return map_operands(expr, lambda part: shift(part, by))


def conjuncts(predicate: Expr | None) -> list[Expr]:
    """The parts of a conjunction, without repetitions and TRUE; nested ones are flattened."""
    if predicate is None:
        return []
    if not (predicate.__class__ is Call and predicate.function == "and"):
        return [] if predicate is TRUE else [predicate]
    found: dict[Expr, None] = {}
    for arg in predicate.args:
        found.update(dict.fromkeys(conjuncts(arg)))
    return list(found)


def disjuncts(predicate: Expr) -> list[Expr]:
    """The parts of a disjunction, without repetitions; nested ones are flattened."""
    if not (predicate.__class__ is Call and predicate.function == "or"):
        return [predicate]
    found: dict[Expr, None] = {}
    for arg in predicate.args:
        found.update(dict.fromkeys(disjuncts(arg)))
    return list(found)


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


def subquery_plans(expr: Expr) -> list[Rel]:
    """The plans of the subqueries directly in `expr` (not of those inside these plans)."""
    if not holds_subquery(expr):
        return []
    return [part.plan for part in walk(expr) if part.__class__ in _SUBQUERIES]  # type: ignore[attr-defined]

"""What predicates say to the rule `push_filters`: which side they are about, what they imply, whether they reject NULL.

Moving them is in `push_filters` and `push_filters_join`.
"""

from __future__ import annotations

from bireme.data.schema import Schema
from bireme.data.types import BOOL, INT64, DataType, Kind, decimal
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Literal
from bireme.plan.raises import may_raise
from bireme.plan.rules.fold import Folder
from bireme.plan.tree import (
    FALSE,
    UNKNOWN,
    column_mask,
    conjoin,
    conjuncts,
    disjoin,
    disjuncts,
    holds_subquery,
    is_call,
    substitute,
)

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"})


def without_raising(part: Expr) -> Expr | None:
    """`part` itself if it cannot raise, else a form of it that cannot (in a wider type), if there is one."""
    if not may_raise(part):
        return part
    if not (isinstance(part, Call) and part.function in _COMPARISONS):
        return None
    left, right = (_widened(arg) for arg in part.args)
    if left is None or right is None:
        return None
    if left.type is not right.type:
        common = _common(left.type, right.type)
        if common is None:
            return None
        left, right = (side if side.type is common else Cast(side, common) for side in (left, right))
    wide = Call(part.function, (left, right), BOOL)
    return None if may_raise(wide) else wide


def _widened(expr: Expr) -> Expr | None:
    """One step of exact arithmetic in a type that holds every result."""
    if not may_raise(expr):
        return expr
    if not (isinstance(expr, Call) and expr.function in ("add", "subtract", "multiply")):
        return None
    if any(may_raise(arg) for arg in expr.args):
        return None
    if expr.type.is_integer and all(arg.type.is_integer and arg.type.bits <= 32 for arg in expr.args):
        return Call(expr.function, tuple([Cast(arg, INT64) for arg in expr.args]), INT64) if _fits(expr) else None
    if expr.type.kind is Kind.DECIMAL and all(arg.type.kind is Kind.DECIMAL for arg in expr.args):
        precision = _precision(expr)
        return None if precision > 38 else Call(expr.function, expr.args, decimal(precision, expr.type.scale))
    return None


def _fits(expr: Call) -> bool:
    """Whether 64 bits hold every result of 32-bit arithmetic of this kind."""
    return expr.function in ("add", "subtract", "multiply") and all(
        arg.type.kind is not Kind.UINT64 for arg in expr.args
    )


def _precision(expr: Call) -> int:
    left, right = expr.args[0].type, expr.args[1].type
    if expr.function == "multiply":
        return left.precision + right.precision
    return max(left.precision - left.scale, right.precision - right.scale) + expr.type.scale + 1


def _common(left: DataType, right: DataType) -> DataType | None:
    if left.is_integer and right.is_integer:
        return INT64 if {left, right} & {INT64} and Kind.UINT64 not in (left.kind, right.kind) else None
    if left.kind is Kind.DECIMAL and right.kind is Kind.DECIMAL:
        scale = max(left.scale, right.scale)
        precision = max(left.precision - left.scale, right.precision - right.scale) + scale
        return decimal(precision, scale) if precision <= 38 else None
    return None


def implied(part: Expr, mask: int) -> Expr | None:
    """What a disjunction says about the columns in `mask` alone: in every branch something is about them only."""
    sides = []
    for branch in disjuncts(part):
        own = [p for p in conjuncts(branch) if _only(p, mask) and not may_raise(p)]
        if not own:
            return None
        sides.append(conjoin(own) or FALSE)
    if len(sides) < 2:
        return None
    return Folder()(disjoin(list(dict.fromkeys(sides))))


def _only(part: Expr, mask: int) -> bool:
    used = column_mask(part)
    return used != 0 and not used & ~mask and not holds_subquery(part)


def rejects_null(part: Expr, mask: int, schema: Schema) -> bool:
    """Whether `part`, over rows of `schema`, is never TRUE where all columns in `mask` are NULL."""
    used = column_mask(part)
    if not used & mask:
        return False
    if part.__class__ is Column:
        return True
    if isinstance(part, Call) and part.function == "is_null":
        return False
    nulls: list[Expr] = [
        Literal(None, field.type) if mask >> index & 1 else Column(index, field.type)
        for index, field in enumerate(schema.fields)
    ]
    return not _may_be_true(Folder()(_nulls_through(substitute(part, nulls))))


def _may_be_true(part: Expr) -> bool:
    """Whether a folded predicate may be TRUE, seen from its AND and OR alone."""
    if part is FALSE or part is UNKNOWN:
        return False
    if is_call(part, "and"):
        return all(_may_be_true(arg) for arg in part.args)  # type: ignore[attr-defined]
    if is_call(part, "or"):
        return any(_may_be_true(arg) for arg in part.args)  # type: ignore[attr-defined]
    return True


_STRICT = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "substring", "lower", "upper", "year", "abs", "like", "ilike",
     "not_like", "modulo", "int_divide", "round", "month", "day", "starts_with", "ends_with", "contains", "length"}
)  # fmt: skip


def _nulls_through(expr: Expr) -> Expr:
    """`expr` with NULL in place of what NULL makes NULL: strict functions, casts and lists."""
    match expr:
        case Call(function, args, type_):
            new = tuple([_nulls_through(arg) for arg in args])
            if function in _STRICT and any(isinstance(a, Literal) and a.value is None for a in new):
                return Literal(None, type_)
            return Call(function, new, type_)
        case Cast(arg, type_, safe):
            inner = _nulls_through(arg)
            null = isinstance(inner, Literal) and inner.value is None
            return Literal(None, type_) if null else Cast(inner, type_, safe)
        case InList(arg, items):
            return InList(_nulls_through(arg), items)
        case Case():
            return expr
    return expr


def equality_sides(part: Expr, left_mask: int) -> tuple[Expr, Expr] | None:
    """The two sides of an equality of which one is over the left columns only, one over the right only."""
    if not is_call(part, "eq") or holds_subquery(part):
        return None
    a, b = part.args  # type: ignore[attr-defined]
    in_a, in_b = column_mask(a), column_mask(b)
    if not in_a or not in_b:
        return None
    if not in_a & ~left_mask and not in_b & left_mask:
        return a, b
    if not in_b & ~left_mask and not in_a & left_mask:
        return b, a
    return None


def about_one_column(part: Expr) -> int | None:
    """The one column that a predicate without subqueries is about."""
    mask = column_mask(part)
    if mask and mask & (mask - 1) == 0 and not holds_subquery(part):
        return mask.bit_length() - 1
    return None

"""Comparisons and truth: = <> < <= > >=, IS DISTINCT, IN, BETWEEN, AND OR NOT, IS TRUE, CASE and COALESCE.

Both sides of a comparison are of one type. A constant takes the type of the column it stands beside where it can, so
that the column needs no cast.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from bireme.data.types import BINARY, BOOL, DATE, STRING, TIMESTAMP, DataType, Kind
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Case, Expr, InList, Literal
from bireme.plan.functions.casting import adapt, cast, cast_common, is_castable, unified_type, unify
from bireme.plan.functions.order_keys import of_order_key, order_key
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, is_null, wrong_arguments

_EQUALITIES: Final = frozenset({"eq", "ne", "is_distinct", "is_not_distinct"})


def compared(exprs: Sequence[Expr], *, equality: bool, place: str) -> tuple[Expr, ...]:
    """The expressions coerced to the type in which they are compared.

    Unlike elsewhere, a text column beside another type is read as that type, but only for equality.
    """
    first = exprs[0].type
    if all(expr.type is first for expr in exprs):
        return tuple(exprs)
    exprs = [_as_date(expr, exprs) for expr in exprs]
    others = [expr for expr in exprs if expr.type is not STRING]
    texts = [expr for expr in exprs if expr.type is STRING and not isinstance(expr, Literal)]
    if not others or not texts or all(is_null(other) for other in others):
        return unify(exprs, place, compared=True)
    target = unified_type(others, place, compared=True)
    if not equality or not is_castable(STRING, target):
        raise TypeFault(f"{place} mixes values of varchar and {target}; cast them to one type")
    return tuple([cast_common(expr, target) for expr in exprs])


def _as_date(expr: Expr, beside: Sequence[Expr]) -> Expr:
    """A constant timestamp at midnight as a date, where all that it is compared with are dates."""
    if not isinstance(expr, Literal) or expr.type is not TIMESTAMP or not isinstance(expr.value, datetime.datetime):
        return expr
    if expr.value.time() != datetime.time() or not all(o is expr or o.type in (DATE, TIMESTAMP) for o in beside):
        return expr
    columns = [other.type for other in beside if not isinstance(other, Literal)]
    return Literal(expr.value.date(), DATE) if columns and all(kind is DATE for kind in columns) else expr


def comparison(name: str, args: Args) -> Expr:
    left, right = args
    if left.type is not right.type and isinstance(right, Literal) and not isinstance(left, Literal):
        right = adapt(right, left.type) or right
    if left.type is not right.type:
        left, right = compared(args, equality=name in _EQUALITIES, place="a comparison")
    if left.type.kind is Kind.NULL and name not in ("is_distinct", "is_not_distinct"):
        return Literal(None, BOOL)
    if left.type.is_nested:
        left, right = order_key(left), order_key(right)
    return Call(name, (left, right), BOOL)


def in_list(arg: Expr, items: Sequence[Expr]) -> Expr:
    """`arg IN (items)`, all of one type."""
    if not items:
        raise TypeFault("IN needs at least one value to compare with")
    coerced = compared([arg, *items], equality=True, place="IN")
    if coerced[0].type.kind is Kind.NULL:
        return Literal(None, BOOL)
    if coerced[0].type.is_nested:
        coerced = tuple([order_key(each) for each in coerced])
    return InList(coerced[0], tuple(dict.fromkeys(coerced[1:])))


def between(arg: Expr, low: Expr, high: Expr) -> Expr:
    """`arg BETWEEN low AND high`, as its two comparisons."""
    return conjunction((comparison("ge", (arg, low)), comparison("le", (arg, high))))


def case(branches: Sequence[tuple[Expr, Expr]], default: Expr | None) -> Expr:
    """A CASE; without a default it ends in NULL. Conditions become boolean, values one type."""
    if not branches:
        raise TypeFault("CASE needs at least one WHEN")
    otherwise = default if default is not None else Literal(None, branches[0][1].type)
    values = unify([*(value for _, value in branches), otherwise], "CASE")
    conditions = [truth(condition, "WHEN") for condition, _ in branches]
    return Case(tuple(zip(conditions, values[:-1], strict=True)), values[-1], values[0].type)


def truth(arg: Expr, place: str) -> Expr:
    """`arg` as a condition: numbers are true unless zero, as in DuckDB."""
    if arg.type is BOOL:
        return arg
    if isinstance(arg, Literal):
        adapted = adapt(arg, BOOL)
        if adapted is not None:
            return adapted
    if arg.type.is_numeric:
        return cast(arg, BOOL)
    raise TypeFault(f"{place} needs a condition, not {arg.type}; write a comparison")


def conjunction(args: Args, name: str = "and") -> Expr:
    """AND (or OR) of conditions, without nesting; one condition alone is itself."""
    flat: list[Expr] = []
    for arg in args:
        condition = truth(arg, name.upper())
        if isinstance(condition, Call) and condition.function == name:
            flat.extend(condition.args)
        else:
            flat.append(condition)
    unique = tuple(dict.fromkeys(flat))
    if len(unique) == 1:
        return unique[0]
    return Call(name, unique, BOOL)


# ---------------------------------------------------------------------------------------------- entries


def _comparison(name: str, doc: str, *aliases: str) -> ScalarFunction:
    signatures = (f"{aliases[0] if aliases else name} of two values of one type",)

    def bind(args: Args) -> Expr:
        if len(args) != 2:
            raise wrong_arguments(name, args, signatures)
        return comparison(name, args)

    nulls = NullRule.NEVER if "distinct" in name else NullRule.STRICT
    return ScalarFunction(name, bind, signatures, doc, aliases, nulls)


def _junction(name: str, doc: str) -> ScalarFunction:
    signatures = (f"{name}(condition, …) → boolean",)

    def bind(args: Args) -> Expr:
        if not args:
            raise wrong_arguments(name, args, signatures)
        return conjunction(args, name)

    return ScalarFunction(name, bind, signatures, doc, nulls=NullRule.ANY)


def _not(args: Args) -> Expr:
    if len(args) != 1:
        raise wrong_arguments("not", args, ("not(condition) → boolean",))
    return Call("not", (truth(args[0], "NOT"),), BOOL)


def _test(name: str, doc: str, *aliases: str) -> ScalarFunction:
    of_truth = not name.endswith("null")
    signatures = (f"{name}({'condition' if of_truth else 'any'}) → boolean",)

    def bind(args: Args) -> Expr:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        return Call(name, (truth(args[0], "IS TRUE or IS FALSE"),) if of_truth else args, BOOL)

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.NEVER)


def _of_any(name: str, doc: str, *aliases: str) -> ScalarFunction:
    """coalesce, greatest and least: values of one type, NULL only where all are."""
    signatures = (f"{name}(any, …) → the type the values share",)

    def bind(args: Args) -> Expr:
        if not args:
            raise wrong_arguments(name, args, signatures)
        values = unify(args, name)
        if len(values) == 1:
            return values[0]
        if values[0].type.is_nested and name != "coalesce":
            return of_order_key(Call(name, tuple([order_key(each) for each in values]), BINARY), values[0].type)
        return Call(name, values, values[0].type)

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.ALL)


def _ifnull(args: Args) -> Expr:
    if len(args) != 2:
        raise wrong_arguments("ifnull", args, ("ifnull(any, any)",))
    values = unify(args, "ifnull")
    return Call("coalesce", values, values[0].type)


def _nullif(args: Args) -> Expr:
    if len(args) != 2:
        raise wrong_arguments("nullif", args, ("nullif(any, any)",))
    kind: DataType = args[0].type
    return Case(((comparison("eq", args), Literal(None, kind)),), args[0], kind)


def _if(args: Args) -> Expr:
    if len(args) not in (2, 3):
        raise wrong_arguments("if", args, ("if(condition, any, any)",))
    return case([(args[0], args[1])], args[2] if len(args) == 3 else None)


def _between(args: Args) -> Expr:
    if len(args) != 3:
        raise wrong_arguments("between", args, ("between(any, any, any) → boolean",))
    return between(*args)


FUNCTIONS: Final = (
    _comparison("eq", "Whether both are equal; NaN equals NaN.", "=", "=="),
    _comparison("ne", "Whether they differ.", "<>", "!="),
    _comparison("lt", "Whether the first is less; NaN is greater than every other number.", "<"),
    _comparison("le", "Whether the first is less or equal.", "<="),
    _comparison("gt", "Whether the first is greater.", ">"),
    _comparison("ge", "Whether the first is greater or equal.", ">="),
    _comparison("is_distinct", "Whether they differ, NULL being a value like others.", "is distinct from"),
    _comparison("is_not_distinct", "Whether they are equal, NULL being a value like others.", "is not distinct from"),
    _junction("and", "FALSE if one is FALSE, else NULL if one is NULL, else TRUE."),
    _junction("or", "TRUE if one is TRUE, else NULL if one is NULL, else FALSE."),
    ScalarFunction("not", _not, ("not(condition) → boolean",), "The opposite; NULL for NULL."),
    _test("is_null", "Whether it is NULL.", "isnull"),
    _test("is_not_null", "Whether it is not NULL.", "notnull"),
    _test("is_true", "Whether it is TRUE."),
    _test("is_not_true", "Whether it is FALSE or NULL."),
    _test("is_false", "Whether it is FALSE."),
    _test("is_not_false", "Whether it is TRUE or NULL."),
    _of_any("coalesce", "The first value that is not NULL.", "nvl"),
    _of_any("greatest", "The greatest value, NULLs skipped."),
    _of_any("least", "The least value, NULLs skipped."),
    ScalarFunction("ifnull", _ifnull, ("ifnull(any, any)",), "The first value unless it is NULL, else the second."),
    ScalarFunction("nullif", _nullif, ("nullif(any, any)",), "The first value, but NULL where it equals the second."),
    ScalarFunction(
        "if",
        _if,
        ("if(condition, any, any)",),
        "The second value where the condition is TRUE, else the third.",
        ("iff",),
    ),
    ScalarFunction(
        "between", _between, ("between(any, any, any) → boolean",), "Whether the first lies within the others."
    ),
)

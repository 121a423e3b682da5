"""Expressions become simpler ones of the same value: constants are computed, truths are resolved.

The value is the same for every row, NULL included; an expression that would raise is never computed here. Where only
TRUE matters (a filter) more is allowed, see `fold_predicate`. The values of constants are in `fold_literals`, casts
around compared columns in `fold_compare`; relations that become empty or trivial, in `simplify`.
"""

from __future__ import annotations

from typing import Final

from bireme.data.schema import Schema
from bireme.data.types import BOOL
from bireme.errors import ConversionFault
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Literal, OuterColumn, ScalarSubquery
from bireme.plan.functions.conversion import convert
from bireme.plan.nullable import is_nullable
from bireme.plan.raises import may_raise
from bireme.plan.rules.fold_compare import uncast_comparison, uncast_list, with_constant_right
from bireme.plan.rules.fold_literals import COMPARISONS, fold_call, is_null_literal
from bireme.plan.tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    conjoin,
    conjuncts,
    disjoin,
    disjuncts,
    is_call,
    map_operands,
)

_LEAVES: Final = frozenset({Column, Literal, OuterColumn, ScalarSubquery})
_OPPOSITE: Final = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "is_null": "is_not_null",
    "is_not_null": "is_null", "is_true": "is_not_true", "is_not_true": "is_true", "is_false": "is_not_false",
    "is_not_false": "is_false", "is_distinct": "is_not_distinct", "is_not_distinct": "is_distinct",
}  # fmt: skip
_TRUTH_TESTS: Final = {
    "is_true": (True, (True,)), "is_not_true": (False, (True,)), "is_false": (True, (False,)),
    "is_not_false": (False, (False,)),
}  # fmt: skip


class Folder:
    """Folds expressions over rows of one schema (None: nothing is known of columns); remembers what it has done."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self._done: dict[Expr, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        if expr.__class__ in _LEAVES:
            return expr
        found = self._done.get(expr)
        if found is None:
            found = self._done[expr] = self._fold(map_operands(expr, self))
        return found

    def _fold(self, expr: Expr) -> Expr:
        match expr:
            case Call():
                return self._call(expr)
            case Cast():
                return _fold_cast(expr)
            case Case():
                return _fold_case(expr)
            case InList():
                return _fold_list(expr)
        return expr

    def _call(self, call: Call) -> Expr:
        function = call.function
        if function == "and":
            return _fold_and(call)
        if function == "or":
            return _fold_or(call)
        if function in COMPARISONS:
            known = fold_call(call)
            return uncast_comparison(with_constant_right(call)) if known is None else known
        if function == "not":
            return self._not(call)
        if function in ("is_null", "is_not_null"):
            return self._null_test(call)
        if function in _TRUTH_TESTS:
            return _fold_truth_test(call)
        if function == "coalesce":
            return self._coalesce(call)
        return fold_call(call) or call

    def _not(self, call: Call) -> Expr:
        (inner,) = call.args
        match inner:
            case Literal(value):
                return UNKNOWN if value is None else FALSE if value else TRUE
            case Call("not", (part,)):
                return part
            case Call("and" | "or" as function, args):
                parts = tuple([self._not(Call("not", (arg,), BOOL)) for arg in args])
                return self._call(Call("or" if function == "and" else "and", parts, BOOL))
            case Call(function, args) if function in _OPPOSITE:
                return Call(_OPPOSITE[function], args, BOOL)
        return call

    def _null_test(self, call: Call) -> Expr:
        (arg,) = call.args
        wanted = call.function == "is_null"
        if isinstance(arg, Literal):
            return TRUE if (arg.value is None) is wanted else FALSE
        if self.schema is not None and not is_nullable(arg, self.schema) and not may_raise(arg):
            return FALSE if wanted else TRUE
        return call

    def _coalesce(self, call: Call) -> Expr:
        args = []
        for arg in call.args:
            if is_null_literal(arg):
                continue
            args.append(arg)
            if arg.__class__ is Literal or (self.schema is not None and not is_nullable(arg, self.schema)):
                break
        if not args:
            return Literal(None, call.type)
        if len(args) == 1 and args[0].type is call.type:
            return args[0]
        return call if len(args) == len(call.args) else Call("coalesce", tuple(args), call.type)


def fold_expr(expr: Expr, schema: Schema | None = None) -> Expr:
    """A simpler expression of the same value over rows of `schema`."""
    return Folder(schema)(expr)


def fold_predicate(expr: Expr, schema: Schema | None = None) -> Expr:
    """A simpler expression that is TRUE for the same rows; what else it is does not matter."""
    return only_true(Folder(schema)(expr))


def only_true(expr: Expr) -> Expr:
    """A folded predicate, FALSE in place of unknown where that is seen at once."""
    if is_null_literal(expr):
        return FALSE
    if is_call(expr, "is_true"):
        return expr.args[0]  # type: ignore[attr-defined,no-any-return]
    return expr


# -------------------------------------------------------------------------------------------- truths


def _fold_and(call: Call) -> Expr:
    parts = conjuncts(call)
    if FALSE in parts:
        return FALSE
    if len(parts) == len(call.args):
        return call
    return conjoin(parts) or TRUE


def _fold_or(call: Call) -> Expr:
    parts = [part for part in disjuncts(call) if part is not FALSE]
    if TRUE in parts:
        return TRUE
    if not parts:
        return FALSE
    parts = _merged_lists(parts)
    if len(parts) == 1:
        return parts[0]
    return _factored(call if tuple(parts) == call.args else disjoin(parts))


def _factored(call: Expr) -> Expr:
    """`(a and x) or (a and y)` as `a and (x or y)`."""
    sides = [conjuncts(part) for part in disjuncts(call)]
    common = [part for part in sides[0] if all(part in side for side in sides[1:])]
    if not common:
        return call
    rests = [conjoin([part for part in side if part not in common]) for side in sides]
    if any(rest is None for rest in rests):
        return conjoin(common) or TRUE
    rest = _fold_or(Call("or", tuple([rest for rest in rests if rest is not None]), BOOL))
    return conjoin([*common, rest]) or TRUE


def _merged_lists(parts: list[Expr]) -> list[Expr]:
    """Several comparisons of one expression with constants become one IN list."""
    items: dict[Expr, list[Expr]] = {}
    for part in parts:
        found = _as_list(part)
        if found is not None:
            items.setdefault(found[0], []).extend(found[1])
    if not any(len(found) > 1 for found in items.values()):
        return parts
    merged: dict[Expr, None] = {}
    for part in parts:
        found = _as_list(part)
        if found is None or len(items[found[0]]) == 1:
            merged[part] = None
        else:
            merged[InList(found[0], tuple(dict.fromkeys(items[found[0]])))] = None
    return list(merged)


def _as_list(part: Expr) -> tuple[Expr, tuple[Expr, ...]] | None:
    match part:
        case Call("eq", (arg, Literal() as item)):
            return arg, (item,)
        case InList(arg, items) if all(isinstance(item, Literal) for item in items):
            return arg, items
    return None


def _fold_truth_test(call: Call) -> Expr:
    (arg,) = call.args
    if not isinstance(arg, Literal):
        return call
    answer, values = _TRUTH_TESTS[call.function]
    return TRUE if (arg.value in values) is answer else FALSE


# ------------------------------------------------------------------------------- casts, cases and lists


def _fold_cast(cast: Cast) -> Expr:
    if cast.arg.type is cast.type:
        return cast.arg
    # Constants are hashed, and lists have no hash.
    if not isinstance(cast.arg, Literal) or (cast.type.is_nested and cast.arg.value is not None):
        return cast
    try:
        return Literal(convert(cast.arg.value, cast.arg.type, cast.type), cast.type)
    except ConversionFault:
        return Literal(None, cast.type) if cast.safe else cast


def _fold_case(case: Case) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    default = case.default
    for condition, value in case.branches:
        if condition is FALSE or is_null_literal(condition):
            continue
        if condition is TRUE:
            default = value
            break
        branches.append((condition, value))
    if not branches:
        return default
    if len(branches) == len(case.branches) and default is case.default:
        return case
    return Case(tuple(branches), default, case.type)


def _fold_list(test: InList) -> Expr:
    if is_null_literal(test.arg):
        return UNKNOWN
    items = tuple(dict.fromkeys(test.items))
    if len(items) == 1:
        one = Call("eq", (test.arg, items[0]), BOOL)
        known = fold_call(one)
        return uncast_comparison(one) if known is None else known
    if isinstance(test.arg, Literal):
        return _fold_known_list(test, items)
    return uncast_list(test if items == test.items else InList(test.arg, items))


def _fold_known_list(test: InList, items: tuple[Expr, ...]) -> Expr:
    answers = [fold_call(Call("eq", (test.arg, item), BOOL)) for item in items]
    if any(answer is TRUE for answer in answers):
        return TRUE
    if any(answer is None for answer in answers):
        return test
    return UNKNOWN if any(answer is UNKNOWN for answer in answers) else FALSE

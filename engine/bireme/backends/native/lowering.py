"""Expressions turned into the typed nodes of a native program.

One node for each distinct expression. What casts and decimal scales mean is made explicit here, so that a kernel sees
arguments in exactly the layout it computes in. What has no kernel is handed back as `Missing`; what to do about it is
in `program`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bireme.backends.native import _kernels, constants
from bireme.backends.native.formats import format_of, payload_of
from bireme.data.types import BOOL, DATE, DECIMAL64_DIGITS, STRING, DataType, Kind, decimal
from bireme.errors import Unsupported
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Interval, Lambda, Literal
from bireme.plan.raises import may_raise

_COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"})
# Where the options of regular expressions are among the arguments, and what they are in a node's `numbers`.
_REGEX_OPTIONS_PLACE: Final = {"regexp_matches": 2, "regexp_full_match": 2, "regexp_replace": 3, "regexp_extract": 3}
_REGEX_OPTIONS: Final = {"i": 1, "s": 2, "l": 4, "g": 8}


class Missing(Exception):
    """`expr` has no native kernel; the message says why."""

    def __init__(self, expr: Expr, reason: str) -> None:
        super().__init__(reason)
        self.expr = expr


class Lowering:
    """Adds expressions to one native program. `substitutes` are expressions that come as further columns."""

    def __init__(self, program: _kernels.Program, *, substitutes: dict[Expr, int], ascii_only: bool) -> None:
        self._program = program
        self._substitutes = substitutes
        self._ascii_only = ascii_only
        self._nodes: dict[Expr, int] = {}

    def node(self, expr: Expr) -> int:
        """The node of `expr`. Raises Missing where it, or something below it, has no kernel."""
        found = self._nodes.get(expr)
        if found is None:
            found = self._nodes[expr] = self._lower(expr)
        return found

    def output(self, expr: Expr) -> int:
        """The node of `expr` with exactly its type, also where a cast changes no byte of its argument."""
        if isinstance(expr, Cast) and expr not in self._substitutes:
            arg = self.node(expr.arg)
            if self.node(expr) == arg:
                return arg if expr.type is expr.arg.type else self._call(expr, "cast", [arg])
        return self.node(expr)

    def _lower(self, expr: Expr) -> int:
        column = self._substitutes.get(expr)
        if column is not None:
            return self._program.column(column, self._format(expr))
        lower = _LOWER.get(expr.__class__)
        if lower is None:
            raise Missing(expr, f"{expr.__class__.__name__} runs in the reference backend")
        return lower(self, expr)

    def _format(self, expr: Expr) -> str:
        form = format_of(expr.type)
        if form is None:
            raise Missing(expr, f"values of type {expr.type} are computed in the reference backend")
        return form

    def _call(self, expr: Expr, function: str, args: list[int], kind: DataType | None = None, **options: Any) -> int:
        form = self._format(expr) if kind is None else format_of(kind)
        if form is None:
            raise Missing(expr, f"values of type {kind} are computed in the reference backend")
        try:
            return self._program.call(function, form, args, **options)
        except Unsupported as error:
            raise Missing(expr, error.message) from None

    # ------------------------------------------------------------------------------------------- leaves

    def _column(self, expr: Column) -> int:
        return self._program.column(expr.index, self._format(expr))

    def _literal(self, expr: Literal) -> int:
        form = self._format(expr)
        return self._program.literal(form, None if expr.value is None else payload_of(expr.value, expr.type))

    # ---------------------------------------------------------------------------------------- structure

    def _cast(self, expr: Cast) -> int:
        if not self._ascii_only and (expr.arg.type is STRING) is not (expr.type is STRING):
            raise Missing(
                expr, f"{expr.arg.type} values out of the ordinary are cast to {expr.type} by the reference backend"
            )
        return self._cast_node(expr, self.node(expr.arg), expr.arg.type, expr.type, expr.safe)

    def _cast_node(self, expr: Expr, arg: int, source: DataType, target: DataType, safe: bool = False) -> int:
        if source is target or (source.kind is target.kind is Kind.DECIMAL and _widens(source, target)):
            return arg
        return self._call(expr, "cast", [arg], target, safe=safe)

    def _case(self, expr: Case) -> int:
        args = [self.node(part) for branch in expr.branches for part in branch]
        return self._call(expr, "case", [*args, self.node(expr.default)])

    def _in_list(self, expr: InList) -> int:
        if all(isinstance(item, Literal) for item in expr.items):
            return self._call(expr, "in", [self.node(expr.arg), *(self.node(item) for item in expr.items)])
        tests = tuple([Call("eq", (expr.arg, item), BOOL) for item in expr.items])
        return self.node(tests[0] if len(tests) == 1 else Call("or", tests, BOOL))

    # ---------------------------------------------------------------------------------------- functions

    def _function(self, expr: Call) -> int:
        name = expr.function
        if name in _COMPARISONS:
            return self._compare(expr)
        if any(arg.__class__ is Lambda for arg in expr.args):
            raise Missing(expr, f"{name} runs in the reference backend")
        if name in constants.LEFT_OVER and not self._ascii_only:
            raise Missing(expr, f"{name} of {constants.LEFT_OVER[name]} runs in the reference backend")
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, expr)
        return self._call(expr, name, [self.node(arg) for arg in expr.args])

    def _junction(self, expr: Call) -> int:
        """AND and OR; where a later condition may fail, it is asked only of rows that the earlier ones leave open."""
        first, *rest = expr.args
        if not any(map(may_raise, rest)):
            return self._call(expr, expr.function, [self.node(arg) for arg in expr.args])
        others = rest[0] if len(rest) == 1 else Call(expr.function, tuple(rest), BOOL)
        decides = Call("is_true" if expr.function == "or" else "is_false", (first,), BOOL)
        both = self._call(expr, expr.function, [self.node(first), self.node(others)])
        return self._call(expr, "case", [self.node(decides), self.node(Literal(expr.function == "or", BOOL)), both])

    def _compare(self, expr: Call) -> int:
        left, right = expr.args
        if left.type.kind is not Kind.DECIMAL or right.type.kind is not Kind.DECIMAL:
            return self._call(expr, expr.function, [self.node(left), self.node(right)])
        scale = max(left.type.scale, right.type.scale)
        digits = max(kind.precision - kind.scale for kind in (left.type, right.type)) + scale
        if digits > 38:
            raise Missing(expr, "decimals that need more than 38 digits are compared in the reference backend")
        return self._call(expr, expr.function, [self._decimal(arg, decimal(digits, scale)) for arg in (left, right)])

    def _decimal(self, expr: Expr, like: DataType) -> int:
        """The node of `expr` in the scale and the width (64 or 128 bits) of `like`."""
        source = expr.type
        if source.kind is not Kind.DECIMAL:
            raise Missing(expr, f"decimal arithmetic with {source} runs in the reference backend")
        wide = like.precision > DECIMAL64_DIGITS
        digits = min(source.precision - source.scale + like.scale, 38 if wide else DECIMAL64_DIGITS)
        if wide:
            digits = max(digits, DECIMAL64_DIGITS + 1)
        target = decimal(max(digits, like.scale, 1), like.scale)
        if source.scale == target.scale and (source.precision <= DECIMAL64_DIGITS) is not wide:
            return self.node(expr)
        if isinstance(expr, Literal):
            return self.node(Literal(expr.value, target))
        return self._cast_node(expr, self.node(expr), source, target)

    def _sum(self, expr: Call) -> int:
        """Decimals are added in the scale of the result, in 64 bits where operands and result have them."""
        kind = expr.type
        if kind.kind is not Kind.DECIMAL:
            return self._moved(expr)
        wide = kind.precision > DECIMAL64_DIGITS or any(_digits_at(arg.type, kind.scale) > 18 for arg in expr.args)
        work = decimal(38, kind.scale) if wide else kind
        node = self._call(expr, expr.function, [self._decimal(arg, work) for arg in expr.args], work)
        return self._narrowed(expr, node, work)

    def _product(self, expr: Call) -> int:
        kind = expr.type
        left, right = expr.args
        if kind.kind is not Kind.DECIMAL or left.type.kind is not Kind.DECIMAL or right.type.kind is not Kind.DECIMAL:
            return self._call(expr, "multiply", [self.node(left), self.node(right)])
        if left.type.scale + right.type.scale != kind.scale:
            raise Missing(expr, "a product that drops decimal places runs in the reference backend")
        narrow = left.type.precision <= DECIMAL64_DIGITS and right.type.precision <= DECIMAL64_DIGITS
        if narrow and (
            kind.precision <= DECIMAL64_DIGITS or left.type.precision + right.type.precision <= kind.precision
        ):
            return self._call(expr, "multiply", [self.node(left), self.node(right)])
        work = kind if kind.precision > DECIMAL64_DIGITS else decimal(38, kind.scale)
        args = [self._decimal(arg, decimal(38, arg.type.scale)) for arg in expr.args]
        return self._narrowed(expr, self._call(expr, "multiply", args, work), work)

    def _narrowed(self, expr: Call, node: int, have: DataType) -> int:
        """A result computed in `have` as the narrower type of `expr`; what does not fit has overflowed."""
        if have is expr.type:
            return node
        return self._call(expr, "cast", [node], text="overflow")

    def _moved(self, expr: Call) -> int:
        """add and subtract of numbers, or of a point in time and a constant interval."""
        left, right = expr.args
        if isinstance(right, Literal) and isinstance(right.value, Interval):
            sign = 1 if expr.function == "add" else -1
            numbers = [sign * part for part in right.value]
            return self._call(expr, "move", [self.node(left)], numbers=numbers)
        if left.type is DATE and right.type is DATE:
            return self._call(expr, "days_between", [self.node(left), self.node(right)])
        return self._call(expr, expr.function, [self.node(left), self.node(right)])

    def _coalesce(self, expr: Call) -> int:
        *first, last = expr.args
        branches = tuple([(Call("is_not_null", (arg,), BOOL), arg) for arg in first])
        return self.node(Case(branches, last, expr.type) if branches else last)

    def _extreme(self, expr: Call) -> int:
        """greatest and least: of two values the one that compares so, or the one that is not NULL."""
        test = "ge" if expr.function == "greatest" else "le"
        chosen = expr.args[0]
        for other in expr.args[1:]:
            branches = (
                (Call("is_null", (other,), BOOL), chosen),
                (Call("is_null", (chosen,), BOOL), other),
                (Call(test, (chosen, other), BOOL), chosen),
            )
            chosen = Case(branches, other, expr.type)
        return self.node(chosen)

    def _pattern(self, expr: Call) -> int:
        """like and ilike with a constant pattern; the escape character is the fourth number's place in `numbers`."""
        given = expr.args[2] if len(expr.args) == 3 else Literal("", STRING)
        if not isinstance(given, Literal) or not isinstance(given.value, str) or not given.value.isascii():
            raise Missing(expr, "a pattern whose escape is NULL or not ASCII runs in the reference backend")
        return self._with_text(expr, 1, expr.args[:1], numbers=[ord(given.value) if given.value else -1])

    def _regex(self, expr: Call) -> int:
        """A regular expression: how it is meant is the first of `numbers`, the group that is wanted the second."""
        place = _REGEX_OPTIONS_PLACE[expr.function]
        options = 0
        group = 0
        if len(expr.args) > place:
            given = expr.args[place]
            if not isinstance(given, Literal) or not isinstance(given.value, str):
                raise Missing(expr, f"{expr.function} whose options are NULL runs in the reference backend")
            options = sum(bit for letter, bit in _REGEX_OPTIONS.items() if letter in given.value)
        if expr.function == "regexp_extract" and len(expr.args) > 2:
            wanted = expr.args[2]
            if not isinstance(wanted, Literal) or not isinstance(wanted.value, int):
                raise Missing(expr, "regexp_extract of a group that is NULL runs in the reference backend")
            group = wanted.value
        rest = (expr.args[0], expr.args[2]) if expr.function == "regexp_replace" else expr.args[:1]
        return self._with_text(expr, 1, rest, numbers=[options, group])

    def _with_text(self, expr: Call, place: int, rest: tuple[Expr, ...], **options: Any) -> int:
        """A function whose argument at `place` must be a constant text, which becomes part of the node."""
        constant = expr.args[place]
        if not isinstance(constant, Literal) or not isinstance(constant.value, str):
            raise Missing(expr, f"{expr.function} without a constant pattern or unit runs in the reference backend")
        return self._call(expr, expr.function, [self.node(arg) for arg in rest], text=constant.value, **options)

    def _with_constants(self, expr: Call) -> int:
        parts = constants.parts_of(expr)
        if isinstance(parts, str):
            raise Missing(expr, parts)
        return self._call(expr, parts.function, [self.node(arg) for arg in parts.args], **parts.options())


_LOWER: Final[dict[type[Expr], Callable[[Lowering, Any], int]]] = {
    Column: Lowering._column,
    Literal: Lowering._literal,
    Cast: Lowering._cast,
    Case: Lowering._case,
    InList: Lowering._in_list,
    Call: Lowering._function,
}
_SPECIAL: Final[dict[str, Callable[[Lowering, Call], int]]] = {
    "add": Lowering._sum,
    "and": Lowering._junction,
    "or": Lowering._junction,
    "subtract": Lowering._sum,
    "multiply": Lowering._product,
    "coalesce": Lowering._coalesce,
    "greatest": Lowering._extreme,
    "least": Lowering._extreme,
    "like": Lowering._pattern,
    "ilike": Lowering._pattern,
    "glob": Lowering._pattern,
    "regexp_matches": Lowering._regex,
    "regexp_full_match": Lowering._regex,
    "regexp_extract": Lowering._regex,
    "regexp_replace": Lowering._regex,
    **dict.fromkeys(constants.FUNCTIONS, Lowering._with_constants),
}


def _digits_at(kind: DataType, scale: int) -> int:
    """The digits a decimal needs when it is written with `scale` places."""
    return kind.precision - kind.scale + scale


def _widens(source: DataType, target: DataType) -> bool:
    """Whether a cast between decimals changes no bytes and cannot fail."""
    same_width = (source.precision <= DECIMAL64_DIGITS) is (target.precision <= DECIMAL64_DIGITS)
    return same_width and source.scale == target.scale and source.precision <= target.precision

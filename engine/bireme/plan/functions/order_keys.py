"""Lists and structs as blobs that are ordered and equal as they are, so that whatever takes blobs takes them.

Comparisons are spelt with these when they are bound, keys of sorts, groups, joins and windows by the rule
`spell_nested_keys`. How the blobs are made is in the backends.
"""

from __future__ import annotations

from typing import Final

from bireme.data.types import BINARY, DataType, Kind
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.registry import Args, ScalarFunction, wrong_arguments


def has_order(kind: DataType) -> bool:
    """Whether values of the type can be compared; those of nested ones by their parts."""
    if kind.kind in (Kind.LIST, Kind.STRUCT):
        return all(child.type.kind is not Kind.INTERVAL and has_order(child.type) for child in kind.children)
    return kind.kind is not Kind.MAP


def order_key(expr: Expr) -> Expr:
    """What an expression is compared by: a blob where it is a list or struct, else itself."""
    if not expr.type.is_nested:
        return expr
    if not has_order(expr.type):
        raise TypeFault(f"values of {expr.type} cannot be compared, sorted or grouped; use parts of them")
    if isinstance(expr, Literal):
        return Literal(None, BINARY)
    if isinstance(expr, Call) and expr.function == "of_order_key":
        return expr.args[0]
    return Call("order_key", (expr,), BINARY)


def of_order_key(blob: Expr, kind: DataType) -> Expr:
    """The value of type `kind` that `order_key` made `blob` of."""
    return Call("of_order_key", (blob,), kind)


def _bind(args: Args) -> Expr:
    if len(args) != 1 or not args[0].type.is_nested:
        raise wrong_arguments("order_key", args, ("order_key(list or struct) → blob",))
    return order_key(args[0])


def _unbindable(args: Args) -> Expr:
    raise TypeFault("of_order_key needs a type, which a query cannot give it")


FUNCTIONS: Final = (
    ScalarFunction(
        "order_key", _bind, ("order_key(list or struct) → blob",), "A blob that is ordered and equal as the value is."
    ),
    ScalarFunction(
        "of_order_key", _unbindable, ("of_order_key(blob) → list or struct",), "The value that a blob was made of."
    ),
)

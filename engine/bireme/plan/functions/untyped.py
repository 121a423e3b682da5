"""Lists without values, such as [], [NULL] and [[]]: nothing tells the type of their elements, so they take any.

Where nothing asks for one, elements are integers. So what runs never meets a list of an unknown type; such lists, and
structs of them, are known here by how they are written: integers without a value.
"""

from __future__ import annotations

from typing import Final

from bireme.data.types import INT32, INT64, NULL, DataType, Field, Kind, list_of
from bireme.plan.expr import Call, Expr, Literal

_NONE: Final = Literal(0, INT64)


def empty_list(kind: DataType) -> Call:
    """`[]`, a list of that type."""
    nothing = Call("list_value", (Literal(None, kind.children[0].type),), kind)
    return Call("list_slice", (nothing, Literal(1, INT64), _NONE), kind)


_EMPTY: Final = empty_list(list_of(INT32))


def open_type(expr: Expr) -> DataType:
    """The type of an expression, with NULL where it is of no type by itself."""
    kind = expr.type
    if not kind.is_nested or not isinstance(expr, Call):
        return kind
    if expr is _EMPTY:
        return list_of(NULL)
    if expr.function == "list_value":
        return _of_elements(expr.args, kind)
    if expr.function == "struct_pack":
        fields = [Field(child.name, open_type(arg)) for child, arg in zip(kind.children, expr.args, strict=True)]
        return DataType(Kind.STRUCT, children=tuple(fields))
    return kind


def _of_elements(elements: tuple[Expr, ...], kind: DataType) -> DataType:
    """The open type of a list, which all its elements agree on."""
    there = [each for each in elements if not (isinstance(each, Literal) and each.value is None)]
    if not there:
        return list_of(NULL) if kind is _EMPTY.type else kind
    known = {open_type(each) for each in there}
    return list_of(known.pop()) if len(known) == 1 else kind


def closed(kind: DataType) -> DataType:
    """A type that values have: integers where it is open inside."""
    match kind.kind:
        case Kind.LIST:
            element = kind.children[0].type
            return list_of(INT32 if element is NULL else closed(element))
        case Kind.STRUCT:
            return DataType(
                Kind.STRUCT, children=tuple([Field(each.name, closed(each.type)) for each in kind.children])
            )
        case _:
            return kind


def retyped(expr: Expr, target: DataType) -> Expr | None:
    """`expr` as one of a nested type, where it is open; None where it is not, or is of another type."""
    if expr.type is target or not target.is_nested or open_type(expr) is expr.type:
        return None
    return _retyped(expr, target)


def _retyped(expr: Expr, target: DataType) -> Expr | None:
    if expr.type is target:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, target)
    if expr.type.kind is not target.kind or not isinstance(expr, Call):
        return None
    if expr is _EMPTY:
        return empty_list(target)
    if expr.function == "list_value":
        return _rebuilt("list_value", [_retyped(arg, target.children[0].type) for arg in expr.args], target)
    names = [child.name for child in expr.type.children]
    if expr.function != "struct_pack" or names != [child.name for child in target.children]:
        return None
    values = [_retyped(arg, child.type) for arg, child in zip(expr.args, target.children, strict=True)]
    return _rebuilt("struct_pack", values, target)


def _rebuilt(function: str, args: list[Expr | None], kind: DataType) -> Expr | None:
    found = [arg for arg in args if arg is not None]
    return Call(function, tuple(found), kind) if len(found) == len(args) else None

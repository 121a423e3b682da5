"""Functions of structs: making them, taking their fields, and changing them. Fields are found without regard to case.

Names come as text constants before the values that they name: `struct_pack('a', 1, 'b', x)`. A row is a struct whose
fields are called element1, element2 and so on, as they are where DuckDB hands rows on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.types import BOOL, INT32, INT64, NULL, STRING, DataType, Field, Kind, list_of
from bireme.errors import NameFault, TypeFault
from bireme.plan.expr import Call, Case, Expr, Literal
from bireme.plan.functions.casting import cast
from bireme.plan.functions.conversion import is_row
from bireme.plan.functions.naming import suggest
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, wrong_arguments


def is_struct(expr: Expr) -> bool:
    return expr.type.kind is Kind.STRUCT


def struct(names: Sequence[str], values: Sequence[Expr]) -> Expr:
    """A struct of these fields."""
    if not values:
        raise TypeFault("a struct has at least one field")
    lowered = [name.lower() for name in names]
    if len(set(lowered)) < len(lowered):
        raise NameFault(f"a struct has two fields called '{next(n for n in lowered if lowered.count(n) > 1)}'")
    typed = tuple([cast(value, INT32) if value.type is NULL else value for value in values])
    fields = tuple([Field(name, value.type) for name, value in zip(names, typed, strict=True)])
    return Call("struct_pack", typed, DataType(Kind.STRUCT, children=fields))


def _field_of(value: Expr, name: str) -> Expr:
    """The field called `name` of a struct; NameFault where it has none."""
    names = [child.name for child in value.type.children]
    lowered = [each.lower() for each in names]
    if name.lower() not in lowered:
        raise NameFault(f"the struct has no field '{name}'{suggest(name, names)}")
    return field_at(value, lowered.index(name.lower()))


def field_at(value: Expr, place: int) -> Expr:
    """The field at a position from 0."""
    return Call("struct_extract", (value, Literal(place, INT64)), value.type.children[place].type)


def _fields(value: Expr) -> tuple[list[str], list[Expr]]:
    children = value.type.children
    return [child.name for child in children], [field_at(value, place) for place in range(len(children))]


def _named(name: str, args: Args) -> tuple[list[str], list[Expr]]:
    names = [arg.value for arg in args[::2] if isinstance(arg, Literal) and isinstance(arg.value, str)]
    if len(args) % 2 or len(names) < len(args) // 2:
        raise TypeFault(f"{name} needs a name for each value, as in {name}(a := 1)")
    return names, list(args[1::2])


def _pack(args: Args) -> Expr:
    return struct(*_named("struct_pack", args))


def _row(args: Args) -> Expr:
    return struct([f"element{place + 1}" for place in range(len(args))], args)


def _extract(args: Args) -> Expr:
    if len(args) != 2 or not is_struct(args[0]) or not isinstance(args[1], Literal):
        raise wrong_arguments("struct_extract", args, ("struct_extract(struct, name constant)",))
    # Brackets name a field, or number it, from 1, in a row.
    value, key = args[0], args[1].value
    if isinstance(key, str):
        return _field_of(value, key)
    if not isinstance(key, int) or not is_row(value.type):
        raise TypeFault("fields of a struct are taken by a name that is a constant, those of a row by their number")
    return _at("struct_extract", value, key)


def _extract_at(args: Args) -> Expr:
    if len(args) != 2 or not is_struct(args[0]) or not isinstance(args[1], Literal) or args[1].type is STRING:
        raise wrong_arguments("struct_extract_at", args, ("struct_extract_at(struct, bigint constant)",))
    return _at("struct_extract_at", args[0], args[1].value)


def _at(name: str, value: Expr, place: object) -> Expr:
    if not isinstance(place, int) or not 1 <= place <= len(value.type.children):
        raise TypeFault(f"{name}: the struct has fields 1 to {len(value.type.children)}, not {place}")
    return field_at(value, place - 1)


def _changed(name: str, args: Args) -> tuple[list[str], list[Expr], list[str], list[Expr]]:
    if len(args) < 3 or not is_struct(args[0]):
        raise wrong_arguments(name, args, (f"{name}(struct, name := value, …) → struct",))
    return (*_fields(args[0]), *_named(name, args[1:]))


def _insert(args: Args) -> Expr:
    names, values, added, new = _changed("struct_insert", args)
    return struct([*names, *added], [*values, *new])


def _update(args: Args) -> Expr:
    names, values, changed, new = _changed("struct_update", args)
    lowered = [name.lower() for name in names]
    for name, value in zip(changed, new, strict=True):
        if name.lower() in lowered:
            values[lowered.index(name.lower())] = value
        else:
            names.append(name)
            values.append(value)
    return struct(names, values)


def _concat(args: Args) -> Expr:
    if not args or not all(map(is_struct, args)):
        raise wrong_arguments("struct_concat", args, ("struct_concat(struct, …) → struct",))
    parts = [_fields(arg) for arg in args]
    return struct([name for names, _ in parts for name in names], [value for _, values in parts for value in values])


def _keys(args: Args) -> Expr:
    if len(args) != 1 or not is_struct(args[0]):
        raise wrong_arguments("struct_keys", args, ("struct_keys(struct) → varchar[]",))
    names = Call("list_value", tuple([Literal(child.name, STRING) for child in args[0].type.children]), list_of(STRING))
    missing = Call("is_null", args, BOOL)
    return Case(((missing, Literal(None, names.type)),), names, names.type)


def _values(args: Args) -> Expr:
    if len(args) != 1 or not is_struct(args[0]):
        raise wrong_arguments("struct_values", args, ("struct_values(struct) → row",))
    row = _row(tuple(_fields(args[0])[1]))
    return Case(((Call("is_null", args, BOOL), Literal(None, row.type)),), row, row.type)


def row_fields(value: Expr) -> list[tuple[str, Expr]]:
    """The fields of a struct with their names, as columns."""
    return list(zip(*_fields(value), strict=True))


_PACK: Final = "struct_pack(name := value, …) → struct"
FUNCTIONS: Final = (
    ScalarFunction("struct_pack", _pack, (_PACK,), "A struct of named values.", (), NullRule.NEVER),
    ScalarFunction("row", _row, ("row(any, …) → row",), "A row of values.", (), NullRule.NEVER),
    ScalarFunction(
        "struct_extract", _extract, ("struct_extract(struct, name constant)",),
        "The field of that name, or of that number in a row.", (), NullRule.ADDS,
    ),
    ScalarFunction(
        "struct_extract_at", _extract_at, ("struct_extract_at(struct, bigint constant)",),
        "The field of that number, from 1.", (), NullRule.ADDS,
    ),
    ScalarFunction(
        "struct_insert", _insert, ("struct_insert(struct, name := value, …) → struct",), "With further fields.",
        (), NullRule.NEVER,
    ),
    ScalarFunction(
        "struct_update", _update, ("struct_update(struct, name := value, …) → struct",),
        "With fields of these values, in their places or at the end.", (), NullRule.NEVER,
    ),
    ScalarFunction(
        "struct_concat", _concat, ("struct_concat(struct, …) → struct",), "The fields of all.", (), NullRule.NEVER
    ),
    ScalarFunction("struct_keys", _keys, ("struct_keys(struct) → varchar[]",), "The names of the fields."),
    ScalarFunction("struct_values", _values, ("struct_values(struct) → row",), "The values of the fields, as a row."),
)  # fmt: skip

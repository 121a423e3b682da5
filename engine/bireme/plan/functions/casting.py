"""Which types go together: casts a query may write, casts the binder inserts, and the type several values share.

Casts of constants fold here where they cannot fail. A string constant takes the type that its place asks for; an
integer or decimal constant takes a type that holds it exactly, so that no column is cast for its sake; NULL takes any
type. What a cast does to a value is in `conversion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from bireme.data.types import (
    DECIMAL128_DIGITS,
    FLOAT32,
    FLOAT64,
    HUGEINT,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    DataType,
    Field,
    Kind,
    decimal,
    list_of,
)
from bireme.errors import ConversionFault, TypeFault
from bireme.plan.expr import Cast, Expr, Literal
from bireme.plan.functions.conversion import convert, converter, field_places, integer_range, is_row, texts_of
from bireme.plan.functions.untyped import closed, open_type, retyped

# Digits that every value of an integer type fits in.
_INTEGER_DIGITS: Final = {
    Kind.INT8: 3, Kind.UINT8: 3, Kind.INT16: 5, Kind.UINT16: 5, Kind.INT32: 10, Kind.UINT32: 10, Kind.INT64: 19,
    Kind.UINT64: 20, Kind.BOOL: 1,
}  # fmt: skip
_SIGNED: Final = {16: INT16, 32: INT32, 64: INT64}
_UNITS: Final = ("s", "ms", "us", "ns")


# ------------------------------------------------------------------------------------------ explicit casts


def cast(expr: Expr, target: DataType, safe: bool = False) -> Expr:
    """`expr` converted to `target`, as a user asks for it; with `safe`, NULL for what does not convert.

    The same object where it has the type already. TypeFault where there is no such cast.
    """
    if expr.type is target:
        return expr
    open_list = retyped(expr, target)
    if open_list is not None:
        return open_list
    if converter(expr.type, target) is None:
        raise TypeFault(f"there is no cast from {expr.type} to {target}")
    if isinstance(expr, Literal) and (expr.value is None or not target.is_nested):
        try:
            return Literal(convert(expr.value, expr.type, target), target)
        except ConversionFault:
            if safe:
                return Literal(None, target)
            # Kept, so that it fails only if a row reaches it.
    return Cast(expr, target, safe)


def is_castable(source: DataType, target: DataType) -> bool:
    """Whether `cast` accepts this pair."""
    return converter(source, target) is not None


# ------------------------------------------------------------------------------------------ implicit casts


@lru_cache(maxsize=4096)
def widens(source: DataType, target: DataType) -> bool:
    """Whether values of `source` become `target` unasked: always possible, and never to a smaller kind of value."""
    if source is target or source.kind is Kind.NULL:
        return True
    if source.kind is Kind.LIST and target.kind is Kind.LIST:
        return widens(source.children[0].type, target.children[0].type)
    if source.kind is Kind.STRUCT and target.kind is Kind.STRUCT:
        places = field_places(source, target)
        pairs = zip(places, target.children, strict=False)
        return len(places) >= len(source.children) and all(
            place is not None and widens(source.children[place].type, child.type) for place, child in pairs
        )
    if source.is_nested or target.is_nested:
        return False
    if target.is_float:
        return source.is_numeric and source is not FLOAT64
    if target.kind is Kind.DECIMAL:
        whole, scale = decimal_shape(source) or (DECIMAL128_DIGITS + 1, 0)
        fits = whole <= target.precision - target.scale or target.precision == DECIMAL128_DIGITS
        return source.kind is not Kind.BOOL and fits and scale <= target.scale
    if source.is_integer and target.is_integer:
        (low, high), (lowest, highest) = integer_range(source), integer_range(target)
        return lowest <= low and high <= highest
    if target.kind is Kind.TIMESTAMP:
        finer = source.kind is Kind.TIMESTAMP and _UNITS.index(source.unit) <= _UNITS.index(target.unit)
        return source.kind is Kind.DATE or (finer and (target.zone != "" or source.zone == ""))
    if target.kind is Kind.TIME:
        return source.kind is Kind.TIME and _UNITS.index(source.unit) <= _UNITS.index(target.unit)
    return False


def coerce(expr: Expr, target: DataType) -> Expr:
    """`expr` as `target` where that needs no explicit cast; TypeFault otherwise."""
    source = expr.type
    if source is target:
        return expr
    if isinstance(expr, Literal):
        adapted = adapt(expr, target)
        if adapted is not None:
            return adapted
    if widens(source, target) or retyped(expr, target) is not None:
        return cast(expr, target)
    raise TypeFault(f"expected {target}, not {source}; write cast(… as {target}) if that is meant")


def is_coercible(expr: Expr, target: DataType) -> bool:
    """Whether `coerce` would accept this; a string constant that does not parse counts as accepted."""
    if expr.type is target or widens(expr.type, target):
        return True
    if not isinstance(expr, Literal):
        return retyped(expr, target) is not None
    if expr.type is STRING:
        return not target.is_nested
    return adapt(expr, target) is not None


@lru_cache(maxsize=1024)
def adapt(constant: Literal, target: DataType) -> Literal | None:
    """A constant as one of `target`, where it takes that type by itself; None where it does not.

    NULL takes any type, a number any numeric type that holds it exactly (floats always), a string any type that it can
    be read as: TypeFault where it cannot.
    """
    value, source = constant.value, constant.type
    if value is None:
        return Literal(None, target)
    if source is STRING:
        return _read(constant, target)
    if source.is_integer and target.is_integer:
        low, high = integer_range(target)
        return Literal(value, target) if low <= value <= high else None  # type: ignore[operator]
    if (source.is_integer or source.kind is Kind.DECIMAL) and target.is_numeric:
        if target.is_float:
            return Literal(convert(value, source, target), target)
        return _number_adapted(value, source, target)
    return None


def _read(constant: Literal, target: DataType) -> Literal | None:
    if converter(STRING, target) is None:
        return None
    try:
        return Literal(convert(constant.value, STRING, target), target)
    except ConversionFault:
        shown = texts_of(constant.value, STRING)
        raise TypeFault(f"the text {shown!r} cannot be read as {target}") from None


def _number_adapted(value: Any, source: DataType, target: DataType) -> Literal | None:
    try:
        converted = convert(value, source, target)
    except ConversionFault:
        return None
    return Literal(converted, target) if converted == value else None


# ----------------------------------------------------------------------------------------- shared types


def decimal_shape(kind: DataType) -> tuple[int, int] | None:
    """Digits before and behind the point that hold every value of an exact number type; None for others."""
    if kind.kind is Kind.DECIMAL:
        return kind.precision - kind.scale, kind.scale
    digits = _INTEGER_DIGITS.get(kind.kind)
    return None if digits is None else (digits, 0)


def capped_decimal(whole: int, scale: int) -> DataType:
    """A decimal with these digits before and behind the point; where they exceed 38, fewer before it."""
    scale = min(scale, DECIMAL128_DIGITS)
    return decimal(max(1, min(whole + scale, DECIMAL128_DIGITS)), scale)


@lru_cache(maxsize=4096)
def common_of_two(left: DataType, right: DataType) -> DataType | None:
    """The type that values of both become, or None."""
    if left is right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_float or right.is_float:
        return _common_float(left, right)
    if Kind.BOOL in (left.kind, right.kind):
        other = right if left.kind is Kind.BOOL else left
        return other if other.is_integer else None
    if left.kind is Kind.DECIMAL or right.kind is Kind.DECIMAL:
        return _common_decimal(left, right)
    if left.is_integer and right.is_integer:
        return _common_integer(left, right)
    if left.kind is Kind.LIST and right.kind is Kind.LIST:
        element = common_of_two(left.children[0].type, right.children[0].type)
        return None if element is None else list_of(element)
    if left.kind is Kind.STRUCT and right.kind is Kind.STRUCT:
        return _common_struct(left, right)
    if widens(left, right):
        return right
    if widens(right, left):
        return left
    return _common_timestamp(left, right)


def _common_float(left: DataType, right: DataType) -> DataType | None:
    if not (left.is_numeric and right.is_numeric):
        return None
    return FLOAT64 if FLOAT64 in (left, right) else FLOAT32


def _common_decimal(left: DataType, right: DataType) -> DataType | None:
    shape, other = decimal_shape(left), decimal_shape(right)
    if shape is None or other is None:
        return None
    return capped_decimal(max(shape[0], other[0]), max(shape[1], other[1]))


def _common_integer(left: DataType, right: DataType) -> DataType:
    if left.is_signed == right.is_signed:
        return left if left.bits >= right.bits else right
    signed, unsigned = (left, right) if left.is_signed else (right, left)
    if signed.bits > unsigned.bits:
        return signed
    return _SIGNED[unsigned.bits * 2] if unsigned.bits < 64 else HUGEINT


def _common_struct(left: DataType, right: DataType) -> DataType | None:
    """All fields of both, in a row (or beside one) by position, else by name; those of the first come first."""
    by_position = is_row(left) or is_row(right)
    if by_position and len(left.children) != len(right.children):
        return None
    others = {child.name.lower(): child for child in right.children}
    fields = []
    for place, child in enumerate(left.children):
        other = right.children[place] if by_position else others.pop(child.name.lower(), None)
        kind = child.type if other is None else common_of_two(child.type, other.type)
        if kind is None:
            return None
        fields.append(Field(other.name if other is not None and is_row(left) else child.name, kind))
    return DataType(Kind.STRUCT, children=(*fields, *(() if by_position else others.values())))


def _common_timestamp(left: DataType, right: DataType) -> DataType | None:
    if left.kind is not Kind.TIMESTAMP or right.kind is not Kind.TIMESTAMP:
        return None
    unit = max(left.unit, right.unit, key=_UNITS.index)
    return DataType(Kind.TIMESTAMP, unit=unit, zone=left.zone or right.zone)


def common_type(types: Iterable[DataType]) -> DataType:
    """The type that values of all `types` become (of set operations, say); TypeFault where there is none.

    NULL stays NULL where every type is NULL.
    """
    common = NULL
    for kind in types:
        found = common_of_two(common, kind)
        if found is None:
            raise TypeFault(f"there is no type for both {common} and {kind}; cast one of them")
        common = found
    return common


@lru_cache(maxsize=256)
def exact_decimal(value: int) -> DataType:
    """The smallest decimal type that holds an integer constant."""
    return capped_decimal(len(str(abs(value))), 0)


def unify(exprs: Sequence[Expr], place: str, *, compared: bool = False) -> tuple[Expr, ...]:
    """The expressions coerced to the type they share, as the branches of a CASE are; `place` names where they stand."""
    first = exprs[0].type
    if all(expr.type is first for expr in exprs):
        return tuple(exprs)
    target = unified_type(exprs, place, compared=compared)
    return tuple([cast_common(expr, target) for expr in exprs])


def cast_common(expr: Expr, target: DataType) -> Expr:
    """`expr` as `target`, a type that `unified_type` found for it."""
    if expr.type is target:
        return expr
    adapted = adapt(expr, target) if isinstance(expr, Literal) else None
    return adapted if adapted is not None else cast(expr, target)


def unified_type(exprs: Sequence[Expr], place: str, *, compared: bool = False) -> DataType:
    """The type that `unify` gives: that of the columns, where the constants among them fit it.

    Values keep the decimal places that a constant is written with; what is only `compared` needs no zeros.
    """
    try:
        common = closed(common_type([open_type(expr) for expr in exprs if not isinstance(expr, Literal)]))
        constants = [expr for expr in exprs if isinstance(expr, Literal) and expr.value is not None]
        numbers = [constant for constant in constants if constant.type is not STRING]
        for constant in numbers:
            places_matter = not compared and constant.type.kind is Kind.DECIMAL
            common = common_type([common, constant.type]) if places_matter else _joined(common, constant)
        if len(numbers) == len(constants) or common is not NULL:
            return common
        return STRING
    except TypeFault:
        listed = ", ".join(dict.fromkeys(str(expr.type) for expr in exprs))
        raise TypeFault(f"{place} mixes values of {listed}; cast them to one type") from None


def _joined(common: DataType, constant: Literal) -> DataType:
    """The type for both, where a constant that fits the common type leaves it as it is."""
    kind = constant.type
    if common is NULL or common is kind:
        return kind
    if adapt(constant, common) is not None:
        return common
    if kind.is_integer and common.kind is Kind.DECIMAL and isinstance(constant.value, int):
        kind = exact_decimal(constant.value)
    return common_type([common, kind])

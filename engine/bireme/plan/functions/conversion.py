"""What casts do to one value: the meaning of `Cast`, used to fold constants and by the reference backend.

Values are in the form of `expr.Literal`. Which casts a query may write is in `casting`; text forms are in `texts`.

Numbers to integers and to fewer decimal places round half away from zero, floats to integers half to even (as in
DuckDB); a value that does not fit is a ConversionFault, never wrapped.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, Final

from bireme.data.exact_decimal import EXACT
from bireme.data.types import DataType, Kind
from bireme.errors import ConversionFault
from bireme.plan.functions import texts

Converter = Callable[[Any], Any]

_TICKS_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_ADJUSTED_MAX: Final = 400


def integer_range(kind: DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if kind.is_signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


def convert(value: Any, source: DataType, target: DataType) -> Any:
    """`value` of type `source` as one of `target`; NULL stays NULL. Raises ConversionFault."""
    if value is None:
        return None
    convert_one = converter(source, target)
    assert convert_one is not None, f"no cast from {source} to {target}"
    try:
        return convert_one(value)
    except (ValueError, OverflowError) as error:
        raise ConversionFault(_failure(value, source, target, error)) from None


def _failure(value: Any, source: DataType, target: DataType, error: Exception) -> str:
    shown = texts_of(value, source)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    if source.kind is Kind.STRING:
        return f"cannot convert the text {shown!r} to {target}; use try_cast to get NULL instead"
    return f"cannot convert {shown} from {source} to {target}: {error}; use try_cast to get NULL instead"


def texts_of(value: Any, kind: DataType) -> str:
    """`value` as text, as a cast to VARCHAR writes it."""
    if kind.kind is Kind.STRING:
        return str(value)
    writer = _writer(kind)
    return str(value) if writer is None else str(writer(value))


@lru_cache(maxsize=4096)
def converter(source: DataType, target: DataType) -> Converter | None:
    """What turns a value of `source` that is not NULL into one of `target`; None where there is no such cast.

    Raises ValueError or OverflowError for a value that does not convert.
    """
    if source is target:
        return _same
    if source.kind is Kind.NULL:
        return _same
    if target.kind is Kind.STRING:
        return _writer(source)
    if target.kind is Kind.LIST:
        return _list_converter(source, target)
    if target.kind is Kind.STRUCT:
        return _struct_converter(source, target)
    if source.kind is Kind.STRING:
        return _reader(target)
    if target.is_numeric or target.kind is Kind.BOOL:
        return _number_converter(source, target)
    return _time_converter(source, target)


def _same(value: Any) -> Any:
    return value


def _list_converter(source: DataType, target: DataType) -> Converter | None:
    """Lists element by element, those of texts that are written as a text, too."""
    if source.kind is Kind.STRING:
        read = converter(source, target.children[0].type)
        if read is None:
            return None
        return lambda text: [None if part is None else read(part) for part in texts.read_list(text)]
    if source.kind is not Kind.LIST:
        return None
    each = converter(source.children[0].type, target.children[0].type)
    if each is None:
        return None
    return lambda values: [None if value is None else each(value) for value in values]


def field_places(source: DataType, target: DataType) -> list[int | None]:
    """Where a struct has each field of another: by name, beside a row by position; None where it has not."""
    names = [child.name.lower() for child in source.children]
    if is_row(source) or is_row(target):
        return list(range(len(target.children))) if len(names) == len(target.children) else []
    return [names.index(child.name.lower()) if child.name.lower() in names else None for child in target.children]


def is_row(kind: DataType) -> bool:
    """Whether the fields of a struct have the names that those of a row have."""
    return all(child.name == f"element{place}" for place, child in enumerate(kind.children, start=1))


def _struct_converter(source: DataType, target: DataType) -> Converter | None:
    """Structs field by field; they must share one."""
    if source.kind is not Kind.STRUCT:
        return None
    places = field_places(source, target)
    if all(place is None for place in places):
        return None
    names, parts = [child.name for child in source.children], []
    for place, child in zip(places, target.children, strict=True):
        each = None if place is None else converter(source.children[place].type, child.type)
        if place is not None and each is None:
            return None
        parts.append((child.name, None if place is None else names[place], each or _same))

    def convert_fields(value: Any) -> Any:
        found = [(new, None if old is None else value[old], each) for new, old, each in parts]
        return {new: None if part is None else each(part) for new, part, each in found}

    return convert_fields


# ------------------------------------------------------------------------------------------------- text


def _writer(source: DataType) -> Converter | None:
    match source.kind:
        case Kind.BOOL:
            return lambda value: "true" if value else "false"
        case Kind.FLOAT64:
            return texts.write_float
        case Kind.FLOAT32:
            return texts.write_float32
        case Kind.DECIMAL:
            return lambda value: texts.write_decimal(value, source.scale)
        case Kind.DATE:
            return lambda value: str(value.isoformat())
        case Kind.TIME:
            return lambda value: texts.write_clock(_time_nanoseconds(value))
        case Kind.TIMESTAMP:
            ending = "+00" if source.zone else ""
            return lambda value: texts.write_timestamp(_nanoseconds(value, source)) + ending
        case Kind.INTERVAL:
            return texts.write_interval
        case Kind.BINARY:
            return texts.write_binary
        case Kind.LIST:
            return _list_writer(source.children[0].type)
        case Kind.STRUCT:
            return _struct_writer(source)
        case _:
            return str if source.is_integer else None


def _list_writer(element: DataType) -> Converter | None:
    each = _same if element.kind is Kind.STRING else _writer(element)
    if each is None:
        return None
    quote = _same if element.is_nested else texts.quoted_element
    return lambda values: f"[{', '.join('NULL' if value is None else quote(each(value)) for value in values)}]"


def _struct_writer(source: DataType) -> Converter | None:
    """Fields as `'name': value` between braces; those of a row without names, in parentheses."""
    row = is_row(source)
    parts: list[tuple[str, str, Converter]] = []
    for child in source.children:
        each = _same if child.type.kind is Kind.STRING else _writer(child.type)
        if each is None:
            return None
        label = "" if row else f"{texts.quoted(child.name)}: "
        parts.append((label, child.name, each if child.type.is_nested else _quoting(each)))

    def write(value: Any) -> str:
        shown = [label + ("NULL" if value[name] is None else each(value[name])) for label, name, each in parts]
        return f"({', '.join(shown)})" if row else f"{{{', '.join(shown)}}}"

    return write


def _quoting(write: Converter) -> Converter:
    return lambda value: texts.quoted_element(write(value))


def _reader(target: DataType) -> Converter | None:
    match target.kind:
        case Kind.BOOL:
            return texts.read_bool
        case Kind.FLOAT64:
            return float
        case Kind.FLOAT32:
            return lambda text: _single(float(text), "f")
        case Kind.DECIMAL:
            return lambda text: _as_decimal(texts.read_number(text), target)
        case Kind.DATE:
            return texts.read_date
        case Kind.TIME:
            return lambda text: _time_in_unit(texts.read_time(text), target)
        case Kind.TIMESTAMP:
            return lambda text: _read_timestamp(text, target)
        case Kind.INTERVAL:
            return texts.read_interval
        case Kind.BINARY:
            return texts.read_binary
        case _ if target.is_integer:
            return lambda text: _as_integer(_rounded(texts.read_number(text)), target)
        case _:
            return None


def _read_timestamp(text: str, target: DataType) -> Any:
    day, nanoseconds, ahead = texts.read_timestamp(text)
    if target.unit != "ns":
        nanoseconds = nanoseconds // 1000 * 1000  # digits behind microseconds are not rounded but dropped
    count = (day - _EPOCH) // _MICROSECOND * 1000 + nanoseconds
    return _timestamp_of(count - ahead * texts.NANOSECONDS_A_SECOND if target.zone else count, target)


# ---------------------------------------------------------------------------------------------- numbers


def _number_converter(source: DataType, target: DataType) -> Converter | None:
    if not (source.is_numeric or source.kind is Kind.BOOL):
        return None
    if target.kind is Kind.BOOL:
        return bool
    if target.is_float:
        return lambda value: _as_float(float(value), target)
    if source.is_float:
        return lambda value: _from_float(value, target)
    if target.kind is Kind.DECIMAL:
        return lambda value: _as_decimal(Decimal(value), target)
    if source.kind is Kind.DECIMAL:
        return lambda value: _as_integer(_rounded(value), target)
    return lambda value: _as_integer(int(value), target)


def _rounded(value: Decimal) -> int:
    if value.adjusted() > _ADJUSTED_MAX:
        raise OverflowError("it is out of range")
    return int(value.to_integral_value(ROUND_HALF_UP))


def _as_integer(value: int, target: DataType) -> int:
    low, high = integer_range(target)
    if not low <= value <= high:
        raise OverflowError("it is out of range")
    return value


def _as_decimal(value: Decimal, target: DataType) -> Decimal:
    if value.adjusted() > _ADJUSTED_MAX:
        raise OverflowError("it is out of range")
    if value.adjusted() < -_ADJUSTED_MAX:
        value = Decimal(0)
    scaled = int(value.scaleb(target.scale, EXACT).to_integral_value(ROUND_HALF_UP))
    if abs(scaled) >= 10**target.precision:
        raise OverflowError("it has too many digits")
    return Decimal(scaled).scaleb(-target.scale, EXACT)


def _as_float(value: float, target: DataType) -> float:
    if target.kind is Kind.FLOAT64:
        return value
    try:
        return _single(value, "<f")
    except OverflowError:
        raise OverflowError("it is out of range") from None


def _single(value: float, layout: str) -> float:
    """In single precision. What is too large is an infinity in the machine's own layout, else an OverflowError."""
    narrowed: float = struct.unpack(layout, struct.pack(layout, value))[0]
    return narrowed


def _from_float(value: float, target: DataType) -> Any:
    if not math.isfinite(value):
        raise OverflowError("it is out of range")
    if target.kind is not Kind.DECIMAL:
        return _as_integer(round(value), target)
    scaled = value * float(10**target.scale)
    if not math.isfinite(scaled):
        raise OverflowError("it is out of range")
    count = int(Decimal(scaled).to_integral_value(ROUND_HALF_UP))
    if abs(count) >= 10**target.precision:
        raise OverflowError("it has too many digits")
    return Decimal(count).scaleb(-target.scale, EXACT)


# ------------------------------------------------------------------------------------------------- time


def _time_nanoseconds(value: datetime.time | int) -> int:
    if isinstance(value, int):
        return value
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return seconds * texts.NANOSECONDS_A_SECOND + value.microsecond * 1000


def _time_of(nanoseconds: int) -> datetime.time:
    seconds, rest = divmod(nanoseconds, texts.NANOSECONDS_A_SECOND)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest // 1000)


def _time_in_unit(nanoseconds: int, kind: DataType) -> datetime.time | int:
    """The value of a time type, cut off at its unit."""
    if kind.unit == "ns":
        return nanoseconds
    step = _TICKS_A_SECOND["ns"] // _TICKS_A_SECOND[kind.unit]
    return _time_of(nanoseconds // step * step)


def _nanoseconds(value: datetime.datetime | int, kind: DataType) -> int:
    """Nanoseconds since 1970 of a timestamp value."""
    if isinstance(value, int):
        return value * (_TICKS_A_SECOND["ns"] // _TICKS_A_SECOND[kind.unit])
    naive = value.astimezone(texts.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return (naive - _EPOCH) // _MICROSECOND * 1000


def _timestamp_of(nanoseconds: int, kind: DataType) -> Any:
    """The value of a timestamp type, in its unit (rounded half away from zero)."""
    if kind.unit == "ns":
        if not -(1 << 63) <= nanoseconds < 1 << 63:
            raise OverflowError("it is out of range")
        return nanoseconds
    step = _TICKS_A_SECOND["ns"] // _TICKS_A_SECOND[kind.unit]
    count = (abs(nanoseconds) + step // 2) // step * (-1 if nanoseconds < 0 else 1)
    moment = _EPOCH + datetime.timedelta(microseconds=count * step // 1000)
    return moment.replace(tzinfo=texts.UTC) if kind.zone else moment


def _time_converter(source: DataType, target: DataType) -> Converter | None:
    match source.kind, target.kind:
        case Kind.DATE, Kind.TIMESTAMP:
            midnight = datetime.time()
            return lambda value: _timestamp_of(_nanoseconds(datetime.datetime.combine(value, midnight), source), target)
        case Kind.TIMESTAMP, Kind.DATE:
            return lambda value: (_EPOCH + datetime.timedelta(microseconds=_nanoseconds(value, source) // 1000)).date()
        case Kind.TIMESTAMP, Kind.TIME:
            return lambda value: _time_in_unit(_nanoseconds(value, source) % texts.NANOSECONDS_A_DAY, target)
        case Kind.TIMESTAMP, Kind.TIMESTAMP:
            return lambda value: _timestamp_of(_nanoseconds(value, source), target)
        case Kind.TIME, Kind.TIME:
            return lambda value: _time_in_unit(_time_nanoseconds(value), target)
        case _:
            return None

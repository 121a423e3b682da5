"""format and printf: texts by a template, for one row. Values come as whole numbers, floats or texts.

The specifications mean what they do in DuckDB's library (fmt): a kind of number that does not go with the value is an
error, never a conversion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from bireme.errors import DomainFault

_FIELD: Final = re.compile(r"\{\{|\}\}|\{(?P<index>\d*)(?::(?P<spec>[^{}]*))?\}|(?P<stray>[{}])")
_SPEC: Final = re.compile(
    r"(?P<before>(?:.?[<>^])?[-+ ]?)(?P<alternate>#?)(?P<width>0?\d*,?)(?:\.(?P<precision>\d+))?(?P<kind>[a-zA-Z]?)"
)
_CONVERSION: Final = re.compile(
    r"%(?:(?P<flags>[-+ #0]*)(?P<size>\d*(?:\.\d*)?)(?:hh|h|ll|l|L|j|z|t|q)?(?P<kind>[a-zA-Z%])|(?P<stray>))"
)
_WHOLE: Final = frozenset("bcdiouxX")
_FLOATING: Final = frozenset("aAeEfFgG")


def format_fields(template: str, *values: Any) -> str:
    """The template with `{}`, `{0}`, `{:spec}` replaced; DomainFault where they do not go with the values."""
    waiting = iter(values)

    def replaced(field: re.Match[str]) -> str:
        if field[0] in ("{{", "}}"):
            return field[0][0]
        if field["stray"]:
            raise _unfit(template, "a brace stands alone")
        return _spelt(template, _value(template, field["index"], values, waiting), field["spec"] or "")

    return _FIELD.sub(replaced, template)


def _value(template: str, index: str, values: tuple[Any, ...], waiting: Iterator[Any]) -> Any:
    if not index:
        for value in waiting:
            return value
    elif int(index) < len(values):
        return values[int(index)]
    raise _unfit(template, f"there are {len(values)} values")


def _spelt(template: str, value: Any, text: str) -> str:
    spec = _SPEC.fullmatch(text)
    if spec is None:
        raise _unfit(template, f"{text!r} is no specification")
    precision = "" if spec["precision"] is None else f".{spec['precision']}"
    alternate = spec["alternate"]
    before = spec["before"]
    if isinstance(value, float) and precision and not spec["kind"]:
        return _shortest(value, spec)
    if spec["kind"] == "o" and alternate:
        return _written(template, f"0{value:o}" if isinstance(value, int) else value, f"{before}{spec['width']}")
    return _written(template, value, f"{before}{alternate}{spec['width']}{precision}{spec['kind']}")


def _shortest(value: float, spec: re.Match[str]) -> str:
    """That many digits, zeros at the end and at least one behind the point among them."""
    digits = int(spec["precision"])
    sign = spec["before"][-1:].strip("<>^")
    text = format(value, f"{sign}#.{digits}g" if digits else sign)
    mantissa, mark, exponent = text.partition("e")
    if mantissa.endswith("."):
        mantissa = mantissa[:-1] if mark else f"{mantissa}0"
    return format(f"{mantissa}{mark}{exponent}", f"{spec['before'].removesuffix(sign) or '>'}{spec['width']}")


def _written(template: str, value: Any, spec: str) -> str:
    try:
        return format(value, spec)
    except (ValueError, OverflowError) as error:
        raise _unfit(template, str(error)) from None


def printf(template: str, *values: Any) -> str:
    """The template with `%d`, `%s`, … replaced; DomainFault where they do not go with the values."""
    waiting = iter(values)

    def replaced(conversion: re.Match[str]) -> str:
        if conversion["kind"] == "%":
            return "%"
        if conversion["stray"] is not None:
            raise _unfit(template, "a % stands alone")
        return _converted(template, conversion, _value(template, "", values, waiting))

    return _CONVERSION.sub(replaced, template)


def _converted(template: str, conversion: re.Match[str], value: Any) -> str:
    kind, flags = conversion["kind"], conversion["flags"]
    if not _fits(kind, value):
        raise _unfit(template, f"%{kind} does not write {value!r}")
    if kind == "o" and "#" in flags:
        return f"%{flags.replace('#', '')}{conversion['size']}s" % f"0{value:o}"
    try:
        return str(f"%{flags}{conversion['size']}{kind}" % value)
    except (ValueError, TypeError, OverflowError) as error:
        raise _unfit(template, str(error)) from None


def _fits(kind: str, value: Any) -> bool:
    if kind == "s":
        return isinstance(value, str)
    return isinstance(value, int) if kind in _WHOLE else kind in _FLOATING and isinstance(value, float)


def _unfit(template: str, why: str) -> DomainFault:
    return DomainFault(f"the template {template!r} does not go with its values: {why}")

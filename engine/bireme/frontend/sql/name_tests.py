"""Conditions on names of columns: they are decided while a query is bound, since they say what it computes."""

from __future__ import annotations

import fnmatch
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from bireme.errors import ClauseFault, Unsupported
from bireme.plan import functions
from bireme.plan.expr import Call, Expr, InList, Literal


def holds(condition: Expr) -> bool:
    """Whether a condition on constants is TRUE."""
    return _value(functions.truth(condition, "a condition on names of columns")) is True


def matches(function: str, name: str, pattern: str) -> bool:
    """Whether a name is like a pattern; `function` is that of the operator."""
    return _FUNCTIONS[function](name, pattern) is True


def _value(expr: Expr) -> Any:
    match expr:
        case Literal(value):
            return value
        case Call(function, args) if function in _FUNCTIONS:
            values = [_value(arg) for arg in args]
            return None if None in values and function not in _JUNCTIONS else _FUNCTIONS[function](*values)
        case InList(arg, items):
            values = [_value(item) for item in items]
            return True if _value(arg) in values else None if None in values else False
    what = f"'{expr.function}'" if isinstance(expr, Call) else "this"
    raise Unsupported(f"{what} in a condition on names of columns is not supported; there are {_KNOWN}")


_JUNCTIONS: Final = frozenset({"and", "or", "is_null", "is_not_null"})
_KNOWN: Final = "comparisons, IN, AND, OR, NOT, LIKE, SIMILAR TO, GLOB, and functions that look for a part of a text"


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _like(ignore_case: bool) -> Callable[..., bool]:
    def like(name: str, pattern: str) -> bool:
        import pyarrow.compute as pc  # loading it takes long, and few queries need it

        # Arrow takes a backslash for an escape, which SQL has only where it is named.
        return bool(pc.match_like(name, pattern.replace("\\", "\\\\"), ignore_case=ignore_case).as_py())

    return like


def _regexp(anchors: str) -> Callable[..., bool]:
    def regexp(name: str, pattern: str) -> bool:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return bool(pc.match_substring_regex(name, anchors.format(pattern)).as_py())
        except pa.ArrowInvalid:
            raise ClauseFault(f"{pattern!r} is not a regular expression") from None

    return regexp


def _glob(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "and": _and, "or": _or, "not": operator.not_, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "like": _like(False), "ilike": _like(True),
    "regexp_matches": _regexp("{}"), "regexp_full_match": _regexp("^(?:{})$"), "glob": _glob,
    "starts_with": str.startswith, "ends_with": str.endswith, "contains": operator.contains, "lower": str.lower,
    "upper": str.upper, "length": len,
    "is_null": lambda value: value is None, "is_not_null": lambda value: value is not None,
}  # fmt: skip

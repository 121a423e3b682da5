"""Whether an expression can be NULL, as far as schemas and functions prove it.

A `False` is a proof; a `True` only the lack of one.
"""

from __future__ import annotations

from typing import Final

from bireme.data.schema import Schema
from bireme.plan.expr import Call, Case, Cast, Column, Exists, Expr, InList, Literal

# Functions whose result can be NULL although no argument is; all others are NULL exactly where an argument is.
_MAY_INVENT_NULL: Final = frozenset(
    {"divide", "int_divide", "modulo", "nullif", "split_part", "regexp_extract", "try_strptime"}
)
_NEVER_NULL: Final = frozenset(
    {"is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false", "is_distinct", "is_not_distinct"}
)


def is_nullable(expr: Expr, schema: Schema) -> bool:
    """Whether `expr` over rows of `schema` may be NULL."""
    match expr:
        case Column(index):
            return schema.fields[index].nullable
        case Literal(value):
            return value is None
        case Call(function, args):
            if function in _NEVER_NULL:
                return False
            if function == "coalesce":
                return all(is_nullable(arg, schema) for arg in args)
            return function in _MAY_INVENT_NULL or any(is_nullable(arg, schema) for arg in args)
        case Cast(arg, _, safe):
            return safe or is_nullable(arg, schema)
        case Case(branches, default):
            return is_nullable(default, schema) or any(is_nullable(value, schema) for _, value in branches)
        case InList(arg, items):
            return is_nullable(arg, schema) or any(is_nullable(item, schema) for item in items)
        case Exists():
            return False
        case _:
            return True

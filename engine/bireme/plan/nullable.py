"""Whether an expression can be NULL, as far as schemas and functions prove it.

A `False` is a proof; a `True` only the lack of one. When each function gives NULL is in `functions`.
"""

from __future__ import annotations

from bireme.data.schema import Schema
from bireme.plan.expr import Call, Case, Cast, Column, Exists, Expr, InList, Literal
from bireme.plan.functions import NullRule, null_rule


def is_nullable(expr: Expr, schema: Schema) -> bool:
    """Whether `expr` over rows of `schema` may be NULL."""
    match expr:
        case Column(index):
            return schema.fields[index].nullable
        case Literal(value):
            return value is None
        case Call(function, args):
            return _is_call_nullable(null_rule(function), args, schema)
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


def _is_call_nullable(rule: NullRule, args: tuple[Expr, ...], schema: Schema) -> bool:
    match rule:
        case NullRule.NEVER:
            return False
        case NullRule.ADDS:
            return True
        case NullRule.ALL:
            return all(is_nullable(arg, schema) for arg in args)
        case NullRule.STRICT | NullRule.ANY:
            return any(is_nullable(arg, schema) for arg in args)

"""Functions that a lambda is given to: what they do with each element of a list.

The lambda is typed when the list is: its parameters are elements, and behind them, where it has one more, the place of
the element in the list, from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bireme.data.types import INT32, INT64, NULL, DataType, list_of
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Lambda, Literal
from bireme.plan.functions.casting import cast_common, common_of_two, is_coercible
from bireme.plan.functions.comparison import truth
from bireme.plan.functions.lists import element, is_list
from bireme.plan.functions.registry import Args, Body, NullRule, ScalarFunction, is_null, wrong_arguments


def _checked(name: str, args: Args, body: Body, most: int) -> None:
    if len(args) != 1 or not (is_list(args[0]) or is_null(args[0])):
        raise TypeFault(f"{name} takes a list and a lambda, not {', '.join([str(arg.type) for arg in args])}")
    if body.width > most:
        raise TypeFault(f"the lambda of {name} has at most {most} parameters, not {body.width}")


def _list_type(arg: Expr) -> DataType:
    return list_of(INT32) if is_null(arg) else arg.type


def _transform(args: Args, body: Body) -> Expr:
    _checked("list_transform", args, body, 2)
    typed = body.typed((element(_list_type(args[0])), INT64)[: body.width])
    if typed.type is NULL:
        typed = Lambda(typed.parameters, Literal(None, INT32), INT32)
    if is_null(args[0]):
        return Literal(None, list_of(typed.type))
    return Call("list_transform", (args[0], typed), list_of(typed.type))


def _filter(args: Args, body: Body) -> Expr:
    _checked("list_filter", args, body, 2)
    typed = body.typed((element(_list_type(args[0])), INT64)[: body.width])
    keeps = truth(typed.body, "list_filter")
    if is_null(args[0]):
        return args[0]
    return Call("list_filter", (args[0], Lambda(typed.parameters, keeps, keeps.type)), args[0].type)


def _reduce(args: Args, body: Body) -> Expr:
    _checked("list_reduce", args[:1], body, 3)
    if len(args) > 2 or body.width < 2:
        raise TypeFault(
            "list_reduce takes a list, a lambda of the value so far and the next element, and a first value"
        )
    each = element(_list_type(args[0]))
    kind = each if len(args) == 1 or is_null(args[1]) else args[1].type
    typed = body.typed((kind, each, INT64)[: body.width])
    if not is_coercible(typed.body, kind):
        kind = _shared(kind, typed.type)
        typed = body.typed((kind, each, INT64)[: body.width])
    typed = Lambda(typed.parameters, cast_common(typed.body, kind), kind)
    if is_null(args[0]):
        return Literal(None, kind)
    start = () if len(args) == 1 else (cast_common(args[1], kind),)
    return Call("list_reduce", (args[0], typed, *start), kind)


def _shared(kind: DataType, other: DataType) -> DataType:
    found = common_of_two(kind, other)
    if found is None:
        raise TypeFault(f"list_reduce makes {other} of elements of type {kind}; cast one of them")
    return found


def _entry(
    name: str, bind: Callable[[Args, Body], Expr], doc: str, signature: str, *aliases: str, fails: bool = False
) -> ScalarFunction:
    def without(args: Args) -> Expr:
        raise wrong_arguments(name, args, (signature,))

    return ScalarFunction(name, without, (signature,), doc, aliases, NullRule.ADDS, fails, bind_lambda=bind)


FUNCTIONS: Final = (
    _entry(
        "list_transform", _transform, "What the lambda gives for each element.",
        "list_transform(list, (element, place) → any) → list",
        "array_transform", "list_apply", "array_apply", "apply",
    ),
    _entry(
        "list_filter", _filter, "The elements for which the lambda is TRUE.",
        "list_filter(list, (element, place) → boolean) → list", "array_filter", "filter",
    ),
    _entry(
        "list_reduce", _reduce,
        "The lambda's value for the value so far and the next element, up to the last; without a first value it is "
        "the first element, and an empty list is a DomainFault.",
        "list_reduce(list, (value, element, place) → any, first value) → any", "array_reduce", "reduce", fails=True,
    ),
)  # fmt: skip

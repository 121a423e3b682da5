"""Aggregates that depend on the order of rows, brought to three: first, last and collect, without FILTER.

A row that does not count is put where it is not seen: behind all others for the first, before them for the last. A text
of all values is the list of them, joined; arg_max is the first value in the order of the other argument.
"""

from __future__ import annotations

from typing import Final

from bireme.data.types import BOOL, list_of
from bireme.errors import Unsupported
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Call, Expr, SortKey
from bireme.plan.relation import Aggregate
from bireme.plan.rules.spelling import Numbers, Speller, Spelling, counted, first_part, is_null, scalar, where


def _end(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling | None:
    """first and last with FILTER."""
    if call.filter is None:
        return None
    chosen = Call("is_true", (call.filter,), BOOL)
    order = (SortKey(chosen, descending=call.function == "first"), *call.order)
    return Spelling([Aggregation(call.function, (counted(call),), call.type, order=order)], first_part)


def _any(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling | None:
    """any_value with an order: the first that is not NULL."""
    if not call.order:
        return None
    value = counted(call)
    order = (SortKey(is_null(value)), *call.order)
    return Spelling([Aggregation("first", (value,), call.type, order=order)], first_part)


def _extreme(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    """arg_min and arg_max; rows where one of both arguments is NULL do not count, unless the name says so."""
    value, by = call.args
    keeps = call.function.endswith("_null")
    tests: list[Expr] = [Call("is_not_null", (arg,), BOOL) for arg in ([by] if keeps else [value, by])]
    if call.filter is not None:
        tests.append(Call("is_true", (call.filter,), BOOL))
    counts = tests[0] if len(tests) == 1 else functions.scalar("and", tests)
    descending = call.function.startswith("arg_max")
    order = (SortKey(counts, descending=True), SortKey(by, descending, nulls_first=False), *call.order)
    return Spelling([Aggregation("first", (where(counts, value),), call.type, order=order)], first_part)


def _text(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling:
    value, separator = where(call.filter, call.args[0]), call.args[1]
    part = Aggregation("collect", (value,), list_of(value.type), call.distinct, order=call.order)
    return Spelling([part], lambda columns: scalar("array_to_string", columns[0], separator))


def _list(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling | None:
    """A list with FILTER: each value in a list of its own, so that a NULL that counts is not a row that does not."""
    if call.filter is None:
        return None
    if call.distinct:
        raise Unsupported("array_agg(DISTINCT …) FILTER (WHERE …) is not offered; filter the rows in a subquery")
    single = scalar("list_value", call.args[0])
    part = Aggregation("collect", (where(call.filter, single),), list_of(single.type), order=call.order)
    return Spelling([part], lambda columns: scalar("flatten", columns[0]))


SPELLERS: Final[dict[str, Speller]] = {
    "first": _end,
    "last": _end,
    "any_value": _any,
    "arg_min": _extreme,
    "arg_max": _extreme,
    "arg_min_null": _extreme,
    "arg_max_null": _extreme,
    "string_agg": _text,
    "array_agg": _list,
}

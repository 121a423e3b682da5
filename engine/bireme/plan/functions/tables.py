"""All functions by name and alias, and what binding a call by its name does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bireme.data.types import BOOL
from bireme.errors import NameFault, TypeFault, Unsupported
from bireme.plan.expr import Aggregation, Call, Expr, SortKey
from bireme.plan.functions import (
    aggregates,
    arithmetic,
    comparison,
    encodings,
    json,
    lambdas,
    list_parts,
    list_summaries,
    lists,
    maps,
    numeric,
    order_keys,
    paths,
    structs,
    temporal,
    text,
)
from bireme.plan.functions.casting import coerce
from bireme.plan.functions.naming import suggest
from bireme.plan.functions.registry import AggregateFunction, Body, NullRule, ScalarFunction
from bireme.records import dataclass

_OF_LISTS: Final = (lambdas, list_parts, list_summaries, lists)
_SCALARS: Final[dict[str, ScalarFunction]] = {
    name: function
    for family in (
        arithmetic,
        comparison,
        encodings,
        json,
        *_OF_LISTS,
        maps,
        numeric,
        order_keys,
        paths,
        structs,
        temporal,
        text,
    )
    for function in family.FUNCTIONS
    for name in (function.name, *function.aliases)
}
_AGGREGATES: Final = {name: entry for entry in aggregates.AGGREGATES for name in (entry.name, *entry.aliases)}
_WINDOWS: Final = {name: entry for entry in aggregates.WINDOWS for name in (entry.name, *entry.aliases)}
# Window functions that also say something as plain aggregates are found there first.
_OVER: Final = {**_WINDOWS, **_AGGREGATES}


def is_scalar(name: str) -> bool:
    """Whether there is a scalar function of this name."""
    return name in _SCALARS or name.lower() in _SCALARS


def is_aggregate(name: str) -> bool:
    """Whether there is an aggregate of this name."""
    return name.lower() in _AGGREGATES


def is_window(name: str) -> bool:
    """Whether there is a function of windows only of this name."""
    return name.lower() in _WINDOWS


def scalar(name: str, args: Sequence[Expr]) -> Expr:
    """The typed expression of a call by name or alias; NameFault or TypeFault where there is none."""
    function = _SCALARS.get(name) or _SCALARS.get(name.lower())
    if function is None:
        raise _unknown(name)
    return function.bind(tuple(args))


def with_lambda(name: str, args: Sequence[Expr], body: Body) -> Expr:
    """The typed expression of a call whose second argument is a lambda; `args` are the others."""
    function = _SCALARS.get(name.lower())
    if function is None:
        raise _unknown(name)
    if function.bind_lambda is None:
        raise Unsupported(f"{function.name} takes no lambda")
    return function.bind_lambda(tuple(args), body)


def _unknown(name: str) -> NameFault:
    lowered = name.lower()
    if lowered in _AGGREGATES:
        return NameFault(f"{lowered} is an aggregate and cannot stand here; use it in SELECT, HAVING or ORDER BY")
    if lowered in _WINDOWS:
        return NameFault(f"{lowered} is a window function; write {lowered}(…) over (…)")
    if lowered in _INSTEAD:
        return NameFault(f"{lowered} is not offered; {_INSTEAD[lowered]}")
    near = suggest(lowered, [entry for entry in (*_SCALARS, *_OVER) if entry[0].isalpha()])
    return NameFault(f'there is no function "{lowered}"{near}')


_COUNTED: Final = "group by the value and take count(*)"
_INSTEAD: Final = {
    "histogram": _COUNTED,
    "histogram_exact": _COUNTED,
    "list_histogram": "group what unnest gives by its value and take count(*)",
}


def aggregate(
    name: str,
    args: Sequence[Expr],
    *,
    distinct: bool = False,
    filter: Expr | None = None,
    order: Sequence[SortKey] = (),
) -> Aggregation:
    """The typed call of an aggregate; DISTINCT and ORDER BY that change nothing are dropped."""
    function = _AGGREGATES.get(name.lower())
    if function is None:
        raise _unknown(name)
    return _qualified(function, args, distinct, filter, order)


def window(
    name: str,
    args: Sequence[Expr],
    *,
    distinct: bool = False,
    filter: Expr | None = None,
    order: Sequence[SortKey] = (),
) -> Aggregation:
    """The typed call of an aggregate or window function, to be put in a `WindowCall`."""
    function = _OVER.get(name.lower())
    if function is None:
        raise _unknown(name)
    if function.name in _WINDOWS and (distinct or filter is not None):
        raise TypeFault(f"{function.name} takes neither DISTINCT nor FILTER")
    if order and function.name in _WINDOWS and function.ignores_order:
        raise Unsupported(f"{function.name} with an ORDER BY of its own is not supported; order the window")
    return _qualified(function, args, distinct, filter, order)


def _qualified(
    function: AggregateFunction, args: Sequence[Expr], distinct: bool, filter: Expr | None, order: Sequence[SortKey]
) -> Aggregation:
    bound = function.bind(tuple(args))
    keeps = _joined_filter(bound.filter, filter)
    if distinct and bound.function == "count_star":
        raise TypeFault("count(distinct *) is not a count of anything; name a column")
    kept_order = () if function.ignores_order else tuple(order)
    kept_distinct = distinct and not function.ignores_distinct
    if keeps is bound.filter and not kept_distinct and not kept_order:
        return bound
    return Aggregation(bound.function, bound.args, bound.type, kept_distinct, keeps, kept_order)


def _joined_filter(own: Expr | None, given: Expr | None) -> Expr | None:
    if given is None:
        return own
    condition = coerce(given, BOOL)
    return condition if own is None else comparison.conjunction((own, condition))


# ------------------------------------------------------------------------------------ what is known of each


def null_rule(function: str) -> NullRule:
    """When the scalar function of this canonical name gives NULL."""
    return _SCALARS[function].nulls


def can_fail(call: Call) -> bool:
    """Whether evaluating this call (not its arguments) can raise a DataError for some values."""
    if not _SCALARS[call.function].fails:
        return False
    return not (call.type.is_float and call.function in _NEVER_FAIL_ON_FLOATS)


_NEVER_FAIL_ON_FLOATS: Final = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "round", "trunc", "floor", "ceil"}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What documentation shows of a function. `kind` is "scalar", "aggregate" or "window"."""

    name: str
    kind: str
    aliases: tuple[str, ...]
    signatures: tuple[str, ...]
    doc: str
    nulls: str
    volatility: str


def catalog() -> tuple[Entry, ...]:
    """Every function, by kind and name."""
    unique: Iterable[ScalarFunction] = dict.fromkeys(_SCALARS.values())
    scalars = [
        Entry(f.name, "scalar", f.aliases, f.signatures, f.doc, f.nulls.value, f.volatility.value)
        for f in sorted(unique, key=lambda function: function.name)
    ]
    grouped = [
        Entry(f.name, kind, f.aliases, f.signatures, f.doc, "", "immutable")
        for kind, family in (("aggregate", aggregates.AGGREGATES), ("window", aggregates.WINDOWS))
        for f in sorted(family, key=lambda function: function.name)
    ]
    return (*scalars, *grouped)

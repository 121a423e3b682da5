"""Aggregates of the elements of a list: list_stddev_samp and its like, and list_aggr, which takes their name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bireme.data.types import BOOL, DATE, FLOAT64, HUGEINT, INT64, STRING, TIMESTAMP, DataType, Kind, list_of
from bireme.errors import NameFault, TypeFault
from bireme.plan.expr import Call, Case, Expr, Literal
from bireme.plan.functions import lists
from bireme.plan.functions.lists import as_list, element, is_list
from bireme.plan.functions.naming import suggest
from bireme.plan.functions.order_keys import has_order
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, wrong_arguments


def _summary(
    name: str,
    doc: str,
    takes: Callable[[DataType], bool],
    reads: Callable[[DataType], DataType] = lambda kind: kind,
    result: Callable[[DataType], DataType] | None = None,
    aliases: tuple[str, ...] = (),
) -> ScalarFunction:
    """An aggregate of one list, whose elements are read as another type; the result is of that, unless said."""
    signatures = (f"{name}(list)",)

    def bind(args: Args) -> Expr:
        if len(args) != 1 or not is_list(args[0]) or not takes(element(args[0].type)):
            raise wrong_arguments(name, args, signatures)
        kind = reads(element(args[0].type))
        return Call(name, (as_list(args[0], list_of(kind)),), kind if result is None else result(kind))

    return ScalarFunction(
        name, bind, signatures, doc, (*aliases, *[f"array{each[4:]}" for each in (name, *aliases)]), NullRule.ADDS
    )


def _is_number(kind: DataType) -> bool:
    return kind.is_numeric


def _double(_: DataType) -> DataType:
    return FLOAT64


def _middle(kind: DataType) -> DataType:
    """What the median of a type is computed in."""
    if kind is DATE:
        return TIMESTAMP
    return FLOAT64 if kind.is_integer or kind is HUGEINT else kind


def _has_middle(kind: DataType) -> bool:
    return kind.is_numeric or kind in (DATE, STRING) or (kind.kind is Kind.TIMESTAMP and kind.unit == "us")


def _string_agg(args: Args) -> Expr:
    """As string_agg: NULL where no element is there."""
    texts = _JOIN.bind(args)
    if len(args) == 2 and not isinstance(args[1], Literal):
        raise TypeFault("the separator of list_string_agg must be a constant")
    empty = Call("eq", (Call("list_count", (args[0],), INT64), Literal(0, INT64)), BOOL)
    return Case(((empty, Literal(None, STRING)),), texts, STRING)


_OF_LISTS: Final = {function.name: function for function in lists.FUNCTIONS}
_JOIN: Final = _OF_LISTS["array_to_string"]


_DOUBLES: Final = (
    ("list_stddev_samp", "The standard deviation of a sample.", ("list_stddev",)),
    ("list_stddev_pop", "The standard deviation of a population.", ()),
    ("list_var_samp", "The variance of a sample.", ("list_variance",)),
    ("list_var_pop", "The variance of a population.", ()),
    ("list_product", "The product.", ()),
    ("list_sem", "The standard error of the mean.", ()),
    ("list_mad", "The median of how far the values are from their median.", ()),
    ("list_skewness", "The skewness of a sample.", ()),
    ("list_kurtosis", "The excess kurtosis of a sample.", ()),
    ("list_kurtosis_pop", "The excess kurtosis of all values.", ()),
)
_SUMMARIES: Final = (
    *[_summary(name, doc, _is_number, _double, aliases=aliases) for name, doc, aliases in _DOUBLES],
    _summary("list_median", "The value in the middle.", _has_middle, _middle),
    _summary("list_entropy", "The entropy of the values, in bits.", has_order, result=lambda _: FLOAT64),
    _summary("list_mode", "The most frequent value, of several the first.", has_order),
    _summary("list_any_value", "The first value that is not NULL.", lambda _: True),
    _summary("list_bool_and", "Whether all values are TRUE.", lambda kind: kind is BOOL),
    _summary("list_bool_or", "Whether a value is TRUE.", lambda kind: kind is BOOL),
    ScalarFunction(
        "list_string_agg", _string_agg, ("list_string_agg(list, varchar constant) → varchar",),
        "The texts of the elements with the second argument between them; NULL where there is none.",
        ("array_string_agg",), NullRule.ADDS,
    ),
)  # fmt: skip


def _by_name() -> Mapping[str, ScalarFunction]:
    """The functions by the names of the aggregates that they are."""
    named = {"list_sum", "list_avg", "list_min", "list_max", "list_first", "list_last", "list_count", "list_unique"}
    plain = [function for name, function in _OF_LISTS.items() if name in named]
    found = {
        alias[5:]: each for each in (*plain, *_SUMMARIES) for alias in (each.name, *each.aliases) if alias[4] == "_"
    }
    return {
        **found,
        "mean": found["avg"],
        "approx_count_distinct": found["unique"],
        "group_concat": found["string_agg"],
    }


_BY_NAME: Final = _by_name()


def _aggregate(args: Args) -> Expr:
    name = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else None
    if not isinstance(name, str):
        raise wrong_arguments("list_aggregate", args, ("list_aggregate(list, name constant, …)",))
    function = _BY_NAME.get(name.lower())
    if function is None:
        raise NameFault(f"list_aggregate knows no aggregate '{name}'{suggest(name, _BY_NAME)}")
    return function.bind((args[0], *args[2:]))


FUNCTIONS: Final = (
    *_SUMMARIES,
    ScalarFunction(
        "list_aggregate", _aggregate, ("list_aggregate(list, name constant, …)",),
        "The aggregate of that name over the elements.", ("list_aggr", "array_aggregate", "array_aggr", "aggregate"),
        NullRule.ADDS,
    ),
)  # fmt: skip

"""Functions of maps: lists of keys and of the values beside them. A key is there at most once, and never NULL.

What looks for keys is spelled in functions of lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bireme.data.types import BOOL, INT32, INT64, UINT64, DataType, Field, Kind, list_of
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions import comparison, lists
from bireme.plan.functions.casting import cast, unify
from bireme.plan.functions.order_keys import has_order
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, is_null, wrong_arguments

_OF_LISTS: Final = {name: one for one in lists.FUNCTIONS for name in (one.name, *one.aliases)}


def map_of(key: DataType, value: DataType) -> DataType:
    """A map of keys to values."""
    return DataType(Kind.MAP, children=(Field("key", key, False), Field("value", value)))


def is_map(expr: Expr) -> bool:
    return expr.type.kind is Kind.MAP


def _keys(value: Expr) -> Expr:
    return Call("map_keys", (value,), list_of(value.type.children[0].type))


def _values(value: Expr) -> Expr:
    return Call("map_values", (value,), list_of(value.type.children[1].type))


def _entries(value: Expr) -> Expr:
    key, item = value.type.children
    return Call(
        "map_entries",
        (value,),
        list_of(DataType(Kind.STRUCT, children=(Field("key", key.type), Field("value", item.type)))),
    )


def _value_of(value: Expr, key: Expr) -> Expr:
    """`map[key]`: the value, or NULL where the key is not there."""
    place = _OF_LISTS["list_position"].bind((_keys(value), key))
    return lists.list_extract((_values(value), place))


def _values_of(value: Expr, key: Expr) -> Expr:
    """The value in a list, which is empty where the key is not there."""
    place = _OF_LISTS["list_position"].bind((_keys(value), key))
    found = lists.list_value((_value_of(value, key),))
    missing = Call("is_null", (place,), BOOL)
    empty = cast(lists.list_value(()), found.type)
    none = Literal(None, found.type)
    return comparison.case([(Call("is_null", (value,), BOOL), none), (missing, empty)], found)


def _contains(value: Expr, key: Expr) -> Expr:
    return _OF_LISTS["list_contains"].bind((_keys(value), key))


def _contains_value(value: Expr, item: Expr) -> Expr:
    return _OF_LISTS["list_contains"].bind((_values(value), item))


def _cardinality(value: Expr) -> Expr:
    return cast(Call("list_length", (_keys(value),), INT64), UINT64)


def _made(args: Args) -> Expr:
    """`map(keys, values)`."""
    if not args:
        args = (lists.list_value(()), lists.list_value(()))
    if len(args) != 2 or not all(lists.is_list(arg) or is_null(arg) for arg in args):
        raise wrong_arguments("map", args, ("map(list of keys, list of values) → map",))
    keys, values = (cast(arg, list_of(INT32)) if is_null(arg) else arg for arg in args)
    kind = map_of(lists.element(keys.type), lists.element(values.type))
    if not has_order(kind.children[0].type):
        raise TypeFault(f"the keys of a map are values that can be compared, not {kind.children[0].type}")
    return Call("map", (keys, values), kind)


def _from_entries(args: Args) -> Expr:
    """Of a list of pairs: rows, or structs of two fields."""
    kind = lists.element(args[0].type) if len(args) == 1 and lists.is_list(args[0]) else None
    if kind is None or kind.kind is not Kind.STRUCT or len(kind.children) != 2:
        raise wrong_arguments("map_from_entries", args, ("map_from_entries(list of pairs) → map",))
    made = map_of(*(child.type for child in kind.children))
    return Call("map_from_entries", args, made)


def literal(keys: list[Expr], values: list[Expr]) -> Expr:
    """`MAP {key: value, …}`."""
    return _made((lists.list_value(tuple(keys)), lists.list_value(tuple(values))))


def _concat(args: Args) -> Expr:
    """Of several values of a key the one in the last map counts; NULL is no map at all."""
    if len(args) < 2 or not all(is_map(arg) or is_null(arg) for arg in args) or all(map(is_null, args)):
        raise wrong_arguments("map_concat", args, ("map_concat(map, map, …) → map",))
    maps = unify([arg for arg in args if is_map(arg)], "map_concat")
    return Call("map_concat", tuple(maps), maps[0].type)


def _of_map(
    name: str, doc: str, result: str, count: int, make: Callable[..., Expr], *aliases: str, adds: bool = False
) -> ScalarFunction:
    """A function of a map, and of a key or a value where `count` is 2."""
    signatures = (f"{name}({'map' if count == 1 else 'map, any'}) → {result}",)

    def bind(args: Args) -> Expr:
        if len(args) != count or not is_map(args[0]):
            raise wrong_arguments(name, args, signatures)
        return make(*args)

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.ADDS if adds else NullRule.STRICT)


def _also_of_maps(name: str, of_lists: str, of_maps: ScalarFunction) -> ScalarFunction:
    """A function of lists that goes by this name for maps, too."""
    other = _OF_LISTS[of_lists]

    def bind(args: Args) -> Expr:
        return (of_maps if args and is_map(args[0]) else other).bind(args)

    signatures = (*other.signatures, *of_maps.signatures)
    return replace(of_maps, name=name, bind=bind, signatures=signatures, aliases=())


_EXTRACT: Final = _of_map(
    "map_extract",
    "The value of a key, in a list that is empty where the key is not there.",
    "list",
    2,
    _values_of,
    adds=True,
)
_COUNT: Final = _of_map("map_length", "How many keys there are.", "ubigint", 1, _cardinality)

FUNCTIONS: Final = (
    ScalarFunction(
        "map", _made, ("map(list of keys, list of values) → map",), "The keys, each with the value beside it.",
        fails=True,
    ),
    ScalarFunction(
        "map_from_entries", _from_entries, ("map_from_entries(list of pairs) → map",), "The pairs as keys and values.",
        fails=True,
    ),
    ScalarFunction(
        "map_concat", _concat, ("map_concat(map, map, …) → map",), "All entries; of one key, that of the last map.",
        (), NullRule.ALL,
    ),
    _of_map("map_keys", "The keys.", "list", 1, _keys),
    _of_map("map_values", "The values, in the order of the keys.", "list", 1, _values),
    _of_map("map_entries", "Keys and values, in structs.", "list", 1, _entries),
    _of_map("map_contains", "Whether the key is there.", "boolean", 2, _contains, "map_contains_key"),
    _of_map("map_contains_value", "Whether a key has the value.", "boolean", 2, _contains_value),
    _of_map("map_extract_value", "The value of a key; also written map[key].", "any", 2, _value_of, adds=True),
    _EXTRACT,
    _also_of_maps("element_at", "list_extract", _EXTRACT),
    _also_of_maps("cardinality", "list_length", _COUNT),
)  # fmt: skip

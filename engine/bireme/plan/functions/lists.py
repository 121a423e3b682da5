"""Functions of lists. Positions count from 1, negative ones from the end; NULL elements are values like others.

A list is of one element type; elements given beside one take that type, or all the type they share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bireme.data.types import BOOL, FLOAT64, INT32, INT64, NULL, STRING, UINT64, DataType, Kind, decimal, list_of
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Case, Cast, Expr, Literal
from bireme.plan.functions.casting import cast, coerce, unify
from bireme.plan.functions.order_keys import has_order
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, is_null, overloaded, wrong_arguments
from bireme.plan.functions.untyped import empty_list, open_type, retyped

_DIGITS_MAX: Final = 38


def element(kind: DataType) -> DataType:
    """The type of the elements of a list."""
    return kind.children[0].type


def is_list(expr: Expr) -> bool:
    return expr.type.kind is Kind.LIST


def as_list(expr: Expr, kind: DataType) -> Expr:
    """A list, its elements converted where they are of another type."""
    return expr if expr.type is kind else retyped(expr, kind) or Cast(expr, kind)


def list_value(args: Args) -> Expr:
    """`[a, b, …]`: a list of values of one type."""
    if not args:
        return empty_list(list_of(INT32))
    values = unify(args, "a list")
    if values[0].type is NULL:
        values = tuple([Literal(None, INT32) for _ in values])
    return Call("list_value", values, list_of(values[0].type))


def _of_list(
    name: str,
    doc: str,
    result: Callable[[DataType], DataType],
    *aliases: str,
    nulls: NullRule = NullRule.STRICT,
    ordered: bool = False,
) -> ScalarFunction:
    """A function of one list; `result` gives its type from that of the elements."""
    signatures = (f"{name}(list)",)

    def bind(args: Args) -> Expr:
        if len(args) == 1 and is_null(args[0]):
            return Literal(None, result(INT32))
        if len(args) != 1 or not is_list(args[0]):
            raise wrong_arguments(name, args, signatures)
        kind = element(args[0].type)
        if ordered and not has_order(kind):
            raise TypeFault(f"{name} takes lists of values that can be compared, not {args[0].type}")
        return Call(name, args, result(kind))

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls)


def _with_element(name: str, doc: str, result: DataType, *aliases: str, nulls: NullRule) -> ScalarFunction:
    """A function of a list and a value that may be in it."""
    signatures = (f"{name}(list, any) → {result}",)

    def bind(args: Args) -> Expr:
        if len(args) != 2 or not (is_list(args[0]) or is_null(args[0])):
            raise wrong_arguments(name, args, signatures)
        if is_null(args[0]):
            return Literal(None, result)
        sample, value = unify((Literal(None, element(open_type(args[0]))), args[1]), name)
        kind = sample.type if sample.type is not NULL else element(args[0].type)
        return Call(name, (as_list(args[0], list_of(kind)), coerce(value, kind)), result)

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls)


def _added(name: str, doc: str, *aliases: str, at_end: bool) -> ScalarFunction:
    """list_append(list, value) and list_prepend(value, list)."""
    signatures = (f"{name}({'list, any' if at_end else 'any, list'}) → list",)

    def bind(args: Args) -> Expr:
        if len(args) != 2 or not is_list(args[0 if at_end else 1]):
            raise wrong_arguments(name, args, signatures)
        single = list_value((args[1 if at_end else 0],))
        return _concat((args[0], single) if at_end else (single, args[1]))

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.NEVER)


def _concat(args: Args) -> Expr:
    """Lists one after the other; a NULL is no list at all."""
    if not args or not all(is_list(arg) or is_null(arg) for arg in args):
        raise wrong_arguments("list_concat", args, ("list_concat(list, …) → list",))
    lists = [arg for arg in args if is_list(arg)]
    if not lists:
        return Literal(None, list_of(INT32))
    kind = list_of(_common(lists))
    return Call("list_concat", tuple([as_list(arg, kind) if is_list(arg) else cast(arg, kind) for arg in args]), kind)


def joined(args: Args) -> Expr:
    """`list || list`: NULL where one is."""
    together = _concat(args)
    if any(map(is_null, args)) or not isinstance(together, Call):
        return Literal(None, together.type)
    missing = Call("or", tuple([Call("is_null", (arg,), BOOL) for arg in together.args]), BOOL)
    return Case(((missing, Literal(None, together.type)),), together, together.type)


def _common(lists: list[Expr]) -> DataType:
    kind = unify([_a_value(element(open_type(arg))) for arg in lists], "a list")[0].type
    return INT32 if kind is NULL else kind


def _a_value(kind: DataType) -> Expr:
    """An expression of a type, of which nothing else matters."""
    return Call("list_extract", (), kind)


def _pair(name: str, doc: str, result: DataType | None, *aliases: str) -> ScalarFunction:
    """A function of two lists; without a `result`, of the type they share."""
    signatures = (f"{name}(list, list)",)

    def bind(args: Args) -> Expr:
        if len(args) == 2 and (is_null(args[0]) or (result is not None and is_null(args[1]))):
            return Literal(None, result or list_of(INT32))
        if len(args) == 2 and is_null(args[1]):
            args = (args[0], Literal(None, args[0].type))
        if len(args) != 2 or not all(map(is_list, args)):
            raise wrong_arguments(name, args, signatures)
        kind = list_of(_common(list(args)))
        return Call(name, tuple([as_list(arg, kind) for arg in args]), result or kind)

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.STRICT if result else NullRule.ANY)


def list_extract(args: Args) -> Expr:
    """The element at a position, or the character of a text."""
    if len(args) != 2 or not (is_list(args[0]) or args[0].type is STRING or is_null(args[0])):
        raise wrong_arguments("list_extract", args, ("list_extract(list, bigint) → the type of the elements",))
    index = coerce(args[1], INT64)
    if is_null(args[0]):
        return Literal(None, INT32)
    if args[0].type is STRING:
        return Call("substring", (args[0], index, Literal(1, INT64)), STRING)
    return Call("list_extract", (args[0], index), element(args[0].type))


def place(arg: Expr) -> Expr:
    """A position in a list; NULL is given a type."""
    return cast(arg, INT64) if arg.type is NULL else coerce(arg, INT64)


def list_slice(args: Args) -> Expr:
    """The elements between two positions, both included; NULL is the start or the end."""
    if len(args) == 4 and is_list(args[0]):
        return stepped_slice(args)
    if len(args) != 3 or not (is_list(args[0]) or args[0].type is STRING):
        raise wrong_arguments("list_slice", args, ("list_slice(list, bigint, bigint) → list",))
    return Call("list_slice", (args[0], *map(place, args[1:])), args[0].type)


def stepped_slice(args: Args) -> Expr:
    """Every so many of the elements between two positions."""
    if len(args) != 4 or not is_list(args[0]):
        raise wrong_arguments("list_slice_step", args, ("list_slice_step(list, bigint, bigint, bigint) → list",))
    return Call("list_slice_step", (args[0], *map(place, args[1:])), args[0].type)


def _joined(args: Args) -> Expr:
    if len(args) not in (1, 2) or not (is_list(args[0]) or is_null(args[0])):
        raise wrong_arguments("array_to_string", args, ("array_to_string(list, varchar) → varchar",))
    separator = coerce(args[1], STRING) if len(args) == 2 else Literal(",", STRING)
    if is_null(args[0]):
        return Literal(None, STRING)
    return Call("array_to_string", (as_list(args[0], list_of(STRING)), separator), STRING)


def _flatten(args: Args) -> Expr:
    if len(args) != 1 or not (is_list(args[0]) and element(args[0].type).kind is Kind.LIST):
        raise wrong_arguments("flatten", args, ("flatten(list of lists) → list",))
    return Call("flatten", args, element(args[0].type))


def _sorted(name: str, doc: str, *aliases: str) -> ScalarFunction:
    """list_sort: the order and the place of NULLs are constants."""
    signatures = (f"{name}(list, varchar constant, varchar constant) → list",)

    def bind(args: Args) -> Expr:
        if not 1 <= len(args) <= 3 or not is_list(args[0]) or not has_order(element(args[0].type)):
            raise wrong_arguments(name, args, signatures)
        flags = sort_flags(name, args[1:], reverse=name == "list_reverse_sort")
        return Call("list_sort", (args[0], *flags), args[0].type)

    return ScalarFunction(name, bind, signatures, doc, aliases)


def sort_flags(name: str, args: Args, *, reverse: bool = False) -> tuple[Expr, Expr]:
    """Whether an order given by words is descending, and whether NULLs come first in it."""
    words = [_word(name, arg) for arg in args]
    descending = bool(words) and not reverse and words[0] in ("desc", "descending")
    placed = words[-1] if len(words) == (1 if reverse else 2) else "nulls last"
    known = {"asc", "ascending", "desc", "descending"}
    if (words and not reverse and words[0] not in known) or placed not in ("nulls first", "nulls last"):
        raise TypeFault(f"{name} takes 'ASC' or 'DESC', then 'NULLS FIRST' or 'NULLS LAST'")
    return Literal(descending or reverse, BOOL), Literal(placed == "nulls first", BOOL)


def _word(name: str, arg: Expr) -> str:
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        raise TypeFault(f"the order of {name} must be a constant such as 'DESC'")
    return " ".join(arg.value.lower().split())


def _sum_type(kind: DataType) -> DataType:
    if kind.kind is Kind.DECIMAL:
        return decimal(_DIGITS_MAX, kind.scale)
    return FLOAT64 if kind.is_float else decimal(_DIGITS_MAX, 0)


def _of_numbers(name: str, doc: str, result: Callable[[DataType], DataType], *aliases: str) -> ScalarFunction:
    signatures = (f"{name}(list of numbers)",)

    def bind(args: Args) -> Expr:
        if len(args) != 1 or not is_list(args[0]) or not element(args[0].type).is_numeric:
            raise wrong_arguments(name, args, signatures)
        return Call(name, args, result(element(args[0].type)))

    return ScalarFunction(name, bind, signatures, doc, aliases, NullRule.ADDS, fails=True)


def _same_list(kind: DataType) -> DataType:
    return list_of(kind)


def _same(kind: DataType) -> DataType:
    return kind


_SERIES: Final = tuple(((INT64,) * count, list_of(INT64)) for count in (1, 2, 3))

FUNCTIONS: Final = (
    ScalarFunction(
        "list_value", list_value, ("list_value(any, …) → list",), "A list of values.", ("list_pack",), NullRule.NEVER
    ),
    _of_list("list_length", "How many elements the list has.", lambda _: INT64, "array_length"),
    _of_list("list_distinct", "The different elements that are not NULL.", _same_list, "array_distinct", ordered=True),
    _of_list(
        "list_unique", "How many different elements there are.", lambda _: UINT64, "array_unique",
        "list_approx_count_distinct", "array_approx_count_distinct", ordered=True,
    ),
    _of_list("list_reverse", "The elements in the opposite order.", _same_list, "array_reverse"),
    _of_list("list_min", "The least element.", _same, "array_min", nulls=NullRule.ADDS, ordered=True),
    _of_list("list_max", "The greatest element.", _same, "array_max", nulls=NullRule.ADDS, ordered=True),
    _of_list("list_first", "The first element.", _same, "array_first", nulls=NullRule.ADDS),
    _of_list("list_last", "The last element.", _same, "array_last", nulls=NullRule.ADDS),
    _of_list("list_count", "How many elements are not NULL.", lambda _: INT64, "array_count"),
    _of_numbers("list_sum", "The sum of the elements.", _sum_type, "array_sum"),
    _of_numbers("list_avg", "The mean of the elements.", lambda _: FLOAT64, "array_avg"),
    _with_element(
        "list_contains", "Whether the value is in the list; no list without elements has NULL.", BOOL, "array_contains",
        "list_has", "array_has", nulls=NullRule.ANY,
    ),
    _with_element(
        "list_position", "Where the value first is in the list, from 1; NULL where it is not.", INT32, "array_position",
        "list_indexof", "array_indexof", nulls=NullRule.ADDS,
    ),
    _added("list_append", "With the value behind the last element.", "array_append", "array_push_back", at_end=True),
    _added("list_prepend", "With the value before the first element.", "array_prepend", at_end=False),
    ScalarFunction(
        "list_concat", _concat, ("list_concat(list, …) → list",), "The lists in one; NULL is an empty one.",
        ("list_cat", "array_concat", "array_cat"), NullRule.NEVER,
    ),
    _pair("list_has_any", "Whether the lists share an element.", BOOL, "array_has_any", "&&"),
    _pair("list_has_all", "Whether all elements of the second are in the first.", BOOL, "array_has_all", "@>"),
    _pair("list_intersect", "The different elements that are in both.", None, "array_intersect"),
    ScalarFunction(
        "list_extract", list_extract, ("list_extract(list, bigint)",), "The element at a position.",
        ("list_element", "array_extract"), NullRule.ADDS,
    ),
    ScalarFunction(
        "list_slice", list_slice, ("list_slice(list, bigint, bigint) → list",),
        "The elements from one position to another.", ("array_slice",), NullRule.ADDS,
    ),
    ScalarFunction(
        "array_to_string", _joined, ("array_to_string(list, varchar) → varchar",),
        "The texts of the elements that are not NULL, with the second argument between them; NULL where all are NULL.",
        ("list_to_string", "array_join"), NullRule.ADDS,
    ),
    ScalarFunction("flatten", _flatten, ("flatten(list of lists) → list",), "The elements of the elements."),
    _sorted("list_sort", "The elements in order, NULLs last unless said otherwise.", "array_sort"),
    _sorted("list_reverse_sort", "The elements in descending order.", "array_reverse_sort"),
    overloaded("range", "The numbers from the first to before the second, by the third.", *_SERIES, fails=True),
    overloaded("generate_series", "The numbers from the first to the second, by the third.", *_SERIES, fails=True),
    overloaded(
        "string_split", "The parts of a text between separators.", ((STRING, STRING), list_of(STRING)),
        aliases=("split", "str_split", "string_to_array"),
    ),
    overloaded(
        "string_split_regex", "The parts of a text between matches of a regular expression.",
        ((STRING, STRING), list_of(STRING)), aliases=("str_split_regex", "regexp_split_to_array"), fails=True,
    ),
    overloaded(
        "regexp_extract_all", "All matches of a regular expression, or the group of that number in each.",
        ((STRING, STRING), list_of(STRING)), ((STRING, STRING, INT32), list_of(STRING)), fails=True,
    ),
)  # fmt: skip

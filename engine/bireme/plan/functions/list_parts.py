"""Functions of lists by places and masks, lists beside each other, and lists of numbers as vectors."""

from __future__ import annotations

from typing import Final

from bireme.data.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, DataType, Field, Kind, list_of
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import cast, coerce
from bireme.plan.functions.lists import as_list, element, is_list, place, sort_flags, stepped_slice
from bireme.plan.functions.order_keys import has_order
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, is_null, wrong_arguments


def _chosen(name: str, doc: str, by: DataType, *aliases: str) -> ScalarFunction:
    """The elements that a second list chooses."""
    signatures = (f"{name}(list, {by}[]) → list",)

    def bind(args: Args) -> Expr:
        if len(args) != 2 or not all(is_list(arg) or is_null(arg) for arg in args):
            raise wrong_arguments(name, args, signatures)
        if is_null(args[0]) or is_null(args[1]):
            return Literal(None, list_of(INT32) if is_null(args[0]) else args[0].type)
        return Call(name, (args[0], coerce(args[1], list_of(by))), args[0].type)

    return ScalarFunction(name, bind, signatures, doc, aliases, fails=True)


def _resize(args: Args) -> Expr:
    if len(args) not in (2, 3) or not (is_list(args[0]) or is_null(args[0])):
        raise wrong_arguments("list_resize", args, ("list_resize(list, bigint, any) → list",))
    if is_null(args[0]):
        return Literal(None, list_of(INT32))
    kind = element(args[0].type)
    filling = coerce(args[2], kind) if len(args) == 3 else Literal(None, kind)
    return Call("list_resize", (args[0], place(args[1]), filling), args[0].type)


def _zip(args: Args) -> Expr:
    truncates: Expr = Literal(False, BOOL)
    if len(args) > 1 and args[-1].type is BOOL:
        truncates, args = args[-1], args[:-1]
    if not args or not all(is_list(arg) or is_null(arg) for arg in args):
        raise wrong_arguments("list_zip", args, ("list_zip(list, …, boolean) → list of rows",))
    lists = tuple([cast(arg, list_of(INT32)) if is_null(arg) else arg for arg in args])
    fields = tuple([Field(f"element{place}", element(each.type)) for place, each in enumerate(lists, start=1)])
    return Call("list_zip", (*lists, truncates), list_of(DataType(Kind.STRUCT, children=fields)))


def _grade_up(args: Args) -> Expr:
    if not 1 <= len(args) <= 3 or not is_list(args[0]) or not has_order(element(args[0].type)):
        raise wrong_arguments("list_grade_up", args, ("list_grade_up(list, varchar constant, varchar constant)",))
    return Call("list_grade_up", (args[0], *sort_flags("list_grade_up", args[1:])), list_of(INT64))


def _without_end(name: str, first: int, last: int) -> ScalarFunction:
    def bind(args: Args) -> Expr:
        if len(args) != 1 or not is_list(args[0]):
            raise wrong_arguments(name, args, (f"{name}(list) → list",))
        return Call("list_slice", (args[0], Literal(first, INT64), Literal(last, INT64)), args[0].type)

    doc = f"Without the {'first' if first > 1 else 'last'} element."
    return ScalarFunction(name, bind, (f"{name}(list) → list",), doc, (f"list{name[5:]}",))


def _of_vectors(name: str, doc: str, *aliases: str, nulls: NullRule = NullRule.STRICT) -> ScalarFunction:
    """A function of two lists of as many numbers, none of them NULL."""
    signatures = (f"{name}(list of numbers, list of numbers) → double",)

    def bind(args: Args) -> Expr:
        vectors = [arg for arg in args if not is_null(arg)]
        if len(args) != 2 or not all(is_list(arg) and element(arg.type).is_numeric for arg in vectors):
            raise wrong_arguments(name, args, signatures)
        narrow = vectors and all(element(arg.type) is FLOAT32 for arg in vectors)
        kind = FLOAT32 if narrow else FLOAT64
        if len(vectors) < 2:
            return Literal(None, kind)
        return Call(name, tuple([as_list(arg, list_of(kind)) for arg in args]), kind)

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls, fails=True)


FUNCTIONS: Final = (
    _chosen("list_where", "The elements whose place in the second list is TRUE.", BOOL, "array_where"),
    _chosen("list_select", "The elements at the places in the second list; NULL for others.", INT64, "array_select"),
    ScalarFunction(
        "list_resize", _resize, ("list_resize(list, bigint, any) → list",),
        "With so many elements: cut, or filled up with the third argument or NULL.", ("array_resize",), NullRule.ADDS,
        fails=True,
    ),
    ScalarFunction(
        "list_zip", _zip, ("list_zip(list, …, boolean) → list of rows",),
        "Rows of the elements at each place, up to the end of the longest list; of the shortest where TRUE comes last.",
        ("array_zip",), NullRule.NEVER,
    ),
    ScalarFunction(
        "list_grade_up", _grade_up, ("list_grade_up(list, varchar constant, varchar constant) → bigint[]",),
        "The places of the elements in their order.", ("array_grade_up", "grade_up"),
    ),
    ScalarFunction(
        "list_slice_step", stepped_slice, ("list_slice_step(list, bigint, bigint, bigint) → list",),
        "Every so many elements from one position to another; backwards where the step is negative.", (),
        NullRule.ADDS, fails=True,
    ),
    _without_end("array_pop_back", 1, -2),
    _without_end("array_pop_front", 2, -1),
    _of_vectors("list_distance", "The Euclidean distance.", "array_distance"),
    _of_vectors(
        "list_inner_product", "The sum of products.", "list_dot_product", "array_inner_product", "array_dot_product"
    ),
    _of_vectors(
        "list_negative_inner_product", "The sum of products with the other sign.", "list_negative_dot_product",
        "array_negative_inner_product", "array_negative_dot_product",
    ),
    _of_vectors(
        "list_cosine_similarity", "The cosine of the angle.", "array_cosine_similarity", nulls=NullRule.ADDS
    ),
    _of_vectors(
        "list_cosine_distance", "1 less the cosine of the angle.", "array_cosine_distance", nulls=NullRule.ADDS
    ),
)  # fmt: skip

"""Texts in JSON: the parts that a path leads to, as JSON or as plain text, and what they are. They stay texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.types import BOOL, STRING, UINT64, DataType
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import coerce
from bireme.plan.functions.json_paths import PathError, parse_path
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, wrong_arguments


def _path(arg: Expr) -> Expr:
    """A path as a text; a whole number is the place of an element."""
    if isinstance(arg, Literal) and isinstance(arg.value, int) and arg.type.is_integer:
        return Literal(f"$[{arg.value:d}]", STRING)
    if isinstance(arg, Literal) and isinstance(arg.value, str):
        try:
            parse_path(arg.value)
        except PathError as error:
            raise TypeFault(str(error)) from None
    return coerce(arg, STRING)


def _function(
    name: str, result: DataType, doc: str, counts: Sequence[int], *, nulls: NullRule, aliases: tuple[str, ...] = ()
) -> ScalarFunction:
    """A function of a text, and of a path where it takes as many arguments as `counts` says."""
    ways = {1: f"{name}(varchar) → {result}", 2: f"{name}(varchar, path) → {result}"}
    signatures = tuple([ways[count] for count in counts])

    def bind(args: Args) -> Expr:
        if len(args) not in counts or args[0].type.is_nested or not (args[0].type is STRING or _is_null(args[0])):
            raise wrong_arguments(name, args, signatures)
        paths = [_path(arg) for arg in args[1:]]
        return Call(name, (coerce(args[0], STRING), *paths), result)

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls, fails=name != "json_valid")


def _is_null(arg: Expr) -> bool:
    return isinstance(arg, Literal) and arg.value is None


_ADDS: Final = NullRule.ADDS
_STRICT: Final = NullRule.STRICT

FUNCTIONS: Final = (
    _function("json", STRING, "The text in JSON without spaces; an error where it is malformed.", (1,), nulls=_STRICT),
    _function("json_checked", STRING, "The text as it is; an error where it is malformed.", (1,), nulls=_STRICT),
    _function(
        "json_extract", STRING, "What the path leads to, as JSON; also written text -> path.", (2,), nulls=_ADDS,
        aliases=("json_extract_path",),
    ),
    _function(
        "json_extract_string", STRING,
        "What the path leads to, as plain text, and NULL for null; also written text ->> path.", (2,), nulls=_ADDS,
        aliases=("json_extract_path_text",),
    ),
    _function("json_value", STRING, "What the path leads to, as JSON, where that is one value.", (2,), nulls=_ADDS),
    _function("json_type", STRING, "What the text, or what the path leads to, is.", (1, 2), nulls=_ADDS),
    _function("json_array_length", UINT64, "How many elements an array has; others have 0.", (1, 2), nulls=_ADDS),
    _function("json_exists", BOOL, "Whether the path leads to something.", (2,), nulls=_STRICT),
    _function("json_valid", BOOL, "Whether the text is well formed.", (1,), nulls=_STRICT),
)  # fmt: skip

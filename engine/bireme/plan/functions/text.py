"""Functions of texts. Positions count code points from 1; order and equality are those of the UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bireme.data.types import BINARY, BOOL, INT32, INT64, STRING, UINT64
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions import lists
from bireme.plan.functions.casting import cast
from bireme.plan.functions.registry import (
    Args,
    NullRule,
    Overload,
    ScalarFunction,
    choose,
    overloaded,
    signature,
    wrong_arguments,
)

_REGEX_OPTIONS: Final = frozenset("cimnpsgl")


def _joined(name: str, doc: str, minimum: int, maximum: int | None, nulls: NullRule, *aliases: str) -> ScalarFunction:
    """A function of texts that takes any type, as its text."""
    signatures = (f"{name}(any, …) → varchar",)

    def bind(args: Args) -> Expr:
        if len(args) < minimum or (maximum is not None and len(args) > maximum):
            raise wrong_arguments(name, args, signatures)
        texts = tuple([arg if arg.type is STRING else _as_text(name, arg) for arg in args])
        return Call(name, texts, STRING)

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls)


def _as_text(name: str, arg: Expr) -> Expr:
    if arg.type.is_nested:
        raise TypeFault(f"{name} cannot write {arg.type} as text")
    return cast(arg, STRING)


def _with_constants(
    name: str,
    doc: str,
    *overloads: Overload,
    first: int,
    check: Callable[[str, Args], None],
    aliases: tuple[str, ...] = (),
) -> ScalarFunction:
    """A function whose arguments from position `first` must be constants that pass `check`."""
    signatures = tuple(signature(name, overload) for overload in overloads)

    def bind(args: Args) -> Expr:
        params, result = choose(name, overloads, args, signatures)
        coerced = tuple([arg if arg.type is kind else cast(arg, kind) for arg, kind in zip(args, params, strict=True)])
        for arg in coerced[first:]:
            if not isinstance(arg, Literal):
                raise TypeFault(f"the last arguments of {name} must be constants")
        check(name, coerced)
        return Call(name, coerced, result)

    return ScalarFunction(name, bind, signatures, doc, aliases, fails=True)


def _check_escape(name: str, args: Args) -> None:
    if len(args) < 3:
        return
    escape = args[2]
    assert isinstance(escape, Literal)
    if escape.value is not None and len(str(escape.value)) > 1:
        raise TypeFault(f"the escape of {name} must be one character or empty, not {escape.value!r}")


def _check_options(name: str, args: Args) -> None:
    """Letters that say how a regular expression is matched; they come last."""
    options = args[-1]
    if not isinstance(options, Literal) or options.type is not STRING or len(args) < _OPTIONS_PLACE[name]:
        return
    known = _REGEX_OPTIONS if name == "regexp_replace" else _REGEX_OPTIONS - {"g"}
    unknown = sorted(set(str(options.value or "")) - known)
    if unknown:
        raise TypeFault(f"{name} knows no option {unknown[0]!r}; options are {', '.join(sorted(known))}")


def _check_extract(name: str, args: Args) -> None:
    _check_options(name, args)
    group = args[2].value if len(args) > 2 and isinstance(args[2], Literal) else None
    if isinstance(group, int) and not 0 <= group <= _GROUP_MAX:
        raise TypeFault(f"{name} takes the number of a group, 0 to {_GROUP_MAX}, not {group}")


# As in DuckDB; 0 is the whole match.
_GROUP_MAX: Final = 9
_OPTIONS_PLACE: Final = {"regexp_matches": 3, "regexp_full_match": 3, "regexp_replace": 4, "regexp_extract": 4}

_TEXT_TO_TEXT: Final = ((STRING,), STRING)
_TWO_TO_BOOL: Final = ((STRING, STRING), BOOL)
_TEXT_COUNT: Final = ((STRING, INT64), STRING)
_PAD: Final = ((STRING, INT64, STRING), STRING)
_TRIM: Final = (_TEXT_TO_TEXT, ((STRING, STRING), STRING))
_LIKE: Final = (_TWO_TO_BOOL, ((STRING, STRING, STRING), BOOL))


def _like(name: str, doc: str, *aliases: str) -> ScalarFunction:
    return _with_constants(name, doc, *_LIKE, first=2, check=_check_escape, aliases=aliases)


def _hash(args: Args) -> Expr:
    if not args or any(arg.type.is_nested for arg in args):
        raise wrong_arguments("hash", args, ("hash(any, …) → ubigint",))
    return Call("hash", args, UINT64)


def _also_of_lists(function: ScalarFunction, of_lists: str) -> ScalarFunction:
    """The function, of lists also, by the function of them that is called `of_lists`."""
    other = _OF_LISTS[of_lists]

    def bind(args: Args) -> Expr:
        return (other if any(map(lists.is_list, args)) else function).bind(args)

    return replace(function, bind=bind, signatures=(*function.signatures, *other.signatures))


def _concat_op(args: Args) -> Expr:
    if len(args) == 2 and all(arg.type is BINARY for arg in args):
        return Call("concat_op", args, BINARY)
    return lists.joined(args) if any(map(lists.is_list, args)) else _CONCAT_OP.bind(args)


_CONCAT_OP: Final = _joined("concat_op", "", 2, 2, NullRule.STRICT, "||")
_OF_LISTS: Final = {function.name: function for function in lists.FUNCTIONS}

FUNCTIONS: Final = (
    _like("like", "Whether the text matches the pattern (% any text, _ one character).", "~~"),
    _like("ilike", "As like, without regard to case.", "~~*"),
    overloaded(
        "starts_with", "Whether the text begins with the second.", _TWO_TO_BOOL, aliases=("prefix", "^@", "startswith")
    ),
    overloaded("ends_with", "Whether the text ends with the second.", _TWO_TO_BOOL, aliases=("suffix", "endswith")),
    _also_of_lists(
        overloaded("contains", "Whether the second text occurs in the first.", _TWO_TO_BOOL), "list_contains"
    ),
    _with_constants(
        "regexp_matches",
        "Whether the regular expression occurs in the text.",
        _TWO_TO_BOOL,
        ((STRING, STRING, STRING), BOOL),
        first=2,
        check=_check_options,
        aliases=("regexp_like",),
    ),
    _with_constants(
        "regexp_full_match",
        "Whether the regular expression matches the whole text.",
        _TWO_TO_BOOL,
        ((STRING, STRING, STRING), BOOL),
        first=2,
        check=_check_options,
        aliases=("similar to",),
    ),
    _with_constants(
        "regexp_replace",
        "The text with the first match (all with option g) replaced; \\1 stands for a group.",
        ((STRING, STRING, STRING), STRING),
        ((STRING, STRING, STRING, STRING), STRING),
        first=3,
        check=_check_options,
    ),
    _with_constants(
        "regexp_extract",
        "The first match, or the group of that number in it; empty where nothing matches.",
        ((STRING, STRING), STRING),
        ((STRING, STRING, INT32), STRING),
        ((STRING, STRING, INT32, STRING), STRING),
        first=2,
        check=_check_extract,
    ),
    overloaded(
        "substring",
        "From a position, so many characters; a negative position counts from the end.",
        ((STRING, INT64), STRING),
        ((STRING, INT64, INT64), STRING),
        aliases=("substr",),
    ),
    overloaded("glob", "Whether the text matches the pattern: * any text, ? one character, [a-z].", _TWO_TO_BOOL),
    overloaded("lower", "In lower case.", _TEXT_TO_TEXT, aliases=("lcase",)),
    overloaded("upper", "In upper case.", _TEXT_TO_TEXT, aliases=("ucase",)),
    _joined("concat", "The texts of all values, one after the other; NULLs are skipped.", 1, None, NullRule.NEVER),
    replace(
        _joined("concat_op", "Both texts (or blobs, or lists), one after the other.", 2, 2, NullRule.STRICT, "||"),
        bind=_concat_op,
    ),
    _joined("concat_ws", "The texts of all values but the first, with the first between them.", 2, None, NullRule.ANY),
    overloaded("trim", "Without the blanks (or the given characters) at both ends.", *_TRIM, aliases=("btrim",)),
    overloaded("ltrim", "Without the blanks (or the given characters) at the start.", *_TRIM),
    overloaded("rtrim", "Without the blanks (or the given characters) at the end.", *_TRIM),
    _also_of_lists(
        overloaded(
            "length",
            "How many characters the text has.",
            ((STRING,), INT64),
            aliases=("len", "char_length", "character_length"),
        ),
        "list_length",
    ),
    overloaded("octet_length", "How many bytes it has.", ((BINARY,), INT64), ((STRING,), INT64), aliases=("strlen",)),
    overloaded(
        "replace", "With every occurrence of the second text replaced by the third.", ((STRING, STRING, STRING), STRING)
    ),
    overloaded(
        "split_part",
        "The part of that number between separators, from the end if negative; empty if there is none.",
        ((STRING, STRING, INT64), STRING),
    ),
    overloaded("left", "The first characters; all but the last ones if negative.", _TEXT_COUNT),
    overloaded("right", "The last characters; all but the first ones if negative.", _TEXT_COUNT),
    overloaded("lpad", "Padded on the left with the third text, or cut, to that length.", _PAD, fails=True),
    overloaded("rpad", "Padded on the right with the third text, or cut, to that length.", _PAD, fails=True),
    overloaded("reverse", "The characters in the opposite order.", _TEXT_TO_TEXT),
    overloaded("repeat", "The text so many times.", _TEXT_COUNT, fails=True),
    overloaded(
        "position",
        "Where the second text first occurs in the first, from 1; 0 where it does not.",
        ((STRING, STRING), INT64),
        aliases=("strpos", "instr"),
    ),
    overloaded(
        "ascii",
        "The code point of the first character, 0 for an empty text.",
        ((STRING,), INT32),
    ),
    overloaded(
        "unicode",
        "The code point of the first character, -1 for an empty text.",
        ((STRING,), INT32),
        aliases=("ord",),
    ),
    overloaded("chr", "The character with that code point.", ((INT32,), STRING), fails=True),
    ScalarFunction(
        "hash", _hash, ("hash(any, …) → ubigint",), "The engine's hash of the values; never NULL.", nulls=NullRule.NEVER
    ),
)

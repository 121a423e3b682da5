"""Digests and spellings of texts, blobs and numbers, and how far texts are apart."""

from __future__ import annotations

from typing import Final

from bireme.data.types import BINARY, FLOAT64, INT8, INT16, INT32, INT64, NULL, STRING, UINT64, DataType, Kind
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import cast
from bireme.plan.functions.conversion import is_row
from bireme.plan.functions.registry import Args, NullRule, ScalarFunction, overloaded, wrong_arguments

_TEXT: Final = ((STRING,), STRING)
_BLOB: Final = ((BINARY,), STRING)
_TWO_TEXTS: Final = (STRING, STRING)


def _of_number_or_text(name: str, doc: str, *aliases: str, takes_blobs: bool = True) -> ScalarFunction:
    signatures = (f"{name}(integer or varchar) → varchar",)

    def bind(args: Args) -> Expr:
        if len(args) != 1:
            raise wrong_arguments(name, args, signatures)
        kind = args[0].type
        if kind is NULL:
            return Literal(None, STRING)
        if kind.is_integer:
            return Call(name, (cast(args[0], UINT64 if kind is UINT64 else INT64),), STRING)
        if kind is STRING or (kind is BINARY and takes_blobs):
            return Call(name, args, STRING)
        raise wrong_arguments(name, args, signatures)

    return ScalarFunction(name, bind, signatures, doc, aliases)


def _typeof(args: Args) -> Expr:
    if len(args) != 1:
        raise wrong_arguments("typeof", args, ("typeof(any) → varchar",))
    return Literal(type_name(args[0].type), STRING)


def type_name(kind: DataType) -> str:
    """A type as DuckDB writes it."""
    match kind.kind:
        case Kind.NULL:
            return '"NULL"'
        case Kind.DECIMAL if kind.scale == 0 and kind.precision == 38:
            return "HUGEINT"
        case Kind.LIST:
            return f"{type_name(kind.children[0].type)}[]"
        case Kind.TIMESTAMP if kind.zone:
            return "TIMESTAMP WITH TIME ZONE"
        case Kind.STRUCT if is_row(kind):
            return f"TUPLE({', '.join(type_name(child.type) for child in kind.children)})"
        case Kind.MAP:
            return f"MAP({', '.join(type_name(child.type) for child in kind.children)})"
        case Kind.STRUCT:
            fields = ", ".join(f"{child.name} {type_name(child.type)}" for child in kind.children)
            return f"STRUCT({fields})"
    return str(kind).upper()


def _format(args: Args) -> Expr:
    """format(template, …): the values come as texts or numbers, of which the template says how they are written."""
    return _formatted("format", args)


def _printf(args: Args) -> Expr:
    return _formatted("printf", args)


def _formatted(name: str, args: Args) -> Expr:
    signatures = (f"{name}(varchar constant, any, …) → varchar",)
    if not args or args[0].type is not STRING:
        raise wrong_arguments(name, args, signatures)
    if not isinstance(args[0], Literal):
        raise TypeFault(f"the template of {name} must be a constant")
    return Call(name, (args[0], *map(_writable, args[1:])), STRING)


def _writable(arg: Expr) -> Expr:
    """As a whole number of any size, a float or a text."""
    kind = arg.type
    if kind.is_integer or kind.is_float or kind is STRING or (kind.kind is Kind.DECIMAL and kind.scale == 0):
        return arg
    return cast(arg, FLOAT64 if kind.kind is Kind.DECIMAL else STRING)


def _similarity(name: str, doc: str) -> ScalarFunction:
    """A similarity of texts; with a third argument, 0 for what is less."""
    with_least = ((STRING, STRING, FLOAT64), FLOAT64)
    return overloaded(name, doc, (_TWO_TEXTS, FLOAT64), with_least)


FUNCTIONS: Final = (
    overloaded("md5", "The MD5 digest, in hexadecimal.", _TEXT, _BLOB),
    overloaded("sha1", "The SHA-1 digest, in hexadecimal.", _TEXT, _BLOB),
    overloaded("sha256", "The SHA-256 digest, in hexadecimal.", _TEXT, _BLOB),
    overloaded("to_base64", "The bytes in base 64.", _BLOB, aliases=("base64",)),
    overloaded("from_base64", "The bytes that a text in base 64 stands for.", ((STRING,), BINARY), fails=True),
    _of_number_or_text("hex", "In hexadecimal digits: of a number, or of the bytes of a text.", "to_hex"),
    overloaded(
        "unhex", "The bytes that hexadecimal digits stand for.", ((STRING,), BINARY), aliases=("from_hex",), fails=True
    ),
    _of_number_or_text("bin", "In binary digits.", "to_binary"),
    overloaded("encode", "The bytes of a text.", ((STRING,), BINARY)),
    overloaded("decode", "The text that bytes are.", _BLOB, fails=True),
    overloaded("url_encode", "With every character that a URL cannot hold as %XX.", _TEXT),
    overloaded("url_decode", "With every %XX as the character it stands for.", _TEXT, fails=True),
    overloaded(
        "translate",
        "Each character of the second text replaced by that of the third, or removed where that is shorter.",
        ((STRING, STRING, STRING), STRING),
    ),
    overloaded("strip_accents", "Without accents.", _TEXT),
    overloaded("nfc_normalize", "In the composed form of Unicode.", _TEXT),
    overloaded("bit_length", "How many bits it has.", ((STRING,), INT64)),
    overloaded("regexp_escape", "With everything quoted that a regular expression would interpret.", _TEXT),
    overloaded(
        "levenshtein", "How many characters must change to make one text the other.", (_TWO_TEXTS, INT64),
        aliases=("editdist3",),
    ),
    overloaded(
        "hamming", "In how many places texts of one length differ.", (_TWO_TEXTS, INT64), aliases=("mismatches",),
        fails=True,
    ),
    overloaded("jaccard", "Which share of their different characters texts have in common.", (_TWO_TEXTS, FLOAT64)),
    overloaded(
        "damerau_levenshtein", "As levenshtein, with characters that change places as one change.", (_TWO_TEXTS, INT64)
    ),
    _similarity("jaro_similarity", "How alike texts are after Jaro, 0 to 1."),
    _similarity("jaro_winkler_similarity", "How alike texts are after Jaro and Winkler, who weigh their beginnings."),
    overloaded("bit_count", "How many bits are set.", *(((kind,), INT8) for kind in (INT8, INT16, INT32, INT64))),
    ScalarFunction(
        "typeof", _typeof, ("typeof(any) → varchar",), "The name of the type.", nulls=NullRule.NEVER
    ),
    ScalarFunction(
        "format", _format, ("format(varchar constant, any, …) → varchar",),
        "The template with {} in it replaced by the values.", nulls=NullRule.STRICT, fails=True,
    ),
    ScalarFunction(
        "printf", _printf, ("printf(varchar constant, any, …) → varchar",),
        "The template with %d, %s, … in it replaced by the values.", nulls=NullRule.STRICT, fails=True,
    ),
)  # fmt: skip

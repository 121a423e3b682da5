"""Parts of paths of files. Which characters separate them is a constant: both slashes unless said otherwise."""

from __future__ import annotations

from typing import Final

from bireme.data.types import BOOL, STRING, DataType, list_of
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Expr, Literal
from bireme.plan.functions.casting import cast, coerce
from bireme.plan.functions.registry import Args, ScalarFunction, wrong_arguments

_SEPARATORS: Final = {"system": "/", "forward_slash": "/", "backslash": "\\", "both_slash": "/\\"}


def _separators(name: str, args: Args) -> Expr:
    """The characters that an argument names."""
    given = args[0].value if args and isinstance(args[0], Literal) else None if args else "both_slash"
    if not isinstance(given, str) or given not in _SEPARATORS:
        raise TypeFault(f"the separators of {name} are a constant, one of {', '.join(_SEPARATORS)}")
    return Literal(_SEPARATORS[given], STRING)


def _of_path(name: str, doc: str, result: DataType) -> ScalarFunction:
    signatures = (f"{name}(varchar, separators constant) → {result}",)

    def bind(args: Args) -> Expr:
        if len(args) not in (1, 2):
            raise wrong_arguments(name, args, signatures)
        return Call(name, (coerce(args[0], STRING), _separators(name, args[1:])), result)

    return ScalarFunction(name, bind, signatures, doc)


def _filename(args: Args) -> Expr:
    signature = "parse_filename(varchar, boolean, separators constant) → varchar"
    if not 1 <= len(args) <= 3:
        raise wrong_arguments("parse_filename", args, (signature,))
    path, *rest = args
    trims: Expr = Literal(False, BOOL)
    if rest and (rest[0].type is not STRING or len(rest) == 2):
        trims = cast(rest.pop(0), BOOL)
    return Call("parse_filename", (coerce(path, STRING), trims, _separators("parse_filename", tuple(rest))), STRING)


FUNCTIONS: Final = (
    ScalarFunction(
        "parse_filename", _filename, ("parse_filename(varchar, boolean, separators constant) → varchar",),
        "The last part of a path, without its extension where the second argument is TRUE.",
    ),
    _of_path("parse_dirname", "The first part of a path that has several.", STRING),
    _of_path("parse_dirpath", "A path without its last part.", STRING),
    _of_path("parse_path", "The parts of a path; a separator at its beginning is one.", list_of(STRING)),
)  # fmt: skip

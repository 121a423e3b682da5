"""Structs: `{'a': 1}`, rows, fields by name, named arguments, and `s.*`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import STRING
from bireme.errors import SyntaxFault, Unsupported
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.lexemes import plain_name
from bireme.frontend.sql.operators import field_named, part, path
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal

NAMED: Final = frozenset({exp.PropertyEQ, exp.Kwarg})
# Functions whose arguments get names, and how many come before those.
TAKES_NAMES: Final = {"struct_pack": 0, "struct_insert": 1, "struct_update": 1}


def struct(node: Node, context: Context) -> Expr:
    """`{'a': 1, b: 2}`."""
    return functions.scalar("struct_pack", list(_pairs(node.args.get("expressions") or [], context)))


def named_arguments(name: str, nodes: Sequence[Node], context: Context) -> list[Expr]:
    """Arguments of a function that takes names; a column names itself in struct_pack."""
    first = TAKES_NAMES[name]
    return [*[context.bind(node) for node in nodes[:first]], *_pairs(nodes[first:], context)]


def _pairs(nodes: Sequence[Node], context: Context) -> Iterator[Expr]:
    for node in nodes:
        if node.__class__ in NAMED:
            check_arguments(node, {"this", "expression"})
            name = node.args["this"]
            value = part(node, "expression", context)
        elif node.__class__ is exp.Column:
            name, value = node.args["this"], context.bind(node)
        else:
            raise SyntaxFault("a field of a struct needs a name, as in {'a': 1} or struct_pack(a := 1)")
        yield Literal(plain_name(name if isinstance(name, str) else name.name), STRING)
        yield value


def row(node: Node, context: Context) -> Expr:
    """`(a, b)` where a value is meant."""
    return functions.scalar("row", [context.bind(each) for each in node.args.get("expressions") or []])


def dot(node: Node, context: Context) -> Expr:
    """`value.name`; the parser leaves names that begin with the parameter of a lambda in parts."""
    names: list[str] = []
    value = node
    while value.__class__ is exp.Dot:
        check_arguments(value, {"this", "expression"})
        names.insert(0, _field_name(value.args["expression"]))
        value = value.args["this"]
    if value.__class__ is exp.Identifier:
        return path([plain_name(value.name), *names], node, context)
    return field_named(part(node, "this", context), names[-1])


def _field_name(node: Node) -> str:
    if node.__class__ is not exp.Identifier:
        raise Unsupported("behind a dot only the name of a field is supported")
    return plain_name(node.name)


HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.Struct: (struct, frozenset({"expressions"})),
    exp.Tuple: (row, frozenset({"expressions"})),
    exp.Dot: (dot, frozenset({"this", "expression"})),
}

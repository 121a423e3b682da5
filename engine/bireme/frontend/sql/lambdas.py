"""Lambdas: `lambda x, i: …`, also written `(x, i) -> …`, as arguments of functions, and list comprehensions.

Their parameters hide columns of the same name, but of dotted names, `relation.column` and `column.field` come first. A
body may read the columns around it, but holds no subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import INT64, DataType
from bireme.errors import ClauseFault, SyntaxFault, Unsupported
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.lexemes import plain_name
from bireme.frontend.sql.operators import part
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.subquery import QUERIES
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Expr, Lambda, Literal, Parameter


class Written:
    """A lambda that gets its types when the function that it is given to knows them."""

    def __init__(self, names: Sequence[str], context: Context, bind: Callable[[Context], Expr]) -> None:
        if len(set(names)) < len(names):
            raise ClauseFault(f"a lambda has two parameters called '{next(n for n in names if names.count(n) > 1)}'")
        self._names = names
        self._context = context
        self._bind = bind

    @property
    def width(self) -> int:
        return len(self._names)

    def typed(self, types: Sequence[DataType]) -> Lambda:
        level = self._context.level
        parameters = tuple([Parameter(level, place, kind) for place, kind in enumerate(types)])
        body = self._bind(self._context.in_lambda(dict(zip(self._names, parameters, strict=True))))
        return Lambda(parameters, body, body.type)


def lambda_call(name: str, args: Sequence[Node], context: Context) -> Expr:
    """A call with a lambda among its arguments."""
    if len(args) < 2 or [arg.__class__ is exp.Lambda for arg in args].index(True) != 1:
        raise SyntaxFault(f"the lambda is the second argument of {name}")
    written = args[1]
    check_arguments(written, {"this", "expressions", "colon"})
    names = [_name(parameter) for parameter in written.args["expressions"]]
    body = _without_queries(written.args["this"])
    others = [context.bind(arg) for arg in (args[0], *args[2:])]
    return functions.with_lambda(name, others, Written(names, context, lambda inside: inside.bind(body)))


def _name(node: Node) -> str:
    return plain_name(node.name).lower()


def _without_queries(node: Node) -> Node:
    if next(node.find_all(*QUERIES), None) is not None:
        raise Unsupported("a subquery in a lambda is not supported; compute it in FROM")
    return node


def comprehension(node: Node, context: Context) -> Expr:
    """`[value for x, i in list if condition]`: the value in a list of its own, or an empty list, for each element."""
    check_arguments(node, {"this", "expression", "position", "iterator", "condition"})
    names = [_name(node.args[name]) for name in ("expression", "position") if node.args.get(name) is not None]
    body = _without_queries(node.args["this"])
    values = (part(node, "iterator", context),)
    if node.args.get("condition") is None:
        return functions.with_lambda(
            "list_transform", values, Written(names, context, lambda inside: inside.bind(body))
        )
    condition = _without_queries(node.args["condition"])

    def kept(inside: Context) -> Expr:
        single = functions.scalar("list_value", (inside.bind(body),))
        none = functions.scalar("list_slice", (single, Literal(1, INT64), Literal(0, INT64)))
        return functions.case([(inside.bind(condition), single)], none)

    return functions.scalar(
        "flatten", (functions.with_lambda("list_transform", values, Written(names, context, kept)),)
    )


def parameter(node: Node, context: Context) -> Expr:
    """The parser leaves parameters of lambdas as bare names."""
    return context.column(_name(node), None, node)


def filtered(node: Node, context: Context) -> Expr:
    """`filter(list, lambda)`, which the parser knows by its name."""
    return lambda_call("list_filter", (node.args["this"], node.args["expression"]), context)


HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.Identifier: (parameter, frozenset({"this", "quoted"})),
    exp.ArrayFilter: (filtered, frozenset({"this", "expression"})),
}

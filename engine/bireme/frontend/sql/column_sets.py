"""COLUMNS(…) and `*COLUMNS(…)`: several columns in one expression.

An expression with COLUMNS stands for as many as there are columns, each bound with one of them
(`Context.column_of_set`). `*COLUMNS(…)` stands for all of them side by side, as arguments of a call or elements of a
list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import STRING
from bireme.errors import ClauseFault, NameFault, Unsupported
from bireme.frontend.sql import name_tests
from bireme.frontend.sql.context import Context, Item
from bireme.frontend.sql.lexemes import UNPACKED, plain_name
from bireme.frontend.sql.stars import expand, is_star
from bireme.frontend.sql.subquery import QUERIES
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal

_NAME: Final = "columns"
_GROUP: Final = re.compile(r"\\(\d)")


def sets_in(node: Node, context: Context) -> list[Node]:
    """The COLUMNS(…) in an expression, those in subqueries aside."""
    if not context.statement.may_have_columns:
        return []
    found: list[Node] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, QUERIES):
            continue
        if is_set(current):
            found.append(current)
        elif current.__class__ is exp.Filter:  # whose condition is of all columns at once
            stack.append(current.args["this"])
        else:
            stack += current.iter_expressions()
    return found


def is_set(node: Node) -> bool:
    return node.__class__ is exp.Anonymous and plain_name(str(node.name)).lower() == _NAME


def bind_each(node: Node, sets: Sequence[Node], context: Context) -> Iterator[tuple[str, Expr]]:
    """What an expression is for each column of the sets in it, with the column's name."""
    if any(other != sets[0] for other in sets[1:]):
        raise ClauseFault("the COLUMNS(…) of one expression must be the same; write several expressions")
    around = context.column_of_set
    for item in columns_of(sets[0], context):
        context.column_of_set = item.expr
        try:
            yield item.name, context.bind(node)
        finally:
            context.column_of_set = around


def bind_condition(node: Node, context: Context, place: str) -> Expr:
    """A condition, which is of all columns of a set."""
    sets = sets_in(node, context)
    if not sets:
        return functions.truth(context.bind(node), place)
    return functions.scalar("and", [functions.truth(expr, place) for _, expr in bind_each(node, sets, context)])


def bind_all(nodes: Sequence[Node], context: Context) -> list[Expr]:
    """Arguments of a call or elements of a list, `*COLUMNS(…)` as all its columns."""
    if not context.statement.may_have_columns:
        return [context.bind(node) for node in nodes]
    bound: list[Expr] = []
    for node in nodes:
        if node.__class__ is exp.Anonymous and node.args["this"] == UNPACKED:
            bound += [item.expr for item in columns_of(node, context)]
        else:
            bound.append(context.bind(node))
    return bound


def columns_of(node: Node, context: Context) -> list[Item]:
    """The columns that a COLUMNS(…) stands for, under the names that they have."""
    check_arguments(node, {"this", "expressions"})
    args = node.args.get("expressions") or []
    if len(args) != 1:
        raise ClauseFault("COLUMNS takes a star, a regular expression, a list of names, or a lambda")
    what = args[0]
    if is_star(what):
        return list(expand(what, context))
    items = list(expand(exp.Star(), context))
    chosen = _chosen(what, items, context)
    if not chosen:
        raise NameFault(f"COLUMNS: no column matches; there are {', '.join(item.name for item in items)}")
    return chosen


def _chosen(what: Node, items: list[Item], context: Context) -> list[Item]:
    if what.__class__ is exp.Lambda:
        return [item for item in items if _is_wanted(what, item.name, context)]
    if what.__class__ is exp.Array:
        return _named(what, items)
    if what.__class__ is exp.Literal and what.args.get("is_string"):
        pattern = str(what.args["this"])
        return [item for item in items if name_tests.matches("regexp_matches", item.name, pattern)]
    raise ClauseFault("COLUMNS takes a star, a regular expression, a list of names, or a lambda")


def _is_wanted(what: Node, name: str, context: Context) -> bool:
    check_arguments(what, {"this", "expressions", "colon"})
    parameters = what.args["expressions"]
    if len(parameters) != 1:
        raise ClauseFault("the lambda of COLUMNS takes one parameter, the name of a column")
    inside = context.naming({plain_name(parameters[0].name).lower(): Literal(name, STRING)})
    return name_tests.holds(inside.bind(what.args["this"]))


def _named(what: Node, items: list[Item]) -> list[Item]:
    check_arguments(what, {"expressions", "value_constructor"})
    wanted = []
    for node in what.args.get("expressions") or []:
        if node.__class__ is not exp.Literal or not node.args.get("is_string"):
            raise Unsupported("the list of COLUMNS has names of columns, as texts")
        wanted.append(str(node.args["this"]).lower())
    known = [item.name for item in items]
    for name in wanted:
        if all(name != each.lower() for each in known):
            raise NameFault(f"COLUMNS: there is no column '{name}'{functions.suggest(name, known)}")
    return [item for item in items if item.name.lower() in wanted]


def name_given(alias: str, name: str, node: Node) -> str:
    r"""An alias for a column of a set: `\1` is what the first group of its regular expression matches."""
    args = node.args.get("expressions") or []
    pattern = args[0] if args else None
    if "\\" not in alias or pattern.__class__ is not exp.Literal:
        return alias
    try:
        found = re.search(str(pattern.args["this"]), name)
        return _GROUP.sub(lambda place: "" if found is None else found[int(place[1])] or "", alias)
    except (re.error, IndexError):
        raise ClauseFault(f"the alias '{alias}' asks for a group that the regular expression has not") from None

"""Whether a value is in a list: IN, and comparisons with ANY or ALL elements of one.

A query behind them is compared with in `subquery`. ANY and ALL are three-valued, as IN (a, b) is: unknown where only a
NULL may decide; over no element, and over no list, ANY is FALSE and ALL is TRUE. `x IN list` is `contains(list, x)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import BOOL, INT64, STRING
from bireme.errors import SyntaxFault, TypeFault, Unsupported
from bireme.frontend.sql.column_sets import bind_all
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.lexemes import plain_name
from bireme.frontend.sql.subquery import QUERIES, quantified
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal
from bireme.plan.functions.lists import is_list
from bireme.plan.functions.registry import is_null
from bireme.plan.tree import FALSE, TRUE, UNKNOWN

# The parser knows ANY, and ALL with a query; other forms are calls to it.
_QUANTIFIERS: Final = {"any": exp.Any, "some": exp.Any, "all": exp.All}
# The opposite of a comparison, and the elements of which the greatest or least decides whether ANY does.
_OPPOSITES: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_DECIDING: Final = {"lt": "list_max", "le": "list_max", "gt": "list_min", "ge": "list_min"}


def quantifier(node: Node) -> Node | None:
    """ANY or ALL behind a comparison, None for anything else."""
    if node.__class__ is exp.Any or node.__class__ is exp.All:
        return node
    name = plain_name(str(node.name)).lower() if node.__class__ is exp.Anonymous else ""
    items = node.args.get("expressions") or []
    if name not in _QUANTIFIERS or len(items) != 1:
        return None
    return _QUANTIFIERS[name](this=items[0])


def compared_with_each(left: Node, function: str, right: Node, context: Context) -> Expr:
    """`left <comparison> ANY|ALL (…)`, of a list or the rows of a query."""
    check_arguments(right, {"this"})
    inner = right.args["this"]
    while inner.__class__ is exp.Paren:
        inner = inner.args["this"]
    if isinstance(inner, QUERIES):
        return quantified(left, function, right, context)
    is_any = right.__class__ is exp.Any
    if function not in _OPPOSITES:
        raise Unsupported(f"{function} with {'ANY' if is_any else 'ALL'} is not supported")
    items = list(inner.args.get("expressions") or []) if inner.__class__ is exp.Array else []
    value = context.bind(left)
    wanted = function if is_any else _OPPOSITES[function]
    if wanted == "eq" and items and not any(item.__class__ is exp.Comprehension for item in items):
        found = functions.in_list(value, [context.bind(item) for item in items])
    else:
        found = _any(value, wanted, context.bind(inner))
    return found if is_any else functions.scalar("not", (found,))


def _any(value: Expr, function: str, elements: Expr) -> Expr:
    """Whether the comparison holds with an element; NULL where only a NULL could tell."""
    if is_null(elements):
        return FALSE
    if not is_list(elements):
        raise TypeFault(f"ANY and ALL take a query or a list, not {elements.type}")
    length = functions.scalar("list_length", (elements,))
    has_nulls = functions.scalar("lt", (functions.scalar("list_count", (elements,)), length))
    is_asked = functions.scalar("gt", (length, Literal(0, INT64)))
    unknown = functions.scalar("and", (is_asked, functions.scalar("is_null", (value,))))
    undecided = functions.scalar("or", (has_nulls, unknown))
    return functions.case([(_holds(value, function, elements), TRUE), (undecided, UNKNOWN)], FALSE)


def _holds(value: Expr, function: str, elements: Expr) -> Expr:
    """Whether it holds with an element that is not NULL."""
    if function == "eq":
        return functions.scalar("list_contains", (elements, value))
    ends: Sequence[str] = (_DECIDING[function],) if function in _DECIDING else ("list_min", "list_max")
    each = [functions.scalar(function, (value, functions.scalar(end, (elements,)))) for end in ends]
    return each[0] if len(each) == 1 else functions.scalar("or", each)


def in_(node: Node, context: Context) -> Expr:
    args = node.args
    query = args.get("query")
    if query is not None:
        check_arguments(node, {"this", "query"})
        return quantified(args["this"], "eq", exp.Any(this=query), context)
    if args.get("field") is not None:
        check_arguments(node, {"this", "field"})
        return _in_value(args["this"], args["field"], context)
    items = args.get("expressions") or []
    if not items:
        raise SyntaxFault("IN needs at least one value")
    if len(items) == 1 and items[0].__class__ is exp.Values:
        return quantified(args["this"], "eq", exp.Any(this=items[0]), context)
    if args["this"].__class__ is exp.Tuple:
        return _in_rows(args["this"], items, context)
    return functions.in_list(context.bind(args["this"]), bind_all(items, context))


def _in_rows(left: Node, items: Sequence[Node], context: Context) -> Expr:
    each = [context.bind(exp.EQ(this=left, expression=item)) for item in items]
    return each[0] if len(each) == 1 else functions.scalar("or", each)


def _in_value(left: Node, right: Node, context: Context) -> Expr:
    """`x IN list`, or in a text."""
    value, container = context.bind(left), context.bind(right)
    if is_null(container):
        return Literal(None, BOOL)
    if container.type is STRING:
        return functions.scalar("contains", (container, value))
    if not is_list(container):
        raise TypeFault(f"IN takes values in parentheses, a query or a list, not {container.type}")
    return functions.scalar("list_contains", (container, value))

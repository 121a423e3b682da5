"""Lists: their literals, and the brackets that take elements and parts of them."""

from __future__ import annotations

from typing import Final

from sqlglot import expressions as exp

from bireme.data import types as t
from bireme.data.node import replaced
from bireme.errors import ClauseFault, SyntaxFault, Unsupported
from bireme.frontend.sql.column_sets import bind_all
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.lambdas import comprehension
from bireme.frontend.sql.lexemes import NO_START
from bireme.frontend.sql.operators import binary, part
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.subquery import QUERIES, inner_query
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.frontend.sql.table_functions import checked_list
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal, ScalarSubquery
from bireme.plan.functions import maps
from bireme.plan.functions.lists import element
from bireme.plan.relation import Aggregate, Project, Sort
from bireme.plan.tree import substitute, walk


def array(node: Node, context: Context) -> Expr:
    """`[a, b, …]`."""
    items = node.args.get("expressions") or []
    if any(item.__class__ is exp.Comprehension for item in items):
        if len(items) > 1:
            raise SyntaxFault("a list comprehension stands alone in its brackets")
        return comprehension(items[0], context)
    if len(items) == 1 and isinstance(items[0], QUERIES) and not node.args.get("value_constructor"):
        return _rows(items[0], context)
    return functions.scalar("list_value", bind_all(items, context))


def _rows(query_node: Node, context: Context) -> Expr:
    """`ARRAY(query)`: the values of a query's only column, in the order of its rows; an empty list for no row."""
    query = inner_query(query_node, context)
    if len(query.types) != 1:
        raise ClauseFault(f"ARRAY takes a query of one column; this one has {len(query.types)}")
    value: Expr = Column(0, query.types[0])
    rows = query.relation
    while isinstance(rows, Project):
        value, rows = substitute(value, rows.exprs), rows.input
    call = functions.aggregate("array_agg", (value,))
    if isinstance(rows, Sort):  # which a dependent join does not keep
        call = replaced(call, order=rows.keys)
    collected = ScalarSubquery(Aggregate(rows, (), (call,), query.names), call.type)
    return functions.scalar("coalesce", (collected, functions.cast(functions.scalar("list_value", ()), call.type)))


def map_of_pairs(node: Node, context: Context) -> Expr:
    """`MAP {key: value, …}`."""
    pairs = node.args["this"]
    keys, values = [], []
    for pair in pairs.args.get("expressions") or []:
        if pair.__class__ is not exp.PropertyEQ:
            raise SyntaxFault("MAP takes pairs, as in MAP {'a': 1}")
        keys.append(part(pair, "this", context))
        values.append(part(pair, "expression", context))
    return maps.literal(keys, values)


def map_of_lists(node: Node, context: Context) -> Expr:
    """`map(keys, values)`, which the parser knows."""
    return functions.scalar("map", [part(node, name, context) for name in ("keys", "values") if node.args.get(name)])


def bracket(node: Node, context: Context) -> Expr:
    """`list[i]` and `list[from:to]`."""
    places = node.args.get("expressions") or []
    if len(places) != 1:
        raise SyntaxFault("brackets take one position, or two with a colon between them")
    value = part(node, "this", context)
    place = places[0]
    if place.__class__ is not exp.Slice:
        return functions.scalar(_EXTRACTS.get(value.type.kind, "list_extract"), (value, context.bind(place)))
    check_arguments(place, {"this", "expression", "step"})
    step = place.args.get("step")
    first, last = place.args.get("this"), place.args.get("expression")
    if first.__class__ is exp.Column and first.name == NO_START:
        first = None
    if step is None:
        return functions.scalar("list_slice", (value, _bound(first, 1, context), _bound(last, -1, context)))
    by = context.bind(step)
    bounds = (_end(first, by, 1, context), _end(last, by, -1, context))
    return functions.scalar("list_slice_step", (value, *bounds, by))


def _end(node: Node | None, step: Expr, default: int, context: Context) -> Expr:
    """An end of a slice; where none is written, that of the list from which, or up to which, the step leads."""
    if node is not None:
        return context.bind(node)
    backwards = functions.scalar("lt", (step, Literal(0, t.INT64)))
    return functions.case([(backwards, Literal(-default, t.INT64))], Literal(default, t.INT64))


def unnest(node: Node, context: Context) -> Expr:
    """`unnest(list)` in a select list: each row as often as the list has elements."""
    if context.level:
        raise ClauseFault("unnest in a lambda: not allowed there; use it in SELECT or FROM")
    if context.stand_ins is None or not context.windows or context.inside or context.clause == "QUALIFY":
        raise ClauseFault(f"unnest in {context.inside or context.clause}: not allowed there; use it in SELECT or FROM")
    stand_ins = context.stand_ins
    value = checked_list(part(node, "this", context))
    if any(inner in stand_ins.unnests.values() for inner in walk(value)):
        raise Unsupported("unnest of what another unnest gives is not supported here; unnest that in a subquery")
    column = stand_ins.unnests.get(value)
    if column is None:
        column = stand_ins.unnests[value] = stand_ins.column(element(value.type))
    return column


def _bound(node: Node | None, default: int, context: Context) -> Expr:
    return Literal(default, t.INT64) if node is None else context.bind(node)


def contained_by(node: Node, context: Context) -> Expr:
    """`a <@ b`."""
    return functions.scalar("list_has_all", (part(node, "expression", context), part(node, "this", context)))


_EXTRACTS: Final = {t.Kind.STRUCT: "struct_extract", t.Kind.MAP: "map_extract_value"}
_BOTH: Final = frozenset({"this", "expression"})
HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.ArrayOverlaps: (binary("list_has_any"), _BOTH),
    exp.ArrayContainsAll: (binary("list_has_all"), _BOTH),
    exp.ArrayContainedBy: (contained_by, _BOTH),
    exp.Array: (array, frozenset({"expressions", "value_constructor"})),
    exp.Explode: (unnest, frozenset({"this"})),
    exp.Map: (map_of_lists, frozenset({"keys", "values"})),
    exp.ToMap: (map_of_pairs, frozenset({"this"})),
    exp.Bracket: (bracket, frozenset({"this", "expressions"})),
}

"""Subqueries in arguments, keys and orders of windows become columns below the windows, where every form is taken."""

from __future__ import annotations

from bireme.plan.expr import Column
from bireme.plan.relation import Project, Rel, Window
from bireme.plan.tree import all_columns, holds_subquery, map_operands, operands, select, with_inputs


def over_columns(rel: Window) -> Rel:
    """The same columns, of windows that hold no subquery."""
    source = rel.input
    width = len(source.schema)
    asking = [expr for expr in dict.fromkeys(operands(rel)) if holds_subquery(expr)]
    places = {expr: Column(width + number, expr.type) for number, expr in enumerate(asking)}
    names = tuple([f"subquery{number}" for number in range(len(asking))])
    columns = Project(source, (*all_columns(source.schema), *asking), (*source.schema.names, *names))
    windows = with_inputs(map_operands(rel, lambda expr: places.get(expr, expr)), [columns])
    return select(windows, [*range(width), *range(width + len(asking), len(windows.schema))])

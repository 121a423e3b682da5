"""Functions that are relations of FROM: range, generate_series, and unnest of lists that the query spells out."""

from __future__ import annotations

import datetime
from typing import Final

from bireme.data.schema import Schema
from bireme.data.types import TIMESTAMP, Field, Kind
from bireme.errors import ClauseFault, TypeFault, Unsupported
from bireme.frontend.series import FUNCTIONS, series_name
from bireme.frontend.sql.calls import read_call
from bireme.frontend.sql.constants import whole_number
from bireme.frontend.sql.context import Block, Context, Query
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Call, Expr, Interval, Literal
from bireme.plan.functions.casting import cast
from bireme.plan.relation import Project, Rel, Scan, Union, Values
from bireme.plan.rules.fold_literals import moved

_ONE_ROW: Final = Values(((),), Schema(()))
# More would make the plan itself large.
_MOMENTS_MAX: Final = 100_000


def table_function(node: Node, block: Block) -> Query:
    """The rows of a call in FROM."""
    call = read_call(node)
    name = call.name
    if name not in FUNCTIONS:
        known = ", ".join((*FUNCTIONS, "unnest"))
        raise Unsupported(f"'{name}' is no table function here (there are {known}); register files as tables by name")
    args = _bound(call.args, name, block)
    if not 1 <= len(args) <= 3:
        raise TypeFault(f"{name} takes one to three arguments: where it starts, where it ends, and the step")
    if any(arg.type.is_temporal for arg in args):
        return _moments(name, args)
    return _numbers(name, args, block)


def unnest(node: Node, block: Block) -> Query:
    """The elements of a list, one a row."""
    check_arguments(node, ("expressions", "alias", "offset", "explode_array"))
    if node.args.get("offset") or node.args.get("explode_array"):
        raise Unsupported("unnest WITH ORDINALITY is not supported; number the elements with row_number()")
    (value,) = _bound(node.args["expressions"], "unnest", block) or (None,)
    if value is None or value.type.kind is not Kind.LIST:
        raise TypeFault("unnest takes one list")
    if isinstance(value, Call) and value.function in FUNCTIONS:
        return _numbers(value.function, list(value.args), block)
    if not isinstance(value, Call) or value.function != "list_value":
        raise Unsupported("unnest takes a list that is spelt out, as in unnest([1, 2, 3]), or a range")
    rows: list[Rel] = [Project(_ONE_ROW, (item,), ("unnest",)) for item in value.args]
    return _query(rows[0] if len(rows) == 1 else Union(tuple(rows)))


def _bound(nodes: list[Node], name: str, block: Block) -> list[Expr]:
    context = Context(block, Scope([], ()), name)
    return [context.bind(node) for node in nodes]


def _query(relation: Rel) -> Query:
    return Query(relation, relation.schema.names, relation.schema.types)


def _numbers(name: str, args: list[Expr], block: Block) -> Query:
    numbers = [whole_number(arg, f"an argument of {name}") for arg in args]
    given = [number for number in numbers if number is not None]
    if len(given) < len(numbers):
        return _query(Values((), Schema((Field(name, functions.parse_type("bigint")),))))
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    table = block.statement.catalog.find(series_name(name, start, stop, step))
    if table is None:
        raise Unsupported(f"this catalog has no {name}; register the numbers as a table")
    return _query(Scan(table.name, table.version, table.schema, (0,)))


def _moments(name: str, args: list[Expr]) -> Query:
    """Points in time from one to another, an interval apart."""
    if len(args) != 3:
        raise TypeFault(f"{name} of points in time takes a start, an end and an interval")
    values = [arg.value if isinstance(arg, Literal) else None for arg in (*_as_moments(args[:2]), args[2])]
    start, stop, step = values
    if not isinstance(start, datetime.datetime) or not isinstance(stop, datetime.datetime):
        raise Unsupported(f"{name} takes constants as its start and end")
    if not isinstance(step, Interval):
        raise TypeFault(f"the step of {name} of points in time is a constant interval, such as INTERVAL 1 DAY")
    rows = tuple([(Literal(moment, TIMESTAMP),) for moment in _steps(name, start, stop, step)])
    return _query(Values(rows, Schema((Field(name, TIMESTAMP, False),))))


def _as_moments(args: list[Expr]) -> list[Expr]:
    return [cast(arg, TIMESTAMP) for arg in args]


def _steps(name: str, start: datetime.datetime, stop: datetime.datetime, step: Interval) -> list[datetime.datetime]:
    signs = {(part > 0) - (part < 0) for part in step} - {0}
    if len(signs) != 1:
        raise ClauseFault(f"the step of {name} goes neither forward nor back")
    forward = signs == {1}
    found: list[datetime.datetime] = []
    moment: datetime.datetime | None = start
    while moment is not None and (moment <= stop if forward else moment >= stop):
        if moment == stop and name == "range":
            break
        found.append(moment)
        if len(found) > _MOMENTS_MAX:
            raise Unsupported(f"{name} of more than {_MOMENTS_MAX} points in time; add intervals to a range of numbers")
        moment = moved(moment, step)
    return found

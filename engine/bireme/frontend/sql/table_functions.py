"""Functions that are relations of FROM: read_parquet, range, generate_series, and unnest."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.schema import Schema
from bireme.data.types import INT32, TIMESTAMP, Field, Kind, list_of
from bireme.errors import ArgumentFault, ClauseFault, NameFault, TypeFault, Unsupported
from bireme.frontend.files import READERS, files_name
from bireme.frontend.series import FUNCTIONS, series_name
from bireme.frontend.sql.calls import read_call
from bireme.frontend.sql.constants import whole_number
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.lexemes import plain_name
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.statement import Query
from bireme.frontend.sql.syntax import Node, check_arguments, span
from bireme.plan import functions
from bireme.plan.expr import Call, Expr, Interval, Literal, OuterColumn, ScalarSubquery
from bireme.plan.functions.casting import cast
from bireme.plan.functions.registry import is_null
from bireme.plan.read_options import read_options
from bireme.plan.relation import Project, Rel, Unnest, Values
from bireme.plan.rules.fold_literals import moved
from bireme.plan.tree import walk

_ONE_ROW: Final = Values(((),), Schema(()))
_NAMED_ARGUMENTS: Final = frozenset({exp.EQ, exp.PropertyEQ, exp.Kwarg})
# More would make the plan itself large.
_MOMENTS_MAX: Final = 100_000


def table_function(node: Node, block: Block) -> Query:
    """The rows of a call in FROM."""
    call = read_call(node)
    name = call.name
    if name in READERS:
        return _files(name, call.args, block)
    if name not in FUNCTIONS:
        known = ", ".join((*FUNCTIONS, "unnest", *READERS))
        raise Unsupported(f"'{name}' is no table function here (there are {known}); register data as tables by name")
    args = _bound(call.args, name, block)
    if not all(map(_is_constant, args)):
        return elements([functions.scalar(name, args)], (name,))
    if not 1 <= len(args) <= 3:
        raise TypeFault(f"{name} takes one to three arguments: where it starts, where it ends, and the step")
    if any(arg.type.is_temporal for arg in args):
        return _moments(name, args)
    return _numbers(name, args, block)


def unnest(node: Node, block: Block) -> Query:
    """The elements of lists, one a row."""
    check_arguments(node, {"expressions", "alias", "offset", "explode_array"})
    if node.args.get("explode_array"):
        raise Unsupported("unnest of the fields of a struct is not supported")
    args = _bound(node.args["expressions"], "unnest", block)
    if len(args) == 1 and isinstance(args[0], Call) and args[0].function in FUNCTIONS and _is_constant(args[0]):
        return _numbers(args[0].function, list(args[0].args), block)
    ordinality = node.args.get("offset")
    names = ["unnest"] * len(args)
    if ordinality:
        names.append(ordinality.name if isinstance(ordinality, Node) else "ordinality")
    return elements([checked_list(arg) for arg in args], tuple(names))


def checked_list(value: Expr) -> Expr:
    """A list that unnest takes; NULL is one without elements."""
    if is_null(value):
        return Literal(None, list_of(INT32))
    if value.type.kind is not Kind.LIST:
        raise TypeFault(f"unnest takes a list, not {value.type}")
    return value


def elements(lists: Sequence[Expr], names: tuple[str, ...]) -> Query:
    """The rows of lists beside each other; with a name more than lists, their places come last."""
    source = Project(_ONE_ROW, tuple(lists), tuple([f"list{index}" for index in range(len(lists))]))
    places = tuple(range(len(lists)))
    return _query(Unnest(source, (), places, names, False, len(names) > len(lists)))


def _is_constant(expr: Expr) -> bool:
    return not any(isinstance(part, OuterColumn | ScalarSubquery) for part in walk(expr))


def _files(name: str, nodes: list[Node], block: Block) -> Query:
    """The table in files: one path, glob or folder, or a list of them, and options to read them with."""
    given = [node for node in nodes if node.__class__ not in _NAMED_ARGUMENTS]
    options = _options(name, [node for node in nodes if node.__class__ in _NAMED_ARGUMENTS], block)
    (value,) = _bound(given, name, block) if len(given) == 1 else (None,)
    items = value.args if isinstance(value, Call) and value.function == "list_value" else (value,)
    paths = [item.value for item in items if isinstance(item, Literal) and isinstance(item.value, str)]
    if not paths or len(paths) != len(items):
        raise TypeFault(f"{name} takes a path, or a list of paths, as constant texts")
    try:
        table = block.statement.table(files_name(paths, options))
    except ArgumentFault as error:
        raise TypeFault(str(error)) from error
    if table is None:
        raise NameFault(f"this catalog reads no files; register what is in {paths[0]!r} as a table")
    return _query(table.scan())


def _options(name: str, nodes: list[Node], block: Block) -> dict[str, object]:
    """What is written as `option = value`, as the names of files may carry it."""
    options: dict[str, object] = {}
    for node in nodes:
        check_arguments(node, {"this", "expression"})
        option = plain_name(node.args["this"].name).lower()
        if option in options:
            raise ClauseFault(f"{name} is given {option} twice", position=span(node))
        value = node.args["expression"]
        options[option] = _types(value) if option == "hive_types" else _option(option, value, name, block)
        try:
            read_options({option: options[option]})
        except ArgumentFault as error:
            raise TypeFault(error.message, position=span(node)) from error
    return options


def _option(option: str, node: Node, name: str, block: Block) -> object:
    (value,) = _bound([node], name, block)
    if not isinstance(value, Literal) or not isinstance(value.value, bool | int | str):
        raise TypeFault(f"{name} takes a constant as {option}, which is not NULL", position=span(node))
    return value.value


def _types(node: Node) -> dict[str, str]:
    """`{'year': integer}`; types may be texts, too."""
    fields = node.args.get("expressions") or [] if node.__class__ is exp.Struct else []
    if not fields or any(field.__class__ is not exp.PropertyEQ for field in fields):
        raise TypeFault("hive_types are written as {'column': type, …}", position=span(node))
    types: dict[str, str] = {}
    for field in fields:
        kind = field.args["expression"]
        is_text = kind.__class__ is exp.Literal and kind.args.get("is_string")
        types[plain_name(field.args["this"].name)] = kind.args["this"] if is_text else kind.sql(dialect="duckdb")
    return types


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
    table = block.statement.table(series_name(name, start, stop, step))
    if table is None:
        raise Unsupported(f"this catalog has no {name}; register the numbers as a table")
    return _query(table.scan())


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

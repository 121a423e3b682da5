"""Calls of functions: scalar functions, aggregates with DISTINCT, FILTER and ORDER BY, window functions, grouping().

What functions there are is in `plan.functions`. Aggregates and windows leave a stand-in column in the expression
around them (`context.StandIns`); `grouping` replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import INT64
from bireme.errors import ClauseFault, NameFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.files import READERS
from bireme.frontend.sql.column_sets import bind_all, bind_condition, is_set
from bireme.frontend.sql.context import Context, is_stand_in
from bireme.frontend.sql.correlation import depths, moved
from bireme.frontend.sql.lambdas import lambda_call
from bireme.frontend.sql.lexemes import LISTED, plain_name
from bireme.frontend.sql.literals import clock_value
from bireme.frontend.sql.operators import part
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.structs import NAMED, TAKES_NAMES, named_arguments
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions, tree
from bireme.plan.expr import Aggregation, Column, Expr, SortKey
from bireme.records import dataclass

_GROUPING_KEYS_MAX: Final = 63
_GROUPING: Final = frozenset({"grouping", "grouping_id"})


@dataclass(slots=True)
class Invocation:
    """A call as it was written: name, arguments and the clauses inside and behind its parentheses."""

    name: str
    args: list[Node]
    distinct: bool = False
    order: list[Node] | None = None
    filter: Node | None = None
    ignore_nulls: bool = False


def call_name(node: Node) -> str:
    """The name of a called function, in lower case."""
    name = node.args["this"]
    return plain_name(name if isinstance(name, str) else name.name).lower()


def read_call(node: Node) -> Invocation:
    """Takes a call out of the clauses around it."""
    kind = node.__class__
    if kind is exp.Filter:
        check_arguments(node, {"this", "expression"})
        call = read_call(node.args["this"])
        where = node.args["expression"]
        check_arguments(where, {"this"})
        call.filter = where.args["this"]
        return call
    if kind is exp.IgnoreNulls or kind is exp.RespectNulls:
        check_arguments(node, {"this"})
        call = read_call(node.args["this"])
        call.ignore_nulls = kind is exp.IgnoreNulls
        return call
    if kind is exp.WithinGroup:
        return _within_group(node)
    if kind is not exp.Anonymous:
        raise Unsupported("only functions by name can be aggregates or have a window")
    check_arguments(node, {"this", "expressions"})
    call = Invocation(call_name(node), [])
    for arg in node.args.get("expressions") or []:
        _read_argument(arg, call)
    return call


_QUANTILES: Final = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}


def _within_group(node: Node) -> Invocation:
    """f(…) WITHIN GROUP (ORDER BY x): the mode and quantiles are of x, other aggregates see rows in that order."""
    check_arguments(node, {"this", "expression"})
    call = read_call(node.args["this"])
    order = node.args["expression"]
    check_arguments(order, {"expressions"})
    if call.order or len(order.args["expressions"]) != 1:
        raise ClauseFault("WITHIN GROUP takes one ORDER BY with one key")
    (key,) = order.args["expressions"]
    call.name = _QUANTILES.get(call.name, call.name)
    if call.name == "mode" or call.name in _QUANTILES.values():
        if key.args.get("desc"):
            raise Unsupported("WITHIN GROUP (ORDER BY … DESC) is not supported; take the quantile of 1 - p")
        call.args.insert(0, key.args["this"])
    else:
        call.order = order.args["expressions"]
    return call


def _read_argument(node: Node | None, call: Invocation) -> None:
    """Takes one argument; the parser hangs DISTINCT and ORDER BY on the argument they stand next to."""
    if node is None:
        raise SyntaxFault("an argument is missing")
    kind = node.__class__
    if kind is exp.Order:
        check_arguments(node, {"this", "expressions"})
        call.order = node.args["expressions"]
        _read_argument(node.args.get("this"), call)
    elif kind is exp.Distinct:
        check_arguments(node, {"expressions"})
        call.distinct = True
        if not node.args.get("expressions"):
            raise SyntaxFault("an argument is missing behind DISTINCT")
        call.args.extend(node.args["expressions"])
    elif kind is exp.IgnoreNulls or kind is exp.RespectNulls:
        check_arguments(node, {"this"})
        call.ignore_nulls = kind is exp.IgnoreNulls
        _read_argument(node.args.get("this"), call)
    elif kind in (exp.Limit, exp.HavingMax, exp.Alias):
        raise Unsupported(f"{_ARGUMENT_KINDS[kind]} in a call is not supported")
    elif kind in NAMED and call.name not in TAKES_NAMES and call.name not in READERS:
        raise Unsupported(f"{call.name} takes no named arguments; write its arguments in their order")
    else:
        call.args.append(node)


_ARGUMENT_KINDS: Final = {
    exp.Limit: "LIMIT",
    exp.HavingMax: "HAVING MAX and MIN",
    exp.Alias: "an alias",
}


def call(node: Node, context: Context) -> Expr:
    if node.args["this"] == LISTED:
        return context.bind(node.args["expressions"][0])
    if is_set(node):
        return column_of_set(context)
    return _call(read_call(node), context)


def column_of_set(context: Context) -> Expr:
    """The column that a COLUMNS(…) is at the moment."""
    if context.column_of_set is None:
        raise ClauseFault(f"COLUMNS(…) in {context.clause}: not allowed there; use it in SELECT, WHERE or ORDER BY")
    return context.column_of_set


def modified_call(node: Node, context: Context) -> Expr:
    """A call with FILTER or IGNORE NULLS."""
    return _call(read_call(node), context)


def _call(read: Invocation, context: Context) -> Expr:
    name = read.name
    if name in _GROUPING:
        return _grouping(read, context)
    if functions.is_aggregate(name):
        return _aggregate(read, context)
    if functions.is_window(name):
        raise ClauseFault(f"window function '{name}' needs OVER (…)")
    clause = _aggregate_clause(read)
    if name in _CLOCKS and not read.args and clause is None:
        return clock_value(name, context)
    if functions.is_scalar(name):
        if clause is not None:
            raise ClauseFault(f"{clause} goes with aggregates; '{name}' is a function of one row")
        if any(arg.__class__ is exp.Lambda for arg in read.args):
            return lambda_call(name, read.args, context)
        if name in TAKES_NAMES:
            return functions.scalar(name, named_arguments(name, read.args, context))
        args = bind_all(read.args, context)
        if name == "age" and len(args) == 1:
            args.insert(0, clock_value("today", context))
        return functions.scalar(name, args)
    raise unknown_function(name)


_CLOCKS: Final = frozenset(
    {"now", "today", "current_date", "current_time", "current_timestamp", "get_current_timestamp", "get_current_time",
     "transaction_timestamp", "current_localtimestamp", "localtimestamp"}
)  # fmt: skip


def unknown_function(name: str) -> QueryError:
    """The error for a function that does not exist; the registry says it with its hint."""
    try:
        functions.scalar(name, ())
    except NameFault as error:
        return error
    return NameFault(f"there is no function '{name}'")


def _aggregate_clause(read: Invocation) -> str | None:
    if read.distinct:
        return "DISTINCT"
    if read.filter is not None:
        return "FILTER"
    if read.order:
        return "ORDER BY"
    return "IGNORE NULLS" if read.ignore_nulls else None


def _aggregate(read: Invocation, context: Context) -> Expr:
    if context.block.outer is None and not _takes_aggregates(context):
        raise context.refuse_aggregate(read.name)
    if read.ignore_nulls:
        raise Unsupported("IGNORE NULLS in an aggregate is not supported; use FILTER (WHERE x IS NOT NULL)")
    inner = context.within("aggregate")
    name, args = aggregate_arguments(read, inner)
    condition = bind_condition(read.filter, inner, "FILTER") if read.filter is not None else None
    order = tuple(sort_keys(read.order, inner)) if read.order else ()
    made = functions.aggregate(name, args, distinct=read.distinct, filter=condition, order=order)
    parts = [*args, *([] if condition is None else [condition]), *[key.expr for key in order]]
    depth = min((depth for part in parts for depth in depths(part)), default=0) if context.block.outer else 0
    return _aggregated(made, depth, read.name, context)


def _aggregated(made: Aggregation, depth: int, name: str, context: Context) -> Expr:
    """The stand-in of an aggregate, in the query that its nearest columns are of."""
    home = next(home for out, home in context.outwards() if out == depth)
    if not _takes_aggregates(home):
        raise home.refuse_aggregate(name)
    if depth:
        made = tree.map_operands(made, lambda part: moved(part, -depth))
        parts = [part for operand in tree.operands(made) for part in tree.walk(operand)]
        if any(isinstance(part, Column) and is_stand_in(part) for part in parts):
            raise ClauseFault(f"'{name}' of an aggregate of the outer query: compute the inner one in a subquery")
    stand_ins = home.stand_ins
    assert stand_ins is not None
    column = stand_ins.aggregates.get(made)
    if column is None:
        column = stand_ins.aggregates[made] = stand_ins.column(made.type)
    if not depth:
        return column
    stand_ins.correlated = True
    context.block.extend_reach(depth)
    return moved(column, depth)


def _takes_aggregates(context: Context) -> bool:
    return context.aggregates and context.stand_ins is not None


def aggregate_arguments(read: Invocation, context: Context) -> tuple[str, list[Expr]]:
    """The name and arguments of an aggregate; count(*) and count() count rows."""
    if read.name == "count" and (not read.args or read.args[0].__class__ is exp.Star):
        if read.args:
            check_arguments(read.args[0], frozenset())
        if read.distinct:
            raise Unsupported("count(DISTINCT *) is not supported; count the rows of a SELECT DISTINCT")
        return "count_star", []
    return read.name, bind_all(read.args, context)


def sort_keys(nodes: Sequence[Node], context: Context) -> Iterator[SortKey]:
    """The keys of an ORDER BY inside a call or a window."""
    for node in nodes:
        check_arguments(node, {"this", "desc", "nulls_first"})
        this = node.args["this"]
        if this.__class__ is exp.Var:
            raise Unsupported("ORDER BY ALL is supported at the end of a query only")
        yield SortKey(context.bind(this), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _grouping(read: Invocation, context: Context) -> Expr:
    if context.stand_ins is None or not context.aggregates:
        raise context.refuse_aggregate(read.name)
    clause = _aggregate_clause(read)
    if clause is not None:
        raise ClauseFault(f"{clause} does not go with {read.name}()")
    inner = context.within("aggregate")
    keys = tuple([inner.bind(arg) for arg in read.args])
    if not keys:
        raise ClauseFault(f"{read.name}() needs the grouping columns it asks about")
    if len(keys) > _GROUPING_KEYS_MAX:
        raise ClauseFault(
            f"{read.name}() asks about {_GROUPING_KEYS_MAX} grouping columns at most: it gives a bit for each"
        )
    column = context.stand_ins.groupings.get(keys)
    if column is None:
        column = context.stand_ins.groupings[keys] = context.stand_ins.column(INT64)
    return column


_PARTS: Final = {"dow": "dayofweek", "doy": "dayofyear", "isodow": "isodow"}


def extract(node: Node, context: Context) -> Expr:
    what = node.args["this"]
    name = what.name.lower()
    if what.__class__ not in (exp.Var, exp.Literal) or not name:
        raise Unsupported("EXTRACT takes the name of a part, such as YEAR or MONTH")
    name = functions.texts.unit_name(name)
    name = _PARTS.get(name, name)
    if not functions.is_scalar(name):
        raise NameFault(f"there is no part of a date called '{what.name}'{functions.suggest(name, _PART_NAMES)}")
    return functions.scalar(name, (part(node, "expression", context),))


_PART_NAMES: Final = ("year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second", "epoch")


def substring(node: Node, context: Context) -> Expr:
    args = [part(node, "this", context)]
    for name in ("start", "length"):
        if node.args.get(name) is not None:
            args.append(part(node, name, context))
    return functions.scalar("substring", args)


def position(node: Node, context: Context) -> Expr:
    return functions.scalar("position", (part(node, "this", context), part(node, "substr", context)))


_TRIMS: Final = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def trim(node: Node, context: Context) -> Expr:
    args = [part(node, "this", context)]
    if node.args.get("expression") is not None:
        args.append(part(node, "expression", context))
    return functions.scalar(_TRIMS[node.args.get("position")], args)


def located_call(node: Node, context: Context) -> Invocation:
    """`read_call` with the node's place on its errors."""
    try:
        return read_call(node)
    except QueryError as error:
        located(error, node, context.statement.text)
        raise


_CALL: Final = frozenset({"this", "expressions"})

HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.Anonymous: (call, _CALL),
    exp.Filter: (modified_call, frozenset({"this", "expression"})),
    exp.IgnoreNulls: (modified_call, frozenset({"this"})),
    exp.RespectNulls: (modified_call, frozenset({"this"})),
    exp.WithinGroup: (modified_call, frozenset({"this", "expression"})),
    exp.Extract: (extract, frozenset({"this", "expression"})),
    exp.Substring: (substring, frozenset({"this", "start", "length"})),
    exp.StrPosition: (position, frozenset({"this", "substr"})),
    exp.Trim: (trim, frozenset({"this", "expression", "position"})),
}

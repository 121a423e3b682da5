"""Window functions: what they are partitioned and ordered by, named windows, and the frame, always explicit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import expressions as exp

from bireme.errors import ClauseFault, NameFault, Unsupported
from bireme.frontend.sql.calls import aggregate_arguments, located_call, sort_keys, unknown_function
from bireme.frontend.sql.column_sets import bind_condition
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Bound,
    BoundKind,
    Exclusion,
    Expr,
    Frame,
    FrameUnit,
    Interval,
    Literal,
    SortKey,
    WindowCall,
)

_WINDOW: Final = frozenset({"this", "partition_by", "order", "spec", "alias", "over"})


def window(node: Node, context: Context) -> Expr:
    if node.args.get("over") != "OVER":
        raise Unsupported(f"{node.args.get('over')} behind a call is not supported")
    read = located_call(node.args["this"], context)
    name = read.name
    if not functions.is_aggregate(name) and not functions.is_window(name):
        if functions.is_scalar(name):
            raise ClauseFault(f"'{name}' is a function of one row and takes no OVER")
        raise unknown_function(name)
    if not context.windows or context.stand_ins is None:
        raise context.refuse_window(name)
    inner = context.within("window")
    name, args = aggregate_arguments(read, inner)
    name = _OF_FRAMES.get(name, name)
    if read.ignore_nulls and functions.is_aggregate(name) and name != "any_value":
        raise Unsupported("IGNORE NULLS in an aggregate is not supported; use FILTER (WHERE x IS NOT NULL)")
    condition = bind_condition(read.filter, inner, "FILTER") if read.filter is not None else None
    own_order = tuple(sort_keys(read.order, inner)) if read.order else ()
    call = functions.window(name, args, distinct=read.distinct, filter=condition, order=own_order)
    partition, order, frame = definition(node, inner)
    _check_distinct(call, frame)
    made = WindowCall(call, partition, order, frame, read.ignore_nulls)
    stand_ins = context.stand_ins
    column = stand_ins.windows.get(made)
    if column is None:
        column = stand_ins.windows[made] = stand_ins.column(call.type)
    return column


def _check_distinct(call: Aggregation, frame: Frame) -> None:
    if call.distinct and frame.exclusion is not Exclusion.NOTHING and not call.order:
        raise Unsupported("DISTINCT over a frame with EXCLUDE is not supported; take distinct rows in a subquery")


# Over a window, the first value is that of the frame.
_OF_FRAMES: Final = {"first": "first_value", "arbitrary": "first_value", "last": "last_value"}

Definition = tuple[tuple[Expr, ...], tuple[SortKey, ...], Frame]


def definition(node: Node, context: Context) -> Definition:
    """What OVER says: its own clauses, on top of those of the named window it refers to."""
    partition_nodes, order_node, spec = _clauses(node, context.named_windows, ())
    partition = tuple([context.bind(item) for item in partition_nodes])
    order: tuple[SortKey, ...] = ()
    if order_node is not None:
        check_arguments(order_node, {"expressions"})
        order = tuple(sort_keys(order_node.args["expressions"], context))
    if spec is None:
        return partition, order, UP_TO_PEERS if order else WHOLE_PARTITION
    try:
        return partition, order, _frame(spec, order, context)
    except ClauseFault as error:
        located(error, spec, context.statement.text)
        raise


def _clauses(node: Node, named: Mapping[str, Node], seen: tuple[str, ...]) -> tuple[list[Node], Node | None, Any]:
    args = node.args
    partition, order, spec = args.get("partition_by") or [], args.get("order"), args.get("spec")
    alias = args.get("alias")
    if alias is None:
        return partition, order, spec
    name = alias.name.lower()
    base = named.get(name)
    if base is None or name in seen:
        raise NameFault(f"there is no window '{alias.name}'{functions.suggest(name, list(named))}")
    base_partition, base_order, base_spec = _clauses(base, named, (*seen, name))
    if (partition and base_partition) or (order is not None and base_order is not None):
        raise ClauseFault(f"window '{alias.name}' has these clauses already; they cannot be given again")
    return partition or base_partition, order if order is not None else base_order, spec or base_spec


def named_windows(nodes: list[Node]) -> dict[str, Node]:
    """The definitions of a WINDOW clause by name."""
    named: dict[str, Node] = {}
    for node in nodes:
        check_arguments(node, _WINDOW)
        name = node.args["this"].name.lower()
        if name in named:
            raise ClauseFault(f"window '{name}' is defined twice")
        named[name] = node
    return named


def _frame(spec: Node, order: tuple[SortKey, ...], context: Context) -> Frame:
    check_arguments(spec, {"kind", "start", "start_side", "end", "end_side", "exclude"})
    args = spec.args
    unit = FrameUnit(args["kind"].lower())
    start = _bound(args.get("start"), args.get("start_side"), context)
    if args.get("end") is None:
        end = Bound(BoundKind.CURRENT_ROW)
    else:
        end = _bound(args["end"], args.get("end_side"), context)
    _check_frame(unit, start, end, order)
    return Frame(unit, start, end, _exclusion(args.get("exclude")))


def _exclusion(node: Node | None) -> Exclusion:
    if node is None:
        return Exclusion.NOTHING
    words = node.name.lower()
    if node.__class__ is not exp.Var or words not in _EXCLUSIONS:
        raise ClauseFault("EXCLUDE of a frame takes CURRENT ROW, GROUP, TIES or NO OTHERS")
    return _EXCLUSIONS[words]


_EXCLUSIONS: Final = {each.value: each for each in Exclusion}


def _bound(value: Any, side: str | None, context: Context) -> Bound:
    if value == "CURRENT ROW":
        return Bound(BoundKind.CURRENT_ROW)
    following = (side or "").upper() == "FOLLOWING"
    if side is None:
        raise ClauseFault("a bound of a frame is … PRECEDING, CURRENT ROW or … FOLLOWING")
    if value == "UNBOUNDED":
        return Bound(BoundKind.UNBOUNDED_FOLLOWING if following else BoundKind.UNBOUNDED_PRECEDING)
    if not isinstance(value, Node):
        raise ClauseFault("a bound of a frame needs an amount")
    offset = context.bind(value)
    if not isinstance(offset, Literal) or offset.value is None:
        raise Unsupported("only constants are supported as bounds of a frame")
    return Bound(BoundKind.FOLLOWING if following else BoundKind.PRECEDING, offset)


_ORDER: Final = list(BoundKind)


def _check_frame(unit: FrameUnit, start: Bound, end: Bound, order: tuple[SortKey, ...]) -> None:
    if start.kind is BoundKind.UNBOUNDED_FOLLOWING or end.kind is BoundKind.UNBOUNDED_PRECEDING:
        raise ClauseFault("a frame cannot start at its far end or end at its start")
    if _ORDER.index(start.kind) > _ORDER.index(end.kind):
        raise ClauseFault("the frame starts behind its end")
    offsets = [bound.offset for bound in (start, end) if bound.offset is not None]
    if unit is FrameUnit.GROUPS and not order:
        raise ClauseFault("a GROUPS frame needs an ORDER BY")
    for offset in offsets:
        _check_offset(unit, offset, order)


def _check_offset(unit: FrameUnit, offset: Literal, order: tuple[SortKey, ...]) -> None:
    value = offset.value
    if unit is not FrameUnit.RANGE:
        if not offset.type.is_integer:
            raise ClauseFault(f"a bound of a {unit.value.upper()} frame is a number of rows, not a {offset.type}")
    elif len(order) != 1:
        raise ClauseFault("a RANGE frame with amounts needs an ORDER BY of one expression")
    else:
        # The amount must go with the key; adding them finds out.
        functions.scalar("add", (order[0].expr, offset))
    negative = max(value) < 0 if isinstance(value, Interval) else value < 0  # type: ignore[operator]
    if negative:
        raise ClauseFault("a bound of a frame cannot be negative")


HANDLERS: Final[dict[type[Node], Handler]] = {exp.Window: (window, _WINDOW)}

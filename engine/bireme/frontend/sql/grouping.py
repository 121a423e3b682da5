"""What a query groups by: the keys of GROUP BY with its grouping sets, and expressions rewritten over the groups.

Rule: above an `Aggregate` an expression may use keys, aggregates and grouping() only; everything else is a ClauseFault
that names the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import BOOL, INT64
from bireme.errors import ClauseFault, QueryError, SyntaxFault, Unsupported
from bireme.frontend.sql.context import Context, Item, StandIns, is_stand_in
from bireme.frontend.sql.correlation import map_outer, moved
from bireme.frontend.sql.syntax import Node, check_arguments, is_all, located, span
from bireme.plan import tree
from bireme.plan.expr import Call, Case, Column, Expr, Literal, OuterColumn
from bireme.plan.relation import Aggregate, Rel
from bireme.records import dataclass

_SETS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Keys:
    """What a query groups by; `sets` are positions in `exprs`, None where there is only the set of all."""

    exprs: tuple[Expr, ...]
    sets: tuple[tuple[int, ...], ...] | None = None


def bind_group(node: Node, items: Sequence[Item], context: Context) -> Keys | None:
    """The keys of a GROUP BY clause, None where it says no groups; `context` is one without aggregates."""
    check_arguments(node, {"expressions", "all"})
    elements = node.args.get("expressions") or []
    everything = node.args.get("all")
    if everything is False:
        raise Unsupported("GROUP BY DISTINCT is not supported")
    if len(elements) == 1 and is_all(elements[0]):
        everything, elements = True, []
    if everything:
        if elements:
            raise ClauseFault("GROUP BY ALL takes no further keys")
        exprs = [item.expr for item in items if not _holds_stand_in(item.expr) and not _is_constant(item.expr)]
        return Keys(tuple(dict.fromkeys(exprs))) if exprs else None
    if not elements:
        raise SyntaxFault("GROUP BY needs at least one key")
    each = [_element(element, items, context) for element in elements]
    if all(len(sets) == 1 for sets in each):
        return Keys(tuple(dict.fromkeys(key for sets in each for key in sets[0])))
    count = 1
    for sets in each:
        count *= len(sets)
    if count > _SETS_MAX:
        raise Unsupported(f"more than {_SETS_MAX} grouping sets are not supported")
    keys: dict[Expr, int] = {}
    result = []
    for combination in product(*each):
        chosen = dict.fromkeys(key for part in combination for key in part)
        result.append(tuple([keys.setdefault(key, len(keys)) for key in chosen]))
    return Keys(tuple(keys), tuple(result))


Sets = list[list[Expr]]


def _element(node: Node, items: Sequence[Item], context: Context) -> Sets:
    """The grouping sets that one element of GROUP BY stands for; a plain key is one set of one."""
    kind = node.__class__
    if kind is exp.Rollup or kind is exp.Cube:
        check_arguments(node, {"expressions"})
        parts = [_keys(part, items, context) for part in node.args.get("expressions") or []]
        chosen = _rollup(parts) if kind is exp.Rollup else _cube(parts)
        return [[key for part in some for key in part] for some in chosen]
    if kind is exp.GroupingSets:
        check_arguments(node, {"expressions"})
        return [one for part in node.args["expressions"] for one in _element(part, items, context)]
    return [_keys(node, items, context)]


def _rollup(parts: Sequence[list[Expr]]) -> list[Sequence[list[Expr]]]:
    return [parts[:length] for length in range(len(parts), -1, -1)]


def _cube(parts: Sequence[list[Expr]]) -> list[Sequence[list[Expr]]]:
    if 1 << len(parts) > _SETS_MAX:
        raise Unsupported(f"more than {_SETS_MAX} grouping sets are not supported")
    return [some for length in range(len(parts), -1, -1) for some in combinations(parts, length)]


def _keys(node: Node, items: Sequence[Item], context: Context) -> list[Expr]:
    if node.__class__ is exp.Paren:
        return _keys(node.args["this"], items, context)
    if node.__class__ is exp.Tuple:
        check_arguments(node, {"expressions"})
        return [key for part in node.args.get("expressions") or [] for key in _keys(part, items, context)]
    try:
        return [_key(node, items, context)]
    except QueryError as error:
        located(error, node, context.statement.text)
        raise


def _key(node: Node, items: Sequence[Item], context: Context) -> Expr:
    position = constant_position(node)
    if position is None:
        return context.bind(node)
    if not 1 <= position <= len(items):
        raise ClauseFault(f"GROUP BY {position}: the select list has {len(items)} columns")
    key = items[position - 1].expr
    if _holds_stand_in(key):
        raise ClauseFault(f"GROUP BY {position}: this column holds an aggregate or window and cannot be grouped by")
    return key


def constant_position(node: Node) -> int | None:
    """The number that a whole constant is, where it stands for a column of the select list."""
    if node.__class__ is exp.Literal and not node.args.get("is_string"):
        text = str(node.args["this"])
        return int(text) if text.isdecimal() else None
    if node.__class__ is exp.Neg:
        inner = constant_position(node.args["this"])
        return None if inner is None else -inner
    return None


def _is_constant(expr: Expr) -> bool:
    return not any(
        part.__class__ is Column or any(tree.contains(plan, OuterColumn) for plan in part.inputs)
        for part in tree.walk(expr)
    )


def _holds_stand_in(expr: Expr) -> bool:
    return any(part.__class__ is Column and is_stand_in(part) for part in tree.walk(expr))


def aggregate(relation: Rel, keys: Keys, stand_ins: StandIns) -> tuple[Rel, dict[Expr, Expr]]:
    """The `Aggregate` of a query, and what replaces keys and stand-ins in the expressions above it."""
    calls = tuple(stand_ins.aggregates)
    names = [f"key{index}" for index in range(len(keys.exprs))] + [f"agg{index}" for index in range(len(calls))]
    made = Aggregate(relation, keys.exprs, calls, tuple(names), keys.sets)
    replacements: dict[Expr, Expr] = {}
    for index, key in enumerate(keys.exprs):
        replacements[key] = Column(index, key.type)
    for index, stand_in in enumerate(stand_ins.aggregates.values(), start=len(keys.exprs)):
        replacements[stand_in] = Column(index, stand_in.type)
    for asked, stand_in in stand_ins.groupings.items():
        replacements[stand_in] = _grouping_value(asked, keys, len(names))
    return made, replacements


def _grouping_value(asked: Sequence[Expr], keys: Keys, set_column: int) -> Expr:
    """One bit per key asked about, the last one lowest: 1 where the row is not grouped by it."""
    positions = []
    for key in asked:
        if key not in keys.exprs:
            raise ClauseFault("grouping() takes only what the query groups by")
        positions.append(keys.exprs.index(key))
    if keys.sets is None:
        return Literal(0, INT64)
    values = []
    for chosen in keys.sets:
        bits = 0
        for position in positions:
            bits = bits << 1 | (position not in chosen)
        values.append(Literal(bits, INT64))
    number = Column(set_column, INT64)
    branches = [(Call("eq", (number, Literal(index, INT64)), BOOL), value) for index, value in enumerate(values[:-1])]
    return Case(tuple(branches), values[-1], INT64) if branches else values[-1]


def replacer(
    replacements: Mapping[Expr, Expr], correlated: bool, missing: Callable[[Column], None] | None
) -> Callable[[Expr], Expr]:
    """What puts `replacements` into expressions, and, where `correlated`, into the outer columns of their subqueries.

    `missing` is called for a column that has no replacement; without it such a column stays.
    """

    def replace(expr: Expr) -> Expr:
        kind = expr.__class__
        found = replacements.get(expr)
        # A constant key is the same for all rows of its group, but not where a grouping set leaves it out.
        if found is not None and kind is not Literal:
            return found
        if kind is Column:
            if missing is not None and not is_stand_in(expr):  # type: ignore[arg-type]
                missing(expr)  # type: ignore[arg-type]
            return expr
        if correlated:
            expr = tree.with_plan(expr, lambda plan: map_outer(plan, outer, whole))
        return tree.map_operands(expr, replace)

    def outer(column: OuterColumn, level: int) -> Expr:
        return moved(replace(Column(column.index, column.type)), level) if column.depth == level else column

    inside: dict[int, Mapping[Expr, Expr]] = {}

    def whole(expr: Expr, level: int) -> Expr | None:
        if level not in inside:
            inside[level] = {
                moved(old, level): moved(new, level)
                for old, new in replacements.items()
                if old.__class__ is not Literal
            }
        return inside[level].get(expr)

    return replace


def refuse_ungrouped(contexts: Sequence[Context]) -> Callable[[Column], None]:
    """Raises the error for a column that is neither grouped by nor inside an aggregate."""

    def missing(column: Column) -> None:
        nodes = [context.columns[column] for context in contexts if context.columns and column in context.columns]
        scope = contexts[0].scope
        names = [name for source in scope.sources for name in source.names]
        name = nodes[0].name if nodes and nodes[0].__class__ is exp.Column else "*"
        if name == "*":
            name = names[column.index] if column.index < len(names) else "?"
        raise ClauseFault(
            f"column '{name}' must be in GROUP BY or inside an aggregate (any_value({name}) takes any of the group)",
            position=span(nodes[0]) if nodes else None,
            text=contexts[0].statement.text,
        )

    return missing

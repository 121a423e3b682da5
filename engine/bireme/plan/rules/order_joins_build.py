"""A plan from an ordered join graph: joins with their keys, and every predicate at the first join that can apply it."""

from __future__ import annotations

from functools import reduce
from operator import or_

from bireme.plan import tree
from bireme.plan.expr import Call, Column, Expr
from bireme.plan.relation import Filter, Join, JoinKind, Rel
from bireme.plan.rules.order_joins_graph import EqualityClass, JoinGraph, Predicate, Unit
from bireme.plan.rules.order_joins_search import Step
from bireme.plan.rules.order_joins_sizes import attach

Placed = tuple[Rel, dict[int, int]]


def apply_local(graph: JoinGraph) -> None:
    """Moves what is about one leaf alone into a filter on it."""
    local: dict[int, list[Expr]] = {}
    rest: list[Predicate] = []
    for predicate in graph.predicates:
        leaf = _single_leaf(graph, predicate.units)
        if leaf is None:
            rest.append(predicate)
        else:
            local.setdefault(leaf, []).append(predicate.expr)
    for group in graph.classes:
        if len(set(group.members.values())) == len(group.members):
            continue  # no two members read the same units
        for leaf, unit in enumerate(graph.units):
            if unit.attachment is None:
                inside = _members_within(group, 1 << leaf)
                local.setdefault(leaf, []).extend([tree.equal(inside[0], other) for other in inside[1:]])
    graph.predicates = rest
    for leaf, parts in local.items():
        if parts:
            unit = graph.units[leaf]
            graph.units[leaf] = Unit(_filtered(unit.rel, [tree.shift(part, -unit.start) for part in parts]), unit.start)


def _single_leaf(graph: JoinGraph, units: int) -> int | None:
    leaf = units.bit_length() - 1
    return leaf if units and units == 1 << leaf and graph.units[leaf].attachment is None else None


def _filtered(rel: Rel, parts: list[Expr]) -> Rel:
    if isinstance(rel, Filter):
        return tree.filtered(rel.input, list(dict.fromkeys((*tree.conjuncts(rel.predicate), *parts))))
    return tree.filtered(rel, parts)


def _members_within(group: EqualityClass, units: int) -> list[Expr]:
    return [member for member, read in group.members.items() if not read & ~units]


def build(graph: JoinGraph, order: Step, names: tuple[str, ...]) -> Rel:
    """The plan of `order`, with the region's output columns in their order, under `names`."""
    _sort_members(graph, order)
    rel, positions = _Build(graph).step(order)
    constant = [predicate.expr for predicate in graph.predicates if not predicate.units]
    rel = tree.filtered(rel, constant)
    return tree.project(rel, tree.remap(graph.outputs, positions), names)


def _sort_members(graph: JoinGraph, order: Step) -> None:
    """Puts the members of classes in the order of the plan to be: keys do not depend on how the query was written."""
    ranks: dict[int, int] = {}
    _rank(order, ranks)

    def place(pair: tuple[Expr, int]) -> tuple[int, int]:
        last = pair[1].bit_length() - 1
        rank = ranks[last] if pair[1] == 1 << last else max([ranks[unit] for unit in tree.columns_in(pair[1])])
        return rank, tree.column_mask(pair[0])

    for group in graph.classes:
        group.members = dict(sorted(group.members.items(), key=place))


def _rank(step: Step, ranks: dict[int, int]) -> None:
    if step.left is None or step.right is None:
        ranks[step.units.bit_length() - 1] = len(ranks)
        return
    _rank(step.left, ranks)
    _rank(step.right, ranks)


class _Build:
    """One walk over an order."""

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        # What all members of a class read together, and whether one of them reads several units.
        self._classes = [
            (group, reduce(or_, group.members.values()), any(units & (units - 1) for units in group.members.values()))
            for group in graph.classes
        ]

    def step(self, step: Step) -> Placed:
        """The relation of a step, and where the graph's columns are in it."""
        if step.left is None or step.right is None:
            unit = self._graph.units[step.units.bit_length() - 1]
            return unit.rel, {unit.start + at: at for at in range(len(unit.rel.schema.fields))}
        right = step.right.units
        number = right.bit_length() - 1
        if right == 1 << number and self._graph.units[number].attachment is not None:
            return self._attached(step.left, number)
        return self._joined(step.left, step.right)

    def _joined(self, left_step: Step, right_step: Step) -> Placed:
        left, left_positions = self.step(left_step)
        right, right_positions = self.step(right_step)
        first, second = left_step.units, right_step.units
        sides_at = (left_positions, right_positions)
        keys: list[tuple[Expr, Expr]] = []
        null_equal: list[tuple[Expr, Expr]] = []
        residual: list[Expr] = []
        for group, read, spans in self._classes:
            if not read & first or not read & second:
                continue
            of_first, of_second = _members_within(group, first), _members_within(group, second)
            if of_first and of_second:
                keys.append((of_first[0], of_second[0]))
            if spans:
                known = of_first[:1] or of_second[:1]
                residual.extend(_equated(known, _new_members(group, first, second)))
        for predicate in self._new_predicates(first, second):
            sides = self._key_sides(predicate, first, second)
            if sides is None:
                residual.append(predicate.expr)
            else:
                null_equal.append(sides)
        if residual and not keys and not null_equal:
            keys += self._first_sides(residual, first, second)
        if len(keys) > 1:
            keys.sort(key=lambda pair: [_first_position(key, at) for key, at in zip(pair, sides_at, strict=True)])
        offset = len(left.schema.fields)
        positions = left_positions | {column: offset + at for column, at in right_positions.items()}
        pairs = [*null_equal, *keys]
        condition = tree.conjoin(residual)
        joined = Join(
            left,
            right,
            JoinKind.INNER,
            tuple([tree.remap(key, left_positions) for key, _ in pairs]),
            tuple([tree.remap(key, right_positions) for _, key in pairs]),
            None if condition is None else tree.remap(condition, positions),
            len(null_equal),
        )
        return joined, positions

    def _attached(self, left_step: Step, number: int) -> Placed:
        left, left_positions = self.step(left_step)
        joined, positions = attach(self._graph, number, left, left_positions)
        first, second = left_step.units, 1 << number
        conditions: list[Expr] = []
        for group, read, _ in self._classes:
            if not read & second:
                continue
            known = _members_within(group, first)[:1]
            added = [*_members_within(group, second), *_new_members(group, first, second)]
            conditions.extend(_equated(known, added))
        conditions.extend([predicate.expr for predicate in self._new_predicates(first, second)])
        return tree.filtered(joined, [tree.remap(condition, positions) for condition in conditions]), positions

    def _new_predicates(self, first: int, second: int) -> list[Predicate]:
        """What can be applied to both sets together and to neither alone; an attachment alone applies nothing."""
        both = first | second
        attached = self._graph.units[second.bit_length() - 1].attachment is not None and not second & (second - 1)
        return [
            predicate
            for predicate in self._graph.predicates
            if predicate.units
            and not predicate.units & ~both
            and predicate.units & ~first
            and (attached or predicate.units & ~second)
        ]

    def _key_sides(self, predicate: Predicate, first: int, second: int) -> tuple[Expr, Expr] | None:
        """The sides of a null-safe equality, in the order of the sets, when each reads only one of them."""
        return None if predicate.null_equal is None else self._in_order(*predicate.null_equal, first, second)

    def _first_sides(self, residual: list[Expr], first: int, second: int) -> list[tuple[Expr, Expr]]:
        """Takes the equality that all pairs are tested by first, which may fail, to be the key of the join."""
        part = residual[0]
        if not isinstance(part, Call) or part.function != "eq":
            return []
        sides = self._in_order(part.args[0], part.args[1], first, second)
        if sides is None:
            return []
        del residual[0]
        return [sides]

    def _in_order(self, one: Expr, other: Expr, first: int, second: int) -> tuple[Expr, Expr] | None:
        """Two expressions in the order of the sets, when each reads only one of them."""
        reads_one, reads_other = self._graph.units_read(one), self._graph.units_read(other)
        if not reads_one or not reads_other:
            return None
        if not reads_one & ~first and not reads_other & ~second:
            return one, other
        if not reads_one & ~second and not reads_other & ~first:
            return other, one
        return None


def _first_position(expr: Expr, positions: dict[int, int]) -> int:
    if expr.__class__ is Column:
        return positions[expr.index]
    return min([positions[column] for column in tree.columns_in(tree.column_mask(expr))])


def _new_members(group: EqualityClass, first: int, second: int) -> list[Expr]:
    """Members that read units of both sets."""
    both = first | second
    return [
        member for member, units in group.members.items() if not units & ~both and units & ~first and units & ~second
    ]


def _equated(known: list[Expr], added: list[Expr]) -> list[Expr]:
    """Equalities of what is added with the first that is known."""
    members = [*known, *added]
    return [tree.equal(members[0], member) for member in members[1:]]

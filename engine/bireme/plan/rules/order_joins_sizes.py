"""How many rows any set of units of a join graph gives.

The figure is a product over what is in the set: rows of leaves, shares of equality classes and predicates, and what
attachments keep or multiply. So it is the same for every order of the set, and cheap; it is computed in C++
(`native/orders`), from what is found out here.

An equality class among k members keeps one in the product of their k-1 larger domains (every value of a smaller domain
occurs in the larger ones). Two relations that share several classes are compared by a key of several columns; as
these are hardly independent, the tuples are counted instead, and the product is corrected by the quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from operator import itemgetter
from typing import Final

from bireme.plan import tree
from bireme.plan.expr import Expr
from bireme.plan.relation import Join, JoinKind, Rel
from bireme.plan.rules import _orders
from bireme.plan.rules.order_joins_graph import Attachment, EqualityClass, JoinGraph
from bireme.plan.statistics import matching, predicate
from bireme.plan.statistics.column import overlap
from bireme.plan.statistics.estimator import ROWS_MAX, Estimator

_LOG_ROWS_MAX: Final = math.log(ROWS_MAX)
_SHARE_MIN: Final = 1e-12


def _log(factor: float) -> float:
    return math.log(max(factor, _SHARE_MIN))


class GraphSizes:
    """Rows of sets of units, and what connects with what."""

    def __init__(self, graph: JoinGraph, estimator: Estimator) -> None:
        self._graph = graph
        self._estimator = estimator
        self.count = len(graph.units)
        self.needs = [unit.attachment.needs if unit.attachment else 0 for unit in graph.units]
        self.neighbours = _neighbours(graph)
        self.built = [estimator.rows(unit.rel) for unit in graph.units]
        # All of these as logarithms: the product of the rows of fifty tables has no place in a float.
        classes = [_class_domains(graph, estimator, group) for group in graph.classes]
        factors: list[tuple[int, float]] = [
            *[(found.units, _log(self._predicate_share(found.expr, found.units))) for found in graph.predicates],
            *[(mask, _log(factor)) for mask, factor in (*_corrections(graph, estimator), *graph.dependent)],
        ]
        # What a unit alone multiplies the rows by: a leaf by its own, an attachment by what it keeps or adds.
        single = [
            _log(self._attachment_factor(index) if unit.attachment else self.built[index])
            for index, unit in enumerate(graph.units)
        ]
        self._rows = _orders.product(single, classes, factors, _LOG_ROWS_MAX)

    @property
    def rows(self) -> Callable[[int], float]:
        """Gives the rows of the joined units, at least one."""
        return self._rows

    def _predicate_share(self, expr: Expr, units: int) -> float:
        if not units:
            return 1.0
        rel, positions = assemble(self._graph, units)
        return predicate.share(self._estimator, rel, tree.remap(expr, positions))

    def _attachment_factor(self, index: int) -> float:
        attachment = self._graph.units[index].attachment
        assert attachment is not None
        if attachment.kind in (JoinKind.MARK, JoinKind.SINGLE):
            return 1.0
        left, positions = assemble(self._graph, attachment.needs)
        joined, _ = attach(self._graph, index, left, positions)
        before = self._estimator.rows(left)
        return self._estimator.rows(joined) / before if before > 0 else 1.0


def assemble(graph: JoinGraph, units: int) -> tuple[Rel, dict[int, int]]:
    """The units (and what they need) as a cross product, and where the graph's columns are in it."""
    pending = units
    while True:
        more = pending
        for index in tree.columns_in(pending):
            attachment = graph.units[index].attachment
            if attachment is not None:
                more |= attachment.needs
        if more == pending:
            break
        pending = more
    rel: Rel | None = None
    positions: dict[int, int] = {}
    later = []
    for index in tree.columns_in(pending):
        unit = graph.units[index]
        if unit.attachment is not None:
            later.append(index)
            continue
        offset = len(rel.schema.fields) if rel is not None else 0
        positions.update({unit.start + at: offset + at for at in range(len(unit.rel.schema.fields))})
        rel = unit.rel if rel is None else Join(rel, unit.rel, JoinKind.INNER)
    assert rel is not None
    while later:
        index = next(at for at in later if not _missing(graph, at, later))
        later.remove(index)
        rel, positions = attach(graph, index, rel, positions)
    return rel, positions


def _missing(graph: JoinGraph, index: int, later: list[int]) -> bool:
    attachment = graph.units[index].attachment
    assert attachment is not None
    return any(attachment.needs >> other & 1 for other in later)


def attach(graph: JoinGraph, index: int, left: Rel, positions: dict[int, int]) -> tuple[Rel, dict[int, int]]:
    """The attachment `index` applied to `left`, and where the graph's columns are in the result."""
    unit = graph.units[index]
    attachment = unit.attachment
    assert attachment is not None
    offset, added = len(left.schema.fields), len(attachment.right.schema.fields)
    with_right = positions | {unit.start + at: offset + at for at in range(added)}
    joined = Join(
        left,
        attachment.right,
        attachment.kind,
        tree.remap(attachment.left_keys, positions),
        attachment.right_keys,
        None if attachment.residual is None else tree.remap(attachment.residual, with_right),
        attachment.null_equal_count,
        attachment.null_aware,
    )
    return joined, _positions_after(attachment, unit.start, offset, positions, with_right)


def _positions_after(
    attachment: Attachment, start: int, offset: int, positions: dict[int, int], with_right: dict[int, int]
) -> dict[int, int]:
    match attachment.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return positions
        case JoinKind.MARK:
            return positions | {start + len(attachment.right.schema.fields): offset}
        case _:
            return with_right


def _neighbours(graph: JoinGraph) -> list[int]:
    """What connects with what. A part that reads several units connects them with each other too."""
    neighbours = [0] * len(graph.units)
    groups = [predicate_.units for predicate_ in graph.predicates]
    for group in graph.classes:
        union = 0
        for units in group.members.values():
            union |= units
        groups.append(union)
    for index, unit in enumerate(graph.units):
        if unit.attachment is not None:
            groups.append(unit.attachment.needs | 1 << index)
    for units in groups:
        for index in tree.columns_in(units):
            neighbours[index] |= units & ~(1 << index)
    return neighbours


def _class_domains(graph: JoinGraph, estimator: Estimator, group: EqualityClass) -> list[tuple[int, float]]:
    """For each set of units with a member, the logarithm of the size of its domain; ascending."""
    columns = []
    for member, units in group.members.items():
        unit = graph.units[units.bit_length() - 1]
        if units & (units - 1) == 0 and unit.attachment is None:
            columns.append((units, estimator.expression(unit.rel, tree.shift(member, -unit.start))))
        else:
            rel, positions = assemble(graph, units)
            columns.append((units, estimator.expression(rel, tree.remap(member, positions))))
    found: dict[int, float] = {}
    for units, column in columns:
        domain = max(column.domain, 1.0)
        for _, key in columns:
            # What refers to a key has no more values than the key.
            if key.unique and key is not column and not column.unique and overlap(column, key) > 0.99:
                domain = max(min(domain, key.domain), 1.0)
        found[units] = min(found.get(units, domain), domain)
    return sorted([(units, math.log(domain)) for units, domain in found.items()], key=itemgetter(1))


def _corrections(graph: JoinGraph, estimator: Estimator) -> list[tuple[int, float]]:
    """For pairs of leaves with several classes in common, by how much more pairs match than the product says.

    Pairs form a forest: a third relation that is compared with two others by the same columns adds one correction.
    """
    if len(graph.classes) < 2:
        return []
    linked = list(range(len(graph.units)))

    def root(unit: int) -> int:
        while linked[unit] != unit:
            unit = linked[unit]
        return unit

    corrections = []
    members = sorted(_leaf_members(graph).items())
    for (first, of_first), (second, of_second) in combinations([each for each in members if len(each[1]) > 1], 2):
        shared = [number for number in of_first if number in of_second]
        if len(shared) < 2 or root(first) == root(second):
            continue
        linked[root(first)] = root(second)
        share = matching.key_correction(
            estimator,
            graph.units[first].rel,
            graph.units[second].rel,
            [of_first[number] for number in shared],
            [of_second[number] for number in shared],
        )
        if share > 1:
            corrections.append((1 << first | 1 << second, share))
    return corrections


def _leaf_members(graph: JoinGraph) -> dict[int, dict[int, Expr]]:
    """By leaf and class, the first member that reads this leaf alone, over its own columns."""
    found: dict[int, dict[int, Expr]] = {}
    for number, group in enumerate(graph.classes):
        for member, units in group.members.items():
            leaf = units.bit_length() - 1
            unit = graph.units[leaf]
            if units == 1 << leaf and unit.attachment is None:
                own = found.setdefault(leaf, {})
                if number not in own:
                    own[number] = tree.shift(member, -unit.start)
    return found

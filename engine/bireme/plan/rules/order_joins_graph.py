"""The join graph of a region of a plan: what is joined, and which predicates connect it.

A region is a maximal tree of joins, with the filters and projections between them. Its **units** are the relations at
its leaves and its **attachments**: SEMI, ANTI, LEFT, MARK and SINGLE joins. An attachment gives each row of its left
side some rows that depend on the columns of that row alone, so it commutes with inner joins and filters that do
not read what it adds; it may be applied to any part of the graph that has the units it reads.

All columns of all units are numbered through; expressions in a graph are over these numbers. Equalities form
classes: inside a class any two members may be compared, which lets relations be joined that the query did not
compare directly.

How orders are judged and searched is in `order_joins_search`; making a plan of one, in `order_joins_build`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from bireme.data.types import BOOL
from bireme.plan import tree
from bireme.plan.expr import Call, Column, Expr
from bireme.plan.raises import may_raise
from bireme.plan.relation import Filter, Join, JoinKind, Project, Rel
from bireme.plan.rules.push_predicates import without_raising
from bireme.records import dataclass

_ATTACHED = frozenset({JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT, JoinKind.MARK, JoinKind.SINGLE, JoinKind.RIGHT})
_KEEPS_LEFT_ONLY = frozenset({JoinKind.SEMI, JoinKind.ANTI})


# How a tree joins units: a unit, or the pair of its sides.
Shape = int | tuple["Shape", "Shape"]


@dataclass(frozen=True, slots=True, eq=False)
class Attachment:
    """A join of each row with `right` by itself; `needs` are the units its left side must have.

    `left_keys` and `residual` are over the columns of the graph, in which those of `right` start at the unit's
    `start`; `right_keys` are over `right`.
    """

    kind: JoinKind
    right: Rel
    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    residual: Expr | None
    null_equal_count: int
    null_aware: bool
    needs: int


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A leaf (`attachment` None) or an attachment; its columns are `start` and following."""

    rel: Rel
    start: int
    attachment: Attachment | None = None


@dataclass(slots=True, eq=False)
class EqualityClass:
    """Expressions that are equal in every row of the result, with the units that must have met to compute each."""

    members: dict[Expr, int]


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A conjunct that is not an equality of two parts, and the units it reads.

    `null_equal` are its two sides when it says that they are equal or both NULL: then it can be a join key.
    """

    expr: Expr
    units: int
    null_equal: tuple[Expr, Expr] | None = None


@dataclass(slots=True, eq=False)
class JoinGraph:
    """Units, classes and predicates of a region, the region's output over their columns, and the order it had.

    `dependent` holds sets of units that have more rows together than their classes say, and how many times as many.
    """

    units: list[Unit] = field(default_factory=list)
    classes: list[EqualityClass] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    outputs: tuple[Expr, ...] = ()
    shape: Shape = 0
    width: int = 0
    unit_of: list[int] = field(default_factory=list)
    dependent: list[tuple[int, float]] = field(default_factory=list)

    def units_read(self, expr: Expr) -> int:
        """The units whose columns `expr` reads, as a mask."""
        mask = 0
        for column in tree.columns_in(tree.column_mask(expr)):
            mask |= 1 << self.unit_of[column]
        return mask

    def add_unit(self, rel: Rel, columns: int, attachment: Attachment | None = None) -> int:
        """Adds a unit with so many columns; gives the number of its first one."""
        start, index = self.width, len(self.units)
        self.units.append(Unit(rel, start, attachment))
        self.unit_of.extend([index] * columns)
        self.width += columns
        return start

    def add_conjunct(self, expr: Expr, inside: int) -> None:
        """Adds a condition that every row of the result must meet, and that stood above the units `inside`.

        One that may raise is tested no earlier than there, when all of these have met.
        """
        safe = without_raising(expr)
        if safe is None:
            self.predicates.append(Predicate(expr, inside))
            return
        expr = safe
        if expr.__class__ is Call and len(expr.args) == 2:
            left, right = expr.args
            left_units, right_units = self.units_read(left), self.units_read(right)
            if left_units and right_units and not left_units & right_units:
                if expr.function == "eq":
                    self._equate(left, left_units, right, right_units)
                    return
                if expr.function == "is_not_distinct":
                    self.predicates.append(Predicate(expr, left_units | right_units, (left, right)))
                    return
        self.predicates.append(Predicate(expr, self.units_read(expr)))

    def add_key(self, left: Expr, left_inside: int, right: Expr, right_inside: int, *, null_equal: bool) -> None:
        """Adds a key pair of an inner join of the two sets of units."""
        if null_equal or not tree.column_mask(left) or not tree.column_mask(right):
            function = "is_not_distinct" if null_equal else "eq"
            self.add_conjunct(Call(function, (left, right), BOOL), left_inside | right_inside)
            return
        left_units = left_inside if may_raise(left) else self.units_read(left)
        right_units = right_inside if may_raise(right) else self.units_read(right)
        self._equate(left, left_units, right, right_units)

    def _equate(self, left: Expr, left_units: int, right: Expr, right_units: int) -> None:
        first, second = self._class_of(left, left_units), self._class_of(right, right_units)
        if first is second:
            return
        for member, units in second.members.items():
            first.members.setdefault(member, units)
        self.classes.remove(second)

    def _class_of(self, expr: Expr, units: int) -> EqualityClass:
        for group in self.classes:
            if expr in group.members:
                return group
        made = EqualityClass({expr: units})
        self.classes.append(made)
        return made


def is_region(rel: Rel) -> bool:
    """Whether `rel` is a join that can be ordered, under filters and projections."""
    while isinstance(rel, (Filter, Project)):
        rel = rel.input
    return rel.__class__ is Join and rel.kind is not JoinKind.FULL


def extract(region: Rel, visit: Callable[[Rel], Rel]) -> JoinGraph:
    """The join graph of `region`; `visit` orders what is inside its leaves, and in subqueries of its expressions."""
    graph = JoinGraph()
    graph.outputs, graph.shape = _Extraction(graph, visit).walk(region)
    return graph


class _Extraction:
    """One walk over a region, which gives each relation's columns over those of the graph, and its shape."""

    def __init__(self, graph: JoinGraph, visit: Callable[[Rel], Rel]) -> None:
        self.graph = graph
        self.visit = visit

    def walk(self, rel: Rel) -> tuple[tuple[Expr, ...], Shape]:
        if not is_region(rel):
            return self._leaf(rel)
        # Ordered first: from here on expressions are moved as they are.
        rel = tree.map_subplans(rel, self.visit)
        match rel:
            case Filter():
                first_unit = len(self.graph.units)
                outputs, shape = self.walk(rel.input)
                inside = self._since(first_unit)
                for part in tree.conjuncts(rel.predicate):
                    self.graph.add_conjunct(tree.substitute(part, outputs), inside)
                return outputs, shape
            case Project():
                outputs, shape = self.walk(rel.input)
                return tree.substitute(rel.exprs, outputs), shape
            case Join() if rel.kind in _ATTACHED:
                return self._attach(rel)
            case Join():
                return self._inner(rel)
            case _:
                raise AssertionError(rel)

    def _since(self, first_unit: int) -> int:
        """The units that were added from this one on."""
        return (1 << len(self.graph.units)) - (1 << first_unit)

    def _leaf(self, rel: Rel) -> tuple[tuple[Expr, ...], Shape]:
        rel = self.visit(rel)
        start = self.graph.add_unit(rel, len(rel.schema.fields))
        return tree.all_columns(rel.schema, start), len(self.graph.units) - 1

    def _inner(self, rel: Join) -> tuple[tuple[Expr, ...], Shape]:
        first_left = len(self.graph.units)
        left, left_shape = self.walk(rel.left)
        first_right = len(self.graph.units)
        right, right_shape = self.walk(rel.right)
        right_inside = self._since(first_right)
        left_inside = self._since(first_left) & ~right_inside
        for index, (left_key, right_key) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True)):
            self.graph.add_key(
                tree.substitute(left_key, left),
                left_inside,
                tree.substitute(right_key, right),
                right_inside,
                null_equal=index < rel.null_equal_count,
            )
        for part in tree.conjuncts(rel.residual):
            self.graph.add_conjunct(tree.substitute(part, (*left, *right)), left_inside | right_inside)
        return (*left, *right), (left_shape, right_shape)

    def _attach(self, rel: Join) -> tuple[tuple[Expr, ...], Shape]:
        mirrored = rel.kind is JoinKind.RIGHT
        kept, added = (rel.right, rel.left) if mirrored else (rel.left, rel.right)
        kept_keys, added_keys = (rel.right_keys, rel.left_keys) if mirrored else (rel.left_keys, rel.right_keys)
        first_unit = len(self.graph.units)
        outputs, shape = self.walk(kept)
        inside = self._since(first_unit)
        right = self.visit(added)
        fields = right.schema.fields
        start = self.graph.width
        extra = tree.all_columns(right.schema, start)
        both = (*extra, *outputs) if mirrored else (*outputs, *extra)
        keys = tree.substitute(kept_keys, outputs)
        residual = None if rel.residual is None else tree.substitute(rel.residual, both)
        marked = rel.kind is JoinKind.MARK
        tested = keys if residual is None else (*keys, residual)
        needs = 0
        for column in tree.columns_in(tree.mask_of(tested) & ((1 << start) - 1)):
            needs |= 1 << self.graph.unit_of[column]
        if not needs or rel.kind is JoinKind.SINGLE or any(may_raise(expr) for expr in tested):
            # What may fail is never asked of rows that the query would not have asked it of.
            needs = inside
        attachment = Attachment(
            JoinKind.LEFT if mirrored else rel.kind,
            right,
            keys,
            added_keys,
            residual,
            rel.null_equal_count,
            rel.null_aware,
            needs,
        )
        self.graph.add_unit(right, len(fields) + marked, attachment)
        shape = (shape, len(self.graph.units) - 1)
        if marked:
            return (*outputs, Column(start + len(fields), BOOL)), shape
        return (outputs if rel.kind in _KEEPS_LEFT_ONLY else both), shape

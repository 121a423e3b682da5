"""Drops columns that nobody reads, and projections that only rename or reorder.

Two passes over the graph of relations: readers first, to know what is needed of each (a relation that runs once for
several readers gives what any of them needs); then from the scans up, to rebuild. Only the root and the plans of
subqueries keep their exact columns. Relations may be left without columns; their rows still count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from bireme.data.node import column_positions, holds_dependent
from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import (
    Aggregate,
    Assume,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.rules.columns_asked import ASKED, asked_by_any
from bireme.plan.rules.share import shared
from bireme.plan.tree import (
    columns_in,
    map_subplans,
    mask_of,
    operands,
    project,
    relations,
    remap,
    subplans,
    substitute,
)

Positions = Mapping[int, int]

# Of so many sets of columns it is kept where each column goes when the others are left out.
_MASKS_KEPT_MAX: Final = 1024


@lru_cache(_MASKS_KEPT_MAX)
def _compact(mask: int) -> Positions:
    """Where the columns of a mask are when they alone are left, in their order."""
    return {old: new for new, old in enumerate(columns_in(mask))}


class Form(NamedTuple):
    """A new relation, its width, and where in it the columns of the old one are (at least those asked for)."""

    rel: Rel
    width: int
    positions: Positions


_Part = TypeVar("_Part", bound=Expr | SortKey | tuple[Expr | Aggregation | SortKey | WindowCall, ...])

_ONE_ROW: Final = Values(((),), Schema(()))


def prune_columns(plan: Rel, _: PlanContext) -> Rel:
    """`plan` with the same columns, everything below it with no more than is read."""
    return _Pruning(plan).exact(plan)


class _Pruning:
    """One run.

    A relation is rebuilt once for each set of columns (a mask) that readers ask of it; one that is to run once, for the
    union of these. `_below` holds what each form asks of its inputs.
    """

    def __init__(self, plan: Rel) -> None:
        order = relations(plan)
        self._has_subqueries = holds_dependent(plan)
        self._run_once = shared(plan)
        self._wanted: dict[Rel, dict[int, None]] = {rel: {} for rel in order}
        self._wanted[plan][_everything(plan)] = None
        self._below: dict[tuple[Rel, int], tuple[int, ...]] = {}
        for rel in reversed(order):
            self._ask(rel)
        self._made: dict[tuple[Rel, int], Form] = {}
        for rel in order:
            rebuild = _REBUILD.get(rel.__class__)
            if rebuild is None:
                raise EngineBug(f"columns of {type(rel).__name__} cannot be pruned")
            for wanted in self._wanted[rel]:
                self._made[rel, wanted] = rebuild(self, rel, wanted)

    # --------------------------------------------------------------------------------- what is needed

    def _ask(self, rel: Rel) -> None:
        """Notes what `rel` needs of its inputs and subqueries."""
        if rel in self._run_once:
            union = 0
            for mask in self._wanted[rel]:
                union |= mask
            self._wanted[rel] = {union: None}
        if self._has_subqueries:
            for inner in subplans(rel):
                self._wanted[inner][_everything(inner)] = None
        asked = ASKED.get(rel.__class__, asked_by_any)
        for wanted in self._wanted[rel]:
            masks = self._below[rel, wanted] = asked(rel, wanted)
            for source, mask in zip(rel.inputs, masks, strict=True):
                self._wanted[source][mask] = None

    def _form(self, source: Rel, mask: int) -> tuple[int, Form]:
        """The form of `source` for a reader that asked for `mask`, and the mask it was made for."""
        if source in self._run_once:
            (mask,) = self._wanted[source]
        return mask, self._made[source, mask]

    # ------------------------------------------------------------------------------------- rebuilding

    def exact(self, rel: Rel) -> Rel:
        """The new form of `rel` with all its columns, in order, under their names."""
        _, form = self._form(rel, _everything(rel))
        made, fields = form.rel, rel.schema.fields
        exprs = tuple([Column(form.positions[index], field.type) for index, field in enumerate(fields)])
        if isinstance(made, Project):
            return project(made.input, substitute(exprs, made.exprs), rel.schema.names)
        return project(made, exprs, rel.schema.names)

    def _loose(self, rel: Rel, wanted: int, index: int = 0) -> Form:
        """The new form of an input, perhaps with more columns than `rel` asked for."""
        return self._form(rel.inputs[index], self._below[rel, wanted][index])[1]

    def _tight(self, rel: Rel, wanted: int, index: int = 0) -> Form:
        """The new form of an input with only the columns that are needed, for readers that keep what they are given."""
        source = rel.inputs[index]
        mask, form = self._form(source, self._below[rel, wanted][index])
        if form.width == mask.bit_count() and len(form.positions) <= form.width:
            return form
        kept = columns_in(mask)
        fields = source.schema.fields
        # Of columns that are one and the same below, the first is kept.
        first: dict[int, int] = {}
        for each in kept:
            first.setdefault(form.positions[each], each)
        if len(first) == form.width:
            return form
        exprs = tuple([Column(place, fields[each].type) for place, each in first.items()])
        names = tuple([fields[each].name for each in first.values()])
        if len(first) == len(kept):
            return Form(Project(form.rel, exprs, names), len(kept), _compact(mask))
        where = {place: new for new, place in enumerate(first)}
        positions = {each: where[form.positions[each]] for each in kept}
        return Form(Project(form.rel, exprs, names), len(first), positions)

    def _moved(self, part: _Part, positions: Positions) -> _Part:
        """A part of a relation over the columns at their new places, with the plans of its subqueries pruned."""
        moved = remap(part, positions)
        return map_subplans(moved, self.exact) if self._has_subqueries else moved

    def _scan(self, rel: Scan, wanted: int) -> Form:
        read = wanted | mask_of(rel.filters)
        kept = columns_in(read)
        positions = _compact(read)
        columns = tuple([rel.columns[index] for index in kept])
        filters = remap(rel.filters, positions)
        return Form(Scan(rel.table, rel.version, rel.table_schema, columns, filters), len(kept), positions)

    def _values(self, rel: Values, wanted: int) -> Form:
        kept = columns_in(wanted)
        values = tuple([tuple([row[index] for index in kept]) for row in rel.rows])
        return Form(Values(values, rel.schema.select(kept)), len(kept), _compact(wanted))

    def _of_input(self, rel: Filter | Aggregate, wanted: int) -> Form:
        """The input of what may be given more than it asked for, but not by a join."""
        return self._tight(rel, wanted) if rel.input.__class__ is Join else self._loose(rel, wanted)

    def _filter(self, rel: Filter, wanted: int) -> Form:
        source, width, positions = self._of_input(rel, wanted)
        return Form(Filter(source, self._moved(rel.predicate, positions)), width, positions)

    def _sort(self, rel: Sort, wanted: int) -> Form:
        source, width, positions = self._tight(rel, wanted)
        return Form(Sort(source, self._moved(rel.keys, positions), rel.limit, rel.offset), width, positions)

    def _limit(self, rel: Limit, wanted: int) -> Form:
        source, width, positions = self._tight(rel, wanted)
        return Form(Limit(source, rel.limit, rel.offset), width, positions)

    def _row_numbers(self, rel: RowNumbers, wanted: int) -> Form:
        source, width, positions = self._loose(rel, wanted)
        assert isinstance(source, Scan)
        return Form(RowNumbers(source), width + 1, {**positions, len(rel.input.columns): width})

    def _assume(self, rel: Assume, wanted: int) -> Form:
        source, width, positions = self._tight(rel, wanted)
        return Form(Assume(source, positions[rel.one], positions[rel.other]), width, positions)

    def _project(self, rel: Project, wanted: int) -> Form:
        kept = columns_in(wanted)
        source, width, below = self._loose(rel, wanted)
        exprs = self._moved(tuple([rel.exprs[index] for index in kept]), below)
        places = column_positions(exprs)
        if None not in places:
            return Form(source, width, dict(zip(kept, places, strict=True)))  # type: ignore[arg-type]
        if isinstance(source, Project) and _may_merge(source, exprs):
            exprs = substitute(exprs, source.exprs)
            source = source.input
        made = Project(source, exprs, tuple([rel.names[index] for index in kept]))
        return Form(made, len(kept), _compact(wanted))

    def _join(self, rel: Join, wanted: int) -> Form:
        left, width, in_left = self._tight(rel, wanted, 0)
        right, right_width, in_right = self._tight(rel, wanted, 1)
        old = len(rel.left.schema.fields)
        both = {**in_left, **{old + index: width + position for index, position in in_right.items()}}
        joined = Join(
            left,
            right,
            rel.kind,
            self._moved(rel.left_keys, in_left),
            self._moved(rel.right_keys, in_right),
            None if rel.residual is None else self._moved(rel.residual, both),
            rel.null_equal_count,
            rel.null_aware,
        )
        if rel.kind is JoinKind.SEMI or rel.kind is JoinKind.ANTI:
            return Form(joined, width, in_left)
        if rel.kind is JoinKind.MARK:
            return Form(joined, width + 1, {**in_left, old: width})
        return Form(joined, width + right_width, both)

    def _aggregate(self, rel: Aggregate, wanted: int) -> Form:
        width = len(rel.keys)
        source, _, positions = self._of_input(rel, wanted)
        kept = [index for index in range(len(rel.aggregates)) if wanted >> width + index & 1]
        if not width and not kept and rel.grouping_sets is None:
            return Form(_ONE_ROW, 0, {})
        grouped = Aggregate(
            source,
            self._moved(rel.keys, positions),
            self._moved(tuple([rel.aggregates[index] for index in kept]), positions),
            (*rel.names[:width], *[rel.names[width + index] for index in kept]),
            rel.grouping_sets,
        )
        left = wanted | (1 << width) - 1
        if rel.grouping_sets is not None:
            left |= 1 << width + len(rel.aggregates)
        return Form(grouped, left.bit_count(), _compact(left))

    def _window(self, rel: Window, wanted: int) -> Form:
        form = self._tight(rel, wanted)
        width = len(rel.input.schema)
        kept = [index for index in range(len(rel.calls)) if wanted >> width + index & 1]
        if not kept:
            return form
        calls = self._moved(tuple([rel.calls[index] for index in kept]), form.positions)
        added = {width + index: form.width + place for place, index in enumerate(kept)}
        made = Window(form.rel, calls, tuple([rel.names[index] for index in kept]))
        return Form(made, form.width + len(kept), {**form.positions, **added})

    def _unnest(self, rel: Unnest, wanted: int) -> Form:
        form = self._loose(rel, wanted)
        width = len(rel.kept)
        carried = [index for index in range(width) if wanted >> index & 1]
        kept = tuple([form.positions[rel.kept[index]] for index in carried])
        lists = tuple([form.positions[place] for place in rel.lists])
        made = Unnest(form.rel, kept, lists, rel.names, rel.keeps_empty, rel.has_ordinality)
        left = wanted | (1 << len(rel.names)) - 1 << width
        return Form(made, left.bit_count(), _compact(left))

    def _union(self, rel: Union, wanted: int) -> Form:
        kept = columns_in(wanted)
        fields = rel.schema.fields
        names = tuple([fields[index].name for index in kept])
        sources: list[Rel] = []
        for index in range(len(rel.sources)):
            made, width, positions = self._loose(rel, wanted, index)
            if width == len(kept) and all(positions[each] == place for place, each in enumerate(kept)):
                sources.append(made)
                continue
            exprs: tuple[Expr, ...] = tuple([Column(positions[each], fields[each].type) for each in kept])
            if isinstance(made, Project):
                exprs, made = substitute(exprs, made.exprs), made.input
            sources.append(Project(made, exprs, names))
        return Form(Union(tuple(sources)), len(kept), _compact(wanted))


_REBUILD: Final[Mapping[type[Rel], Callable[[_Pruning, Any, int], Form]]] = {
    Scan: _Pruning._scan,
    Values: _Pruning._values,
    Filter: _Pruning._filter,
    Project: _Pruning._project,
    Join: _Pruning._join,
    Aggregate: _Pruning._aggregate,
    Window: _Pruning._window,
    Sort: _Pruning._sort,
    Limit: _Pruning._limit,
    Union: _Pruning._union,
    Unnest: _Pruning._unnest,
    RowNumbers: _Pruning._row_numbers,
    Assume: _Pruning._assume,
}


def _everything(rel: Rel) -> int:
    return (1 << len(rel.schema.fields)) - 1


def _may_merge(inner: Project, outer: Sequence[Expr]) -> bool:
    """Whether putting the inner expressions into the outer ones computes nothing twice."""
    uses: dict[int, int] = {}
    for expr in outer:
        _count(expr, uses)
    return all(count == 1 or inner.exprs[index].__class__ in (Column, Literal) for index, count in uses.items())


def _count(expr: Expr, uses: dict[int, int]) -> None:
    if expr.__class__ is Column:
        uses[expr.index] = uses.get(expr.index, 0) + 1
    for part in operands(expr):
        _count(part, uses)

"""Drops columns that nobody reads, and projections that only rename or reorder.

Two passes over the graph of relations: readers first, to know what is needed of each (a relation that runs once for
several readers gives what any of them needs); then from the scans up, to rebuild. Only the root and the plans of
subqueries keep their exact columns. Relations may be left without columns; their rows still count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, Column, Expr, Literal
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
from bireme.plan.rules.share import shared
from bireme.plan.tree import (
    column_mask,
    columns_in,
    holds_subquery,
    map_expr,
    map_operands,
    mask_of,
    operands,
    project,
    relations,
    remap,
    subplans,
    substitute,
    with_plan,
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
        self._run_once = shared(plan)
        self._wanted: dict[Rel, dict[int, None]] = {rel: {} for rel in order}
        self._wanted[plan][_everything(plan)] = None
        self._below: dict[tuple[Rel, int], tuple[int, ...]] = {}
        for rel in reversed(order):
            self._ask(rel)
        self._made: dict[tuple[Rel, int], Form] = {}
        for rel in order:
            for wanted in self._wanted[rel]:
                self._made[rel, wanted] = self._rebuild(rel, wanted)

    # --------------------------------------------------------------------------------- what is needed

    def _ask(self, rel: Rel) -> None:
        """Notes what `rel` needs of its inputs and subqueries."""
        if rel in self._run_once:
            union = 0
            for mask in self._wanted[rel]:
                union |= mask
            self._wanted[rel] = {union: None}
        for inner in subplans(rel):
            self._wanted[inner][_everything(inner)] = None
        for wanted in self._wanted[rel]:
            masks = _asked(rel, wanted)
            self._below[rel, wanted] = masks
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
        exprs: list[Expr] = [Column(form.positions[index], field.type) for index, field in enumerate(fields)]
        if isinstance(made, Project):
            return project(made.input, [substitute(expr, made.exprs) for expr in exprs], rel.schema.names)
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

    def _expr(self, expr: Expr, positions: Positions) -> Expr:
        moved = remap(expr, positions)
        if holds_subquery(moved):
            return map_expr(moved, lambda part: with_plan(part, self.exact))
        return moved

    def _rebuild(self, rel: Rel, wanted: int) -> Form:
        match rel:
            case Scan():
                return _scan(rel, wanted)
            case Join():
                return self._join(rel, wanted)
            case Project():
                return self._project(rel, wanted)
            case Filter():
                form = (self._tight if isinstance(rel.input, Join) else self._loose)(rel, wanted)
                return Form(Filter(form.rel, self._expr(rel.predicate, form.positions)), form.width, form.positions)
            case Values(rows):
                kept = columns_in(wanted)
                values = tuple([tuple([row[index] for index in kept]) for row in rows])
                return Form(Values(values, rel.schema.select(kept)), len(kept), _compact(wanted))
            case Aggregate():
                return self._aggregate(rel, wanted)
            case Window():
                return self._window(rel, wanted)
            case Sort(_, keys, limit, offset):
                form = self._tight(rel, wanted)
                moved = tuple([map_operands(key, lambda expr: self._expr(expr, form.positions)) for key in keys])
                return form._replace(rel=Sort(form.rel, moved, limit, offset))
            case Limit(_, limit, offset):
                form = self._tight(rel, wanted)
                return form._replace(rel=Limit(form.rel, limit, offset))
            case Union():
                return self._union(rel, wanted)
            case Unnest():
                return self._unnest(rel, wanted)
            case RowNumbers():
                form = self._loose(rel, wanted)
                assert isinstance(form.rel, Scan)
                positions = {**form.positions, len(rel.input.columns): form.width}
                return Form(RowNumbers(form.rel), form.width + 1, positions)
            case Assume(_, one, other):
                form = self._tight(rel, wanted)
                return form._replace(rel=Assume(form.rel, form.positions[one], form.positions[other]))
        raise EngineBug(f"columns of {type(rel).__name__} cannot be pruned")

    def _project(self, rel: Project, wanted: int) -> Form:
        kept = columns_in(wanted)
        source, width, below = self._loose(rel, wanted)
        exprs = [self._expr(rel.exprs[index], below) for index in kept]
        if all(expr.__class__ is Column for expr in exprs):
            return Form(source, width, {i: expr.index for i, expr in zip(kept, exprs, strict=True)})  # type: ignore[attr-defined]
        if isinstance(source, Project) and _may_merge(source, exprs):
            exprs = [substitute(expr, source.exprs) for expr in exprs]
            source = source.input
        made = Project(source, tuple(exprs), tuple([rel.names[index] for index in kept]))
        return Form(made, len(kept), _compact(wanted))

    def _join(self, rel: Join, wanted: int) -> Form:
        left, width, in_left = self._tight(rel, wanted, 0)
        right, right_width, in_right = self._tight(rel, wanted, 1)
        old = len(rel.left.schema)
        across = {old + index: width + position for index, position in in_right.items()}
        both = {**in_left, **across}
        residual = None if rel.residual is None else self._expr(rel.residual, both)
        joined = Join(
            left,
            right,
            rel.kind,
            tuple([self._expr(key, in_left) for key in rel.left_keys]),
            tuple([self._expr(key, in_right) for key in rel.right_keys]),
            residual,
            rel.null_equal_count,
            rel.null_aware,
        )
        if rel.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return Form(joined, width, in_left)
        if rel.kind is JoinKind.MARK:
            return Form(joined, width + 1, {**in_left, old: width})
        return Form(joined, width + right_width, both)

    def _aggregate(self, rel: Aggregate, wanted: int) -> Form:
        width = len(rel.keys)
        form = (self._tight if isinstance(rel.input, Join) else self._loose)(rel, wanted)
        kept = [index for index in range(len(rel.aggregates)) if wanted >> width + index & 1]
        if not width and not kept and rel.grouping_sets is None:
            return Form(_ONE_ROW, 0, {})
        grouped = Aggregate(
            form.rel,
            tuple([self._expr(key, form.positions) for key in rel.keys]),
            tuple([map_operands(rel.aggregates[i], lambda e: self._expr(e, form.positions)) for i in kept]),
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
        calls = tuple([map_operands(rel.calls[i], lambda e: self._expr(e, form.positions)) for i in kept])
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
            exprs: list[Expr] = [Column(positions[each], fields[each].type) for each in kept]
            if isinstance(made, Project):
                exprs, made = [substitute(expr, made.exprs) for expr in exprs], made.input
            sources.append(Project(made, tuple(exprs), names))
        return Form(Union(tuple(sources)), len(kept), _compact(wanted))


def _asked(rel: Rel, wanted: int) -> tuple[int, ...]:
    """The columns of its inputs that `rel` needs to give `wanted`."""
    match rel:
        case Scan():
            return ()
        case Join():
            return _asked_by_join(rel, wanted)
        case Project():
            return (mask_of([rel.exprs[index] for index in columns_in(wanted)]),)
        case Filter():
            return (wanted | column_mask(rel.predicate),)
        case Aggregate():
            parts = [part for call in _kept_calls(rel, wanted) for part in operands(call)]
            return (mask_of([*rel.keys, *parts]),)
        case Sort():
            return (wanted | mask_of([key.expr for key in rel.keys]),)
        case Window(source, calls):
            width = len(source.schema)
            kept = [call for index, call in enumerate(calls, start=width) if wanted >> index & 1]
            own = mask_of([part for call in kept for part in operands(call)])
            return (own | wanted & ((1 << width) - 1),)
        case Unnest(_, unnest_kept, lists):
            read = [place for index, place in enumerate(unnest_kept) if wanted >> index & 1]
            return (sum({1 << place for place in (*read, *lists)}),)
        case RowNumbers(source):
            return (wanted & ((1 << len(source.columns)) - 1),)
        case Assume(_, one, other):
            return (wanted | 1 << one | 1 << other,)
    return tuple([wanted for _ in rel.inputs])


def _asked_by_join(rel: Join, wanted: int) -> tuple[int, int]:
    width = len(rel.left.schema)
    both = wanted if rel.kind is not JoinKind.MARK else wanted & ((1 << width) - 1)
    if rel.residual is not None:
        both |= column_mask(rel.residual)
    return both & ((1 << width) - 1) | mask_of(rel.left_keys), both >> width | mask_of(rel.right_keys)


def _everything(rel: Rel) -> int:
    return (1 << len(rel.schema)) - 1


def _scan(rel: Scan, wanted: int) -> Form:
    read = wanted | mask_of(rel.filters)
    kept = columns_in(read)
    positions = _compact(read)
    columns = tuple([rel.columns[index] for index in kept])
    filters = tuple([remap(part, positions) for part in rel.filters])
    return Form(Scan(rel.table, rel.version, rel.table_schema, columns, filters), len(kept), positions)


def _kept_calls(rel: Aggregate, wanted: int) -> list[Aggregation]:
    return [call for index, call in enumerate(rel.aggregates, start=len(rel.keys)) if wanted >> index & 1]


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

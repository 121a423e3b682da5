"""Moves predicates towards the scans they are about, as far as that keeps their meaning.

Rules: a predicate that may raise stays behind the filters it stood behind (it stays where it is, unless a wider type
makes it safe); nothing passes a limit; a relation that one reader wants whole is not filtered for another, since it
runs once for both. On the way, predicates across a join become its keys, outer joins whose padded rows would be dropped
become inner ones, and what is known to be empty goes away. Joins are in `push_filters_join`.
"""

from __future__ import annotations

from typing import Final

from bireme.plan.context import PlanContext
from bireme.plan.expr import Column, Expr
from bireme.plan.raises import may_raise
from bireme.plan.relation import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Project,
    Rel,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.rules.fold import Folder, only_true
from bireme.plan.rules.push_filters_join import keyed, push_join
from bireme.plan.rules.push_predicates import without_raising
from bireme.plan.rules.share import shared
from bireme.plan.tree import (
    FALSE,
    TRUE,
    all_columns,
    column_mask,
    conjuncts,
    filtered,
    holds_subquery,
    map_expr,
    map_subplans,
    project,
    remap,
    substitute,
    with_inputs,
    with_plan,
)

Parts = tuple[Expr, ...]

# A shared relation is filtered for at most so many readers; else those that read each other would multiply.
_FORMS_MAX: Final = 8


def push_filters(plan: Rel, _: PlanContext) -> Rel:
    """`plan` with its filters as close to the scans as they may be."""
    read_often = shared(plan)
    if not read_often:
        return Pushing(frozenset(), frozenset()).push(plan, (), 0)
    trial = Pushing(read_often, frozenset())
    result = trial.push(plan, (), 0)
    whole = frozenset([rel for rel, arrived in trial.arrivals.items() if () in arrived and len(arrived) > 1])
    return Pushing(read_often, whole).push(plan, (), 0) if whole else result


class Pushing:
    """One run of the rule. `arrivals` says with which predicates each shared relation was reached."""

    def __init__(self, shared: frozenset[Rel], whole: frozenset[Rel]) -> None:
        self.arrivals: dict[Rel, set[Parts]] = {}
        self._shared = shared
        self._whole = whole
        self._done: dict[tuple[Rel, Parts, int], Rel] = {}

    def push(self, rel: Rel, parts: Parts, required: int) -> Rel:
        """The rows of `rel` for which all `parts` are TRUE.

        Rows where a column of the mask `required` is NULL may be left out too: nothing above keeps them.
        """
        if rel in self._shared:
            required = 0
            arrived = self.arrivals.setdefault(rel, set())
            if rel in self._whole or (len(arrived) >= _FORMS_MAX and parts not in arrived):
                arrived.add(())
                return filtered(self._push(rel, (), 0), parts)
            arrived.add(parts)
        return self._push(rel, parts, required)

    def _push(self, rel: Rel, parts: Parts, required: int) -> Rel:
        key = (rel, parts, required)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._moved(rel, parts, required)
        return found

    def _moved(self, rel: Rel, parts: Parts, required: int) -> Rel:
        if FALSE in parts:
            return empty(rel)
        kind = rel.__class__
        if kind is Filter:
            return self._filter(rel, parts, required)  # type: ignore[arg-type]
        if kind is Project:
            return self._project(rel, parts, required)  # type: ignore[arg-type]
        if kind is Join:
            return push_join(self, rel, parts, required)  # type: ignore[arg-type]
        if kind is Aggregate:
            return self._aggregate(rel, parts)  # type: ignore[arg-type]
        if kind is Scan:
            return _scan(rel, parts)  # type: ignore[arg-type]
        return self._other(rel, parts, required)

    def _other(self, rel: Rel, parts: Parts, required: int) -> Rel:
        match rel:
            case Union():
                return self._union(rel, parts)
            case Window():
                return self._window(rel, parts)
            case Unnest():
                return self._unnest(rel, parts)
            case Sort(source, keys, None, 0):
                below, above = _movable(parts)
                inner = self.push(source, below, required)
                sort = empty(rel) if is_empty(inner) else self.subqueries(Sort(inner, keys))
                return filtered(sort, above)
            case Sort() | Limit():
                inner = self.push(rel.inputs[0], (), 0)
                return self.subqueries(filtered(empty(rel) if is_empty(inner) else with_inputs(rel, [inner]), parts))
            case Values(rows) if not rows:
                return rel
        inputs = [self.push(source, (), 0) for source in rel.inputs]
        return filtered(self.subqueries(with_inputs(rel, inputs)), parts)

    def subqueries(self, rel: Rel) -> Rel:
        """`rel` with filters pushed inside the plans of its subqueries."""
        return map_subplans(rel, lambda plan: self.push(plan, (), 0))

    def _part(self, part: Expr) -> Expr:
        """A predicate with filters pushed inside the plans of its subqueries."""
        if not holds_subquery(part):
            return part
        return map_expr(part, lambda p: with_plan(p, lambda plan: self.push(plan, (), 0)))

    def _filter(self, rel: Filter, parts: Parts, required: int) -> Rel:
        own = [self._part(part) for part in conjuncts(rel.predicate)]
        below, above = _movable(parts)
        source, rest = keyed(rel.input, tuple(own))
        own_below, own_above = _movable(rest)
        inner = self.push(source, merged(own_below, below), required)
        if is_empty(inner):
            return empty(rel)
        return filtered(filtered(inner, own_above), above)

    def _project(self, rel: Project, parts: Parts, required: int) -> Rel:
        below: list[Expr] = []
        above: list[Expr] = []
        if parts:
            folder = Folder(rel.input.schema)
            for part in parts:
                moved = only_true(folder(substitute(part, rel.exprs)))
                if may_raise(moved):
                    above.append(part)
                else:
                    below += [p for p in conjuncts(moved) if p is not TRUE]
        inner = self.push(rel.input, tuple(dict.fromkeys(below)), _through(rel.exprs, required))
        if is_empty(inner):
            return empty(rel)
        return filtered(self.subqueries(with_inputs(rel, [inner])), above)

    def _aggregate(self, rel: Aggregate, parts: Parts) -> Rel:
        width = len(rel.keys)
        below: list[Expr] = []
        above: list[Expr] = []
        for part in parts:
            mask = column_mask(part)
            keyed = mask >> width == 0 and width > 0 and rel.grouping_sets is None
            moved = substitute(part, rel.keys) if keyed else part
            (below if keyed and not may_raise(moved) else above).append(
                moved if keyed and not may_raise(moved) else part
            )
        inner = self.push(rel.input, tuple(below), 0)
        if is_empty(inner) and width and rel.grouping_sets is None:
            return empty(rel)
        return filtered(self.subqueries(with_inputs(rel, [inner])), above)

    def _window(self, rel: Window, parts: Parts) -> Rel:
        width = len(rel.input.schema)
        partition = (1 << width) - 1
        for call in rel.calls:
            own = 0
            for key in call.partition:
                own |= 1 << key.index if isinstance(key, Column) else 0
            partition &= own
        below = tuple([p for p in parts if column_mask(p) and not column_mask(p) & ~partition and not may_raise(p)])
        inner = self.push(rel.input, below, 0)
        if is_empty(inner):
            return empty(rel)
        return filtered(self.subqueries(with_inputs(rel, [inner])), [part for part in parts if part not in below])

    def _unnest(self, rel: Unnest, parts: Parts) -> Rel:
        """What is asked of an input row is asked once, before its elements are there."""
        carried = (1 << len(rel.kept)) - 1
        movable = [part for part in parts if not column_mask(part) & ~carried and not may_raise(part)]
        places = dict(enumerate(rel.kept))
        inner = self.push(rel.input, tuple([remap(part, places) for part in movable]), 0)
        if is_empty(inner):
            return empty(rel)
        return filtered(with_inputs(rel, [inner]), [part for part in parts if part not in movable])

    def _union(self, rel: Union, parts: Parts) -> Rel:
        below, above = _movable(parts)
        sources = [self.push(source, below, 0) for source in rel.sources]
        kept = [source for source in sources if not is_empty(source)]
        if not kept:
            return empty(rel)
        if len(kept) == 1:
            return filtered(project(kept[0], all_columns(rel.schema), rel.schema.names), above)
        return filtered(with_inputs(rel, kept), above)


def _movable(parts: Parts) -> tuple[Parts, Parts]:
    """The predicates that may be evaluated for more rows, in a form that cannot raise, and the others."""
    if not parts:
        return (), ()
    below: dict[Expr, None] = {}
    above: list[Expr] = []
    for part in parts:
        safe = without_raising(part)
        if safe is None:
            above.append(part)
        elif safe is not TRUE:
            below[safe] = None
    return tuple(below), tuple(above)


def merged(first: Parts, second: Parts) -> Parts:
    """Both, without repetitions."""
    if not first or not second:
        return first or second
    return tuple(dict.fromkeys([*first, *second]))


def _through(exprs: tuple[Expr, ...], required: int) -> int:
    """The required columns, seen below a projection."""
    below = 0
    if required:
        for index, expr in enumerate(exprs):
            if required >> index & 1 and isinstance(expr, Column):
                below |= 1 << expr.index
    return below


def _scan(rel: Scan, parts: Parts) -> Rel:
    if not parts:
        return rel
    skipping = [part for part in parts if column_mask(part) and not holds_subquery(part) and not may_raise(part)]
    known = tuple(dict.fromkeys([*rel.filters, *skipping]))
    scan = Scan(rel.table, rel.version, rel.table_schema, rel.columns, known)
    return filtered(scan, parts)


def empty(rel: Rel) -> Values:
    """No rows, with the columns of `rel`."""
    return Values((), rel.schema)


def is_empty(rel: Rel) -> bool:
    """Whether `rel` is known to have no rows."""
    return rel.__class__ is Values and not rel.rows

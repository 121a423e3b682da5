"""Makes the right side of an `Apply` independent of the outer row, operator by operator from the top.

Every method takes a plan that waits for columns of the outer row and gives it as `Pushed`. `pull` says that comparisons
with the outer row that nothing in the plan can decide may stay open as a residual (so above there are only
filters, projections and joins); else the domain is joined to decide them. Joins are in `unnest_join_push`, the entrance
in `unnest`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bireme.data.types import BOOL, INT64
from bireme.errors import EngineBug
from bireme.plan.expr import (
    UP_TO_PEERS,
    WHOLE_PARTITION,
    Aggregation,
    Call,
    Column,
    Expr,
    Literal,
    SortKey,
    WindowCall,
)
from bireme.plan.raises import may_raise
from bireme.plan.relation import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Project,
    Rel,
    Sort,
    Union,
    Unnest,
    Window,
)
from bireme.plan.rules.fold import fold_expr
from bireme.plan.rules.grouping_sets import expand_grouping_sets
from bireme.plan.rules.unnest_apply import Apply, FreeColumns, replace_outer
from bireme.plan.rules.unnest_domain import Domain, Key, Pushed, as_equality, outer_in, relaxed, settled
from bireme.plan.rules.unnest_join_push import push_apply, push_join
from bireme.plan.rules.unnest_subqueries import is_always_one_row
from bireme.plan.tree import (
    FALSE,
    all_columns,
    columns_in,
    conjuncts,
    filtered,
    map_operands,
    mask_of,
    operands,
    remap,
    select,
    substitute,
)

ApplyAway = Callable[[Apply], Rel]


class Pusher:
    """Works for one `Apply`: `domain` is that of its left side. `finish` unnests a plan that waits for nothing."""

    def __init__(self, domain: Domain, free: FreeColumns, finish: Callable[[Rel], Rel]) -> None:
        self.domain = domain
        self.free = free
        self.finish = finish

    def push(self, rel: Rel, *, pull: bool) -> Pushed:
        if not self.free.of(rel):
            return Pushed(self.finish(rel), len(rel.schema))
        return settled(self._push(rel, pull))

    def _push(self, rel: Rel, pull: bool) -> Pushed:
        match rel:
            case Filter(source, predicate):
                return self.filter(self.push(source, pull=pull), conjuncts(predicate), pull=pull)
            case Project():
                return self._project(rel, pull)
            case Aggregate():
                return self._aggregate(rel)
            case Window():
                return self._window(rel)
            case Sort(source, _, None, 0):
                return self.push(source, pull=pull)  # the order of a subquery's rows means nothing outside it
            case Sort() | Limit():
                return self._limit(rel, pull)
            case Union():
                return self._union(rel)
            case Unnest():
                return self._unnest(rel)
            case Join():
                return self._join(rel, pull)
            case Apply():
                return self._apply(rel, pull)
        raise EngineBug(f"{type(rel).__name__} cannot wait for outer columns")

    def _join(self, rel: Join, pull: bool) -> Pushed:
        return push_join(self, rel, pull=pull)

    def _apply(self, rel: Apply, pull: bool) -> Pushed:
        return push_apply(self, rel, pull=pull)

    # ------------------------------------------------------------------------------------------- filters

    def filter(self, pushed: Pushed, parts: list[Expr], *, pull: bool) -> Pushed:
        """The rows of `pushed` for which all `parts`, over its first columns, are TRUE."""
        waiting = [part for part in parts if outer_in([part])]
        if pushed.default is not None:
            pushed = self._filter_default(pushed, parts, waiting)
        pushed = replace(pushed, rel=filtered(pushed.rel, [part for part in parts if part not in waiting]))
        pushed, waiting = self._take_equalities(pushed, waiting, pull=pull)
        known = pushed.known()
        decided = [part for part in waiting if outer_in([part]) <= known.keys()]
        open_parts = [part for part in waiting if part not in decided]
        if open_parts and not pull:
            pushed = self.domain.cover(pushed, outer_in(open_parts))
            known, decided, open_parts = pushed.known(), waiting, []
        rel = filtered(pushed.rel, [replace_outer(part, known) for part in decided])
        return replace(pushed, rel=rel, residual=(*pushed.residual, *open_parts))

    def _filter_default(self, pushed: Pushed, parts: list[Expr], waiting: list[Expr]) -> Pushed:
        """Forgets the row that stands for no rows where the filter drops it; else makes it, in every place it has.

        Behind a filter a missing row would no longer tell whether there was none or whether it was dropped.
        """
        assert pushed.default is not None
        if not waiting and not outer_in(pushed.default):
            values = [fold_expr(substitute(part, pushed.default)) for part in parts]
            if any(isinstance(value, Literal) and value.value is not True for value in values):
                return replace(pushed, default=None)
        return self.domain.materialize(pushed)

    def _take_equalities(self, pushed: Pushed, parts: list[Expr], *, pull: bool) -> tuple[Pushed, list[Expr]]:
        """Turns the parts that equate an inner expression with an outer term into keys.

        An inner one that may fail is computed here only where it cannot wait for the join (`pull`).
        """
        found = [(part, as_equality(part)) for part in parts]
        guarded = pull or any(equality is None for _, equality in found)
        added: list[Expr] = []
        rest: list[Expr] = []
        keys = list(pushed.keys)
        width = len(pushed.rel.schema)
        for part, equality in found:
            if equality is None or may_raise(equality[1]) or (guarded and may_raise(equality[0])):
                rest.append(part)
                continue
            inner, term, strict = equality
            if isinstance(inner, Column):
                position = inner.index
            else:
                position = width + len(added)
                added.append(inner)
            keys.append(Key(term, position, strict))
        if added:
            pushed = replace(pushed, rel=appended(pushed.rel, added))
        return replace(pushed, keys=tuple(keys)), rest

    # --------------------------------------------------------------------------- one-input operators

    def _project(self, rel: Project, pull: bool) -> Pushed:
        pushed = self.domain.cover(self.push(rel.input, pull=pull), outer_in(rel.exprs))
        known = pushed.known()
        exprs: list[Expr] = [replace_outer(expr, known) for expr in rel.exprs]
        default = pushed.default
        if default is not None:
            default = tuple([fold_expr(substitute(expr, default)) for expr in rel.exprs])
        return self._reshaped(pushed, exprs, rel.names, default)

    def _reshaped(
        self, pushed: Pushed, exprs: list[Expr], names: tuple[str, ...], default: tuple[Expr, ...] | None
    ) -> Pushed:
        """`exprs` as the new columns, with what keys and residual need behind them."""
        needed = sorted({key.position for key in pushed.keys} | set(_inner_columns(pushed.residual)))
        positions: dict[int, int] = {}
        extra: list[Expr] = []
        for position in needed:
            kept = pushed.column(position)
            if kept in exprs:
                positions[position] = exprs.index(kept)
            else:
                positions[position] = len(exprs) + len(extra)
                extra.append(kept)
        extra_names = [pushed.rel.schema.fields[column.index].name for column in extra if isinstance(column, Column)]
        moved = Project(pushed.rel, (*exprs, *extra), (*names, *extra_names))
        keys = tuple([Key(key.term, positions[key.position], key.strict) for key in pushed.keys])
        residual = remap(pushed.residual, positions)
        return Pushed(moved, len(exprs), keys, residual, default, pushed.at_most_one)

    def _aggregate(self, rel: Aggregate) -> Pushed:
        if rel.grouping_sets is not None and () in rel.grouping_sets:
            return self.push(expand_grouping_sets(rel), pull=False)
        calls = [part for call in rel.aggregates for part in operands(call)]
        pushed = self.domain.materialize(self.push(rel.input, pull=False))
        pushed = self.domain.cover(pushed, outer_in([*rel.keys, *calls]))
        known, pushed = pushed.known(), settled(pushed)
        own: list[Expr] = [replace_outer(key, known) for key in rel.keys]
        aggregates = tuple([map_operands(call, lambda part: replace_outer(part, known)) for call in rel.aggregates])
        ties = list(dict.fromkeys([pushed.column(key.position) for key in pushed.keys]))
        # Within a grouping set a key may be padded with NULL, so there the ties are keys of their own.
        added = [tie for tie in ties if rel.grouping_sets is not None or tie not in own]
        keys = (*own, *added)
        sets = rel.grouping_sets
        if sets is not None:
            sets = tuple([(*each, *range(len(own), len(keys))) for each in sets])
        fields = pushed.rel.schema.fields
        names = (*rel.names[: len(own)], *[fields[tie.index].name for tie in added], *rel.names[len(own) :])
        grouped = Aggregate(pushed.rel, keys, aggregates, names, sets)
        width = len(rel.schema)
        moved = _behind(grouped, len(own), len(added), width)
        where = {tie: own.index(tie) for tie in ties if tie not in added}
        where.update({tie: width + index for index, tie in enumerate(added)})
        new_keys = tuple([Key(k.term, where[pushed.column(k.position)], k.strict) for k in pushed.keys])
        default = None if rel.keys or sets is not None else tuple([value_over_nothing(c) for c in rel.aggregates])
        single = sets is None and all(key in ties for key in own)
        return Pushed(moved, width, new_keys, (), default, single)

    def _window(self, rel: Window) -> Pushed:
        calls = [part for call in rel.calls for part in operands(call)]
        pushed = self.domain.materialize(self.push(rel.input, pull=False))
        pushed = self.domain.cover(pushed, outer_in(calls))
        known, pushed = pushed.known(), settled(pushed)
        ties = tuple(dict.fromkeys([pushed.column(key.position) for key in pushed.keys]))

        def tied(call: WindowCall) -> WindowCall:
            own = map_operands(call, lambda part: replace_outer(part, known))
            return WindowCall(own.call, (*own.partition, *ties), own.order, own.frame, own.ignore_nulls)

        windowed = Window(pushed.rel, tuple([tied(call) for call in rel.calls]), rel.names)
        base = len(pushed.rel.schema)
        own = [*range(pushed.width), *range(base, base + len(rel.calls))]
        columns = all_columns(windowed.schema)
        moved = replace(pushed, rel=windowed, width=len(own))
        return self._reshaped(moved, [columns[index] for index in own], rel.schema.names, None)

    def _limit(self, rel: Sort | Limit, pull: bool) -> Pushed:
        """The first rows for each outer row: by row numbers within the keys."""
        if isinstance(rel, Limit) and isinstance(rel.input, Project):
            inner = rel.input
            swapped = Project(Limit(inner.input, rel.limit, rel.offset), inner.exprs, inner.names)
            return self.push(swapped, pull=pull)
        source, order, limit, offset = _first_rows(rel)
        if limit != 0 and offset == 0 and is_always_one_row(source):
            return self.push(source, pull=pull)
        pushed = self.domain.materialize(self.push(source, pull=False))
        pushed = self.domain.cover(pushed, outer_in([key.expr for key in order]))
        known, pushed = pushed.known(), settled(pushed)
        keys = tuple([map_operands(key, lambda part: replace_outer(part, known)) for key in order])
        if limit == 0:
            return replace(pushed, rel=Filter(pushed.rel, FALSE), at_most_one=True)
        ties = tuple(dict.fromkeys([pushed.column(key.position) for key in pushed.keys]))
        number = WindowCall(Aggregation("row_number", (), INT64), ties, keys, UP_TO_PEERS if keys else WHOLE_PARTITION)
        numbered = Window(pushed.rel, (number,), ("row",))
        row = Column(len(pushed.rel.schema), INT64)
        tests: list[Expr] = []
        if offset:
            tests.append(_compare("gt", row, offset))
        if limit is not None:
            tests.append(_compare("le", row, offset + limit))
        return replace(pushed, rel=filtered(numbered, tests), at_most_one=pushed.at_most_one or limit == 1)

    def _unnest(self, rel: Unnest) -> Pushed:
        pushed = settled(self.domain.materialize(self.push(rel.input, pull=False)))
        behind = sorted({key.position for key in pushed.keys} | set(_inner_columns(pushed.residual)))
        kept, own, made = len(rel.kept), len(rel.names), len(rel.kept) + len(rel.names)
        unnested = Unnest(pushed.rel, (*rel.kept, *behind), rel.lists, rel.names, rel.keeps_empty, rel.has_ordinality)
        end = kept + len(behind)
        moved = select(unnested, [*range(kept), *range(end, end + own), *range(kept, end)])
        where = {position: made + index for index, position in enumerate(behind)}
        keys = tuple([Key(key.term, where[key.position], key.strict) for key in pushed.keys])
        residual = remap(pushed.residual, where)
        return Pushed(moved, made, keys, residual)

    def _union(self, rel: Union) -> Pushed:
        branches = [self.domain.materialize(self.push(source, pull=False)) for source in rel.sources]
        if any([key.term for key in b.keys] != [key.term for key in branches[0].keys] for b in branches):
            wanted = outer_in([key.term for b in branches for key in b.keys])
            branches = [self.domain.cover(b, wanted, always=not _ties_only(b, wanted)) for b in branches]
        branches = [relaxed(b) for b in branches]
        terms = list(dict.fromkeys([key.term for key in branches[0].keys]))
        width = len(rel.schema)
        sources = []
        for branch in branches:
            where = {key.term: key.position for key in branch.keys}
            columns = [*all_columns(branch.rel.schema)[:width], *[branch.column(where[term]) for term in terms]]
            names = [branch.rel.schema.fields[column.index].name for column in columns]
            sources.append(Project(branch.rel, tuple(columns), tuple(names)))
        keys = tuple([Key(term, width + index, False) for index, term in enumerate(terms)])
        return Pushed(Union(tuple(sources)), width, keys)


def _ties_only(pushed: Pushed, wanted: frozenset[Expr]) -> bool:
    """Whether the keys are exactly the wanted outer columns, each once."""
    terms = [key.term for key in pushed.keys]
    return len(terms) == len(wanted) and set(terms) == wanted


def appended(rel: Rel, exprs: list[Expr]) -> Project:
    """`rel` with further columns."""
    names = (*rel.schema.names, *["key" for _ in exprs])
    return Project(rel, (*all_columns(rel.schema), *exprs), names)


def _behind(grouped: Aggregate, start: int, count: int, width: int) -> Rel:
    """`grouped` with the `count` columns from `start` on moved behind the others."""
    order = [*range(start), *range(start + count, width + count), *range(start, start + count)]
    return select(grouped, order)


def value_over_nothing(call: Aggregation) -> Expr:
    """What an aggregate gives over no rows."""
    counts = call.function.startswith("count") or call.function in ("approx_count_distinct", "regr_count")
    return Literal(0 if counts else None, call.type)


def _inner_columns(parts: tuple[Expr, ...]) -> list[int]:
    return columns_in(mask_of(parts))


def _compare(function: str, row: Expr, value: int) -> Expr:
    return Call(function, (row, Literal(value, INT64)), BOOL)


def _first_rows(rel: Sort | Limit) -> tuple[Rel, tuple[SortKey, ...], int | None, int]:
    """Input, order, limit and offset of a node that cuts rows, a sort right below a limit taken in."""
    if isinstance(rel, Sort):
        return rel.input, rel.keys, rel.limit, rel.offset
    if not isinstance(rel.input, Sort):
        return rel.input, (), rel.limit, rel.offset
    sort = rel.input
    left = None if sort.limit is None else max(0, sort.limit - rel.offset)
    limits = [limit for limit in (left, rel.limit) if limit is not None]
    return sort.input, sort.keys, min(limits) if limits else None, sort.offset + rel.offset

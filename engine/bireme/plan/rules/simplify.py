"""Folds every expression of a plan, and drops relations that do nothing.

What folding means is in `fold`. Here its results take effect: filters that are always or never TRUE, sorts without
keys or whose order nobody sees, limits that cut nothing, DISTINCT where repeats do not matter, keys of groupings that
other keys determine (`implied_keys`).
"""

from __future__ import annotations

from typing import Final

from bireme.data.schema import Schema
from bireme.plan.context import PlanContext
from bireme.plan.expr import Expr, Literal, SortKey
from bireme.plan.relation import Aggregate, Filter, Join, Limit, Project, Rel, Scan, Sort, Values
from bireme.plan.rules.fold import Folder, only_true
from bireme.plan.rules.implied_keys import without_implied_keys
from bireme.plan.tree import FALSE, TRUE, map_operands, map_relations


def simplify(plan: Rel, _: PlanContext) -> Rel:
    """`plan` with all expressions folded."""
    return map_relations(plan, _Simplifying().relation)


class _Simplifying:
    """One run; expressions over equal schemas are folded once."""

    def __init__(self) -> None:
        self._folders: dict[Schema, Folder] = {}

    def _folder(self, schema: Schema) -> Folder:
        folder = self._folders.get(schema)
        if folder is None:
            folder = self._folders[schema] = Folder(schema)
        return folder

    def relation(self, rel: Rel) -> Rel:
        match rel:
            case Scan():
                return rel
            case Filter():
                return self._filter(rel, only_true(self._folder(rel.input.schema)(rel.predicate)))
            case Join():
                return self._join(rel)
            case Sort():
                return self._sort(rel.input, rel.keys, rel.limit, rel.offset)
            case Limit():
                if rel.limit is None and not rel.offset:
                    return rel.input
                return Values((), rel.schema) if rel.limit == 0 else rel
            case Aggregate():
                rel = _aggregate(rel)
                folded = map_operands(rel, self._folder(rel.input.schema))
                return without_implied_keys(folded)
        if not rel.inputs:
            return rel
        return map_operands(rel, self._folder(rel.inputs[0].schema))

    def _filter(self, rel: Filter, predicate: Expr) -> Rel:
        if predicate is TRUE:
            return rel.input
        if predicate is FALSE:
            return Values((), rel.schema)
        return rel if predicate is rel.predicate else Filter(rel.input, predicate)

    def _join(self, rel: Join) -> Rel:
        left, right = self._folder(rel.left.schema), self._folder(rel.right.schema)
        residual = rel.residual
        if residual is not None:
            residual = only_true(self._folder(rel.left.schema.concat(rel.right.schema))(residual))
        left_keys = tuple([left(key) for key in rel.left_keys])
        right_keys = tuple([right(key) for key in rel.right_keys])
        rest = None if residual is TRUE else residual
        return Join(rel.left, rel.right, rel.kind, left_keys, right_keys, rest, rel.null_equal_count, rel.null_aware)

    def _sort(self, source: Rel, keys: tuple[SortKey, ...], limit: int | None, offset: int) -> Rel:
        folder = self._folder(source.schema)
        folded = [map_operands(key, folder) for key in keys]
        kept = tuple([key for key in folded if key.expr.__class__ is not Literal])
        if kept:
            return Sort(source, kept, limit, offset)
        return source if limit is None and not offset else Limit(source, limit, offset)


# Aggregates whose value depends on the order of rows.
_ORDERED: Final = frozenset({"first", "last", "array_agg", "string_agg", "collect", "any_value"})


def _aggregate(rel: Aggregate) -> Aggregate:
    """A grouping, which does not care in what order rows come."""
    if any(call.function in _ORDERED for call in rel.aggregates):
        return rel
    return Aggregate(_unordered(rel.input), rel.keys, rel.aggregates, rel.names, rel.grouping_sets)


def _unordered(rel: Rel) -> Rel:
    """`rel` without a sort on top that only makes an order."""
    match rel:
        case Sort(source, _, None, 0):
            return _unordered(source)
        case Project(Sort(source, _, None, 0), exprs, names):
            return Project(source, exprs, names)
    return rel

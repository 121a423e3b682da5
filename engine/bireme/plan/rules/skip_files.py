"""Conditions that may fail, over columns that are the same in all rows of a file: they tell scans what files to skip.

Such a condition is worked out once a file, and where it fails nothing is skipped: it fails as it would have, if a row
is there. Conditions that cannot fail have come to their scans with `push_filters`.
"""

from __future__ import annotations

from typing import TypeGuard

from bireme.data.node import replaced
from bireme.plan.context import PlanContext
from bireme.plan.expr import Expr
from bireme.plan.raises import may_raise
from bireme.plan.relation import Filter, Rel, Scan
from bireme.plan.tree import column_mask, columns_in, conjuncts, holds_subquery, map_where


def skip_files(plan: Rel, context: PlanContext) -> Rel:
    """`plan` with scans that know more of what is asked of them."""
    return map_where(plan, (Filter,), _is_of_a_table, lambda rel: _told(rel, context))


def _is_of_a_table(rel: Rel) -> TypeGuard[Filter]:
    return rel.__class__ is Filter and rel.input.__class__ is Scan and may_raise(rel.predicate)


def _told(rel: Rel, context: PlanContext) -> Rel:
    if not _is_of_a_table(rel):
        return rel
    scan = rel.input
    assert isinstance(scan, Scan)
    told = [part for part in conjuncts(rel.predicate) if may_raise(part) and _is_of_files(part, scan, context)]
    if not told:
        return rel
    return replaced(rel, input=replaced(scan, filters=tuple(dict.fromkeys([*scan.filters, *told]))))


def _is_of_files(part: Expr, scan: Scan, context: PlanContext) -> bool:
    """Whether a condition is over columns that are the same in all rows of a file."""
    mask = column_mask(part)
    if not mask or holds_subquery(part):
        return False
    known = context.estimates.samples.statistics(scan.table, scan.version).columns
    return all(known[scan.columns[column]].same_in_files for column in columns_in(mask))

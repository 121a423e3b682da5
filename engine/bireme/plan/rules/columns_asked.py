"""Which columns a relation asks of its inputs, to give some of its own; columns are masks.

The rule that uses it is `prune_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

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
from bireme.plan.tree import column_mask, columns_in, mask_of


def _asked_by_none(rel: Rel, wanted: int) -> tuple[int, ...]:
    return ()


def asked_by_any(rel: Rel, wanted: int) -> tuple[int, ...]:
    """What those ask that pass on the columns of every input."""
    return (wanted,) * len(rel.inputs)


def _asked_by_join(rel: Join, wanted: int) -> tuple[int, int]:
    width = len(rel.left.schema.fields)
    both = wanted if rel.kind is not JoinKind.MARK else wanted & ((1 << width) - 1)
    if rel.residual is not None:
        both |= column_mask(rel.residual)
    return both & ((1 << width) - 1) | mask_of(rel.left_keys), both >> width | mask_of(rel.right_keys)


def _asked_by_project(rel: Project, wanted: int) -> tuple[int]:
    return (mask_of([rel.exprs[index] for index in columns_in(wanted)]),)


def _asked_by_filter(rel: Filter, wanted: int) -> tuple[int]:
    return (wanted | column_mask(rel.predicate),)


def _asked_by_aggregate(rel: Aggregate, wanted: int) -> tuple[int]:
    kept = [call for index, call in enumerate(rel.aggregates, start=len(rel.keys)) if wanted >> index & 1]
    return (mask_of((*rel.keys, *kept)),)


def _asked_by_sort(rel: Sort, wanted: int) -> tuple[int]:
    return (wanted | mask_of(rel.keys),)


def _asked_by_window(rel: Window, wanted: int) -> tuple[int]:
    width = len(rel.input.schema.fields)
    kept = [call for index, call in enumerate(rel.calls, start=width) if wanted >> index & 1]
    return (mask_of(kept) | wanted & ((1 << width) - 1),)


def _asked_by_unnest(rel: Unnest, wanted: int) -> tuple[int]:
    read = [place for index, place in enumerate(rel.kept) if wanted >> index & 1]
    return (sum({1 << place for place in (*read, *rel.lists)}),)


def _asked_by_row_numbers(rel: RowNumbers, wanted: int) -> tuple[int]:
    return (wanted & ((1 << len(rel.input.columns)) - 1),)


def _asked_by_assume(rel: Assume, wanted: int) -> tuple[int]:
    return (wanted | 1 << rel.one | 1 << rel.other,)


ASKED: Final[Mapping[type[Rel], Callable[[Any, int], tuple[int, ...]]]] = {
    Scan: _asked_by_none,
    Values: _asked_by_none,
    Filter: _asked_by_filter,
    Project: _asked_by_project,
    Join: _asked_by_join,
    Aggregate: _asked_by_aggregate,
    Window: _asked_by_window,
    Sort: _asked_by_sort,
    Limit: asked_by_any,
    Union: asked_by_any,
    Unnest: _asked_by_unnest,
    RowNumbers: _asked_by_row_numbers,
    Assume: _asked_by_assume,
}

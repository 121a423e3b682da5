"""Aggregates that no backend has become others that all have.

What each becomes is in `spell_moments`, `spell_quantiles` and `spell_ordered`. Where a value counts by its place among
the others, windows below the grouping number the rows.
"""

from __future__ import annotations

from typing import Final

from bireme.errors import Unsupported
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation
from bireme.plan.relation import Aggregate, Project, Rel, Window
from bireme.plan.rules import spell_moments, spell_ordered, spell_quantiles
from bireme.plan.rules.grouping_sets import expand_grouping_sets
from bireme.plan.rules.spelling import Finish, Numbers, Speller, Spelling, first_part
from bireme.plan.tree import all_columns, map_relations, map_where

_SPELLERS: Final[dict[str, Speller]] = {
    **spell_moments.SPELLERS,
    **spell_quantiles.SPELLERS,
    **spell_ordered.SPELLERS,
}
# DISTINCT stays on what these become.
_KEEP_DISTINCT: Final = frozenset({"string_agg", "array_agg", "first", "last", "any_value"})


def spell_aggregates(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without aggregates that are spelt by others."""
    return map_where(plan, (Aggregate,), _may_be_spelt, _spelt)


def _may_be_spelt(rel: Aggregate) -> bool:
    return any(call.function in _SPELLERS for call in rel.aggregates)


def _spelt(rel: Rel) -> Rel:
    if not isinstance(rel, Aggregate) or not _may_be_spelt(rel):
        return rel
    numbers = Numbers(len(rel.input.schema))
    spellings = [_spelling(call, rel, numbers) for call in rel.aggregates]
    if not any(spellings):
        return rel
    if rel.grouping_sets is not None:
        return map_relations(expand_grouping_sets(rel), _spelt)
    pairs = zip(rel.aggregates, spellings, strict=True)
    return _grouped(rel, numbers, [Spelling([call], first_part) if spelt is None else spelt for call, spelt in pairs])


def _spelling(call: Aggregation, rel: Aggregate, numbers: Numbers) -> Spelling | None:
    spell = _SPELLERS.get(call.function)
    if spell is None:
        return None
    if call.distinct and call.function not in _KEEP_DISTINCT:
        raise Unsupported(f"{call.function}(DISTINCT …) is not offered; take the distinct rows in a subquery")
    return spell(call, rel, numbers)


def _grouped(rel: Aggregate, numbers: Numbers, spellings: list[Spelling]) -> Rel:
    """The parts over the input with its numbers, and the values from them."""
    width = len(rel.keys)
    calls: list[Aggregation] = []
    finishes: list[tuple[int, int, Finish]] = []
    for parts, finish in spellings:
        start = width + len(calls)
        calls += parts
        finishes.append((start, start + len(parts), finish))
    source = rel.input
    if numbers.calls:
        source = Window(source, tuple(numbers.calls), tuple([f"number{index}" for index in range(len(numbers.calls))]))
    names = (*rel.names[:width], *[f"part{index}" for index in range(len(calls))])
    grouped = Aggregate(source, rel.keys, tuple(calls), names)
    columns = all_columns(grouped.schema)
    values = [finish(columns[start:end]) for start, end, finish in finishes]
    return Project(grouped, (*columns[:width], *values), rel.names)

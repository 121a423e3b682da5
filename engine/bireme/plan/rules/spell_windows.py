"""Aggregates over frames that no backend has become others over the same frames, as `spell_aggregates` does for groups.

Over a frame, values are selected by their place among those of the frame (`backends.reference.ranked_frames`), so no
rows are numbered for it. The mode stays: it is not made of others.
"""

from __future__ import annotations

from typing import Final

from bireme.data.node import replaced
from bireme.errors import Unsupported
from bireme.plan.context import PlanContext
from bireme.plan.expr import Aggregation, WindowCall
from bireme.plan.relation import Aggregate, Project, Rel, Window
from bireme.plan.rules import spell_moments, spell_ordered, spell_quantiles
from bireme.plan.rules.spelling import Finish, NoNumbers, Speller, Spelling, first_part
from bireme.plan.tree import all_columns, map_where

_SPELLERS: Final[dict[str, Speller]] = {
    **spell_moments.SPELLERS,
    **spell_quantiles.SPELLERS,
    **spell_ordered.SPELLERS,
}
_STAY: Final = frozenset({"mode", "first", "last"})
# DISTINCT stays on what these become.
_KEEP_DISTINCT: Final = frozenset({"string_agg", "array_agg", "any_value"})


def spell_windows(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without windows of aggregates that are spelt by others."""
    return map_where(plan, (Window,), _may_be_spelt, _spelt)


def _may_be_spelt(rel: Window) -> bool:
    return any(_speller(call.call) is not None for call in rel.calls)


def _speller(call: Aggregation) -> Speller | None:
    return None if call.function in _STAY else _SPELLERS.get(call.function)


def _spelt(rel: Rel) -> Rel:
    if not isinstance(rel, Window) or not _may_be_spelt(rel):
        return rel
    spellings = [_spelling(call, rel) for call in rel.calls]
    if not any(spellings):
        return rel
    width = len(rel.input.schema)
    parts: list[WindowCall] = []
    finishes: list[tuple[int, int, Finish]] = []
    for call, spelt in zip(rel.calls, spellings, strict=True):
        spelling = spelt or Spelling([call.call], first_part)
        start = width + len(parts)
        parts += [replaced(call, call=part) for part in spelling.parts]
        finishes.append((start, width + len(parts), spelling.finish))
    windows = Window(rel.input, tuple(parts), tuple([f"part{index}" for index in range(len(parts))]))
    columns = all_columns(windows.schema)
    values = [finish(columns[start:end]) for start, end, finish in finishes]
    return Project(windows, (*columns[:width], *values), rel.schema.names)


def _spelling(window: WindowCall, rel: Window) -> Spelling | None:
    """What one call becomes; for its speller the frame is a group."""
    call = window.call
    spell = _speller(call)
    if spell is None:
        return None
    if call.distinct and call.function not in _KEEP_DISTINCT:
        raise Unsupported(f"{call.function}(DISTINCT …) over a window is not offered; take distinct rows in a subquery")
    if call.function == "entropy":
        raise Unsupported("entropy over a window is not offered; join with a grouping")
    names = tuple([f"key{index}" for index in range(len(window.partition))])
    return spell(call, Aggregate(rel.input, window.partition, (call,), (*names, "value")), NoNumbers())

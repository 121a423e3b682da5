"""Rows and tasks done per pipeline, and an honest fraction of a query that is done.

A view over a `Profile` and the planner's estimates. The fraction never runs backwards and reaches 1 only at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from bireme.data.ids import PipelineId
from bireme.observe.profile import PipelineProfile, Profile


class Progress:
    """How far a query is. `weights` are what each pipeline is expected to cost, in any one unit (rows, say)."""

    def __init__(self, profile: Profile, weights: Mapping[PipelineId, float]) -> None:
        self._profile = profile
        self._weights = {pipeline: max(weight, 1.0) for pipeline, weight in weights.items()}
        self._shown = 0.0

    def fraction(self) -> float:
        """Between 0 and 1; 1 only when the query has ended."""
        if self._profile.outcome:
            return 1.0
        total = sum(self._weights.values())
        done = sum(weight * self._part(pipeline) for pipeline, weight in self._weights.items())
        self._shown = max(self._shown, min(done / total, 0.99) if total else 0.0)
        return self._shown

    def _part(self, pipeline: PipelineId) -> float:
        found = self._profile.pipelines.get(pipeline)
        if found is None:
            return 0.0
        return 1.0 if found.ended else _running_part(found)


def _running_part(pipeline: PipelineProfile) -> float:
    # Without splits nobody knows how much input will come: each further task closes half of what is left of a half.
    if pipeline.splits:
        return min(pipeline.tasks / pipeline.splits, 0.99)
    return 0.5 * (1.0 - 0.5 ** min(pipeline.tasks, 60))

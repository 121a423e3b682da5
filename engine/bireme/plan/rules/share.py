"""Which relations run once although several others read them.

Equal relations are one object already, so nothing has to be found here but what is worth keeping: a result that took a
join, a grouping, a sort or a window to make. Scans, filters and projections are run again by each reader, since reading
is cheaper than keeping.
"""

from __future__ import annotations

from typing import Final

from bireme.plan.relation import Aggregate, DependentJoin, Join, Limit, Rel, Sort, Unnest, Window
from bireme.plan.tree import subplans

_COSTLY: Final = frozenset({Aggregate, Join, DependentJoin, Window, Sort, Limit, Unnest})


def shared(plan: Rel) -> frozenset[Rel]:
    """The relations of `plan`, its subqueries included, that should run once and be read several times."""
    costly: dict[Rel, bool] = {}
    read_again: dict[Rel, None] = {}

    def visit(rel: Rel) -> bool:
        """Whether `rel` is costly; called once for each reader."""
        known = costly.get(rel)
        if known is not None:
            read_again[rel] = None
            return known
        found = rel.__class__ in _COSTLY
        for source in rel.inputs:
            found |= visit(source)
        for inner in subplans(rel):
            visit(inner)
        costly[rel] = found
        return found

    visit(plan)
    return frozenset([rel for rel in read_again if costly[rel]])

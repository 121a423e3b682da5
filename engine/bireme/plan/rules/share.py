"""Which relations run once although several others read them.

Equal relations are one object already, so nothing has to be found here but what is worth keeping: a result that took a
join, a grouping, a sort or a window to make. Scans, filters and projections are run again by each reader, since reading
is cheaper than keeping.
"""

from __future__ import annotations

from bireme.plan.relation import Aggregate, DependentJoin, Join, Limit, Rel, Sort, Window
from bireme.plan.tree import relations, subplans

_COSTLY = (Aggregate, Join, DependentJoin, Window, Sort, Limit)


def shared(plan: Rel) -> frozenset[Rel]:
    """The relations of `plan`, its subqueries included, that should run once and be read several times."""
    readers: dict[Rel, int] = {}
    costly: set[Rel] = set()
    for rel in relations(plan):
        if isinstance(rel, _COSTLY) or any(source in costly for source in rel.inputs):
            costly.add(rel)
        for source in rel.inputs:
            readers[source] = readers.get(source, 0) + 1
        for inner in subplans(rel):
            readers[inner] = readers.get(inner, 0) + 1
    return frozenset([rel for rel, count in readers.items() if count > 1 and rel in costly])

"""Which relations run once although several others read them.

Equal relations are one object already, so nothing has to be found here but what is worth keeping: a result that took a
join, a grouping, a sort or a window to make. Scans, filters and projections are run again by each reader, since reading
is cheaper than keeping.
"""

from __future__ import annotations

from typing import Final

from bireme.data.node import read_twice
from bireme.plan.relation import Aggregate, DependentJoin, Join, Limit, Rel, Sort, Unnest, Window

_COSTLY: Final = frozenset({Aggregate, Join, DependentJoin, Window, Sort, Limit, Unnest})


def shared(plan: Rel) -> frozenset[Rel]:
    """The relations of `plan`, its subqueries included, that should run once and be read several times."""
    return read_twice(plan, _COSTLY)

"""Bound plans of recent texts, so that a query that is asked again is not parsed again.

Rule: a text means the same for as long as every name that was looked up for it gives the same version of the same
table, as do values that were looked up in those; that is asked of the catalog each time. Texts with parameters, those
that may ask for the time, and those that ask what tables there are, are not kept.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bireme.collector import collector_at_rest
from bireme.frontend.catalog import Catalog, Table
from bireme.plan.relation import Rel

_TEXTS_KEPT_MAX: Final = 64
_TEXT_LENGTH_MAX: Final = 65_536
_CLOCK: Final = re.compile(r"\b(now|today|\w*current_\w+|transaction_timestamp|localtime\w*)\b", re.IGNORECASE)


class _Bound(NamedTuple):
    plan: Rel
    asked: tuple[tuple[str, Table | None], ...]


class Statements:
    """Any thread may use it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Bound] = {}
        self._lock = threading.Lock()

    def plan(self, text: str, catalog: Catalog, *, dialect: str) -> Rel:
        """The plan of a text, as `bind_sql` makes it."""
        from bireme.frontend.sql import bind_sql

        key = text, dialect
        with self._lock:
            known = self._kept.pop(key, None)
            if known is not None:
                self._kept[key] = known  # now the most recent
        if known is not None and all(catalog.find(name) == table for name, table in known.asked):
            return known.plan
        asking = _Asking(catalog)
        with collector_at_rest():
            plan = bind_sql(text, asking, dialect=dialect)
        if not asking.all_names and len(text) <= _TEXT_LENGTH_MAX and _CLOCK.search(text) is None:
            self._keep(key, _Bound(plan, tuple(asking.asked.items())))
        return plan

    def _keep(self, key: tuple[str, str], bound: _Bound) -> None:
        with self._lock:
            self._kept[key] = bound
            while len(self._kept) > _TEXTS_KEPT_MAX:
                del self._kept[next(iter(self._kept))]

    def forget(self) -> None:
        """Forgets all texts."""
        with self._lock:
            self._kept.clear()


class _Asking:
    """A catalog that notes what it is asked."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.asked: dict[str, Table | None] = {}
        self.all_names = False

    def find(self, name: str) -> Table | None:
        table = self.asked[name] = self._catalog.find(name)
        return table

    def names(self) -> Iterable[str]:
        self.all_names = True
        return self._catalog.names()

    def values(self, plan: Rel) -> Sequence[object]:
        return self._catalog.values(plan)

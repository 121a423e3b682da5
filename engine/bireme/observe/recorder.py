"""Where events go: a bounded ring, and whoever listens.

Recording is cheap enough to be always on. It never fails and never waits; the ring forgets the oldest events and counts
how many it forgot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from bireme.data.ids import EventId, QueryId
from bireme.observe.event import Event

Listener = Callable[[Event], None]


class Recorder:
    """Keeps the last `count_max` events of a worker."""

    def __init__(self, count_max: int) -> None:
        self._ring: deque[Event] = deque(maxlen=count_max)
        self._listeners: dict[QueryId, Listener] = {}
        self._count = 0

    def __repr__(self) -> str:
        return f"<Recorder: {self._count} events, {self.forgotten} forgotten>"

    @property
    def count(self) -> int:
        """How many events were ever recorded."""
        return self._count

    @property
    def forgotten(self) -> int:
        return self._count - len(self._ring)

    def record(self, event: Event) -> EventId:
        """Keeps `event` and shows it to its query's listener, to all where it is of the worker. The id names it
        as the cause of later ones.
        """
        self._count += 1
        self._ring.append(event)
        listener = self._listeners.get(event.query)
        if listener is not None:
            listener(event)
        elif not event.query:
            for one in tuple(self._listeners.values()):
                one(event)
        return EventId(self._count)

    def listen(self, query: QueryId, listener: Listener) -> None:
        """Shows every later event of `query` to `listener`, until `forget`."""
        self._listeners[query] = listener

    def forget(self, query: QueryId) -> None:
        self._listeners.pop(query, None)

    def events(self) -> Iterator[tuple[EventId, Event]]:
        """The events still kept, oldest first, with their ids."""
        first = self.forgotten + 1
        for offset, event in enumerate(tuple(self._ring)):
            yield EventId(first + offset), event

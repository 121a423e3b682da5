"""Immutable nodes of which equal ones are the same object (hash-consing).

Rule: a node is compared by identity, because building an equal node returns the one that exists. So equality
costs nothing at any depth, and a shared subtree can be recognised and computed once. The table is the one piece of
process-wide state in the planner; it is guarded by a lock, and no result depends on what it holds. It is bounded: when
it has grown, nodes that nobody uses any more are dropped. Until then a node, with what is known of it, is there for the
next query about the same things.

Walking and rebuilding is in `plan.tree`; what nodes there are, in `data.types`, `plan.expr` and `plan.relation`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from sys import getrefcount
from typing import Any, ClassVar, Final, TypeVar, dataclass_transform

# All nodes there are, by their class and fields, in the order in which they were made.
_TABLE: Final[dict[tuple[Any, ...], Node]] = {}
_LOCK: Final = threading.RLock()  # the collector may run code that makes nodes, wherever memory is asked for
_NODES_KEPT: Final = 16_384
_BYTES_PER_NODE: Final = 256
# References to a node that nobody uses: the table's, and that of the question.
_REFERENCES_UNUSED: Final = 2


class _Table:
    """When the nodes that nobody uses are dropped next."""

    limit: int = _NODES_KEPT


def weigh(size_bytes: int) -> None:
    """Counts a large value of a node that is made as so many more nodes."""
    _Table.limit -= size_bytes // _BYTES_PER_NODE


def drop_unused() -> None:
    """Drops the nodes that nobody uses now, as happens by itself when there are many more than before."""
    with _LOCK:
        _sweep()


def _sweep() -> None:
    """Drops the nodes that nobody uses. The lock is held, so that no one can find such a node meanwhile."""
    keys = list(_TABLE)
    while keys:
        # A node is younger than those it holds: from the youngest on, one pass drops whole trees.
        key = keys.pop()
        if key in _TABLE and getrefcount(_TABLE[key]) <= _REFERENCES_UNUSED:
            del _TABLE[key]
    _Table.limit = len(_TABLE) + max(_NODES_KEPT, len(_TABLE))


class Node:
    """Base of everything hash-consed; a subclass that has fields is declared with `@node`.

    What is derived from a node once and for all may be kept in `_memo` and `_facts`, which are not fields.
    """

    # There is no metaclass: with one, every `isinstance` and `case` that does not match would take three times as long.
    __slots__ = ("__weakref__", "_facts", "_memo")
    _names: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    _last_defaults: ClassVar[tuple[Any, ...]] = ()  # those of the last fields, of which alone there are any
    _setters: ClassVar[tuple[Callable[[Any, Any], None], ...]] = ()
    # What makes two nodes equal, where the arguments themselves compare too loosely (1 == True == 1.0).
    intern_key: ClassVar[Callable[[tuple[Any, ...]], tuple[Any, ...]] | None] = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The node of this class with these fields: the one that exists, or a new one."""
        missing = len(cls._names) - len(args)
        if kwargs or missing < 0 or missing > len(cls._last_defaults):
            args = _positional(cls, args, kwargs)
        elif missing:
            args += cls._last_defaults[-missing:]
        key = (cls, *args) if cls.intern_key is None else (cls, *cls.intern_key(args))
        with _LOCK:
            found = _TABLE.get(key)
        if found is not None:
            return found
        made = object.__new__(cls)
        for setter, value in zip(cls._setters, args):  # noqa: B905  (as many as names, by now)
            setter(made, value)
        with _LOCK:
            # Another thread may have made it since.
            found = _TABLE.setdefault(key, made)
            if len(_TABLE) > _Table.limit:
                _sweep()
            return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be deleted")

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in self.field_names()]
        return f"{type(self).__name__}({', '.join(fields)})"

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields, in the order in which the class is called with them."""
        return cls._names

    def field_values(self) -> tuple[Any, ...]:
        """The values of the fields, in the order of `field_names`."""
        return tuple([getattr(self, name) for name in self.field_names()])


def _positional(cls: type[Node], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    names = cls._names
    values = dict(cls._defaults)
    values.update(zip(names, args, strict=False))
    values.update(kwargs)
    if len(args) > len(names) or values.keys() != set(names):
        raise TypeError(f"{cls.__name__} takes {', '.join(names)}")
    return tuple([values[name] for name in names])


_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(declared: _Class) -> _Class:
    """Makes a class of nodes of one that declares its fields: to readers and checkers, a frozen dataclass with slots.

    `dataclass` writes and compiles several functions for each class, none of which a node needs; for all nodes together
    that takes as long as a small query.
    """
    own = dict(vars(declared))
    del own["__dict__"]
    names = tuple(declared.__annotations__)
    defaults = {name: own.pop(name) for name in names if name in own}
    made: Any = type(declared)(
        declared.__name__, declared.__bases__, {**own, "__slots__": names, "__match_args__": names}
    )
    made.__qualname__ = declared.__qualname__
    made._names = names
    made._defaults = defaults
    made._last_defaults = tuple(defaults.values())
    made._setters = tuple([vars(made)[name].__set__ for name in names])
    return made  # type: ignore[no-any-return]

"""Immutable nodes of which equal ones are the same object (hash-consing).

Rule: a node is compared by identity, because building an equal node returns the one that exists. So equality
costs nothing at any depth, and a shared subtree can be recognised and computed once. The table is the one piece of
process-wide state in the planner, and no result depends on what it holds. It is bounded: when it has grown, nodes that
nobody uses any more are dropped. Until then a node, with what is known of it, is there for the next query about the
same things.

How nodes are made, found and kept is in C++ (`native/nodes`), with the traversals that most of planning consists of;
a class says here which of its fields these may enter. What nodes there are, in `data.types`, `plan.expr` and
`plan.relation`; walking and rebuilding them, in `plan.tree`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, TypeVar, dataclass_transform, overload

from bireme.data import _nodes

# What each of these does is said in `_nodes.pyi`.
replaced = _nodes.replaced
remember = _nodes.remember
note = _nodes.note
drop_unused = _nodes.drop_unused
node_count = _nodes.node_count
operands = _nodes.operands
walk = _nodes.walk
column_mask = _nodes.column_mask
flattened = _nodes.flattened
read_twice = _nodes.read_twice
mask_of = _nodes.mask_of
column_positions = _nodes.column_positions
columns_in = _nodes.columns_in
holds_subquery = _nodes.holds_subquery
holds_decimal128 = _nodes.holds_decimal128
holds_join = _nodes.holds_join
holds_dependent = _nodes.holds_dependent
holds_outer = _nodes.holds_outer
holds_nested = _nodes.holds_nested
map_operands = _nodes.map_operands
map_expr = _nodes.map_expr
remap = _nodes.remap
shift = _nodes.shift
substitute = _nodes.substitute
subplans = _nodes.subplans
relations = _nodes.relations
relations_among = _nodes.relations_among
relations_outside_subqueries = _nodes.relations_outside_subqueries
with_inputs = _nodes.with_inputs
map_relations = _nodes.map_relations
map_subplans = _nodes.map_subplans


class Role(IntEnum):
    """What nodes of a class are to traversals of expressions; numbered as in `native/nodes/node.hpp`.

    A REFERENCE is an expression that stands for the input's column at the position that is its first field, a SUBQUERY
    one over a plan. A CARRIER holds expressions without being one. Of a TYPE the second field is the number of
    digits, and the last one the fields that it is made of. A CALL is an expression of a function, whose name is the
    first field, of those in the second. A JOIN is a relation of pairs of rows of two others; a DEPENDENT one reads the
    second of them anew for each row of the first. An OUTER expression stands for a column of such a row.
    """

    OTHER = 0
    EXPRESSION = 1
    REFERENCE = 2
    SUBQUERY = 3
    CARRIER = 4
    TYPE = 5
    CALL = 6
    JOIN = 7
    DEPENDENT = 8
    OUTER = 9


_Class = TypeVar("_Class", bound=type)


def _made(
    declared: type,
    names: tuple[str, ...],
    role: Role | None,
    parts: tuple[str, ...],
    inputs: tuple[str, ...],
    *,
    is_base: bool = False,
) -> type:
    own = dict(vars(declared))
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)
    defaults = tuple([own.pop(name) for name in names if name in own])
    made = _nodes.make_class(
        f"{declared.__module__}.{declared.__name__}",
        declared.__bases__,
        names,
        defaults,
        getattr(declared, "_role", Role.OTHER) if role is None else role,
        tuple([names.index(name) for name in parts]),
        tuple([names.index(name) for name in inputs]),
        is_base,
    )
    for name, value in {**own, "__slots__": names, "__match_args__": names, "_names": names}.items():
        setattr(made, name, value)
    return made


def base(declared: _Class) -> _Class:
    """Makes a class that nodes are derived from, and that has no fields and no nodes of its own."""
    return _made(declared, (), None, (), (), is_base=True)  # type: ignore[return-value]


@base
class Node(_nodes.Node):
    """Base of everything hash-consed; a subclass that has fields is declared with `@node`.

    What is derived from a node once and for all may be kept in `_memo` (by `remember`) and `_facts` (by `note`), which
    are not fields.
    """

    # There is no metaclass: with one, every `isinstance` and `case` that does not match would take three times as long.
    __slots__ = ()
    _names: ClassVar[tuple[str, ...]] = ()

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


@overload
def node(declared: _Class) -> _Class: ...


@overload
def node(
    *, role: Role | None = None, parts: tuple[str, ...] = (), inputs: tuple[str, ...] = ()
) -> Callable[[_Class], _Class]: ...


@dataclass_transform(frozen_default=True, eq_default=False)
def node(
    declared: Any = None, *, role: Role | None = None, parts: tuple[str, ...] = (), inputs: tuple[str, ...] = ()
) -> Any:
    """Makes a class of nodes of one that declares its fields: to readers and checkers, a frozen dataclass with slots.

    `parts` are the fields that hold expressions or carriers of them, or tuples of these; `inputs` those that hold the
    relations that are read. The role is by default that of the nodes in general.
    """
    if declared is None:
        return lambda each: _made(each, tuple(each.__annotations__), role, parts, inputs)
    return _made(declared, tuple(declared.__annotations__), role, parts, inputs)

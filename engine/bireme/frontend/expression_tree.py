"""What an expression of the DataFrame API is made of, before names have positions and values have types.

Built by `expression`, given meaning by `resolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bireme.data.node import Node, node
from bireme.data.types import DataType
from bireme.plan.expr import WHOLE_PARTITION, Frame, Literal


@node
class Named(Node):
    name: str


@node
class Several(Node):
    """Many columns at once: those named, or all but `excluded` where `names` is None."""

    names: tuple[str, ...] | None
    excluded: tuple[str, ...] = ()


@node
class Element(Node):
    """An element of a list, inside of what `EachElement` computes of it."""


@node
class Constant(Node):
    literal: Literal


@node
class Function(Node):
    name: str
    args: tuple[Tree, ...]


@node
class EachElement(Node):
    """A function of the registry that is given a list and what to do with each element."""

    name: str
    list: Tree
    body: Tree


@node
class Conversion(Node):
    arg: Tree
    type: DataType
    safe: bool


@node
class Choice(Node):
    branches: tuple[tuple[Tree, Tree], ...]
    default: Tree


@node
class Membership(Node):
    arg: Tree
    items: tuple[Tree, ...]


@node
class Summary(Node):
    """An aggregate over the rows of a group, of a window (`over`), or of the whole frame."""

    function: str
    args: tuple[Tree, ...]
    distinct: bool = False
    filter: Tree | None = None


# Sort keys: the expression, whether it is descending, and whether NULLs come first.
Order = tuple[tuple["Tree", bool, bool], ...]


@node
class Place(Node):
    """A value of each row that depends on the rows around it, in the order of the input or in an `order` of its own."""

    function: str
    args: tuple[Tree, ...] = ()
    frame: Frame = WHOLE_PARTITION
    order: Order = ()
    ignore_nulls: bool = False


@node
class Over(Node):
    """An aggregate or a place among the rows with the same `partition` alone, in this `order`."""

    inner: Summary | Place
    partition: tuple[Tree, ...]
    order: Order


@node
class Renamed(Node):
    arg: Tree
    name: str


Tree = (
    Named
    | Several
    | Element
    | Constant
    | Function
    | EachElement
    | Conversion
    | Choice
    | Membership
    | Summary
    | Place
    | Over
    | Renamed
)


def parts(tree: Tree) -> tuple[Tree, ...]:
    """What an expression is made of, one level down."""
    match tree:
        case Function(_, args) | Summary(_, args) | Place(_, args):
            return args
        case Conversion(arg) | Renamed(arg) | Membership(arg):
            return (arg,)
        case EachElement(_, values, body):
            return (values, body)
        case Choice(branches, default):
            return (*(part for branch in branches for part in branch), default)
        case Over(inner):
            return (inner,)
        case _:
            return ()


def map_parts(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The same expression of other parts."""
    match tree:
        case Function(name, args):
            return Function(name, tuple(map(change, args)))
        case Summary(name, args, distinct, condition):
            return Summary(name, tuple(map(change, args)), distinct, condition)
        case Place(name, args, frame, order, ignore_nulls):
            ordered = tuple([(change(key), down, first) for key, down, first in order])
            return Place(name, tuple(map(change, args)), frame, ordered, ignore_nulls)
        case EachElement(name, values, body):
            return EachElement(name, change(values), change(body))
        case Conversion(arg, kind, safe):
            return Conversion(change(arg), kind, safe)
        case Renamed(arg, name):
            return Renamed(change(arg), name)
        case Membership(arg, items):
            return Membership(change(arg), items)
        case Choice(branches, default):
            return Choice(tuple([(change(a), change(b)) for a, b in branches]), change(default))
        case Over(inner, partition, order):
            changed = change(inner)
            assert isinstance(changed, Summary | Place)
            return Over(changed, partition, order)
        case _:
            return tree


def conjunction(trees: Sequence[Tree]) -> Tree:
    """All of `trees` at once; there is at least one."""
    return trees[0] if len(trees) == 1 else Function("and", tuple(trees))


def describe(tree: Tree) -> str:
    """A short text of an expression, for messages and for columns without a name."""
    match tree:
        case Named(name):
            return name
        case Several(names):
            return "*" if names is None else ", ".join(names)
        case Constant(value):
            return repr(value.value) if isinstance(value.value, str) else str(value.value)
        case Function(name, args) | Summary(name, args) | Place(name, args):
            return f"{name}({', '.join(map(describe, args))})"
        case Element():
            return "element()"
        case EachElement(name, values, body):
            return f"{name}({describe(values)}, {describe(body)})"
        case Conversion(arg, kind, _):
            return f"cast({describe(arg)} as {kind})"
        case Membership(arg, items):
            return f"{describe(arg)} in ({', '.join(map(describe, items))})"
        case Choice():
            return "case"
        case Over(inner, partition, _):
            return f"{describe(inner)} over ({', '.join(map(describe, partition))})"
        case Renamed(_, name):
            return name

"""What an expression of the DataFrame API is made of, before names have positions and values have types.

Built by `expression`, given meaning by `resolve`.
"""

from __future__ import annotations

from collections.abc import Sequence

from bireme.data.node import Node, node
from bireme.data.types import DataType
from bireme.plan.expr import Literal


@node
class Named(Node):
    name: str


@node
class Several(Node):
    """Many columns at once: those named, or all but `excluded` where `names` is None."""

    names: tuple[str, ...] | None
    excluded: tuple[str, ...] = ()


@node
class Constant(Node):
    literal: Literal


@node
class Function(Node):
    name: str
    args: tuple[Tree, ...]


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


@node
class Over(Node):
    summary: Summary
    partition: tuple[Tree, ...]
    order: tuple[tuple[Tree, bool, bool], ...]


@node
class Renamed(Node):
    arg: Tree
    name: str


Tree = Named | Several | Constant | Function | Conversion | Choice | Membership | Summary | Over | Renamed


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
        case Function(name, args) | Summary(name, args):
            return f"{name}({', '.join(map(describe, args))})"
        case Conversion(arg, kind, _):
            return f"cast({describe(arg)} as {kind})"
        case Membership(arg, items):
            return f"{describe(arg)} in ({', '.join(map(describe, items))})"
        case Choice():
            return "case"
        case Over(summary, partition, _):
            return f"{describe(summary)} over ({', '.join(map(describe, partition))})"
        case Renamed(_, name):
            return name

"""What an expression of the DataFrame API is made of, before names have positions and values have types.

Built by `expression`, given meaning by `resolve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bireme.data.types import DataType
from bireme.plan.expr import Literal


@dataclass(frozen=True, slots=True)
class Named:
    name: str


@dataclass(frozen=True, slots=True)
class Several:
    """Many columns at once: those named, or all but `excluded` where `names` is None."""

    names: tuple[str, ...] | None
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    literal: Literal


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    args: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    arg: Tree
    type: DataType
    safe: bool


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[tuple[Tree, Tree], ...]
    default: Tree


@dataclass(frozen=True, slots=True)
class Membership:
    arg: Tree
    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """An aggregate over the rows of a group, of a window (`over`), or of the whole frame."""

    function: str
    args: tuple[Tree, ...]
    distinct: bool = False
    filter: Tree | None = None


@dataclass(frozen=True, slots=True)
class Over:
    summary: Summary
    partition: tuple[Tree, ...]
    order: tuple[tuple[Tree, bool, bool], ...]


@dataclass(frozen=True, slots=True)
class Renamed:
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

"""The core of nodes, in C++ (native/nodes): making them, finding them again, looking into them."""

from collections.abc import Callable, Container, Iterable
from enum import EnumMeta
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=Node)
_Part = TypeVar("_Part", bound=Node | tuple[Node, ...])
_Result = TypeVar("_Result")

class Node:
    """Base of all nodes; `_memo` and `_facts` are missing until something is kept there."""

    _memo: Any
    _facts: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def derived(self) -> Any:
        """What `_derive` gives, asked for once; kept as `_memo`."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The relations that a node reads, in order; subqueries in its expressions are not among them."""

def make_class(
    name: str,
    bases: tuple[type, ...],
    names: tuple[str, ...],
    defaults: tuple[Any, ...],
    role: int,
    parts: tuple[int, ...],
    inputs: tuple[int, ...],
    is_base: bool,
    /,
) -> type:
    """A class of nodes without methods; defaults are those of the last fields. A base has no nodes of its own."""

def replaced(node: _Node, /, **fields: Any) -> _Node:
    """The node with some fields changed."""

def remember(node: Node, value: object, /) -> None:
    """Keeps `value` as the node's `_memo`."""

def note(node: Node, value: object, /) -> None:
    """Keeps `value` as the node's `_facts`."""

def drop_unused() -> None: ...
def node_count() -> int: ...
def operands(node: Node, /) -> tuple[Any, ...]:
    """The expressions directly inside a node, in order."""

def walk(node: Node, /) -> list[Any]:
    """A node and every expression inside it, outermost first."""

def column_mask(node: Node, /) -> int:
    """The columns that a node reads, as a bit mask."""

def flattened(node: Node, function: str, /) -> list[Any]:
    """What a call of an associative function, nested or not, is of, without repetitions; another node alone."""

def read_twice(plan: Node, among: Container[type] | None = None, /) -> frozenset[Any]:
    """The relations that several others read; with `among`, those that are of such a class or read one that is."""

def mask_of(nodes: Iterable[Node], /) -> int:
    """The columns that any of the nodes reads."""

def column_positions(exprs: tuple[Node, ...], /) -> tuple[int | None, ...]:
    """The positions of the expressions that are columns, None for others."""

def columns_in(mask: int, /) -> list[int]:
    """The positions in a mask, ascending."""

def holds_subquery(node: Node, /) -> bool: ...
def holds_decimal128(node: Node, /) -> bool:
    """Whether a decimal of more than 18 digits is the type of anything in the node or in what it reads."""

def holds_join(node: Node, /) -> bool:
    """Whether a join is in the node or in what it reads, plans of subqueries included."""

def holds_dependent(node: Node, /) -> bool:
    """The same for what is evaluated anew for each row: dependent joins and subqueries."""

def holds_outer(node: Node, /) -> bool:
    """The same for columns of a row around, also where that is in the node, too."""

def holds_nested(node: Node, /) -> bool:
    """Whether a list, struct or map is the type of anything in the node or in what it reads."""

def map_operands(node: _Node, change: Callable[[Any], Any], /) -> _Node:
    """The node with each expression directly in it changed."""

def map_expr(node: Node, change: Callable[[Any], _Result], /) -> _Result:
    """The expression rebuilt from the leaves up, every part changed after its operands."""

def remap(part: _Part, positions: Any, /) -> _Part:
    """A node, or each of a tuple, with column `i` moved to `positions[i]`."""

def shift(part: _Part, by: int, /) -> _Part: ...
def substitute(part: Node | tuple[Node, ...], replacements: Any, /) -> Any:
    """A node, or each of a tuple, with column `i` replaced by `replacements[i]`."""

def subplans(node: Node, /) -> tuple[Any, ...]:
    """The plans of the subqueries in the expressions of a node (not of those inside these plans)."""

def relations(plan: Node, /) -> list[Any]:
    """Every relation of a plan once, each after those it reads, plans of subqueries included."""

def relations_among(plan: Node, classes: Container[type], /) -> list[Any]:
    """Those that are of such a class."""

def relations_outside_subqueries(plan: Node, /) -> list[Any]:
    """The same without the plans of subqueries."""

def with_inputs(rel: _Node, inputs: Any, /) -> _Node:
    """The relation over other inputs."""

def map_relations(plan: Node, change: Callable[[Any], _Result], /) -> _Result:
    """The plan rebuilt from its leaves up, `change` applied once to each relation, also in plans of subqueries."""

def map_subplans(part: _Part, change: Callable[[Any], Any], /) -> _Part:
    """A node, or each of a tuple, with `change` applied to the plans of subqueries in its expressions."""

class ChoiceType(EnumMeta):
    """Looks members up like attributes of any other class."""

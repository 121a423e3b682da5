"""What the families of methods of an expression share: its tree, and how a new expression is made of one.

The families are in the modules `expression_math`, `expression_summaries` and `expression_places`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bireme.frontend.expression_tree import Choice, Function, Tree

if TYPE_CHECKING:
    from bireme.frontend.expression import Expression


class Methods:
    """One family; `Expression` is all of them."""

    __slots__ = ()
    _tree: Tree

    def _made(self, tree: Tree) -> Expression:
        raise NotImplementedError

    def _given(self, value: Any) -> Tree:
        """The tree of an argument: an expression, or a plain value as a constant."""
        raise NotImplementedError

    def _call(self, name: str, *others: Any) -> Expression:
        return self._made(Function(name, (self._tree, *(self._given(other) for other in others))))

    def _when(self, condition: Any, value: Any, otherwise: Any = None) -> Expression:
        """`value` where the condition is TRUE."""
        return self._made(Choice(((self._given(condition), self._given(value)),), self._given(otherwise)))

"""Reading syntax nodes without losing anything: which arguments a node may have, and where it stands in the text.

Rule: whoever binds a node declares the arguments that it reads; any other argument that the parser has set is an
Unsupported that names the clause. So new syntax of a new sqlglot is refused until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlglot import expressions as exp

from bireme.errors import Position, QueryError, Unsupported

Node = exp.Expr

# What clauses are called in SQL, where sqlglot's name of the argument does not say it.
_CLAUSES: Final = {
    "locks": "FOR UPDATE and other locking clauses",
    "sample": "TABLESAMPLE and USING SAMPLE",
    "hint": "hints",
    "hints": "hints",
    "pivots": "PIVOT and UNPIVOT",
    "laterals": "LATERAL VIEW",
    "exclude": "EXCLUDE",
    "nearest": "NEAREST joins",
    "match_condition": "MATCH_CONDITION",
    "totals": "WITH TOTALS",
    "with_fill": "WITH FILL",
    "into": "SELECT INTO",
    "kind": "this kind",
    "limit_options": "LIMIT with PERCENT or WITH TIES",
    "recursive": "WITH RECURSIVE",
    "search": "SEARCH and CYCLE",
    "cycle": "SEARCH and CYCLE",
    "udfs": "functions defined in WITH",
    "key_expressions": "USING KEY",
    "when": "AT (time travel)",
    "version": "time travel",
    "only": "ONLY",
    "by_name": "BY NAME",
    "collation": "COLLATE",
    "symmetric": "SYMMETRIC",
    "format": "FORMAT",
    "db": "a schema in front of a column",
    "catalog": "a catalog in front of a column",
    "first": "KEEP FIRST and LAST",
    "unnest": "UNNEST in IN",
    "field": "IN without parentheses",
}


def check_arguments(node: Node, known: set[str] | frozenset[str]) -> None:
    """Refuses a node with an argument that is not among `known`; an empty one is no argument."""
    if not known.issuperset(node.args):
        for name, value in node.args.items():
            if name not in known and value is not None and value != []:
                refuse(node, name, value)


def refuse(node: Node, name: str, value: object) -> None:
    """Raises Unsupported for one argument of a node, pointing at the argument when it has a place."""
    clause = _CLAUSES.get(name) or name.strip("_").replace("_", " ").upper()
    if clause == name.upper():
        clause = f"{clause} in {node.key.upper()}"
    part = value[0] if isinstance(value, list) and value else value
    at = part if isinstance(part, Node) and span(part) is not None else node
    raise Unsupported(f"{clause}: not supported here", position=span(at))


def span(node: Node) -> Position | None:
    """The part of the text that a node covers, as far as its tokens' places are known."""
    starts: list[int] = []
    ends: list[int] = []
    for meta in _metas(node):
        if "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    return Position(min(starts), max(ends)) if starts else None


def _metas(node: Node) -> Iterator[dict[str, Any]]:
    # A stack, not recursion: the nodes of long chains of operators nest deeply.
    stack = [node]
    while stack:
        current = stack.pop()
        if current._meta:
            yield current._meta
        for value in current.args.values():
            if isinstance(value, Node):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(item for item in value if isinstance(item, Node))


def located(error: QueryError, node: Node, text: str) -> QueryError:
    """Puts the place of `node` on an error that has none yet."""
    if error.position is None:
        place = span(node)
        error.located(None if place is None else closed(place, text), text)
    elif error.text is None:
        error.text = text
    return error


def closed(place: Position, text: str) -> Position:
    """A place that ends inside parentheses, up to where they close.

    Only the names and literals inside a call have places; its closing parentheses follow them.
    """
    end = place.end
    written = text[place.start : end]
    for _ in range(written.count("(") - written.count(")")):
        closing = text.find(")", end)
        if closing < 0 or text[end:closing].strip():
            break
        end = closing + 1
    return Position(place.start, end)


def is_all(node: Node) -> bool:
    """Whether a node is the word ALL, or a star, where these stand for everything."""
    if node.__class__ is exp.Star:
        check_arguments(node, frozenset())
        return True
    return node.__class__ is exp.Var and node.name.upper() == "ALL"

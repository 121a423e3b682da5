"""Where the items of select lists stand in a text: what a column without an alias is called by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final

from sqlglot.tokenizer_core import Token, TokenType

from bireme.errors import Position
from bireme.frontend.sql.lexemes import CLOSERS, LIST_ENDS, OPENERS

_T: Final[Any] = SimpleNamespace(**TokenType.__members__)
_LIST_STARTS: Final = frozenset({_T.SELECT, _T.DISTINCT, _T.ALL})


def select_items(tokens: Sequence[Token]) -> Iterator[Position]:
    """The places of the items of all select lists, inner ones before those around them."""
    depth = 0
    lists: list[tuple[int, int]] = []  # of each open list: its depth, and where its current item starts
    end = 0
    started = False
    for token in tokens:
        kind = token.token_type
        if kind in CLOSERS:
            depth -= 1
        while lists and (depth < lists[-1][0] or (depth == lists[-1][0] and kind in LIST_ENDS)):
            yield Position(lists.pop()[1], end)
        if started:
            if kind in _LIST_STARTS:
                end = token.end + 1
                continue
            lists.append((depth, token.start))
            started = False
        elif lists and kind is _T.COMMA and depth == lists[-1][0]:
            yield Position(lists[-1][1], end)
            started = bool(lists.pop())
        if kind is _T.SELECT:
            started = True
        if kind in OPENERS:
            depth += 1
        end = token.end + 1
    while lists:
        yield Position(lists.pop()[1], end)

"""PIVOT and UNPIVOT statements with ORDER BY or LIMIT behind them, as tokens that the parser takes.

It knows nothing behind such a statement, so `PIVOT … ORDER BY …` becomes `FROM (PIVOT …) ORDER BY …`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from sqlglot.tokenizer_core import Token, TokenType

from bireme.frontend.sql.lexemes import CLOSERS, OPENERS

_T: Final[Any] = SimpleNamespace(**TokenType.__members__)
PIVOTS: Final = frozenset({_T.PIVOT, _T.UNPIVOT})
_ENDS: Final = frozenset({_T.ORDER_BY, _T.LIMIT, _T.OFFSET, _T.FETCH})
# What stands before a statement, other than nothing and the parenthesis that closes a WITH.
_BEFORE: Final = frozenset({_T.L_PAREN, _T.DESCRIBE, _T.SUMMARIZE, _T.SEMICOLON})


def with_ends_outside(tokens: list[Token]) -> list[Token]:
    """The tokens with such statements in parentheses, behind FROM."""
    made: list[Token] = []
    # For each open parenthesis where a statement in it begins among the tokens made.
    starts: list[int | None] = [None]
    for at, token in enumerate(tokens):
        kind = token.token_type
        if kind in OPENERS:
            starts.append(None)
        elif kind in CLOSERS and len(starts) > 1:
            starts.pop()
        elif kind in PIVOTS and _begins_statement(tokens, at):
            starts[-1] = len(made)
        elif kind in _ENDS and starts[-1] is not None:
            start, starts[-1] = starts[-1], None
            made[start:start] = [_like(made[start], _T.FROM, "FROM"), _like(made[start], _T.L_PAREN, "(")]
            made.append(_like(made[-1], _T.R_PAREN, ")"))
        made.append(token)
    return made


def _begins_statement(tokens: Sequence[Token], at: int) -> bool:
    before = tokens[at - 1].token_type if at else None
    return before is None or before in _BEFORE or (before is _T.R_PAREN and not _is_clause(tokens, at))


def _is_clause(tokens: Sequence[Token], at: int) -> bool:
    """Whether this is `PIVOT (… FOR … IN (…))` behind a relation."""
    depth = 0
    for token in tokens[at + 1 :]:
        kind = token.token_type
        if kind is _T.FOR and depth == 1:
            return True
        depth += (kind in OPENERS) - (kind in CLOSERS)
        if depth == 0 and kind in CLOSERS:
            return False
    return False


def _like(token: Token, kind: Any, text: str) -> Token:
    """A token at the place of another one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)

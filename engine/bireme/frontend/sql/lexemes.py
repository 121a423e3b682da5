"""What the parser lets pass and should not: checks on the tokens of a query before it is parsed.

sqlglot reads many dialects and forgives much: a parenthesis that is never closed, CASE without THEN, empty places in a
list, letters glued to a number. Each of these hides a slip of the writer, so each is a SyntaxFault here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot.tokenizer_core import Token, TokenType

from bireme.errors import Position, SyntaxFault
from bireme.plan.functions import texts

_T: Final[Any] = TokenType
_CLOSING: Final = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET, _T.L_BRACE: _T.R_BRACE}
_CLOSERS: Final = frozenset(_CLOSING.values())
_OPENERS: Final = frozenset(_CLOSING)
# After these a list of keys must follow.
_KEYED: Final = frozenset({_T.PARTITION_BY, _T.ORDER_BY, _T.GROUP_BY})
_NO_KEY: Final = frozenset(
    {_T.R_PAREN, _T.ORDER_BY, _T.GROUP_BY, _T.HAVING, _T.LIMIT, _T.COMMA, _T.ROWS, _T.RANGE, _T.SEMICOLON, _T.WHERE}
)
_NO_NAME: Final = frozenset({_T.R_PAREN, _T.COMMA, _T.FROM, _T.SEMICOLON})
_BEFORE_EMPTY: Final = frozenset({_T.COMMA, _T.L_PAREN, _T.SELECT})

_SPECIAL: Final = frozenset(
    {*_CLOSING, *_CLOSERS, *_KEYED, _T.COMMA, _T.NUMBER, _T.CASE, _T.WHEN, _T.THEN, _T.ELSE, _T.END, _T.STRING}
)


def check(tokens: Sequence[Token], text: str) -> None:
    """Raises a SyntaxFault for what only a forgiving parser accepts."""
    checker = _Checker(text)
    previous: Token | None = None
    before: Token | None = None
    for token in tokens:
        kind = token.token_type
        if previous is not None and previous.token_type in _NEIGHBOURS:
            _NEIGHBOURS[previous.token_type](checker, before, previous, token)
        if kind in _SPECIAL:
            checker.take(token, previous)
        before, previous = previous, token
    checker.finish(previous)


class _Checker:
    """Which parentheses and CASE expressions are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[Token] = []
        # For each open CASE: whether a WHEN waits for its THEN.
        self.waiting: list[bool] = []

    def fault(self, message: str, start: Token, end: Token | None = None) -> SyntaxFault:
        place = Position(start.start, (end or start).end + 1)
        return SyntaxFault(message, position=place, text=self.text)

    def take(self, token: Token, previous: Token | None) -> None:
        kind = token.token_type
        if kind in _OPENERS:
            self.open.append(token)
        elif kind in _CLOSERS:
            if not self.open or _CLOSING[self.open[-1].token_type] is not kind:
                raise self.fault(f"this '{token.text}' closes nothing", token)
            self.open.pop()
        elif kind is _T.COMMA:
            if previous is not None and previous.token_type in _BEFORE_EMPTY:
                raise self.fault("something is missing before this comma", token)
        elif kind is _T.CASE:
            self.waiting.append(False)
        elif self.waiting and kind in _CASE_WORDS:
            self.case(token)

    def case(self, token: Token) -> None:
        kind = token.token_type
        if kind is _T.THEN:
            self.waiting[-1] = False
            return
        if self.waiting[-1]:
            raise self.fault("a WHEN before this has no THEN", token)
        if kind is _T.WHEN:
            self.waiting[-1] = True
        elif kind is _T.END:
            self.waiting.pop()

    def finish(self, last: Token | None) -> None:
        if self.open:
            raise self.fault(f"this '{self.open[-1].text}' is opened and not closed", self.open[-1])
        if last is not None and last.token_type in _KEYED:
            raise self.fault(f"{last.text.upper()} needs at least one key", last)

    def after_number(self, before: Token | None, number: Token, token: Token) -> None:
        word = token.text[:1].isalpha()
        if word and token.start == number.end + 1:
            # 0x1F or 12abc: sqlglot would take the letters for an alias.
            raise self.fault(f"'{number.text}{token.text}' is not a number", number, token)
        unit = word and texts.is_span_unit(texts.unit_name(token.text))
        spanned = before is not None and before.token_type is _T.INTERVAL
        if spanned and not unit:
            raise self.fault("an interval needs a unit behind its amount, as in INTERVAL 3 DAYS", number)
        if unit and not spanned and token.token_type is _T.VAR and len(token.text) > 2:
            raise self.fault(f"write INTERVAL {number.text} {token.text} for a span of time", number, token)

    def after_string(self, before: Token | None, string: Token, token: Token) -> None:
        if token.token_type is _T.STRING:
            raise self.fault("two strings stand next to each other; a comma or || is missing", string, token)

    def after_keyed(self, before: Token | None, keyed: Token, token: Token) -> None:
        if token.token_type in _NO_KEY:
            raise self.fault(f"{keyed.text.upper()} needs at least one key", keyed)

    def after_as(self, before: Token | None, as_: Token, token: Token) -> None:
        if token.token_type in _NO_NAME:
            raise self.fault("a name or type is missing behind AS", as_)

    def after_all(self, before: Token | None, all_: Token, token: Token) -> None:
        if token.token_type in _NO_NAME and before is not None and before.token_type in _BEFORE_EMPTY:
            raise self.fault("something is missing behind ALL", all_)

    def after_comma(self, before: Token | None, comma: Token, token: Token) -> None:
        if token.token_type is _T.JOIN:
            raise self.fault("a relation is missing between the comma and JOIN", comma)


_CASE_WORDS: Final = frozenset({_T.WHEN, _T.THEN, _T.ELSE, _T.END})
_Rule = Callable[[_Checker, Token | None, Token, Token], None]
_NEIGHBOURS: Final[dict[Any, _Rule]] = {
    _T.NUMBER: _Checker.after_number,
    _T.STRING: _Checker.after_string,
    _T.COMMA: _Checker.after_comma,
    _T.ALIAS: _Checker.after_as,
    _T.ALL: _Checker.after_all,
    **dict.fromkeys(_KEYED, _Checker.after_keyed),
}

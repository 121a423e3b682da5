"""The tokens of a query, before it is parsed: what the parser must not interpret, and what it would let pass.

sqlglot turns calls of the functions it knows into nodes of its own, in forms that differ between dialects and lose what
was written. So `keep_names` marks the names of such functions; the parser then does not know them, leaves every call as
it is, and `plain_name` takes the mark off. Forms with a syntax of their own (CAST, EXTRACT, SUBSTRING FROM …) stay.

sqlglot also reads many dialects and forgives much: a parenthesis that is never closed, CASE without THEN, empty places
in a list, letters glued to a number. Each of these hides a slip of the writer, so `check` makes each a SyntaxFault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import compress, pairwise
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from bireme.errors import Position, SyntaxFault, Unsupported
from bireme.plan.functions import texts

# The members by name, which are looked up for every token: faster than those of an enumeration.
_T: Final[Any] = SimpleNamespace(**TokenType.__members__)

# The compiled parser recurses on the stack of the machine, so the depth is limited before it starts.
_DEPTH_MAX: Final = 200
TOO_DEEP: Final = "the query is nested too deeply; split it with WITH, or write long lists as VALUES or IN (…)"

# A character of the private use area, which no name of a function has.
_MARK: Final = "\ue000"
# Where a slice has no start.
NO_START: Final = _MARK
# What `*COLUMNS(…)` calls.
UNPACKED: Final = f"columns{_MARK}{_MARK}"
# What is called with the list behind IN, which the parser would take for values in parentheses.
LISTED: Final = _MARK
_SYNTAX_OF_THEIR_OWN: Final = frozenset({"CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "IF", "CASE"})
_INTERPRETED: Final = frozenset({*DuckDBParser.FUNCTIONS, *DuckDBParser.FUNCTION_PARSERS}) - _SYNTAX_OF_THEIR_OWN
_NAMES: Final = frozenset(
    {
        _T.VAR, _T.IDENTIFIER, _T.DATE, _T.TIME, _T.TIMESTAMPNTZ, _T.TEXT, _T.LEFT, _T.RIGHT, _T.REPLACE, _T.FIRST,
        _T.FORMAT, _T.TRUNCATE, _T.XOR, _T.UUID, _T.LIST, _T.JSON, _T.RANGE,
    }
)  # fmt: skip
_BEFORE_STAR_REPLACE: Final = frozenset({_T.STAR, _T.R_PAREN, _T.VAR, _T.IDENTIFIER})


# Between an amount and its unit: marked, so that the parser does not take the first of several pairs for the whole.
_UNIT: Final = re.compile(r"(?<=[\d\s])(?=[A-Za-z])")


# Most tokens are of no concern to anybody here, so loops over all of them run in C.
_kind_of: Final[Callable[[Token], Any]] = attrgetter("token_type")


def separate(tokens: list[Token]) -> tuple[list[Token], list[Any]]:
    """The tokens as DuckDB has them, and their kinds: `?::`, an operator elsewhere, is a parameter and a cast."""
    kinds = list(map(_kind_of, tokens))
    if _T.IN in kinds and _T.L_BRACKET in kinds:
        tokens = _with_lists_called(tokens)
        kinds = list(map(_kind_of, tokens))
    if _T.QDCOLON not in kinds:
        return tokens, kinds
    separated: list[Token] = []
    for token in tokens:
        if token.token_type is _T.QDCOLON:
            separated.append(Token(_T.PLACEHOLDER, "?", token.line, token.col - 2, token.start, token.start))
            token = Token(_T.DCOLON, "::", token.line, token.col, token.start + 1, token.end)
        separated.append(token)
    return separated, list(map(_kind_of, separated))


def _with_lists_called(tokens: list[Token]) -> list[Token]:
    """The tokens with each list behind IN as the argument of a call."""
    called: list[Token] = []
    depths: list[int] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        kind = token.token_type
        starts = kind is _T.L_BRACKET and before is not None and before.token_type is _T.IN
        if starts:
            called += [_copy(token, _T.VAR, LISTED), _copy(token, _T.L_PAREN, "(")]
            depths.append(0)
        called.append(token)
        if depths and kind in (_T.L_BRACKET, _T.R_BRACKET):
            depths[-1] += 1 if kind is _T.L_BRACKET else -1
            if depths[-1] == 0:
                depths.pop()
                called.append(_copy(token, _T.R_PAREN, ")"))
    return tokens if depths else called


# The kinds of tokens that may mean a change, and what must stand before them for that; None is anything.
_REWRITTEN_BEHIND: Final[dict[Any, frozenset[Any] | None]] = {
    _T.L_PAREN: _NAMES,
    _T.STRING: frozenset({_T.INTERVAL}),
    _T.PLACEHOLDER: None,
    _T.DCOLON: frozenset({_T.STRING}),
    _T.COLON: frozenset({_T.L_BRACKET}),
}


def keep_names(tokens: Sequence[Token], kinds: Sequence[Any]) -> list[Token]:
    """The tokens for the parser: names of functions marked, `?` numbered by its place, and a start in `[:x]`, which it
    would take for a parameter.
    """
    kept: list[Token] = []
    questions = start = 0
    for at in compress(range(len(kinds)), map(_REWRITTEN_BEHIND.__contains__, kinds)):
        token, kind, before = tokens[at], kinds[at], kinds[at - 1] if at else None
        wanted = _REWRITTEN_BEHIND[kind]
        if wanted is not None and before not in wanted:
            continue
        kept += tokens[start:at]
        start = at + 1
        if kind is _T.L_PAREN:
            previous = tokens[at - 1]
            if previous.text.upper() == "COLUMNS" and _is_unpacked(kept):
                kept[-2:] = [_copy(previous, before, UNPACKED)]
            elif previous.text.upper() in _INTERPRETED and not _is_star_replace(kept):
                kept[-1] = _copy(previous, before, previous.text + _MARK)
        elif kind is _T.STRING:
            token = _copy(token, kind, _UNIT.sub(_MARK, token.text))
        elif kind is _T.PLACEHOLDER:
            questions += 1
            kept.append(_copy(token, _T.PARAMETER, "$"))
            token = _copy(token, _T.NUMBER, str(questions))
        elif kind is _T.COLON:
            kept.append(_copy(token, _T.VAR, NO_START))
        else:
            _enclose_literal(kept)
        kept.append(token)
    kept += tokens[start:]
    return kept


def _enclose_literal(kept: list[Token]) -> None:
    """Puts `DATE '…'` in front of a cast into parentheses: the parser would cast the text, then make a date of that."""
    start = len(kept) - 2
    if start >= 0 and kept[start].text.upper() == "ZONE":
        start -= 3
    if start < 0 or kept[start].token_type not in DuckDBParser.TYPE_TOKENS or kept[start].token_type in _NO_LITERAL:
        return
    kept.insert(start, _copy(kept[start], _T.L_PAREN, "("))
    kept.append(_copy(kept[-1], _T.R_PAREN, ")"))


# INTERVAL takes its text whole; names may be those of columns.
_NO_LITERAL: Final = frozenset({_T.INTERVAL, _T.VAR, _T.IDENTIFIER})


def _is_star_replace(kept: Sequence[Token]) -> bool:
    return kept[-1].token_type is _T.REPLACE and len(kept) > 1 and kept[-2].token_type in _BEFORE_STAR_REPLACE


def _is_unpacked(kept: Sequence[Token]) -> bool:
    """Whether a name has a star before it that begins an argument of a call or an element of a list."""
    return len(kept) > 2 and kept[-2].token_type is _T.STAR and kept[-3].token_type in _BEFORE_UNPACKED


_BEFORE_UNPACKED: Final = frozenset({_T.L_PAREN, _T.L_BRACKET, _T.COMMA})


def _copy(token: Token, kind: Any, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def plain_text(text: str) -> str:
    """The text of an interval as it was written."""
    return text.replace(_MARK, "")


def plain_name(name: str) -> str:
    """A name as it was written."""
    return name.removesuffix(_MARK)


# ----------------------------------------------------------------------------------------------- checks

_CLOSING: Final = {_T.L_PAREN: _T.R_PAREN, _T.L_BRACKET: _T.R_BRACKET, _T.L_BRACE: _T.R_BRACE}
CLOSERS: Final = frozenset(_CLOSING.values())
OPENERS: Final = frozenset(_CLOSING)
LIST_ENDS: Final = frozenset(
    {
        _T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.QUALIFY, _T.WINDOW, _T.ORDER_BY, _T.LIMIT, _T.OFFSET, _T.FETCH,
        _T.UNION, _T.EXCEPT, _T.INTERSECT, _T.SEMICOLON,
    }
)  # fmt: skip
# After these a list of keys must follow.
_KEYED: Final = frozenset({_T.PARTITION_BY, _T.ORDER_BY, _T.GROUP_BY})
_NO_KEY: Final = frozenset(
    {_T.R_PAREN, _T.ORDER_BY, _T.GROUP_BY, _T.HAVING, _T.LIMIT, _T.COMMA, _T.SEMICOLON, _T.WHERE}
)
_NO_NAME: Final = frozenset({_T.R_PAREN, _T.COMMA, _T.FROM, _T.SEMICOLON})
_BEFORE_EMPTY: Final = frozenset({_T.COMMA, _T.L_PAREN, _T.SELECT})
_CASE_WORDS: Final = frozenset({_T.WHEN, _T.THEN, _T.ELSE, _T.END})
_VALUES: Final = frozenset({_T.VAR, _T.IDENTIFIER, _T.NUMBER, _T.STRING, _T.R_PAREN})
_CONSTANTS: Final = frozenset({_T.NUMBER, _T.STRING})
_PREFIXES: Final = frozenset({_T.NOT, _T.DASH, _T.TILDE, _T.PLUS})
_PLAIN_NAMES: Final = frozenset({_T.VAR, _T.IDENTIFIER})
# Words that are no keywords to sqlglot, and have a string behind them.
_TAKE_TEXT: Final = frozenset({"BOTH", "LEADING", "TRAILING", "ZONE"})


def check(tokens: Sequence[Token], kinds: Sequence[Any], text: str) -> None:
    """Raises a SyntaxFault for what only a forgiving parser accepts, and for what it takes for an alias."""
    if "EXPORT_STATE" in text.upper():
        _refuse_states(tokens, text)
    checker = _Checker(text)
    before: Token | None = None
    previous: Token | None = None
    follow: _Rule | None = None
    for token, rules in zip(tokens, map(_RULES.get, kinds), strict=True):
        if follow is not None:
            follow(checker, before, previous, token)
            follow = None
        if rules is not None:
            rule, follow = rules
            if rule is not None:
                rule(checker, before, previous, token)
        before, previous = previous, token
    checker.finish(before, previous)


def _refuse_states(tokens: Sequence[Token], text: str) -> None:
    """`f(x) EXPORT_STATE` is the state of an aggregate in DuckDB, not a column of that name."""
    for before, token in pairwise(tokens):
        if token.text.upper() == "EXPORT_STATE" and before.token_type is _T.R_PAREN and token.token_type is _T.VAR:
            raise Unsupported(
                "states of aggregates (EXPORT_STATE) are not supported; for a column of that name write AS",
                position=Position(token.start, token.end + 1),
                text=text,
            )


class _Checker:
    """Which parentheses and CASE expressions are open, and where the last interval ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[Token] = []
        # For each open CASE: whether a WHEN waits for its THEN.
        self.waiting: list[bool] = []
        self.prefixes = 0
        self.interval: Token | None = None

    def fault(self, message: str, start: Token, end: Token | None = None) -> SyntaxFault:
        place = Position(start.start, (end or start).end + 1)
        return SyntaxFault(message, position=place, text=self.text)

    # Rules see the token before the last, the last, and the new one.

    def opens(self, before: Token | None, last: Token | None, token: Token) -> None:
        self.open.append(token)
        self.nested(len(self.open), token)

    def closes(self, before: Token | None, last: Token | None, token: Token) -> None:
        if not self.open or _CLOSING[self.open[-1].token_type] is not token.token_type:
            raise self.fault(f"this '{token.text}' closes nothing", token)
        self.open.pop()

    def comma(self, before: Token | None, last: Token | None, token: Token) -> None:
        if last is not None and last.token_type in _BEFORE_EMPTY:
            raise self.fault("something is missing before this comma", token)

    def case(self, before: Token | None, last: Token | None, token: Token) -> None:
        self.waiting.append(False)
        self.nested(len(self.waiting), token)

    def prefix(self, before: Token | None, last: Token | None, token: Token) -> None:
        self.prefixes = self.prefixes + 1 if last is not None and last.token_type in _PREFIXES else 0
        self.nested(self.prefixes, token)

    def nested(self, depth: int, token: Token) -> None:
        if depth > _DEPTH_MAX:
            raise Unsupported(TOO_DEEP, position=Position(token.start, token.end + 1), text=self.text)

    def case_word(self, before: Token | None, last: Token | None, token: Token) -> None:
        if not self.waiting:
            return
        kind = token.token_type
        if kind is _T.THEN:
            self.waiting[-1] = False
        elif self.waiting[-1]:
            raise self.fault("a WHEN before this has no THEN", token)
        elif kind is _T.WHEN:
            self.waiting[-1] = True
        elif kind is _T.END:
            self.waiting.pop()

    def after_number(self, before: Token | None, number: Token, token: Token) -> None:
        word = token.text[:1].isalpha()
        if token.start == number.end + 1 and (word or token.token_type is _T.NUMBER):
            # 0x1F or 12abc: sqlglot would take the letters for an alias.
            raise self.fault(f"'{number.text}{token.text}' is not a number", number, token)
        if token.token_type in _CONSTANTS:
            raise self.fault("two constants stand next to each other; a comma or an operator is missing", number, token)
        unit = word and texts.is_span_unit(texts.unit_name(token.text))
        spanned = before is not None and before.token_type is _T.INTERVAL
        if spanned and not unit:
            raise self.fault("an interval needs a unit behind its amount, as in INTERVAL 3 DAYS", number)
        if unit and not spanned and token.token_type is _T.VAR and len(token.text) > 2:
            raise self.fault(f"write INTERVAL {number.text} {token.text} for a span of time", number, token)
        self.after_amount(before, number, token)

    def after_string(self, before: Token | None, string: Token, token: Token) -> None:
        if token.token_type in _CONSTANTS and self.interval is not string:
            raise self.fault("two constants stand next to each other; a comma or || is missing", string, token)
        self.after_amount(before, string, token)

    def after_amount(self, before: Token | None, amount: Token, token: Token) -> None:
        """Notes where INTERVAL with a constant amount ends."""
        if before is not None and before.token_type is _T.INTERVAL:
            unit = texts.is_span_unit(texts.unit_name(token.text))
            self.interval = token if unit else amount

    def constant(self, before: Token | None, last: Token | None, token: Token) -> None:
        # sqlglot reads INTERVAL 1 DAY + 5 and INTERVAL 1 DAY 5 HOURS as sums of two intervals.
        named = last is not None and last.token_type in _PLAIN_NAMES and last.text.upper() not in _TAKE_TEXT
        if named and token.token_type is _T.STRING:
            raise self.fault("a string stands behind a name; a comma or an operator is missing", token)
        ends = before if last is not None and last.token_type is _T.PLUS else last
        if ends is not None and ends is self.interval:
            raise self.fault("every amount of time needs its own INTERVAL", token)

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

    def after_star(self, before: Token | None, star: Token, token: Token) -> None:
        if before is not None and before.token_type in _VALUES and (token.token_type in _AFTER_TABLE):
            raise self.fault("something is missing behind this star", star)

    def finish(self, before: Token | None, last: Token | None) -> None:
        if self.open:
            raise self.fault(f"this '{self.open[-1].text}' is opened and not closed", self.open[-1])
        if last is not None and last.token_type in _KEYED:
            raise self.fault(f"{last.text.upper()} needs at least one key", last)
        if last is not None and last.token_type is _T.STAR and before is not None and before.token_type in _VALUES:
            raise self.fault("something is missing behind this star", last)


_AFTER_TABLE: Final = (LIST_ENDS | {_T.R_PAREN, _T.COMMA, _T.JOIN, _T.INNER, _T.CROSS, _T.NATURAL}) - {_T.FROM}
_Rule = Callable[[_Checker, Token | None, Any, Token], None]
_NEIGHBOURS: Final[dict[Any, _Rule]] = {
    _T.NUMBER: _Checker.after_number,
    _T.STRING: _Checker.after_string,
    _T.COMMA: _Checker.after_comma,
    _T.ALIAS: _Checker.after_as,
    _T.ALL: _Checker.after_all,
    _T.STAR: _Checker.after_star,
    **dict.fromkeys(_KEYED, _Checker.after_keyed),
}
_TOKENS: Final[dict[Any, _Rule]] = {
    **dict.fromkeys(OPENERS, _Checker.opens),
    **dict.fromkeys(CLOSERS, _Checker.closes),
    **dict.fromkeys(_CASE_WORDS, _Checker.case_word),
    **dict.fromkeys(_CONSTANTS, _Checker.constant),
    **dict.fromkeys(_PREFIXES, _Checker.prefix),
    _T.COMMA: _Checker.comma,
    _T.CASE: _Checker.case,
}
# For a kind of token, what is asked when it comes, and what when another one has come after it.
_RULES: Final[dict[Any, tuple[_Rule | None, _Rule | None]]] = {
    kind: (_TOKENS.get(kind), _NEIGHBOURS.get(kind)) for kind in [*_TOKENS, *_NEIGHBOURS]
}

"""SQL text to a syntax tree: sqlglot's parser, told to keep what was written, and its errors made ours.

Rule: what a name of a function means is decided by the binder, so the parser sees tokens in which it knows no function
(`lexemes`). Its parser class is used as it is, because the compiled form of sqlglot cannot be subclassed. Nothing of
sqlglot except parsing is used. What the tree means is in `query` and the modules it calls.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from bireme.errors import ArgumentFault, Position, SyntaxFault, Unsupported
from bireme.frontend.sql import lexemes
from bireme.frontend.sql.lexemes import TOO_DEEP
from bireme.frontend.sql.pivot_tokens import with_ends_outside

DIALECT: Final = "duckdb"


def _as_written(path: exp.Expr | None) -> exp.Expr | None:
    return path


def _duckdb() -> Dialect:
    dialect = Dialect.get_or_raise(DIALECT)
    dialect.INDEX_OFFSET = 0  # positions in lists stay as they were written, and so do paths
    vars(dialect)["to_json_path"] = _as_written
    return dialect


_DUCKDB: Final = _duckdb()
_ARITHMETIC: Final = frozenset({exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow})
_QUERY_STARTS: Final = frozenset(
    {
        TokenType.SELECT,
        TokenType.WITH,
        TokenType.VALUES,
        TokenType.FROM,
        TokenType.L_PAREN,
        TokenType.TABLE,
        TokenType.DESCRIBE,
        TokenType.DESC,
        TokenType.SHOW,
        TokenType.SUMMARIZE,
        TokenType.PIVOT,
        TokenType.UNPIVOT,
    }
)
_IDLE_MAX: Final = 4
_COMPLEMENT: Final = TokenType.TILDE
# In sqlglot's messages the place is repeated with terminal colours; ours draws it itself.
_PLACE_IN_MESSAGE: Final = re.compile(r"\.? Line \d+, Col: \d+\.?.*| but got <Token .*", re.DOTALL)
# One string, quoted name or comment that is closed, or the start of one that is not.
_QUOTED: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|/\*.*?\*/|--[^\n]*|(?P<open>['"]|/\*)""", re.DOTALL)


class Parsed(NamedTuple):
    """A syntax tree, the text that positions in it refer to, and the tokens of that text."""

    tree: exp.Expr
    text: str
    tokens: Sequence[Token]


class _Reader:
    """A tokenizer and a parser: what one text is read with, and another one later, as making them takes a while."""

    __slots__ = ("parser", "tokenizer")

    def __init__(self) -> None:
        self.tokenizer = _DUCKDB.tokenizer()
        self.parser = DuckDBParser(error_level=ErrorLevel.IMMEDIATE, dialect=_DUCKDB)

    def forget(self) -> None:
        """Lets go of the text and all that was made of it."""
        self.tokenizer.tokenize("")
        self.parser.reset()


# Those with which nothing is read now. What fails to read a text is not used again.
_IDLE: Final[deque[_Reader]] = deque(maxlen=_IDLE_MAX)


def _taken() -> _Reader:
    try:
        return _IDLE.pop()  # another thread may have taken the last one just now
    except IndexError:
        return _Reader()


def parse(text: str, dialect: str = DIALECT) -> Parsed:
    """Parses the one query in `text`.

    Texts of other dialects are first translated to DuckDB's, in which the positions then are.
    """
    if dialect.lower() != DIALECT:
        text = _translate(text, dialect)
    try:
        reader = _taken()
        tokens, kinds = lexemes.separate(reader.tokenizer.tokenize(text))
        _check_start(tokens, text)
        lexemes.check(tokens, kinds, text)
        kept = lexemes.keep_names(tokens, kinds)
        if TokenType.PIVOT in kinds or TokenType.UNPIVOT in kinds:
            kept = with_ends_outside(kept)
        trees = reader.parser.parse(kept, text)
        reader.forget()
        _IDLE.append(reader)
    except ParseError as error:
        raise _syntax_fault(error, text) from None
    except TokenError as error:
        raise _token_fault(error, text) from None
    except RecursionError:
        raise Unsupported(TOO_DEEP, text=text) from None
    except (SqlglotError, ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
        # sqlglot meets some malformed texts with exceptions of its own insides.
        raise SyntaxFault(f"the query cannot be parsed ({str(error) or type(error).__name__})", text=text) from None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1:
        raise SyntaxFault("one query at a time: remove what follows the semicolon", text=text)
    if _COMPLEMENT in kinds:
        _widen_complements(statements[0])
    if TokenType.MAP in kinds:
        _narrow_maps(statements[0])
    return Parsed(statements[0], text, tokens)


def _widen_complements(tree: exp.Expr) -> None:
    """`~` at the left end of arithmetic is of all of it, though the parser gives it the first operand only."""
    for complement in list(tree.find_all(exp.BitwiseNot)):
        whole: exp.Expr = complement
        while whole.parent.__class__ in _ARITHMETIC and whole.arg_key == "this":
            whole = whole.parent
        if whole is not complement:
            complement.replace(complement.args["this"])
            whole.replace(complement)
            complement.set("this", whole)


def _narrow_maps(tree: exp.Expr) -> None:
    """`MAP {…}[key]` is a part of a map, though the parser makes a map of a part."""
    for whole in list(tree.find_all(exp.ToMap)):
        outer = pairs = whole.args["this"]
        while pairs.__class__ is exp.Bracket:
            innermost, pairs = pairs, pairs.args["this"]
        if outer is not pairs:
            whole.replace(outer)
            innermost.set("this", whole)
            whole.set("this", pairs)


def _translate(text: str, dialect: str) -> str:
    try:
        source = Dialect.get_or_raise(dialect)
    except ValueError:
        known = ", ".join(sorted(name for name in Dialect.classes if name))
        raise ArgumentFault(f"unknown SQL dialect '{dialect}'; known ones are {known}") from None
    try:
        trees = source.parse(text, error_level=ErrorLevel.IMMEDIATE)
        queries = [tree for tree in trees if tree is not None]
        return ";\n".join(tree.sql(dialect=DIALECT, unsupported_level=ErrorLevel.RAISE) for tree in queries)
    except ParseError as error:
        raise _syntax_fault(error, text) from None
    except TokenError as error:
        raise _token_fault(error, text) from None
    except RecursionError:
        raise Unsupported(TOO_DEEP, text=text) from None
    except SqlglotError as error:
        raise Unsupported(f"the query cannot be translated from {dialect}: {error}", text=text) from None


def _check_start(tokens: list[Token], text: str) -> None:
    if not tokens:
        raise SyntaxFault("there is no query: the text is empty or only comments", text=text or " ")
    first = tokens[0]
    shows_other = first.token_type is TokenType.SHOW and [token.text.upper() for token in tokens[1:2]] != ["TABLES"]
    if shows_other or first.token_type not in _QUERY_STARTS:
        raise Unsupported(
            "only queries are offered here (SELECT, WITH, VALUES, FROM, PIVOT, UNPIVOT, DESCRIBE, SUMMARIZE, SHOW "
            f"TABLES), not {first.text.upper()}",
            position=Position(first.start, first.end + 1),
            text=text,
        )


def _syntax_fault(error: ParseError, text: str) -> SyntaxFault:
    details = error.errors[0] if error.errors else {}
    message = _PLACE_IN_MESSAGE.sub("", str(details.get("description") or error)).strip().rstrip(".")
    line, column = details.get("line"), details.get("col")
    if line is None or column is None:
        return SyntaxFault(f"syntax error: {message}", text=text)
    marked = lexemes.plain_name(str(details.get("highlight") or ""))
    # sqlglot's column is that of the last character of the token.
    end = _offset(text, line) + column
    position = Position(max(0, end - len(marked)), end)
    what = f" at '{marked}'" if marked.strip() else ""
    if message.startswith("Required keyword"):
        message = "something is missing here"
    elif message.startswith("Invalid expression"):
        message = "this does not continue the query"
    return SyntaxFault(f"syntax error{what}: {message[:1].lower()}{message[1:]}", position=position, text=text)


def _token_fault(error: TokenError, text: str) -> SyntaxFault:
    opened = next((match for match in _QUOTED.finditer(text) if match["open"]), None)
    if opened is None:
        return SyntaxFault(f"syntax error: {error}", text=text)
    start = opened.start("open")
    what = "comment" if text[start] == "/" else "quoted name" if text[start] == '"' else "string"
    return SyntaxFault(f"this {what} is opened and not closed", position=Position(start, start + 1), text=text)


def _offset(text: str, line: int) -> int:
    """The offset of the first character of a 1-based line."""
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
    return offset

"""All matches of a regular expression, and the parts of a text between them.

RE2 says whether an expression is one; Python's matcher, which gives positions, then finds the matches, with the
expression written as Python means it. Classes of characters are those of ASCII, as in RE2.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bireme.errors import DomainFault
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
    "^alnum": r"\x00-/:-@\[-`{-\U0010ffff", "^alpha": r"\x00-@\[-`{-\U0010ffff", "^digit": r"\x00-/:-\U0010ffff",
    "^lower": r"\x00-`{-\U0010ffff", "^space": r"\x00-\x08\x0e-\x1f!-\U0010ffff", "^upper": r"\x00-@\[-\U0010ffff",
}  # fmt: skip
_SPACE: Final = r"\t\n\f\r "
_TOKEN: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\(?P<escape>.)"
    r"|\[(?P<not>\^?)(?P<set>\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*)\]|(?P<end>\$)|(?P<brace>\{,)|.",
    re.DOTALL,
)
_MEMBER: Final = re.compile(r"\[:(?P<name>\^?\w+):\]|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\(?P<escape>.)|.", re.DOTALL)


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
        return re.compile(_as_python(pattern), re.ASCII)
    except (pa.ArrowInvalid, re.error) as error:
        raise DomainFault(f"cannot read the regular expression {pattern!r}: {error}") from None


def _as_python(pattern: str) -> str:
    many_lines = re.search(r"\(\?[a-z]*m", pattern) is not None

    def translated(token: re.Match[str]) -> str:
        if token["quoted"] is not None:
            return re.escape(token["quoted"])
        if token["set"] is not None:
            return f"[{token['not']}{_MEMBER.sub(lambda member: _member(pattern, member), token['set'])}]"
        if token["end"]:
            return "$" if many_lines else r"\Z"
        if token["brace"]:
            return r"\{,"
        return _character(pattern, token, {"s": f"[{_SPACE}]", "S": f"[^{_SPACE}]", "z": r"\Z"})

    return _TOKEN.sub(translated, pattern)


def _member(pattern: str, member: re.Match[str]) -> str:
    name = member["name"]
    if name is None:
        return r"\[" if member[0] == "[" else _character(pattern, member, {"s": _SPACE})
    if name not in _CLASSES:
        raise DomainFault(f"the class [:{name}:] is not supported here (in the regular expression {pattern!r})")
    return _CLASSES[name]


def _character(pattern: str, token: re.Match[str], escapes: dict[str, str]) -> str:
    if token["code"]:
        return re.escape(chr(int(token["code"], 16)))
    if token["escape"] is not None and token["escape"] in "pPC":
        raise DomainFault(f"\\{token['escape']} is not supported here (in the regular expression {pattern!r})")
    return escapes.get(token["escape"] or "", token[0])


def is_plain(pattern: str) -> bool:
    """Whether RE2 finds the same matches: each certainly has a character, none asks for what is around it, and case
    counts. DomainFault where it is no regular expression.
    """
    _compiled(pattern)
    asks = any(
        token["end"] or token[0] == "^" or (token["escape"] is not None and token["escape"] in "bBAz")
        for token in _TOKEN.finditer(pattern)
    )
    blind = re.search(r"\(\?[a-zA-Z]*i", pattern) is not None
    return not asks and not blind and not pc.match_substring_regex(pa.array([""]), pattern)[0].as_py()


def all_matches(text: str, pattern: str, group: int) -> list[str | None]:
    """The group of that number in each match, None where it takes no part."""
    expression = _compiled(pattern)
    if not 0 <= group <= expression.groups:
        raise DomainFault(f"the regular expression {pattern!r} has no group {group}")
    return [match[group] for match in expression.finditer(text)]


def split(text: str, pattern: str) -> list[str]:
    """The parts of a text between matches. One that is empty where a part begins stands behind its first character."""
    return list(_parts(text, _compiled(pattern))) if text or pattern else []


def _parts(text: str, expression: re.Pattern[str]) -> Iterator[str]:
    start = 0
    while (match := expression.search(text, start)) is not None:
        begin, end = match.span()
        if begin == end == start:
            begin = end = start + 1
            if begin >= len(text):
                break
        yield text[start:begin]
        start = end
    yield text[start:]

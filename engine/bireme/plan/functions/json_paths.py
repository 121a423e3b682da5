"""Paths into texts in JSON: `$.a[0]`, `/a/0`, or the name of a member. What they mean is in the backends."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_STEP: Final = re.compile(
    r"""\[(?P<end>\#-|-)?(?P<index>[0-9]+)\]|\.(?:"(?P<quoted>[^"]+)"|(?P<plain>[^".\[][^.\[]*))"""
)
_SEVERAL: Final = re.compile(r"\[\*\]|\.\*(?=[.\[]|$)|\.\.")
_INDEX_BOUND: Final = 1 << 63


class Step(NamedTuple):
    """To a member by `key`, to an element by `place` (below 0 from the end), or to either, whichever there is."""

    key: str | None = None
    place: int | None = None


class PathError(ValueError):
    """The text is no path: the message says where it stops being one."""


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; PathError where it is none, or leads to several places."""
    if text.startswith("$"):
        return _steps(text)
    if text.startswith("/"):
        return tuple(_pointer_step(name) for name in text[1:].split("/"))
    return (Step(key=text),) if text else ()


def _steps(text: str) -> tuple[Step, ...]:
    steps = []
    place = 1
    while place < len(text):
        if _SEVERAL.match(text, place):
            raise PathError(f"{text[place:]!r} in a path stands for several places, which is not supported")
        found = _STEP.match(text, place)
        if found is None:
            raise PathError(f"the path {text!r} makes no sense at {text[place:]!r}")
        steps.append(_step(found))
        place = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    digits = found["index"]
    if digits is None:
        return Step(key=found["quoted"] or found["plain"])
    index = int(digits)
    if index >= _INDEX_BOUND:
        raise PathError(f"no array reaches as far as {digits}")
    return Step(place=-index if found["end"] else index)


def _pointer_step(name: str) -> Step:
    key = name.replace("~1", "/").replace("~0", "~")
    is_index = name.isascii() and name.isdigit() and int(name) < _INDEX_BOUND
    return Step(key, int(name) if is_index else None)

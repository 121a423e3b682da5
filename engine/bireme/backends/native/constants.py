"""Functions whose constant arguments become part of their nodes: units, formats, digits, widths of buckets.

And which values of some functions their kernels leave to the reference backend; where they meet one, the program runs
again without those kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bireme.plan.expr import Call, Expr, Interval, Literal

_MICROSECONDS_A_DAY: Final = 86_400_000_000
_INT64_MAX: Final = (1 << 63) - 1
_FAILING: Final = "values that it has no result for"
_FOREIGN: Final = "texts that are not ASCII"
LEFT_OVER: Final = {
    **dict.fromkeys(("lower", "upper", "ilike", "trim", "ltrim", "rtrim"), _FOREIGN),
    **dict.fromkeys(("strip_accents", "nfc_normalize", "regexp_escape"), "letters that its kernel has no rule for"),
    "strftime": "years before 1 or after 9999, and by formats of rows that it does not know",
    "strptime": "texts that do not fit the format, and by formats of rows that it does not know",
    "last_day": "the farthest dates",
    "date_diff": "the farthest dates",
    "date_sub": "the farthest dates",
    "time_bucket": "the farthest dates",
    "epoch_ns": "the farthest dates",
    "to_timestamp": _FAILING,
    **dict.fromkeys(("make_date", "make_time", "make_timestamp", "shift_left", "gcd", "lcm", "factorial"), _FAILING),
    **dict.fromkeys(("lpad", "rpad", "repeat", "chr", "unhex", "from_base64", "hamming", "jaccard"), _FAILING),
    **dict.fromkeys(("format", "printf", "url_decode", "decode"), _FAILING),
    **dict.fromkeys(("json", "json_checked", "json_extract", "json_extract_string", "json_value"), _FAILING),
    **dict.fromkeys(("json_type", "json_array_length", "json_exists"), _FAILING),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node is made of: a kernel's function, the arguments that are nodes, and what is part of the node."""

    function: str
    args: tuple[Expr, ...]
    text: str = ""
    numbers: tuple[int, ...] = ()
    safe: bool = False

    def options(self) -> dict[str, Any]:
        return {"text": self.text, "numbers": self.numbers, "safe": self.safe}


def parts_of(expr: Call) -> Parts | str:
    """The parts of a call of one of `FUNCTIONS`, or why there is no kernel for it."""
    return FUNCTIONS[expr.function](expr)


def _with_text(place: int) -> Callable[[Call], Parts | str]:
    """With a constant text at some place among the arguments."""

    def parts(expr: Call) -> Parts | str:
        constant = expr.args[place]
        if not isinstance(constant, Literal) or not isinstance(constant.value, str):
            return f"{expr.function} without a constant format or unit runs in the reference backend"
        rest = expr.args[:place] + expr.args[place + 1 :]
        return Parts(expr.function, rest, text=constant.value)

    return parts


def _formatted(*, safe: bool = False) -> Callable[[Call], Parts | str]:
    """By a format behind the first argument, which becomes part of the node where it is constant."""

    def parts(expr: Call) -> Parts | str:
        name, (value, form) = expr.function, expr.args
        if isinstance(form, Literal) and isinstance(form.value, str):
            return Parts(name, (value,), text=form.value, safe=safe)
        # A format that is not known is an error also where a text that does not fit is none.
        if safe:
            return "try_strptime without a constant format runs in the reference backend"
        return Parts(name, expr.args)

    return parts


def _truncated(expr: Call) -> Parts | str:
    if expr.args[1].type.unit == "ns":
        return "nanoseconds are cut off in the reference backend"
    return _with_text(0)(expr)


def _rounded(expr: Call) -> Parts | str:
    """To a constant number of digits."""
    digits = 0
    if len(expr.args) == 2:
        given = expr.args[1]
        if not isinstance(given, Literal) or not isinstance(given.value, int):
            return f"{expr.function} to digits that are NULL runs in the reference backend"
        digits = given.value
    return Parts(expr.function, expr.args[:1], numbers=(digits,))


def _bucketed(expr: Call) -> Parts | str:
    """By a constant width: its months and its microseconds, one of which is 0; the reference refuses others."""
    width = expr.args[0]
    if not isinstance(width, Literal) or not isinstance(width.value, Interval):
        return "time_bucket without a constant width runs in the reference backend"
    months, days, nanoseconds = width.value
    time = days * _MICROSECONDS_A_DAY + nanoseconds // 1000
    if abs(time) > _INT64_MAX:
        return "time_bucket of such wide buckets runs in the reference backend"
    return Parts("time_bucket", expr.args[1:], numbers=(months, time))


def _digits(expr: Call) -> Parts | str:
    """Of an integer; the digits of a text's bytes are another function."""
    of = "_of_integer" if expr.args[0].type.is_integer else ""
    return Parts(expr.function + of, expr.args)


FUNCTIONS: Final[dict[str, Callable[[Call], Parts | str]]] = {
    "date_trunc": _truncated,
    "date_diff": _with_text(0),
    "date_sub": _with_text(0),
    "strftime": _formatted(),
    "strptime": _formatted(),
    "try_strptime": _formatted(safe=True),
    "format": _with_text(0),
    "printf": _with_text(0),
    "time_bucket": _bucketed,
    "round": _rounded,
    "trunc": _rounded,
    "hex": _digits,
    "bin": _digits,
}

"""Bytes, rows and seconds: parsing what people write and printing what people read.

Arithmetic only; limits themselves are in `config`.
"""

from __future__ import annotations

import re
from typing import Final

from bireme.errors import ConfigError

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

_FACTORS: Final = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "kib": KIB,
    "m": 10**6, "mb": 10**6, "mib": MIB,
    "g": 10**9, "gb": 10**9, "gib": GIB,
    "t": 10**12, "tb": 10**12, "tib": 1024 * GIB,
}  # fmt: skip
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(text: str | int) -> int:
    """Reads a size such as `512MiB`, `4 GB` or `1048576`; decimal and binary prefixes differ.

    Raises ConfigError for anything else, and for sizes below one byte.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise ConfigError(f"a size must be a number of bytes or a text such as '4GiB', not {text!r}")
    matched = _SIZE.fullmatch(str(text))
    factor = _FACTORS.get(matched[2].lower()) if matched else None
    if matched is None or factor is None:
        raise ConfigError(f"cannot read {text!r} as a size; write for example '512MiB' or '4GiB'")
    size = int(float(matched[1]) * factor) if "." in matched[1] else int(matched[1]) * factor
    if size < 1:
        raise ConfigError(f"a size must be at least one byte, not {text!r}")
    return size


def format_bytes(size: float) -> str:
    """Prints a size with a binary prefix and three significant digits, such as `1.50 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"


def format_rows(rows: float) -> str:
    """Prints a row count with a decimal prefix, such as `6.00 M`."""
    for unit in ("", " k", " M", " G"):
        if abs(rows) < 1000:
            return f"{rows:.0f}" if unit == "" else f"{rows:.3g}{unit}"
        rows /= 1000
    return f"{rows:.3g} T"


def format_seconds(seconds: float) -> str:
    """Prints a duration with a fitting unit, such as `1.25 s`, `3.1 ms` or `12 µs`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.0f} µs"

"""Arithmetic of decimals to the last digit.

Python's own operators round to as many digits as the context of the thread says: 28, or whatever the caller set there.
Whoever calculates with `Decimal` here does it by `EXACT`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, DivisionByZero, InvalidOperation, Overflow
from typing import Final

# More than the 309 digits that a double has before its point, and those of a decimal behind it.
_DIGITS: Final = 400
EXACT: Final = Context(prec=_DIGITS, rounding=ROUND_HALF_UP, traps=[DivisionByZero, InvalidOperation, Overflow])

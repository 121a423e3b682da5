"""Arrow's own functions of arrays by their registered names, without loading `pyarrow.compute`.

That module makes a Python function with its documentation of each of them when it is imported, which takes longer than
a small query with all of its planning. For what every query may need; other callers import `pyarrow.compute` where they
use it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

try:
    from pyarrow._compute import call_function as _call_function
except ImportError:  # another pyarrow may keep it elsewhere
    from pyarrow.compute import call_function as _call_function


def drop_null(array: pa.Array) -> pa.Array:
    """The values that are not NULL."""
    return _call_function("drop_null", [array])


def value_counts(array: pa.Array) -> pa.StructArray:
    """Distinct values, and how often each occurs."""
    return _call_function("value_counts", [array])


def dictionary_encode(array: pa.Array) -> pa.DictionaryArray:
    """The array as codes of its distinct values."""
    found: Any = _call_function("dictionary_encode", [array])
    return found

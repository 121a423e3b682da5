"""bireme: a query and feature engine with one plan for CPU, GPU and clusters.

The public names of the package. Importing it loads neither the SQL parser nor the runtime; `connect` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bireme.errors import BiremeError as BiremeError

if TYPE_CHECKING:
    from bireme.frontend.expression import all_columns as all
    from bireme.frontend.expression import col, count, element, exclude, lit, when
    from bireme.frontend.frame import Frame, concat
    from bireme.frontend.horizontal import (
        all_horizontal,
        any_horizontal,
        coalesce,
        concat_str,
        corr,
        cov,
        max_horizontal,
        min_horizontal,
        struct,
        sum_horizontal,
    )
    from bireme.session import Session, connect

__version__ = "0.1.0"
__all__ = [
    "BiremeError",
    "Frame",
    "Session",
    "all",
    "all_horizontal",
    "any_horizontal",
    "coalesce",
    "col",
    "concat",
    "concat_str",
    "connect",
    "corr",
    "count",
    "cov",
    "element",
    "exclude",
    "lit",
    "max_horizontal",
    "min_horizontal",
    "struct",
    "sum_horizontal",
    "when",
]

_HOMES: Final = {
    "Frame": ("bireme.frontend.frame", "Frame"),
    "Session": ("bireme.session", "Session"),
    "all": ("bireme.frontend.expression", "all_columns"),
    "col": ("bireme.frontend.expression", "col"),
    "concat": ("bireme.frontend.frame", "concat"),
    "connect": ("bireme.session", "connect"),
    "count": ("bireme.frontend.expression", "count"),
    "element": ("bireme.frontend.expression", "element"),
    "exclude": ("bireme.frontend.expression", "exclude"),
    "lit": ("bireme.frontend.expression", "lit"),
    "when": ("bireme.frontend.expression", "when"),
    "all_horizontal": ("bireme.frontend.horizontal", "all_horizontal"),
    "any_horizontal": ("bireme.frontend.horizontal", "any_horizontal"),
    "coalesce": ("bireme.frontend.horizontal", "coalesce"),
    "concat_str": ("bireme.frontend.horizontal", "concat_str"),
    "corr": ("bireme.frontend.horizontal", "corr"),
    "cov": ("bireme.frontend.horizontal", "cov"),
    "max_horizontal": ("bireme.frontend.horizontal", "max_horizontal"),
    "min_horizontal": ("bireme.frontend.horizontal", "min_horizontal"),
    "struct": ("bireme.frontend.horizontal", "struct"),
    "sum_horizontal": ("bireme.frontend.horizontal", "sum_horizontal"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bireme' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

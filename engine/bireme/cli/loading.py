"""Loading what every query needs, in a process that runs one query and nothing else.

Rule: only for a process of our own, where no other code can see what is done here. pyarrow and sqlglot load modules of
which a query uses nothing, and some of these take longer to load than the query to run. An option of a library is kept
from it, as if it were not installed. Of a module that a library takes one function from, there is only that function
while the library is loaded, and it loads the module when it is called. Afterwards everything can be imported as ever.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

_LIBRARIES: Final = ("pyarrow._compute", "pyarrow._parquet", "sqlglot.dialects.duckdb")
_OURS: Final = ("bireme.frontend.sql", "bireme.session")
# pyarrow pickles Python functions with it.
_OPTION: Final = "cloudpickle"
_FUNCTIONS: Final = {"importlib.metadata": "entry_points", "difflib": "get_close_matches", "sqlglot.diff": "diff"}


def load() -> None:
    """Loads pyarrow, sqlglot and the modules of a session."""
    # The algebra that numpy brings starts a thread a core, which spins for a while; nothing here computes with it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _spared():
        for name in _LIBRARIES:
            importlib.import_module(name)
    for name in _OURS:
        importlib.import_module(name)


@contextmanager
def _spared() -> Iterator[None]:
    """While libraries are loaded in here, they find less than there is."""
    instead: dict[str, Any] = {name: _with_function(name, function) for name, function in _FUNCTIONS.items()}
    instead[_OPTION] = None
    instead = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(instead)
    try:
        yield
    finally:
        for name in instead:
            del sys.modules[name]


def _with_function(name: str, function: str) -> ModuleType:
    """A module that has only that function."""
    module = ModuleType(name)
    setattr(module, function, _loading_when_called(name, function))
    return module


def _loading_when_called(name: str, function: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(name), function)(*arguments, **named)

    return call

"""Loading what every query needs, in a process that runs one query and nothing else.

Rule: only for a process of our own, where no other code can see what is done here. pyarrow and sqlglot load modules of
which a query uses nothing, and some of these take longer to load than the query to run. An option of a library is kept
from it, as if it were not installed. Of a module that a library takes one function from, there is only that function
while the library is loaded, and it loads the module when it is called, then or later. A library that wants more of such
a module is loaded with all of them. Afterwards everything can be imported as ever.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    for name in _LIBRARIES:
        # What cannot be loaded so is loaded with what needs it, which also tells what is wrong with it.
        with suppress(ImportError, AttributeError), _spared():
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
        for name, module in instead.items():
            _take_away(name, module)


def _take_away(name: str, module: ModuleType | None) -> None:
    if name in sys.modules and sys.modules[name] is module:
        del sys.modules[name]


def _with_function(name: str, function: str) -> ModuleType:
    """A module that has only that function, and makes room for the whole one when that is called."""
    module = ModuleType(name)

    def call(*arguments: Any, **named: Any) -> Any:
        _take_away(name, module)
        return _found(name, function)(*arguments, **named)

    setattr(module, function, call)
    return module


def _found(name: str, function: str) -> Callable[..., Any]:
    """The function, once its module is loaded; a package goes on to have what it had under the name of the module."""
    package, _, own_name = name.rpartition(".")
    parent = sys.modules.get(package)
    before = getattr(parent, own_name, None)
    found: Callable[..., Any] = getattr(importlib.import_module(name), function)
    if parent is not None and callable(before):
        setattr(parent, own_name, found)
    return found

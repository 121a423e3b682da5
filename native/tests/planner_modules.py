"""Runs the tests of nodes and of the search for orders with modules that are built with sanitizers.

    python planner_modules.py _nodes.so _orders.so      (ctest does; the sanitizers' library is loaded before Python)

The package is the one that can be imported, with these two modules in place of its own.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2] / "tests" / "plan"


def put(name: str, file: str) -> None:
    """Makes the module in `file` the one that is imported by `name`."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def main(nodes: str, orders: str) -> int:
    put("bireme.data._nodes", nodes)
    put("bireme.plan.rules._orders", orders)
    files = [str(TESTS / name) for name in ("test_nodes.py", "test_order_joins_search.py")]
    found = pytest.main(["-q", "-p", "no:cacheprovider", *files])
    from bireme.data import _nodes

    assert _nodes.__file__ == nodes, "the tests ran with another module"
    return int(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

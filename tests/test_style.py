"""What the house style asks of every file, as far as a test can see it."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "engine" / "bireme"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [*MODULES, *sorted((ROOT / "native").rglob("*.[ch]pp"))]

FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
# The one task without a group is the worker's root, which holds the group of all others.
BARE_TASKS_ALLOWED = {"runtime/worker.py": 1}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


@pytest.fixture(scope="module")
def parsed() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in MODULES}


def test_no_file_is_named_after_nothing() -> None:
    wrong = [name_of(path) for path in SOURCES if BANNED_NAMES & set(re.split(r"[_.]", path.stem))]
    assert not wrong


def test_every_module_opens_with_its_rule(parsed: dict[Path, ast.Module]) -> None:
    assert not [name_of(path) for path, tree in parsed.items() if ast.get_docstring(tree) is None]


def test_functions_stay_readable(parsed: dict[Path, ast.Module]) -> None:
    long = {
        f"{name_of(path)}:{node.name}": body_lines(node)
        for path, tree in parsed.items()
        for node in functions(tree)
        if body_lines(node) > FUNCTION_LINES_MAX
    }
    assert not long


def test_modules_have_one_noun() -> None:
    long = {name_of(path): lines for path in MODULES if (lines := path.read_text().count("\n")) > MODULE_LINES_MAX}
    assert not long, "what is the second noun?"


def test_tasks_have_owners() -> None:
    bare = re.compile(r"(?:asyncio|loop|get_running_loop\(\))\.(?:create_task|ensure_future)\(")
    found = {name_of(path): count for path in MODULES if (count := len(bare.findall(path.read_text())))}
    assert found == BARE_TASKS_ALLOWED, "a task is born in a TaskGroup"


def test_only_the_clock_asks_for_the_time() -> None:
    asks = re.compile(r"^\s*(?:import time\b|from time import)", re.MULTILINE)
    inside = [path for path in MODULES if name_of(path) != "clock.py" and not name_of(path).startswith("cli/")]
    assert not [name_of(path) for path in inside if asks.search(path.read_text())]


def test_code_map_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("code_map", ROOT / "docs" / "code_map.py")
    assert spec is not None
    assert spec.loader is not None
    code_map = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code_map)
    assert (ROOT / "docs" / "CODE_MAP.md").read_text() == code_map.code_map(), "run: python docs/code_map.py"

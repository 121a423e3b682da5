"""Writes docs/CODE_MAP.md: each module of the package with the sentence it opens with.

Run it after adding or moving a module: `python docs/code_map.py`. `tests/test_style.py` fails while the map is old.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "engine" / "bireme"
TARGET = ROOT / "docs" / "CODE_MAP.md"
# In dependency order, lowest first; the folders of the package and the modules beside them.
LAYERS = (
    "", "data", "observe", "plan", "backends", "transport", "storage", "frontend", "operators", "runtime", "session",
    "cli",
)  # fmt: skip


def opening(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def code_map() -> str:
    """The whole document."""
    lines = [
        "# Code map",
        "",
        "Made by `docs/code_map.py` from the openings of the modules. Layers from the ground up.",
        "",
    ]
    for layer in LAYERS:
        folder = PACKAGE / layer
        paths = sorted(folder.glob("*.py") if layer == "" else folder.rglob("*.py"))
        lines += [f"## {f'`{layer}/`' if layer else 'the package'}", ""]
        for path in paths:
            if path.name != "__init__.py" or path.parent == folder:
                lines.append(f"- `{path.relative_to(PACKAGE)}`: {opening(path)}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.is_file() and TARGET.read_text() == code_map() else "docs/CODE_MAP.md is old")
    TARGET.write_text(code_map())

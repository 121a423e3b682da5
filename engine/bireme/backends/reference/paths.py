"""Parts of paths of files, one path at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from bireme.backends.reference.values import by_row
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def _split(path: str, separators: str) -> list[str]:
    for separator in separators[1:]:
        path = path.replace(separator, separators[0])
    return path.split(separators[0])


def _filename(path: str, trims: bool, separators: str) -> str:
    name = _split(path, separators)[-1]
    return name.rpartition(".")[0] if trims and "." in name else name


def _dirname(path: str, separators: str) -> str:
    if path[:1] and path[0] in separators:
        return path[0]
    first, *rest = _split(path, separators)
    return first if rest else ""


def _dirpath(path: str, separators: str) -> str:
    if len(path) == 1 and path in separators:
        return path
    return path[: max(0, len(path) - len(_split(path, separators)[-1]) - 1)]


def _parts(path: str, separators: str) -> list[str]:
    parts = [part for part in _split(path, separators) if part]
    return [path[0], *parts] if path and path[0] in separators else parts


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "parse_filename": by_row(_filename),
    "parse_dirname": by_row(_dirname),
    "parse_dirpath": by_row(_dirpath),
    "parse_path": by_row(_parts),
}

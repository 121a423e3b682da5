"""Which files a path, a glob or a folder names.

Rule: the files come out sorted, each once, and never as an empty list. What is in the files is no concern here, nor
what the names of their folders mean (`hive`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bireme.errors import ArgumentFault, SourceMissing

PathLike = str | os.PathLike[str]


class FoundFile(NamedTuple):
    """The absolute path of a file, and the path as whoever asked would write it."""

    path: str
    shown: str


def expand(paths: PathLike | Iterable[PathLike], *, suffix: str) -> tuple[FoundFile, ...]:
    """All files that `paths` name.

    A folder gives the files below it whose name ends in `suffix`; a glob (`*`, `?`, `[…]`, `**`) the files it
    matches and those in folders it matches. A list keeps its order, each entry's files sorted; a file that two
    entries name is there twice.
    Raises SourceMissing where an entry names nothing.
    """
    entries = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not entries:
        raise ArgumentFault("a table needs at least one file; the list of paths is empty")
    found: list[FoundFile] = []
    for entry in entries:
        if not isinstance(entry, (str, os.PathLike)):
            raise ArgumentFault(f"a path must be a text or a pathlib.Path, not {type(entry).__name__}")
        for shown in _expand_one(os.fspath(entry), suffix):
            found.append(FoundFile(os.path.abspath(shown), shown))
    return tuple(found)


def _expand_one(entry: str, suffix: str) -> list[str]:
    if not isinstance(entry, str) or "\0" in entry or not entry:
        raise ArgumentFault(f"{entry!r} is not a path")
    try:
        path = Path(entry).expanduser()
    except RuntimeError as error:  # nobody of that name has a home
        raise SourceMissing(f"cannot tell where {entry!r} is: {error}") from None
    if path.is_dir():
        return _files_below(path, suffix)
    if path.exists() or not glob.has_magic(entry):
        if not path.exists():
            raise SourceMissing(f"there is no file or folder {entry!r} (looked in {str(Path.cwd())!r})")
        return [str(path)]
    root = Path(_fixed_part(str(path)))
    files = [file for match in glob.glob(str(path), recursive=True) for file in _files_of_match(match, entry, suffix)]
    if "**" in entry:
        files = [file for file in files if not _is_hidden(Path(file), root=root)]
    if not files:
        raise SourceMissing(f"no file matches {entry!r} (looked in {str(Path.cwd())!r})")
    return sorted(files)


def _files_of_match(match: str, pattern: str, suffix: str) -> list[str]:
    """A file stands for itself. A folder stands for its files, unless the pattern goes into folders by itself."""
    if not os.path.isdir(match):
        wanted = match.endswith(suffix) or not pattern.endswith("**")
        return [match] if wanted else []
    return [] if "**" in pattern else _files_below(Path(match), suffix)


def _is_hidden(file: Path, *, root: Path) -> bool:
    """Whether `**` should pass it by: writers keep unfinished files in folders called `_temporary` and the like."""
    return any(part.startswith((".", "_")) for part in file.parts[len(root.parts) :])


def _fixed_part(pattern: str) -> str:
    """The leading folders of a glob that hold no wildcard."""
    parts = Path(pattern).parts
    fixed = parts[: next(index for index, part in enumerate(parts) if glob.has_magic(part))]
    return os.path.join(*fixed) if fixed else "."


def _files_below(folder: Path, suffix: str) -> list[str]:
    files: list[str] = []
    seen: set[str] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        # Links may lead back up, or to a folder twice: rows must not come twice.
        real = os.path.realpath(parent)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        wanted = [name for name in names if name.endswith(suffix) and not name.startswith((".", "_"))]
        files.extend([str(Path(parent, name)) for name in wanted])
    if not files:
        raise SourceMissing(f"the folder {str(folder)!r} holds no file named *{suffix}")
    return sorted(files)

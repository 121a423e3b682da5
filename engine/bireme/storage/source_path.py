"""Which files a path, a glob or a folder names.

Rule: the files come out sorted, each once, and never as an empty list; what cannot be looked into is an error, never
passed by. What is in the files is no concern here, nor what the names of their folders mean (`hive`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from bireme.errors import ArgumentFault, SourceMissing
from bireme.storage.local import translate

PathLike = str | os.PathLike[str]

# What stands for any folders, and at the end of a pattern for the files in them.
_ANY_FOLDERS: Final = "**"


class FoundFile(NamedTuple):
    """The absolute path of a file, and the path as whoever asked would write it."""

    path: str
    shown: str


def working_folder() -> str:
    """Where relative paths begin; "" where it is gone, and then they name nothing."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def expand(paths: PathLike | Iterable[PathLike], *, suffix: str, root: str) -> tuple[FoundFile, ...]:
    """All files that `paths` name, which begin in the folder `root` where they are relative.

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
        for shown in _expand_one(os.fspath(entry), suffix, root):
            # Not made shorter: behind a link, `..` is not the folder that the path names before it.
            found.append(FoundFile(os.path.join(root, shown), shown))
    return tuple(found)


def _expand_one(entry: str, suffix: str, root: str) -> list[str]:
    if not isinstance(entry, str) or "\0" in entry or not entry:
        raise ArgumentFault(f"{entry!r} is not a path")
    try:
        return _named(Path(entry).expanduser(), entry, suffix, root)
    except RuntimeError as error:  # nobody of that name has a home
        raise SourceMissing(f"cannot tell where {entry!r} is: {error}") from None
    except OSError as error:
        raise translate(error, entry) from error


def _named(path: Path, entry: str, suffix: str, root: str) -> list[str]:
    place = Path(root, path)
    if place.is_dir():
        return _files_below(root, str(path), suffix)
    if place.exists():
        return [str(path)]
    if not glob.has_magic(entry):
        raise SourceMissing(f"there is no file or folder {entry!r} (looked in {root!r})")
    files = _matching_below(path, suffix, root) if _ANY_FOLDERS in path.parts else _matching(path, suffix, root)
    if not files:
        raise SourceMissing(f"no file matches {entry!r} (looked in {root!r})")
    return sorted(files)


def _matching(pattern: Path, suffix: str, root: str) -> list[str]:
    """The files that a pattern matches; a folder stands for those below it."""
    files: list[str] = []
    for match in glob.glob(str(pattern), root_dir=root):
        if not os.path.isdir(os.path.join(root, match)):
            files.append(match)
        elif not _is_hidden(Path(match).name, {pattern.name[:1]}):
            files += _below(root, match, suffix)
    return files


def _matching_below(pattern: Path, suffix: str, root: str) -> list[str]:
    """The files that a pattern with `**` matches."""
    place = pattern.parts.index(_ANY_FOLDERS)
    head, tail = str(Path(*pattern.parts[:place])), pattern.parts[place:]
    wanted = suffix if tail[-1] == _ANY_FOLDERS else ""
    files: list[str] = []
    for folder in glob.glob(head, root_dir=root) if glob.has_magic(head) else [head]:
        depth = len(Path(folder).parts)
        below = _below(root, folder, wanted, tail)
        files += [file for file in below if _fits(Path(file).parts[depth:], tail)]
    return files


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a file's path are those that a pattern means."""
    if not pattern:
        return not parts
    if pattern[0] == _ANY_FOLDERS:
        return len(pattern) == 1 or any(_fits(parts[skipped:], pattern[1:]) for skipped in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _files_below(root: str, folder: str, suffix: str) -> list[str]:
    files = sorted(_below(root, folder, suffix))
    if not files:
        raise SourceMissing(f"the folder {folder!r} holds no file named *{suffix}")
    return files


def _below(root: str, folder: str, suffix: str, pattern: Sequence[str] = ()) -> Iterator[str]:
    """All files below a folder but the hidden ones, as paths that begin as it does."""
    top = os.path.join(root, folder)
    asked = {part[:1] for part in pattern}
    seen: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(top, onerror=_unless_gone, followlinks=True):
        # Links may lead back up, or to a folder twice: rows must not come twice.
        place = _identity(parent)
        if place is None or place in seen:
            folders.clear()
            continue
        seen.add(place)
        folders[:] = sorted(name for name in folders if not _is_hidden(name, asked))
        shown = folder + parent[len(top) :]
        wanted = [name for name in names if name.endswith(suffix) and not _is_hidden(name, asked)]
        yield from [str(Path(shown, name)) for name in wanted]


def _identity(folder: str) -> tuple[int, int] | None:
    """The same for all paths to a folder; None where it went away."""
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _is_hidden(name: str, asked: set[str]) -> bool:
    """Whether a name is passed by that a pattern does not spell: writers keep unfinished files in folders called
    `_temporary` and the like. `_key=1` is a partition.
    """
    return name[0] not in asked and (name[0] == "." or (name[0] == "_" and "=" not in name))


def _unless_gone(error: OSError) -> None:
    """Raises what hinders looking into a folder, unless it went away meanwhile."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error

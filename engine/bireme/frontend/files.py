"""Files named in a query: `FROM 'data/*.parquet'` and `read_parquet([...])` find their table by the paths themselves.

A name of a table that a session has registered comes first; what the files hold, and whether they are there, is the
catalog's to find out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

# The functions that give the table in files.
READERS: Final = ("read_parquet", "parquet_scan")
_SUFFIX: Final = ".parquet"
_NONE: Final[Mapping[str, object]] = {}


class NamedFiles(NamedTuple):
    """What the name of a table says of files: one path or several, and the options to read them with."""

    paths: str | list[str]
    options: Mapping[str, object]


def files_name(paths: Sequence[str], options: Mapping[str, object] = _NONE) -> str:
    """The name of the table in the files: the path, where it can be seen to be one; else all of it as JSON."""
    if len(paths) == 1 and not options and files_named(paths[0]) == (paths[0], _NONE):
        return paths[0]
    import json

    return json.dumps({"files": list(paths), "options": dict(sorted(options.items()))} if options else list(paths))


def files_named(name: str) -> NamedFiles | None:
    """What a name says of files; None where it does not look like any."""
    if name.startswith(("[", "{")):
        return _of_json(name)
    is_path = "/" in name or os.sep in name or name.lower().endswith(_SUFFIX)
    return NamedFiles(name, _NONE) if is_path else None


def _of_json(name: str) -> NamedFiles | None:
    import json

    try:
        found = json.loads(name)
    except ValueError:
        return None
    options = _NONE
    if isinstance(found, dict) and set(found) == {"files", "options"} and isinstance(found["options"], dict):
        found, options = found["files"], found["options"]
    are_paths = isinstance(found, list) and all(isinstance(path, str) for path in found)
    return NamedFiles(found, options) if are_paths else None


def stem(path: str) -> str:
    """What a query calls the table in a file, unless it says otherwise."""
    return os.path.splitext(os.path.basename(path))[0]

"""Files named in a query: `FROM 'data/*.parquet'` and `read_parquet([...])` find their table by the paths themselves.

A name of a table that a session has registered comes first; what the files hold, and whether they are there, is the
catalog's to find out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

_SUFFIX: Final = ".parquet"


def paths_name(paths: Sequence[str]) -> str:
    """The name of the table in the files: the path, where it can be seen to be one; else a JSON list."""
    if len(paths) == 1 and paths_named(paths[0]) == paths[0]:
        return paths[0]
    import json

    return json.dumps(list(paths))


def paths_named(name: str) -> str | list[str] | None:
    """The path or paths that a name stands for; None where it does not look like any."""
    if name.startswith("["):
        import json

        try:
            paths = json.loads(name)
        except ValueError:
            return None
        return paths if isinstance(paths, list) and all(isinstance(path, str) for path in paths) else None
    return name if "/" in name or os.sep in name or name.lower().endswith(_SUFFIX) else None


def stem(path: str) -> str:
    """What a query calls the table in a file, unless it says otherwise."""
    return os.path.splitext(os.path.basename(path))[0]

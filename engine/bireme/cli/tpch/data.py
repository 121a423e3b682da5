"""Data of benchmarks as Parquet files, generated once into a cache folder.

A folder is complete or not there: files are made beside it and moved into place at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bireme.errors import ConfigError, SinkFailed

TABLES: Final = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def cache_folder() -> Path:
    """Where data lies unless told otherwise: `BIREME_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("BIREME_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bireme"


def tpch_folder(scale: float, folder: Path | None) -> Path:
    """The folder of the data at `scale`, generated now if it is not there yet."""
    command = ["tpchgen-cli", "parquet", "-s", f"{scale:g}"]
    return generated_folder((folder or cache_folder()) / f"tpch-sf{scale:g}", TABLES, command)


def generated_folder(target: Path, tables: Sequence[str], command: Sequence[str]) -> Path:
    """The folder `target` with a Parquet file of each table, which `command` makes if they are not there yet.

    The generator named first in `command` comes with the extra "bench"; it is told where to write by `--output-dir`.
    """
    if not all((target / f"{table}.parquet").is_file() for table in tables):
        _generate(target, [_generator(command[0]), *command[1:]])
    return target


def _generate(target: Path, command: Sequence[str]) -> None:
    print(f"generating {target.name} into {target.parent} …", file=sys.stderr, flush=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise SinkFailed(f"cannot create {target}: {error.strerror}; choose another folder with --data") from error
    try:
        ran = subprocess.run([*command, "--output-dir", str(beside)], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise SinkFailed(f"{Path(command[0]).name} failed: {ran.stderr.strip() or ran.stdout.strip()}")
        shutil.rmtree(target, ignore_errors=True)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _generator(tool: str) -> str:
    beside_python = Path(sys.executable).parent / tool
    found = str(beside_python) if beside_python.is_file() else shutil.which(tool)
    if found is None:
        raise ConfigError(f"{tool} is not installed; run: pip install 'bireme[bench]'")
    return found

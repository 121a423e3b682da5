"""TPC-H data as Parquet files, generated once into a cache folder.

A folder is complete or not there: files are made beside it and moved into place at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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
    target = (folder or cache_folder()) / f"tpch-sf{scale:g}"
    if not all((target / f"{table}.parquet").is_file() for table in TABLES):
        _generate(scale, target)
    return target


def _generate(scale: float, target: Path) -> None:
    generator = _generator()
    print(f"generating TPC-H at scale {scale:g} into {target} …", file=sys.stderr, flush=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise SinkFailed(f"cannot create {target}: {error.strerror}; choose another folder with --data") from error
    try:
        command = [generator, "parquet", "-s", f"{scale:g}", "--output-dir", str(beside)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise SinkFailed(f"tpchgen-cli failed: {ran.stderr.strip() or ran.stdout.strip()}")
        shutil.rmtree(target, ignore_errors=True)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _generator() -> str:
    beside_python = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside_python) if beside_python.is_file() else shutil.which("tpchgen-cli")
    if found is None:
        raise ConfigError("tpchgen-cli is not installed; run: pip install 'bireme[bench]'")
    return found

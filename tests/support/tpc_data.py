"""TPC-H and TPC-DS for tests: small data as Parquet, made once per machine, and the query texts.

The data lies in a folder of its own for each version of the generator, so a new version makes new data.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from bireme.data.schema import Schema
from bireme.frontend.catalog import TableCatalog

QUERIES = Path(__file__).parents[2] / "queries"
SCALE = "0.01"


def tpch_folder(scale: str = SCALE) -> Path:
    """The folder of the TPC-H tables, one Parquet file each."""
    return _generated("tpchgen-cli", "tpch", ["parquet", "--scale-factor", scale], scale)


def tpcds_folder(scale: str = SCALE) -> Path:
    """The folder of the TPC-DS tables, one Parquet file each."""
    return _generated("tpcgen-cli", "tpcds", ["tpcds", "parquet", "--scale-factor", scale], scale)


def tables(folder: Path) -> dict[str, Path]:
    """The file of each table in a folder, by the name of the table."""
    return {path.stem: path for path in sorted(folder.glob("*.parquet"))}


def catalog(folder: Path) -> TableCatalog:
    """A catalog of the schemas of the tables in a folder."""
    return TableCatalog(
        {
            name: (str(path.stat().st_size), Schema.from_arrow(pq.read_schema(path)))
            for name, path in tables(folder).items()
        }
    )


def query_texts(suite: str) -> dict[str, str]:
    """The queries of "tpch" or "tpcds" by name (q01, q02, …)."""
    return {path.stem: path.read_text() for path in sorted((QUERIES / suite).glob("q*.sql"))}


def _generated(command: str, suite: str, arguments: list[str], scale: str) -> Path:
    root = Path(os.environ.get("BIREME_TEST_DATA") or Path(tempfile.gettempdir()) / "bireme-test-data")
    folder = root / f"{suite}-{scale}-{command}-{version(command)}"
    if folder.is_dir():
        return folder
    tool = shutil.which(command)
    if tool is None:
        raise FileNotFoundError(f"{command} is not installed; pip install '.[dev]' brings it")
    root.mkdir(parents=True, exist_ok=True)
    # Made beside and moved into place whole, because several test processes may want it at once.
    with tempfile.TemporaryDirectory(dir=root) as made:
        work = Path(made) / suite
        subprocess.run([tool, *arguments, "--output-dir", str(work)], check=True, capture_output=True)
        try:
            work.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder

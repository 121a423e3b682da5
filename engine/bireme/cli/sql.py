"""`bireme sql`: one query over files, its rows to a terminal, a pipe or a file."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bireme.cli import loading
from bireme.collector import collector_at_rest
from bireme.errors import ConfigError, SourceMissing

if TYPE_CHECKING:
    from bireme.plan.relation import Rel
    from bireme.session import Session

FORMATS: Final = ("table", "csv", "json", "parquet", "arrow")
_SUFFIXES: Final = {
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".arrow": "arrow",
    ".ipc": "arrow",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bireme sql`."""
    parser.add_argument("query", nargs="?", help="the query; read from standard input if neither it nor -f is given")
    parser.add_argument("-f", "--file", type=Path, default=None, help="read the query from this file")
    parser.add_argument(
        "-t", "--table", action="append", default=[], metavar="NAME=PATH", help="a table: a file, a glob or a folder"
    )
    parser.add_argument(
        "--data", action="append", default=[], type=Path, metavar="FOLDER",
        help="register every Parquet file and folder in FOLDER by its name",
    )  # fmt: skip
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running it")
    parser.add_argument("--analyze", action="store_true", help="run the query and show where its time and memory went")
    parser.add_argument(
        "-o", "--output", type=Path, default=None, help="write to this file; its suffix tells the format"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=None, help="table on a terminal, csv elsewhere, by default"
    )
    parser.add_argument(
        "--cache", action="store_true", help="keep decoded what is read of the tables, for queries that read it again"
    )
    parser.add_argument("--dialect", default="duckdb", help="the dialect the query is written in (default: duckdb)")
    parser.add_argument("--memory-limit", default=None, help="memory for the query, such as 4GiB")
    parser.add_argument("--threads", type=int, default=None, help="compute threads (default: all cores)")
    parser.add_argument(
        "--spill-folder",
        action="append",
        default=None,
        help="where batches go when memory is short; may be repeated",
    )
    parser.add_argument("--spill-limit", default=None, help="how much may be there, such as 100GiB")
    parser.add_argument(
        "--spill-compression",
        choices=("auto", "off", "lz4"),
        default=None,
        help="whether what goes there is compressed (default: auto, where that pays)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the query; every failure is an error of bireme."""
    text = _query_text(arguments)
    # While modules are loaded the collector would walk them again and again, and find nothing to collect.
    with collector_at_rest():
        if arguments.own_process:
            loading.load()
            gc.freeze()  # they stay until the process ends, so they need not be looked at later either
        from bireme.session import connect
    with connect(
        memory_limit=arguments.memory_limit,
        threads=arguments.threads,
        spill_folder=arguments.spill_folder,
        spill_limit=arguments.spill_limit,
        spill_compression=arguments.spill_compression,
    ) as session:
        _register(session, arguments)
        if arguments.cache:
            for name in session.tables():
                session.table(name).cache()
        # Not a frame: its methods would be loaded to build upon the query.
        plan, tables = session.bind(text, dialect=arguments.dialect)
        if arguments.explain or arguments.analyze:
            print(session.explain(plan, optimized=True, physical=True, analyze=arguments.analyze))
        else:
            _write(session, plan, arguments)
        del tables
    return 0


def _query_text(arguments: argparse.Namespace) -> str:
    if arguments.query is not None and arguments.file is not None:
        raise ConfigError("give the query either as an argument or with -f")
    if arguments.file is not None:
        try:
            return str(arguments.file.read_text(encoding="utf-8"))
        except OSError as error:
            raise SourceMissing(f"cannot read the query from {arguments.file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{arguments.file} is not UTF-8 text") from error
    if arguments.query is not None:
        return str(arguments.query)
    if sys.stdin.isatty():
        print("reading the query from standard input; end it with Ctrl-D", file=sys.stderr)
    return sys.stdin.read()


def _register(session: Session, arguments: argparse.Namespace) -> None:
    for folder in arguments.data:
        for name, path in _tables_in(folder):
            session.register(name, path)
    for definition in arguments.table:
        name, equals, path = definition.partition("=")
        if not equals or not name or not path:
            raise ConfigError(f"-t takes NAME=PATH, such as -t orders=data/orders.parquet, not {definition!r}")
        session.register(name, path)


def _tables_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """The tables of a folder: Parquet files, and folders with Parquet files in them."""
    if not folder.is_dir():
        raise SourceMissing(f"{folder} is not a folder; --data takes one with Parquet files in it")
    found = False
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix == ".parquet":
            found = True
            yield path.stem, path
        elif path.is_dir() and any(path.rglob("*.parquet")):
            found = True
            yield path.name, path
    if not found:
        raise SourceMissing(f"no Parquet file in {folder}")


def _write(session: Session, plan: Rel, arguments: argparse.Namespace) -> None:
    from bireme.storage.sink import write_file, write_stream

    chosen, schema = _format(arguments), plan.schema.to_result_arrow()
    if arguments.output is not None:
        if chosen == "table":
            raise ConfigError("a table is for reading on a terminal; for a file choose csv, json, parquet or arrow")
        if chosen == "parquet":
            session.sink_parquet(plan, arguments.output)
        else:
            write_file(session.batches(plan), schema, arguments.output, chosen)
    elif chosen == "table":
        from bireme.cli.show import print_rows

        print_rows(session.batches(plan), schema)
    else:
        write_stream(session.batches(plan), schema, sys.stdout.buffer, chosen)


def _format(arguments: argparse.Namespace) -> str:
    if arguments.format is not None:
        return str(arguments.format)
    if arguments.output is not None:
        suffix = arguments.output.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ConfigError(f"cannot tell a format from {arguments.output}; add --format")
        return _SUFFIXES[suffix]
    return "table" if sys.stdout.isatty() else "csv"

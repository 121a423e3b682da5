"""The command `bireme`: arguments to session calls, errors to messages and exit codes.

Exit codes: 0 done, 1 the query or its data is wrong, 2 a setting or an argument is, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final, NoReturn

from bireme.errors import BiremeError

_COLUMNS: Final = 80
# Help is no narrower, however narrow the terminal is.
_COLUMNS_MIN: Final = 20


def main(arguments: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Runs the command line; returns the exit code. `own_process`: nothing else runs here, before or after."""
    _open_standard_streams()
    parsed = _parser().parse_args(arguments, argparse.Namespace(own_process=own_process))
    try:
        code: int = parsed.run(parsed)
        sys.stdout.flush()
        return code
    except BiremeError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            return _reader_left()
        print(f"bireme: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bireme: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        # Reading and spilling have errors of their own, so this is about what we print to.
        _reader_left()
        print(f"bireme: cannot write the output: {error.strerror or error}", file=sys.stderr)
        return 1


def _reader_left() -> int:
    """The reader of our output has had enough; the interpreter must not try to flush to it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _open_standard_streams() -> None:
    """Puts the null device where a standard stream is closed, lest a file or a pipe of ours takes its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _parser() -> argparse.ArgumentParser:
    from bireme import __version__

    parser = argparse.ArgumentParser(
        prog="bireme", description="A query and feature engine.", formatter_class=_help_formatter
    )
    parser.add_argument("--version", action="version", version=f"bireme {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    add = partial(commands.add_parser, formatter_class=_help_formatter)
    _add_sql(add("sql", help="run a query over Parquet files"))
    _add_tpch(add("tpch", help="run and check the 22 TPC-H queries"))
    return parser


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """As wide as the terminal; argparse makes one for every option, and would load a module to find the width."""
    return argparse.HelpFormatter(prog, width=max(_columns() - 2, _COLUMNS_MIN))


def _columns() -> int:
    """What the environment says, else what the terminal does; some terminals have no columns."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size().columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def _add_sql(parser: argparse.ArgumentParser) -> None:
    from bireme.cli import sql

    sql.add_arguments(parser)
    parser.set_defaults(run=sql.run)


def _add_tpch(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_run_tpch)
    from bireme.cli.tpch import options

    options.add_arguments(parser)


def _run_tpch(arguments: argparse.Namespace) -> int:
    from bireme.cli.tpch import command

    return command.run(arguments)


def command() -> NoReturn:
    """The process `bireme`: runs the command line and ends.

    The interpreter would take every module apart before it ends, which takes longer than a small query; sessions are
    closed and files are written by now, so only the streams are left.
    """
    code = main(own_process=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    command()

"""Results written to files and streams.

Rule: a file appears whole or not at all. It is written under another name in the same folder, brought to the disk, and
then renamed; whatever goes wrong before that, by our fault or by the query's, leaves nothing behind and what was
there before untouched. Streams get what comes, as it comes.

What the formats look like is in `parquet_sink` and `text_sink`; Arrow's own is here, because it is pyarrow's.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import pyarrow as pa
from pyarrow import ipc

from bireme.errors import ArgumentFault, SinkFailed, Unsupported

# Parquet whose batches are row groups that the query has encoded.
ROW_GROUPS: Final = "parquet row groups"
_TAKES_ANY_LAYOUT: Final = ("parquet", ROW_GROUPS)


class Format(Protocol):
    """Turns batches into bytes of a file."""

    def write(self, batch: pa.RecordBatch) -> int:
        """Returns how many rows it wrote."""
        ...

    def finish(self) -> None: ...


class ArrowFormat:
    """Arrow's IPC format: the file format in files, the stream format in streams."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, batch: pa.RecordBatch) -> int:
        self._writer.write_batch(batch)
        return int(batch.num_rows)

    def finish(self) -> None:
        self._writer.close()


def write_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str | Path, format: str) -> int:
    """Writes all batches to `path` in `format` (parquet, csv, json, arrow) and returns the number of rows.

    A file that is there is replaced at the end. Raises SinkFailed where the target cannot be written, Unsupported for
    types that the format lacks, and whatever `batches` raises.
    """
    _check_format(format)
    target = Path(os.path.realpath(path))
    with _closing(batches):
        if target.exists() and not target.is_file():
            return _write_device(batches, schema, target, format)
        partial, file = _create_partial(target)
        try:
            with file:
                rows = _write_all(batches, schema, _Counted(file, str(target)), format, in_file=True)
                _settle(file, target)
            os.replace(partial, target)
        except OSError as error:
            raise _failed(str(target), error) from error
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()
        _sync_folder(target.parent)
        return rows


def write_stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: BinaryIO, format: str) -> int:
    """Writes all batches to an open file, such as standard output, and returns the number of rows.

    Raises as `write_file` does.
    """
    _check_format(format)
    with _closing(batches):
        rows = _write_all(batches, schema, _Counted(file, "the output"), format, in_file=False)
        try:
            file.flush()
        except OSError as error:
            raise _failed("the output", error) from error
        return rows


class _Counted:
    """A file as the formats want it: it knows its position, which a pipe does not, and its errors are ours."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._position = 0
        self._abandoned = False
        self.closed = False

    def abandon(self) -> None:
        """Swallows what comes from now on: pyarrow's writers still want to write an end when they are collected."""
        self._abandoned = True

    def write(self, piece: Any) -> int:
        view = memoryview(piece).cast("B")
        if self._abandoned:
            return len(view)
        try:
            # A raw file may take a part only.
            done = 0
            while done < len(view):
                done += self._file.write(view[done:])
        except OSError as error:
            raise _failed(self._name, error) from error
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """The file is flushed once, at the end."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _write_all(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: _Counted, format: str, *, in_file: bool
) -> int:
    rows = 0
    coming = iter(batches)
    batch = next(coming, None)  # before anything is written: most queries that fail do so until here
    try:
        with translated(format):
            output = _FORMATS[format](file, schema, in_file)
        while batch is not None:
            with translated(format):
                rows += output.write(batch if format in _TAKES_ANY_LAYOUT else _as_schema(batch, schema))
            batch = None  # nobody needs it while the next one is waited for
            batch = next(coming, None)
        with translated(format):
            output.finish()
        return rows
    finally:
        file.abandon()


def _parquet(file: _Counted, schema: pa.Schema, _: bool) -> Format:
    from bireme.storage.parquet_sink import ParquetFormat

    return ParquetFormat(file, schema)


def _row_groups(file: _Counted, schema: pa.Schema, _: bool) -> Format:
    from bireme.storage.parquet_sink import RowGroupsFormat

    return RowGroupsFormat(file, schema)


def _csv(file: _Counted, schema: pa.Schema, _: bool) -> Format:
    from bireme.storage.text_sink import CsvFormat

    return CsvFormat(pa.PythonFile(file, mode="w"), schema)


def _json(file: _Counted, schema: pa.Schema, _: bool) -> Format:
    from bireme.storage.text_sink import JsonLinesFormat

    return JsonLinesFormat(file, schema)


def _arrow(file: _Counted, schema: pa.Schema, in_file: bool) -> Format:
    opened = pa.PythonFile(file, mode="w")
    return ArrowFormat(ipc.new_file(opened, schema) if in_file else ipc.new_stream(opened, schema))


_FORMATS: Final[dict[str, Callable[[_Counted, pa.Schema, bool], Format]]] = {
    "parquet": _parquet,
    ROW_GROUPS: _row_groups,
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
}


def _check_format(format: str) -> None:
    if format not in _FORMATS:
        named = ", ".join([each for each in _FORMATS if each != ROW_GROUPS])
        raise ArgumentFault(f"{format!r} is no format; choose one of {named}")


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the layouts of `schema`: results may still hold dictionaries and narrow decimals."""
    if batch.schema == schema or not schema:
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextlib.contextmanager
def translated(format: str) -> Iterator[None]:
    """Turns pyarrow's errors into ours."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(
            f"a column's type cannot be written as {format}: {error}; cast the column or choose another format"
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise SinkFailed(f"the result cannot be written as {format}: {error}") from error


@contextlib.contextmanager
def _closing(batches: Iterable[pa.RecordBatch]) -> Iterator[None]:
    """Ends a generator of batches, and with it its query, also when not all was taken."""
    try:
        yield
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def _create_partial(target: Path) -> tuple[Path, BinaryIO]:
    partial = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise _failed(str(target), error) from error
    return partial, os.fdopen(descriptor, "wb")


def _settle(file: BinaryIO, target: Path) -> None:
    """Brings what was written to the disk, with the rights of the file it replaces."""
    file.flush()
    with contextlib.suppress(FileNotFoundError):
        os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
    os.fsync(file.fileno())


def _write_device(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Path, format: str) -> int:
    """Pipes and devices have no name to be renamed to."""
    if target.is_dir():
        raise SinkFailed(f"{str(target)!r} is a folder; name a file in it")
    try:
        with target.open("wb") as file:
            return _write_all(batches, schema, _Counted(file, str(target)), format, in_file=False)
    except OSError as error:
        raise _failed(str(target), error) from error


def _sync_folder(folder: Path) -> None:
    """Makes the new name last; file systems that cannot do that keep it anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _failed(name: str, error: OSError) -> SinkFailed:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return SinkFailed(f"cannot write {name}: {reason}; nothing is left behind. Choose another place")

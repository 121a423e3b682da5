"""Every error that bireme raises, as one tree, sorted by whose fault it is.

    BiremeError
    ├─ QueryError            the query is wrong; carries a position in the SQL when there is one
    │  ├─ SyntaxFault        the text cannot be parsed
    │  ├─ NameFault          an unknown or ambiguous table, column or function
    │  ├─ TypeFault          operands of types that do not go together
    │  ├─ ClauseFault        an expression that its clause cannot hold: an aggregate in WHERE, an ungrouped column
    │  ├─ Unsupported        understood, but not offered here; says what to write instead
    │  └─ ArgumentFault      a call of the Python API with a value that cannot be right
    ├─ DataError             the data cannot answer the query as it was asked
    │  ├─ Overflow           a value left the range of its type
    │  ├─ ConversionFault    a value cannot be cast to the type asked for
    │  ├─ DomainFault        a function was given a value it is not defined for, such as a zero divisor
    │  └─ CardinalityFault   a scalar subquery gave more than one row
    ├─ StorageError          bytes could not be read or written
    │  ├─ SourceMissing      no such file, or a glob that matches nothing
    │  ├─ SourceCorrupt      a file that is not what it claims to be
    │  │  └─ SourceMisstated its statistics do not hold for its values
    │  ├─ SourceMismatch     files of one table that do not go together
    │  ├─ SourceChanged      a file changed while a query was reading it
    │  ├─ SpillFailed        the spill folder is full, gone or read-only
    │  ├─ SpillCorrupt       a spill file no longer matches its checksum
    │  └─ SinkFailed         an output could not be written; nothing is left behind
    ├─ OutOfRoom             a limit was met and nothing can move; names the limit
    │  ├─ ValueTooLarge      one value, such as the list of a whole table, is more than memory or Arrow has room for
    │  └─ TooMuchAtOnce      what is computed of some rows is more than there is room for; fewer at once may do
    ├─ Cancelled             the query was cancelled
    ├─ PeerLost              another worker is gone
    ├─ Stalled               the watchdog found tasks that wait for each other; carries the story
    ├─ ConfigError           a setting is wrong
    └─ EngineBug             an invariant of ours broke; carries the story

Foreign exceptions are translated into these at the seams; none reaches a user.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a SQL text: 0-based character offsets `start` (inclusive) and `end` (exclusive)."""

    start: int
    end: int

    def line_and_column(self, text: str) -> tuple[int, int]:
        """Returns the 1-based line and column of `start` in `text`."""
        before = text[: self.start]
        return before.count("\n") + 1, self.start - (before.rfind("\n") + 1) + 1


class BiremeError(Exception):
    """Base of all errors of bireme; not raised itself."""

    exit_code = 1


class QueryError(BiremeError):
    """The query is wrong.

    `message` says what and what to do; `position` and `text`, when known, say where, and show as a line
    with a caret.
    """

    def __init__(self, message: str, *, position: Position | None = None, text: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.text = text

    def located(self, position: Position | None, text: str | None) -> QueryError:
        """Adds a place to an error raised where the text is not known; the innermost place wins."""
        if self.position is None:
            self.position = position
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        if self.position is None or self.text is None:
            return self.message
        return f"{self.message}\n{caret(self.text, self.position)}"


def caret(text: str, position: Position) -> str:
    """Draws the line of `text` that holds `position`, with carets under the marked characters."""
    line, column = position.line_and_column(text)
    source = text.split("\n")[line - 1]
    width = max(1, min(position.end - position.start, len(source) - column + 1))
    prefix = f"line {line}:{column}  "
    # Tabs are kept so that the caret stands under the same character on a terminal.
    padding = "".join("\t" if character == "\t" else " " for character in source[: column - 1])
    return f"{prefix}{source}\n{' ' * len(prefix)}{padding}{'^' * width}"


class SyntaxFault(QueryError):
    """The text of a query cannot be parsed."""


class NameFault(QueryError):
    """A table, column or function that does not exist, or a name with more than one meaning."""


class TypeFault(QueryError):
    """Operands or arguments whose types do not go together."""


class ClauseFault(QueryError):
    """An expression where its clause cannot hold it, or clauses that do not fit each other."""


class Unsupported(QueryError):
    """Something that is understood but not offered; the message says what to write instead."""


class ArgumentFault(QueryError):
    """A call of the Python API with a value that cannot be right."""


class DataError(BiremeError):
    """The data cannot answer the query as it was asked."""


class Overflow(DataError):
    """A value left the range of its type."""


class ConversionFault(DataError):
    """A value cannot be converted to the type that the query asks for."""


class DomainFault(DataError):
    """A function was given a value that it is not defined for, such as a zero divisor."""


class CardinalityFault(DataError):
    """A scalar subquery gave more than one row."""


class StorageError(BiremeError):
    """Bytes could not be read or written."""


class SourceMissing(StorageError):
    """A file or folder that is not there, or a pattern that matches nothing."""


class SourceCorrupt(StorageError):
    """A file that is not what it claims to be."""


class SourceMisstated(SourceCorrupt):
    """Statistics that do not hold for the values beside them; a session answers again without them."""


class SourceMismatch(StorageError):
    """Files of one table that do not go together: a column is missing, or of another type, or partitions differ."""


class SourceChanged(StorageError):
    """A file that changed while a query was reading it."""


class SpillFailed(StorageError):
    """The spill folder is full, gone or read-only."""


class SpillCorrupt(StorageError):
    """A spill file whose bytes no longer match their checksum."""


class SinkFailed(StorageError):
    """An output could not be written."""


class OutOfRoom(BiremeError):
    """A memory limit was met and nothing can move."""


class ValueTooLarge(OutOfRoom):
    """One value that cannot be held in one piece; to try again would not help."""


class TooMuchAtOnce(OutOfRoom):
    """What is computed of some rows takes more memory than there is for it; fewer rows at once may do."""


class Cancelled(BiremeError):
    """The query was cancelled by its caller."""


class PeerLost(BiremeError):
    """Another worker, number `peer`, is gone."""

    def __init__(self, message: str, *, peer: int = 0) -> None:
        super().__init__(message)
        self.peer = peer


class Stalled(BiremeError):
    """The watchdog found work that waits for itself; the message tells the story."""


class ConfigError(BiremeError):
    """A setting that is wrong."""

    exit_code = 2


class EngineBug(BiremeError):
    """An invariant of the engine broke; the message tells the story. Please report it."""

"""Templates of times, numbers and regular expressions: what they read, write and find, against DuckDB."""

from __future__ import annotations

import datetime

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bireme as bm
from bireme.backends.reference.pattern_parts import all_matches, split
from bireme.backends.reference.time_formats import format_moment
from bireme.backends.reference.time_parsing import moment_parser
from bireme.errors import ConversionFault, DataError, DomainFault
from bireme.plan.functions.texts import read_binary, write_binary

TABLES: tuple[str, ...] = ()

# Each format with texts that fit it, and texts that do not.
TIMES = {
    "%Y-%m-%d": ("2020-1-2", " 2020-02-29 ", "20-01-01", "2020-13-02", "2020-02-30", "2020-01-01x", ""),
    "%Y%m%d": ("20200304", "202003", "2020304"),
    "%Y %m": ("2020 1", "2020   11", "20201"),
    "%d %b %y": ("3 JAN 68", "03 feb 69", "3 January 70"),
    "%A, %d. %B": ("tuesday, 4. May", "Tues, 4. May"),
    "%H:%M:%S": ("23:59:59", "24:00:00", "1:2:3", "10:60:00"),
    "%H:%M %p": ("0:3 PM", "12:3 AM", "13:3 AM", "8:03 pm", "12:00 PM"),
    "%p %I": ("PM 8", "AM 12", "AM 0", "PM 13"),
    "%I": ("12", "0", "13"),
    "%Y-%j": ("2020-123", "2020-366", "2021-366", "2020-0"),
    "%S.%f": ("1.5", "1.000001", "1.1234567"),
    "%S.%g": ("1.5", "1.123", "1.1234"),
    "%G-%V-%u": ("2020-53-5", "2020-10-1", "2020-54-1"),
    "%V-%u": ("2-4", "1-1"),
    "%Y %U": ("2020 0", "2017 1", "2020 53", "2020 54"),
    "%Y %W %w": ("2020 1 2", "2020 10 0", "2018 0 6"),
    "%Y %U %w": ("2020 53 0", "2020 1 6"),
    "%U %W": ("20 19",),
    "%U %j": ("20 19",),
    "%Y-%m-%d %U-%w": ("2021-05-12 19-4",),
    "%Y-%m-%d %z": ("2020-01-01 +02", "2020-01-01 -1230", "2020-01-01 +02:30:15", "2020-01-01 +2", "2020-01-01 02"),
    "%Y-%m-%d %Z": ("2020-07-01 UTC", "2020-07-01 Europe/Berlin", "2020-07-01 Nowhere"),
    "%c": ("2020-01-01 10:11:12",),
    "%x %X": ("2020-01-01 10:11:12",),
    "%m %m %d": ("1 5 8",),
    "%%%d%%": ("%5%", "5"),
}


@pytest.mark.parametrize("template", TIMES)
def test_texts_mean_the_times_that_duckdb_reads(template: str, oracle: duckdb.DuckDBPyConnection) -> None:
    oracle.execute("set timezone = 'UTC'")
    read = moment_parser(template)
    for text in TIMES[template]:
        row = oracle.execute("select try_strptime(?, ?)::timestamp", [text, template]).fetchone()
        assert row is not None
        try:
            found: datetime.datetime | None = read(text)
        except ConversionFault:
            found = None
        assert found == row[0], text


@settings(max_examples=200, deadline=None)
@given(
    st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)),
    st.sampled_from(
        ["%Y-%m-%d %H:%M:%S.%f", "%d.%-m.%Y %I:%M:%S %p %f", "%Y %j %T %f", "%B %d %Y, %H %M %S %n", "%c.%f"]
    ),
)
def test_what_was_written_is_read(moment: datetime.datetime, template: str) -> None:
    assert moment_parser(template)(format_moment(moment, template)) == moment


@pytest.mark.parametrize("template", ["", "%", "%q", "%Y %."])
def test_unknown_formats_of_time_are_refused(template: str) -> None:
    with pytest.raises(DomainFault):
        moment_parser(template)


# ---------------------------------------------------------------------------------- numbers and texts


def assert_same_row(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    (row,) = session.sql(query).collect().to_pylist()
    assert tuple(row.values()) == oracle.execute(query).fetchone()


@pytest.mark.parametrize(
    ("function", "template", "values"),
    [
        ("format", "{:.3}", ("0.0", "1.0", "12.0", "100.0", "1234.5", "0.0001234", "1e-7", "'abcdef'")),
        ("format", "{:.0}", ("1.5",)),
        ("format", "{:8.3}|", ("1.5",)),
        ("format", "{:<8.3}|", ("1.5",)),
        ("format", "{:+.3}", ("1.5", "-1.5")),
        (
            "format",
            "{}",
            ("1e20", "1e15", "0.1", "true", "date '2020-01-01'", "123456789012345678901::hugeint", "'é'"),
        ),
        ("format", "{:d}", ("12", "-12345678901234567890123::hugeint")),
        ("format", "{:x} {{}}", ("255",)),
        ("format", "{:#x}", ("255",)),
        ("format", "{:#o}", ("8",)),
        ("format", "{:,}", ("1234567",)),
        ("format", "{:e}", ("1234.5",)),
        ("format", "{0} {0}", ("1", "'a'")),
        ("format", "{:>5}|", ("'ab'",)),
        ("format", "{:*^5}|", ("'ab'", "1")),
        ("printf", "%d", ("5", "12345678901234567890123::hugeint")),
        ("printf", "%5d|%-5d|%05d|%+d", ("-42, 42, -42, 5",)),
        ("printf", "%o %#o %x %#X", ("8, 8, 255, 255",)),
        ("printf", "%.2f %e %G", ("1.555::decimal(10, 3), 1234.5, 1e10",)),
        ("printf", "%5s|%-5s|%.2s", ("'ab', 'ab', 'abc'",)),
        ("printf", "%lld %hd %c %i %u %%", ("5, 6, 65, 7, 8",)),
    ],
)
def test_numbers_and_texts_are_written_as_in_duckdb(
    function: str, template: str, values: tuple[str, ...], session: bm.Session, oracle: duckdb.DuckDBPyConnection
) -> None:
    calls = [f"{function}('{template}', {value})" for value in values]
    assert_same_row(f"select {', '.join(calls)}", session, oracle)


@pytest.mark.parametrize(
    "call",
    [
        "format('{', 1)", "format('{0.__class__}', 1)", "format('{[0]}', 'ab')", "format('{:d}', 1.5)",
        "format('{:f}', 'a')", "format('{1}', 1)", "format('{} {}', 1)", "printf('%d', 1.5)", "printf('%s', 1)",
        "printf('%f', 1)", "printf('%d')", "printf('%', 1)", "printf('%y', 1)",
    ],
)  # fmt: skip
def test_templates_that_do_not_go_with_their_values_are_refused(call: str, session: bm.Session) -> None:
    with pytest.raises(DataError):
        session.sql(f"select {call}").collect()


# ------------------------------------------------------------------------------------------------ blobs

BLOBS = [r"\x00\x80", r"\xff\x41B", "", "a\"b''c", r"\x5C\x5cx", "plain"]


@pytest.mark.parametrize("text", BLOBS)
def test_texts_of_blobs(text: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    query = f"select '{text}'::blob, '{text}'::blob::varchar, hex('{text}'::blob)"
    assert_same_row(query, session, oracle)


@pytest.mark.parametrize("text", [r"\x", "\\", r"\xZZ", "ä", r"\a41", r"\x4"])
def test_texts_that_are_no_blobs(text: str, session: bm.Session) -> None:
    assert session.sql(f"select try_cast('{text}' as blob) as b").collect()["b"].to_pylist() == [None]
    with pytest.raises(DataError):
        session.sql(f"select '{text}'::blob").collect()


@given(st.binary(max_size=20))
def test_blobs_go_to_text_and_back(value: bytes) -> None:
    assert read_binary(write_binary(value)) == value


# ---------------------------------------------------------------------------------- regular expressions

TEXTS = ["", "a", "aaaaa", "aXbXXc", "abab", "ab\ncd\n", "A-c_[] x1", "aäb ü1", "a{,3}aaa", "1a 2b 14m", "x\x0by z"]
PATTERNS = [
    "", "a", "X*", "X+", "^a", "a$", r"\b", r"(\d+)?", "b*", r"\d", r"\w+", "[[:lower:]]+", "[[:^space:]]", "[]a[]",
    "[^^]", r"\Qa\E", r"a{,3}", "(?i)a", "(?m)b$", r"d\s\z", r"\s", r"[\s_]", ".", "(?s).", "a|ab", "a+?", r"\x{61}",
    "[[:punct:][:digit:]]", "(a)|(b)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_matches_and_the_parts_between_them_are_those_of_duckdb(
    pattern: str, oracle: duckdb.DuckDBPyConnection
) -> None:
    for text in TEXTS:
        row = oracle.execute(
            "select regexp_extract_all($t, $p), string_split_regex($t, $p)", {"t": text, "p": pattern}
        ).fetchone()
        assert row == (all_matches(text, pattern, 0), split(text, pattern)), text


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a++", r"\1", "[[:letter:]]", "(?<=a)b"])
def test_what_is_no_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(DomainFault):
        split("a", pattern)


def test_groups_that_take_no_part_are_null(session: bm.Session) -> None:
    table = session.sql("select regexp_extract_all('ab', '(a)|(b)', 2) as m").collect()
    assert table["m"].to_pylist() == [[None, "b"]]

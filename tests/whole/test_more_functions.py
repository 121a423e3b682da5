"""Functions of texts, numbers and points in time that run in the reference backend, against DuckDB."""

from __future__ import annotations

import datetime

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import DataError, NameFault, SyntaxFault, TypeFault

TABLES = (
    """create table t as select i as a, case when i % 5 = 0 then null else 'sitting'[i % 7:] || i end as s,
    (i * 1.5)::double as x, date '1999-12-20' + (i * 11)::int as d from range(40) r(i)""",
)

# Doubles that decimals end on a five near which they are not: rounding must see which side they are on.
_NEAR_FIVES = (
    "(values (42.12345), (2.675), (1.005), (0.285), (-1.015), (0.125), (1234.5675), (35.0), (24.999999), (1e15)) v(x)"
)

QUERIES = [
    f"select x, round(x::double, 2), round(x::double, 3), round(x::double, 4), round(x::double, -1) from {_NEAR_FIVES}",
    f"select round(x::float, 2), trunc(x::double, 2), round(-x::double, 2) from {_NEAR_FIVES}",
    "select x = '0.41000000000000003'::double, x = '123456789.12345678'::double, x::double from (select unnest("
    "[0.41000000000000003, 0.9999999999999999, 123456789.12345678])::decimal(38, 17)::double as x)",
    "select list_intersect([a], null::bigint[]), list_has_any([[a]], [[3]]), list_intersect([[1], [a]], [[a]]) from t",
    "select gamma(0), lgamma(0), lgamma(-a) from t",
    "select md5(s), sha256(s), sha1(s), base64(s::blob), from_base64('YWJj'), encode(s) from t",
    "select hex(s), hex(a), hex(-a), hex(255::ubigint), to_hex(10), bin(a), bin(s), unhex('616263') from t",
    "select translate(s, 'sit', 'xy'), strip_accents('h\u00e9llo' || s), nfc_normalize(s), regexp_escape('a.b') from t",
    "select levenshtein('kitten', s), hamming('abc', 'abd'), jaccard('abc', s), bit_length(s) from t",
    "select url_encode(s || ' &c/\u00e9'), url_decode('a%20b'), decode(encode(s)) from t",
    "select bit_count(a), bit_count(-a), bit_count(a::int), bit_count((-a)::tinyint) from t",
    "select gcd(a, 12), lcm(a, 6), gcd(0, 0), gcd(-4, 6), factorial(5), even(x), even(-3.5) from t",
    "select gamma(5), lgamma(x + 1), signbit(-x), asinh(x), acosh(x + 1), atanh(0.5) from t",
    "select fdiv(x, 7.5), fmod(x, 7.5), fmod(-x, 7), fdiv(-a, 3) from t",
    "select age(timestamp '2001-04-10', d), age(d, timestamp '1957-06-13 10:00:00') from t",
    "select age(date '2000-03-31', date '2000-02-29'), age(timestamp '1957-06-13', timestamp '2001-04-10 10:00:00')",
    "select time_bucket(interval '3 days', d), time_bucket(interval '5 months', d) from t",
    "select time_bucket(interval '2 hours', d + interval '5 hours 30 minutes') from t",
    "select make_time(10, 20, 30.5), epoch_ns(d), julian(d), julian(d::timestamp + interval 12 hours) from t",
    "select date_add(d, interval 1 month), to_timestamp(1e9 + a) from t",
    "select typeof(1), typeof('a'), typeof(null), typeof([1]), typeof(1.5), typeof(sum(a)), typeof(now()) from t",
    "select format('{} is {}', s, a), format('{:.2f}', x), format('{1} {0}', a, s), format('{:>5}', s) from t",
    "select printf('%d %s %.2f', a, s, x), printf('%05d', a) from t",
    "select 'abc' ~ 'b', 'abc' !~ 'b', s similar to 's.*', s not similar to 's1', s glob 's*[0-2]' from t",
    "select 'abc' glob 'a?c', 'abc' glob '[!a]*', 'a*c' glob 'a\\*c', 'a]c' glob 'a[]]c', 'abc' ^@ 'ab'",
    "select regexp_extract(s, '([a-z]+)([0-9])', 2), regexp_extract(s, '[0-9]+$'), regexp_extract(s, 'q') from t",
    "select regexp_extract('foo bar', '(?:f)(o+) (b)', 2), regexp_extract('[(x', '[(](x)', 1)",
    "select unicode(''), ascii(''), ord('a'), unicode('\u00e9'), blob 'a' || blob 'b'",
    "select a = any([1, 2, 3]), not a = any([1, null]) from t",
    # sqlglot takes the first amount with its unit for the whole of such a text.
    "select interval '14 months ago', interval '1 day 2 hours ago', interval '1 year 2 months' from t",
    "select d + interval '1 day 2 hours ago', interval '3' day, interval '-3 months' from t",
    "select interval '41 months -11 days 10 hours' * 0.3, interval '1 month' / 3, interval '1 month' * 0.123456789",
    "select interval '1 year 2 days 4 hours' * 8.2, interval '7 microseconds' * 0.3, interval '1 month' * 2",
    "select date_part(['year', 'month', 'epoch'], timestamp '2020-01-02 03:04:05'), date_part(['day'], "
    "null::date), date_part(['YEAR', 'doy', 'dow', 'isodow', 'week'], date '2020-01-02')",
    "select date_part(['hours', 'microseconds'], interval '1 hour'), date_part(['year', 'quarter'], d + a::int) from t",
    "select jaro_similarity('duck','duckdb'), jaro_winkler_similarity('duck','duckdb'), "
    "jaro_similarity('',''), jaro_similarity('a',''), jaro_winkler_similarity('é','è'), "
    "jaro_winkler_similarity('martha','marhta'), jaro_similarity('dixon','dicksonx'), "
    "jaro_winkler_similarity('dwayne','duane'), jaro_winkler_similarity(null,'a'), jaro_similarity('a','b'), "
    "jaro_winkler_similarity('duck','duckdb',0.9), jaro_similarity('duck','duckdb',0.95), "
    "jaro_similarity('a','a')",
    "select jaro_similarity('éa','èa'), jaro_similarity('abcdef','abcdeg'), "
    "jaro_winkler_similarity('abcdefgh','abcdefgi'), jaro_winkler_similarity('ab','ba'), "
    "jaro_similarity('abcd','badc'), jaro_winkler_similarity('aaa','aab'), "
    "jaro_winkler_similarity('same','same'), jaro_winkler_similarity('abcdexxxxx','abcdeyyyyy'), "
    "jaro_winkler_similarity('axxxxxxxxx','ayyyyyyyyy')",
    "select jaro_similarity(s, 'sitting12'), jaro_winkler_similarity(s, reverse(s)), damerau_levenshtein(s, "
    "reverse(s)), jaro_winkler_similarity(s, 'tting', 0.8) from t",
    "select damerau_levenshtein('ab','ba'), damerau_levenshtein('ca','abc'), damerau_levenshtein('',''), "
    "damerau_levenshtein('é','e'), damerau_levenshtein('kitten','sitting'), "
    "damerau_levenshtein('abcd','acbd'), damerau_levenshtein(null,'a'), damerau_levenshtein('cape sand "
    "recycling','edith ann graham'), damerau_levenshtein('', 'abc')",
    "select parse_filename('/a/b/c.tar.gz'), parse_filename('/a/b/c.tar.gz', true), "
    "parse_filename('/a/b/c.tar.gz', false), parse_filename('c'), parse_filename(''), parse_filename('/a/b/'), "
    "parse_filename('a\\b.txt', 'backslash'), parse_filename('a\\b/c.txt', true, 'forward_slash'), "
    "parse_filename('a\\b.csv', 'system'), parse_filename('.bashrc', true), parse_filename('a/b\\c', "
    "'both_slash'), parse_filename('a.b.', true)",
    "select parse_dirname('/a/b/c.txt'), parse_dirname('a/b/c'), parse_dirname('c'), parse_dirname(''), "
    "parse_dirname('/'), parse_dirname('a\\b/c', 'backslash'), parse_dirname('a\\b/c', 'forward_slash'), "
    "parse_dirname('//a/b'), parse_dirname('a/'), parse_dirname('/', 'backslash')",
    "select parse_dirpath('/a/b/c.txt'), parse_dirpath('a/b/c'), parse_dirpath('c'), parse_dirpath(''), "
    "parse_dirpath('/'), parse_dirpath('a\\b/c', 'backslash'), parse_dirpath('a\\b/c', 'forward_slash'), "
    "parse_dirpath('/a'), parse_dirpath('a/b/'), parse_dirpath('//a//b'), parse_dirpath('\\')",
    "select parse_path('/a/b/c.txt'), parse_path('a/b/c'), parse_path('c'), parse_path(''), parse_path('/'), "
    "parse_path('a\\b/c', 'backslash'), parse_path('a\\b/c', 'forward_slash'), parse_path('//a//b/'), "
    "parse_path('\\a\\b'), parse_path('/a', 'backslash')",
    "select interval '0.05 year', interval '0.055 years', interval '1.5 years', interval '-0.04 decade'",
    "from (describe select 42 as a)",
    "select interval '0.05 month', interval '-1.99 month', interval '0.3 quarter', interval '0.05 week' from t",
    "select interval '0.0000000005 hour', interval '-0.0000015 second', interval '0.0015 ms' from t",
    "select interval (x) year, interval (-x) hour, interval (x) second, interval (a) day, interval (1.7) month from t",
    "select a % 3, median(time '01:00:00' + to_microseconds(a * 3)), median(interval (a) minute) from t group by 1",
    "select quantile_cont(time '10:00:00' + interval (x) hour, 0.3), median(interval (a) day) filter (a > 4) from t",
    "select interval '1.5' microsecond, interval '-1.5 microseconds', interval '1.5 milliseconds'",
    """select i, count(*) over (order by v range between interval '4' day preceding and current row) as n from (values
    (1, interval '26' day), (2, interval '30' day), (3, interval '1 month 2 days'), (4, null)) q(i, v) order by i""",
    "select current_date = today(), current_timestamp = now(), age(current_date) = interval '0 days' from t",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    "expression",
    [
        "factorial(-1)",
        "factorial(40)",
        "from_base64('!')",
        "unhex('xy')",
        "hamming('a', 'ab')",
        "format('{', 1)",
        "printf('%d', 'a')",
        "make_time(25, 0, 0)",
        "time_bucket(interval '0 days', date '2000-01-01')",
        "lcm(9223372036854775807, 2)",
        "regexp_extract('a', '(')",
        "decode(unhex('ff'))",
        "1e308::float",
        "(a + 1e308)::float from (select 1::double as a)",
        "'_1_2'::int",
        "'12_.5'::decimal(10, 2)",
        "'1_2_'::double",
        "'0x_F'::int",
        "'9e999999'::interval",
        "'-9e99999'::interval",
        "'9e31'::interval",
    ],
)
def test_values_outside_of_a_function_are_data_errors(expression: str, session: bm.Session) -> None:
    with pytest.raises(DataError):
        session.sql(f"select {expression}").collect()


@pytest.mark.parametrize("text", ["1 day foo", "5 parsecs", "9223372036854775 seconds", "1 month ago ago", ""])
def test_an_interval_is_read_to_its_end(text: str, session: bm.Session) -> None:
    with pytest.raises(SyntaxFault):
        session.sql(f"select interval '{text}'")


def test_the_time_is_that_of_the_binding_and_asked_for_anew(session: bm.Session) -> None:
    first, second = (session.sql("select now() as n").collect()["n"][0].as_py() for _ in range(2))
    assert first < second <= datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("date_part([], date '2020-01-01')", TypeFault),
        ("date_part(['year', 'Year'], date '2020-01-01')", NameFault),
        ("date_part(['noon'], date '2020-01-01')", TypeFault),
        ("parse_path('a/b', 'colon')", TypeFault),
        ("regexp_extract('foobar', '(b..)', 10)", TypeFault),
        ("regexp_extract('foobar', '(b..)', -1)", TypeFault),
        ("regexp_matches('foobar', 'b', 'g')", TypeFault),
    ],
)
def test_what_names_nothing_is_said(call: str, error: type[Exception], session: bm.Session) -> None:
    with pytest.raises(error):
        session.sql(f"select {call}").collect()

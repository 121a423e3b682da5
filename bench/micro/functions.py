"""Scalar functions and casts as whole queries over one table in memory, beside DuckDB: `select <expression> from t`.

    python bench/micro/functions.py [--rows 200000] [--only strftime]

Both engines hand out an Arrow table, so that the ratio is that of a user who computes one column. A function that runs
value by value in Python, or in the reference backend only, shows here as one that takes many times as long.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import duckdb
from frame import Case, family_parser, run_family

import bireme as bm

TABLE = """
    select i::int as i, (i * 7919 % 1000003)::bigint as k, ((i % 1000) * 1.37 + 0.001)::decimal(12, 3) as dec,
        i * 0.37::double as x, (i * 0.37)::float as f, 'Some text ' || (i % 977) || ' and, more' as s,
        (i * 31)::varchar as ns, (i * 0.731)::double::varchar as xs, date '1992-01-01' + (i % 9000)::int as d,
        timestamp '1992-01-01' + to_seconds(i * 977) as ts, (date '1992-01-01' + (i % 9000)::int)::varchar as ds,
        (timestamp '1992-01-01' + to_seconds(i * 977))::varchar as tss, [i, i + 1, i % 7] as l,
        ('x' || i)::blob as b, time '00:00:00' + to_seconds(i % 86400) as ti, i % 2 = 0 as bo, to_seconds(i) as iv,
        '{{"id": ' || i || ', "who": {{"name": "Some \\"one\\"", "ages": [1, 2.5, ' || i % 90 || ']}}}}' as js
    from range({rows}) r(i)
"""
EXPRESSIONS = (
    # casts
    "k::varchar", "x::varchar", "f::varchar", "dec::varchar", "d::varchar", "ts::varchar", "ti::varchar",
    "b::varchar", "ns::int", "ns::bigint", "xs::double", "xs::decimal(18, 6)", "ds::date", "tss::timestamp",
    "try_cast(s as int)", "x::int", "dec::double", "ts::date", "ts::time",
    # points in time
    "strftime(d, '%Y-%m-%d')", "strftime(ts, '%Y-%m-%d %H:%M:%S')", "strptime(ds, '%Y-%m-%d')", "year(d)",
    "dayname(d)", "last_day(d)", "date_trunc('month', d)", "date_diff('day', d, date '2000-01-01')",
    "age(ts, timestamp '2000-01-01')", "date_sub('month', d, date '2000-01-01')", "d + interval 1 month",
    "make_date(1990 + i % 30, 1 + i % 12, 1)", "time_bucket(interval '1 day', ts)", "to_days(i % 100)",
    "iv + interval 1 day",
    # texts
    "upper(s)", "length(s)", "substring(s, 3, 5)", "reverse(s)", "replace(s, 'text', 'x')", "trim(s)",
    "lpad(s, 30, '*')", "concat_ws('-', s, ns, ds)", "split_part(s, ' ', 2)", "string_split(s, ' ')",
    "regexp_extract(s, '[0-9]+')", "regexp_replace(s, '[0-9]+', '#')", "regexp_extract_all(s, '[a-z]+')",
    "repeat(ns, 3)", "md5(s)", "sha256(s)", "hash(s)", "hex(s)", "to_base64(b)", "levenshtein(s, 'Some text 5')",
    "levenshtein(repeat(s, 4), repeat(s, 5))", "damerau_levenshtein(s, 'Some text 5')",
    "jaccard(s, 'Some text')", "translate(s, 'aeiou', '12345')", "strip_accents(s)", "printf('%d-%s', i, s)",
    "format('{}-{}', i, s)", "s like '%text%more%'", "s glob 'Some*'",
    "js->'who'", "js->>'$.who.name'", "js->>'$.who.ages[2]'", "json_valid(js)", "json_type(js, '$.id')", "json(js)",
    # numbers
    "round(x, 2)", "sqrt(x)", "power(x, 2)", "i % 7", "dec / 3", "cbrt(x)", "i & 255", "i << 2", "bit_count(i)",
    "gcd(i, 12)", "factorial(i % 10)", "to_hex(i)", "greatest(i, k)", "case when i % 2 = 0 then s else ns end",
    # lists
    "l[1]", "len(l)", "list_contains(l, 5)", "list_sum(l)", "list_sort(l)", "list_distinct(l)", "list_zip(l, l)",
    "list_transform(l, lambda x: x + 1)", "range(i % 5)", "array_to_string(l, ',')",
    "list_select(l, [1, 3])", "list_where(l, [true, false, true])", "list_resize(l, 5, 0)",
    "list_distance(l, [1, 2, 3])", "list_inner_product(l, l)", "list_cosine_similarity(l, [1, 2, 3])",
    # nested values and intervals as texts
    "l::varchar", "[s, ns]::varchar", "[x]::varchar", "{'a': i, 'b': s}::varchar", "iv::varchar",
)  # fmt: skip


def cases(options: argparse.Namespace) -> Iterator[Case]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set timezone = 'UTC'")
    connection.execute(f"create table t as {TABLE.format(rows=options.rows)}")
    with bm.connect(threads=1) as session:
        table = connection.sql("from t").to_arrow_table()
        session.register("t", table)
        for text in EXPRESSIONS:
            query = f"select {text} as v from t"
            floor = table.nbytes // table.num_columns + session.sql(query).collect().nbytes
            works = {
                "bireme": lambda query=query: session.sql(query).collect(),
                "duckdb": lambda query=query: connection.sql(query).to_arrow_table(),
            }
            yield Case(name=text, rows=options.rows, floor_bytes=floor, works=works)


if __name__ == "__main__":
    parser = family_parser(__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    run_family("functions", cases, parser)

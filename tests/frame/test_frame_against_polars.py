"""The DataFrame API gives what Polars gives for the same chain of calls."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from support.polars_rows import Case, by_text, expected, rows

import bireme as bm


def between(module: Any, value: Any, low: int, high: int) -> Any:
    return value.is_between(low, high) if module is pl else value.between(low, high)


def filtered_count(module: Any, value: Any, condition: Any) -> Any:
    return value.filter(condition).count() if module is pl else value.count().filter(condition)


CASES: dict[str, Case] = {
    "filter": lambda m, s, t: s.filter(m.col("amount") > 0, m.col("shop") == "a"),
    "filter_null": lambda m, s, t: s.filter(m.col("shop").is_null() | m.col("ok")),
    "filter_not": lambda m, s, t: s.filter(~(m.col("amount") > 5)),
    "filter_is_in": lambda m, s, t: s.filter(m.col("shop").is_in(["a", "c"])),
    "select_names": lambda m, s, t: s.select("shop", "id"),
    "select_expressions": lambda m, s, t: s.select(m.col("id") + 1, twice=m.col("amount") * 2),
    "select_lists": lambda m, s, t: s.select(["id", "shop"]),
    "select_alias": lambda m, s, t: s.select((m.col("id") - m.col("amount")).alias("difference")),
    "select_aggregates": lambda m, s, t: s.select(
        m.col("amount").max().alias("most"), m.col("amount").count().alias("n"), m.col("price").min().alias("least")
    ),
    "with_columns": lambda m, s, t: s.with_columns(m.col("amount") + 1, new=m.col("id") * 10),
    "with_columns_aggregate": lambda m, s, t: s.with_columns(most=m.col("amount").max()),
    "drop": lambda m, s, t: s.drop("price", "ok"),
    "rename": lambda m, s, t: s.rename({"id": "number", "ok": "fine"}),
    "cast": lambda m, s, t: s.select(m.col("amount").cast(pl.Float64 if m is pl else "double"), "id"),
    "when": lambda m, s, t: s.select(
        "id",
        size=m.when(m.col("amount") > 9)
        .then(m.lit("big"))
        .when(m.col("amount") > 0)
        .then(m.lit("small"))
        .otherwise(m.lit("none")),
    ),
    "when_without_otherwise": lambda m, s, t: s.select("id", x=m.when(m.col("ok")).then(m.col("amount"))),
    "floor_division": lambda m, s, t: s.select("id", q=m.col("amount") // 4, r=m.col("amount") % 4),
    "true_division": lambda m, s, t: s.select("id", q=m.col("amount") / 4),
    "between": lambda m, s, t: s.filter(between(m, m.col("amount"), 5, 10)),
    "fill_null": lambda m, s, t: s.select("id", m.col("shop").fill_null("?"), m.col("amount").fill_null(0)),
    "eq_missing": lambda m, s, t: s.filter(m.col("shop").eq_missing(m.lit(None, pl.String if m is pl else "varchar"))),
    "group_by": lambda m, s, t: s.group_by("shop").agg(
        m.col("id").max().alias("most"), m.col("amount").count().alias("n")
    ),
    "group_by_two": lambda m, s, t: s.group_by("shop", "ok").agg(m.col("id").min().alias("least")),
    "group_by_expression": lambda m, s, t: s.group_by(big=m.col("amount") > 5).agg(n=m.col("id").count()),
    "group_by_len": lambda m, s, t: s.group_by("shop").agg(m.len() if m is pl else m.count()),
    "group_by_mean_std": lambda m, s, t: s.group_by("shop").agg(
        mean=m.col("id").mean(), std=m.col("id").std(), var=m.col("id").var(0)
    ),
    "group_by_first_last": lambda m, s, t: s.group_by("shop").agg(f=m.col("amount").first(), l=m.col("amount").last()),
    "group_by_n_unique": lambda m, s, t: s.group_by("shop").agg(n=m.col("amount").n_unique()),
    "group_by_filtered": lambda m, s, t: s.group_by("shop").agg(n=filtered_count(m, m.col("id"), m.col("amount") > 5)),
    "group_by_arithmetic": lambda m, s, t: s.group_by("shop").agg(x=m.col("id").max() - m.col("id").min() + 1),
    "over": lambda m, s, t: s.with_columns(most=m.col("id").max().over("shop")),
    "join_inner": lambda m, s, t: s.join(t, on="shop"),
    "join_left": lambda m, s, t: s.join(t, on="shop", how="left"),
    "join_right": lambda m, s, t: s.join(t, on="shop", how="right"),
    "join_full": lambda m, s, t: s.join(t, on="shop", how="full"),
    "join_semi": lambda m, s, t: s.join(t, on="shop", how="semi"),
    "join_anti": lambda m, s, t: s.join(t, on="shop", how="anti"),
    "join_cross": lambda m, s, t: s.select("id").join(t.select("city"), how="cross"),
    "join_keys": lambda m, s, t: s.join(t.rename({"shop": "name"}), left_on="shop", right_on="name"),
    "join_nulls_equal": lambda m, s, t: s.join(t, on="shop", nulls_equal=True),
    "unique": lambda m, s, t: s.select("shop", "ok").unique(),
    "unique_subset": lambda m, s, t: s.unique(subset=["shop"], keep="first"),
    "unique_last": lambda m, s, t: s.unique(subset=["shop"], keep="last"),
    "str_case": lambda m, s, t: s.select(u=m.col("shop").str.to_uppercase(), n=m.col("shop").str.len_chars()),
    "str_tests": lambda m, s, t: t.select(
        "shop",
        a=m.col("city").str.starts_with("N"),
        b=m.col("city").str.ends_with("o"),
        c=m.col("city").str.contains("r[gv]"),
        d=m.col("city").str.contains("er", literal=True),
    ),
    "str_plus": lambda m, s, t: t.select(a=m.col("shop") + "-" + m.col("city"), b=m.lit(">") + m.col("shop")),
    "str_slice": lambda m, s, t: t.select(
        "shop", a=m.col("city").str.slice(1, 3), b=m.col("city").str.slice(-2), c=m.col("city").str.head(2)
    ),
    "str_replace": lambda m, s, t: t.select("shop", a=m.col("city").str.replace_all("r", "RR", literal=True)),
    "str_strip": lambda m, s, t: t.select("shop", a=m.col("city").str.strip_chars("No")),
    "str_pad": lambda m, s, t: t.select("shop", a=m.col("city").str.pad_start(8, "*"), b=m.col("city").str.pad_end(5)),
    "dt_parts": lambda m, s, t: s.select(
        "id",
        y=m.col("day").dt.year(),
        m=m.col("day").dt.month(),
        d=m.col("day").dt.day(),
        q=m.col("day").dt.quarter(),
        w=m.col("day").dt.weekday(),
        o=m.col("day").dt.ordinal_day(),
        k=m.col("day").dt.week(),
    ),
    "dt_compare": lambda m, s, t: s.filter(m.col("day") < datetime.date(1994, 2, 1)),
    "decimals": lambda m, s, t: s.filter(m.col("cost") > Decimal("1.00")).select("id", "cost"),
    "concat": lambda m, s, t: m.concat([s.select("id", "shop"), s.select("id", "shop").filter(m.col("id") > 6)]),
    "all_but": lambda m, s, t: s.select(m.exclude("price", "ok")),
}

ORDERED: dict[str, Case] = {
    "sort": lambda m, s, t: s.sort("amount"),
    "sort_descending": lambda m, s, t: s.sort("shop", "id", descending=[True, False]),
    "sort_nulls_last": lambda m, s, t: s.sort("day", nulls_last=True),
    "sort_expression": lambda m, s, t: s.sort(m.col("id") * -1),
    "sort_nan": lambda m, s, t: s.sort("price", nulls_last=True),
    "head": lambda m, s, t: s.head(3),
    "slice": lambda m, s, t: s.slice(2, 4),
    "slice_beyond": lambda m, s, t: s.slice(6, 10),
    "sort_head": lambda m, s, t: s.sort("id", descending=True).head(2),
    "filter_keeps_order": lambda m, s, t: s.filter(m.col("id") > 2).head(3),
    "head_zero": lambda m, s, t: s.head(0),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_polars(name: str, sales: bm.Frame, shops: bm.Frame) -> None:
    result, wanted = CASES[name](bm, sales, shops), expected(CASES[name])
    table = result.collect()
    assert table.column_names == wanted.columns
    assert table.schema.equals(result.schema), "the schema was known before"
    assert sorted(rows(table), key=by_text) == sorted(rows(wanted.to_arrow()), key=by_text)


@pytest.mark.parametrize("name", ORDERED)
def test_rows_and_their_order_are_those_of_polars(name: str, sales: bm.Frame, shops: bm.Frame) -> None:
    table, wanted = ORDERED[name](bm, sales, shops).collect(), expected(ORDERED[name])
    assert table.column_names == wanted.columns
    assert rows(table) == rows(wanted.to_arrow())

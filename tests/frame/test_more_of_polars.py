"""Windows, shapes, lists, texts and dates of the DataFrame API give what Polars gives for the same chain of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from support.polars_rows import Case, by_text, expected, rows

import bireme as bm
from bireme.errors import ArgumentFault


def floats(m: Any, value: Any) -> Any:
    """Sums and counts of integers have other types here: as doubles both print alike."""
    return value.cast(pl.Float64 if m is pl else "double")


TRADES = pa.table({"t": [1, 3, 5, 7, 9, 10], "k": ["a", "b", "a", "b", "a", "c"], "id": [1, 2, 3, 4, 5, 6]})
QUOTES = pa.table({"t": [0, 3, 4, 5, 8], "k": ["a", "b", "a", "a", "b"], "bid": [10, 11, 12, 13, 14]})
ASOF: dict[str, dict[str, Any]] = {
    "backward": {"on": "t", "by": "k"},
    "forward": {"on": "t", "by": "k", "strategy": "forward"},
    "strict": {"on": "t", "allow_exact_matches": False},
    "names": {"left_on": "t", "right_on": "at", "by_left": "k", "by_right": "key"},
}


def pivoted(m: Any, s: Any) -> Any:
    given = {"on_columns": ["a", "b"], "index": "ok", "values": "amount", "aggregate_function": "max"}
    return s.filter(m.col("shop").is_in(["a", "b"])).pivot("shop", **given)


CASES: dict[str, Case] = {
    "tail": lambda m, s, t: s.tail(3),
    "tail_zero": lambda m, s, t: s.tail(0),
    "tail_more": lambda m, s, t: s.tail(100),
    "slice_from_end": lambda m, s, t: s.slice(-4, 2),
    "slice_before_start": lambda m, s, t: s.slice(-10, 5),
    "slice_to_end": lambda m, s, t: s.slice(-2),
    "first_last": lambda m, s, t: m.concat([s.first(), s.last()]),
    "reverse": lambda m, s, t: s.select("id", "shop").reverse(),
    "gather_every": lambda m, s, t: s.gather_every(3, 1),
    "top_k": lambda m, s, t: s.select("id", "amount").top_k(3, by="amount").sort("amount", "id"),
    "bottom_k": lambda m, s, t: s.select("amount").bottom_k(2, by="amount").sort("amount"),
    "remove": lambda m, s, t: s.remove(m.col("amount") > 5),
    "drop_nulls": lambda m, s, t: s.drop_nulls(),
    "drop_nulls_subset": lambda m, s, t: s.drop_nulls(["shop"]),
    "drop_nans": lambda m, s, t: s.drop_nans(),
    "with_row_index": lambda m, s, t: s.with_row_index("n", 10).select(floats(m, m.col("n")), "id"),
    "fill_null": lambda m, s, t: s.select("shop", "day").fill_null("?"),
    "fill_nan": lambda m, s, t: s.select("id", "price").fill_nan(0.0),
    "null_count": lambda m, s, t: s.select("id", "shop", "amount").null_count(),
    "unpivot": lambda m, s, t: s.unpivot(["id", "amount"], index="shop"),
    "unpivot_names": lambda m, s, t: s.select("id", "amount", "ok").unpivot(
        index=["ok"], variable_name="what", value_name="much"
    ),
    "pivot": lambda m, s, t: pivoted(m, s).sort("ok"),
    "explode": lambda m, s, t: t.with_columns(l=m.col("city").str.split("e")).explode("l"),
    "explode_of_group": lambda m, s, t: s.group_by("ok").agg(m.col("id").implode() if m is bm else "id").explode("id"),
    "median": lambda m, s, t: s.select(a=m.col("id").median(), b=m.col("amount").quantile(0.3, "linear")),
    "is_between": lambda m, s, t: s.select(
        a=m.col("id").is_between(2, 4),
        b=m.col("id").is_between(2, 4, closed="left"),
        c=m.col("id").is_between(2, 4, "none"),
    ),
    "math": lambda m, s, t: s.select(
        a=m.col("id").log(2), b=m.col("id").log10(), c=m.col("id").sin(), d=m.col("id").arctan(), e=m.col("id").pow(2.0)
    ),
    "clip": lambda m, s, t: s.select(a=m.col("amount").clip(0, 8), b=m.col("amount").clip(lower_bound=5)),
    "float_tests": lambda m, s, t: s.select(
        a=m.col("price").is_nan(),
        b=m.col("price").is_finite(),
        c=m.col("price").is_not_nan(),
        d=m.col("price").fill_nan(1),
    ),
    "shift": lambda m, s, t: s.select(
        a=m.col("id").shift(), b=m.col("id").shift(-2), c=m.col("shop").shift(2, fill_value="none")
    ),
    "diff": lambda m, s, t: s.select(a=m.col("id").diff(), b=m.col("amount").diff(2), c=m.col("id").pct_change()),
    "fills": lambda m, s, t: s.select(a=m.col("amount").forward_fill(), b=m.col("shop").backward_fill()),
    "cumulated": lambda m, s, t: s.select(
        a=floats(m, m.col("amount").cum_sum()),
        b=m.col("amount").cum_min(),
        c=m.col("amount").cum_max(reverse=True),
        d=floats(m, m.col("amount").cum_count()),
    ),
    "ranks": lambda m, s, t: s.select(
        a=m.col("amount").rank(),
        b=floats(m, m.col("amount").rank("min")),
        c=floats(m, m.col("amount").rank("dense", descending=True)),
        d=floats(m, m.col("amount").rank("max")),
        e=floats(m, m.col("id").rank("ordinal", descending=True)),
    ),
    "rolling": lambda m, s, t: s.select(
        a=floats(m, m.col("id").rolling_sum(3)),
        b=m.col("amount").rolling_mean(3, min_samples=1),
        c=m.col("id").rolling_max(2),
        d=m.col("id").rolling_std(4),
        e=m.col("id").rolling_min(3, center=True),
    ),
    "unique_flags": lambda m, s, t: s.select(
        a=m.col("shop").is_unique(), b=m.col("shop").is_duplicated(), c=m.col("shop").is_first_distinct()
    ),
    "over_expression": lambda m, s, t: s.select("id", x=(m.col("id") - m.col("id").mean()).over("shop")),
    "over_ordered": lambda m, s, t: s.select("id", x=m.col("id").shift().over("shop", order_by="amount")),
    "over_whole": lambda m, s, t: s.select("id", x=m.col("id").max().over("shop", order_by="day")),
    "over_first": lambda m, s, t: s.filter(m.col("id") != 3).select(
        "id", x=m.col("id").first().over("shop", order_by="amount")
    ),
    "over_running": lambda m, s, t: s.select("id", x=floats(m, m.col("id").cum_sum().over("shop"))),
    "over_rank": lambda m, s, t: s.select("id", x=m.col("amount").rank().over("shop")),
    "text": lambda m, s, t: t.select(
        a=m.col("city").str.len_bytes(),
        b=m.col("city").str.strip_prefix("Os"),
        c=m.col("city").str.strip_suffix("n"),
        d=m.lit("-7").str.zfill(4),
        e=m.col("city").str.count_matches("[er]"),
        f=m.col("city").str.find("r", literal=True),
    ),
    "text_lists": lambda m, s, t: t.select(a=m.col("city").str.split("r"), b=m.col("city").str.extract_all("[a-n]+")),
    "text_dates": lambda m, s, t: s.select(
        a=("0" + m.col("id").cast(pl.String if m is pl else "varchar") + "/02/2024").str.to_date("%d/%m/%Y"),
        b=m.col("shop").str.to_date("%d/%m/%Y", strict=False),
    ),
    "dates": lambda m, s, t: s.select(
        a=m.col("day").dt.month_start().dt.date(),
        b=m.col("day").dt.month_end().dt.date(),
        c=m.col("day").dt.is_leap_year(),
        d=m.col("day").dt.iso_year(),
        e=m.col("day").dt.century(),
        f=m.col("day").dt.epoch("ms"),
    ),
    "lists": lambda m, s, t: t.with_columns(l=m.col("city").str.split("e")).select(
        a=m.col("l").list.len(),
        b=m.col("l").list.first(),
        u=m.col("l").list.eval(m.element() + "!"),
        v=m.col("l").list.filter(m.element() != "Ni"),
        c=m.col("l").list.get(-1),
        d=m.col("l").list.contains("Ni"),
        e=m.col("l").list.join("+"),
        f=m.col("l").list.sort(descending=True),
        g=m.col("l").list.reverse(),
        h=m.col("l").list.head(1),
        i=m.col("l").list.tail(1),
        j=m.col("l").list.slice(1, 1),
        k=m.col("l").list.slice(-1, 1),
    ),
    "horizontal": lambda m, s, t: s.select(
        a=m.coalesce("amount", m.col("id")),
        b=m.max_horizontal("id", "amount"),
        c=m.min_horizontal("id", "amount"),
        d=m.sum_horizontal("id", "amount"),
        e=m.all_horizontal("ok", m.col("id") > 3),
        f=m.any_horizontal("ok", m.col("id") > 3),
        g=m.concat_str("id", "shop", separator="-"),
        h=m.concat_str(["id", "shop"], separator="-", ignore_nulls=True),
    ),
    "together": lambda m, s, t: s.select(a=m.corr("id", "amount"), b=m.cov("id", "amount")),
    "nulls": lambda m, s, t: s.group_by("shop").agg(
        a=floats(m, m.col("amount").null_count()),
        b=floats(m, m.col("amount").len()),
        c=floats(m, m.col("amount").product()).fill_null(1.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_polars(name: str, sales: bm.Frame, shops: bm.Frame) -> None:
    result, wanted = CASES[name](bm, sales, shops), expected(CASES[name])
    table = result.collect()
    assert table.column_names == wanted.columns
    assert sorted(rows(table), key=by_text) == sorted(rows(wanted.to_arrow()), key=by_text)


@pytest.mark.parametrize("name", ASOF)
def test_rows_of_asof_joins_are_those_of_polars(name: str) -> None:
    given = ASOF[name]
    quotes = QUOTES.rename_columns(["at", "key", "bid"]) if name == "names" else QUOTES
    with bm.connect(threads=1) as session:
        found = session.from_arrow(TRADES).join_asof(session.from_arrow(quotes), **given).collect()
    trades, others = pl.from_arrow(TRADES), pl.from_arrow(quotes)
    assert isinstance(trades, pl.DataFrame)
    assert isinstance(others, pl.DataFrame)
    wanted = trades.join_asof(others, **given)
    assert found.column_names == wanted.columns
    assert sorted(rows(found), key=by_text) == sorted(rows(wanted.to_arrow()), key=by_text)


def test_the_order_of_rows_is_kept(sales: bm.Frame) -> None:
    assert sales.tail(3).collect()["id"].to_pylist() == [6, 7, 8]
    assert sales.reverse().collect()["id"].to_pylist() == [8, 7, 6, 5, 4, 3, 2, 1]
    assert sales.with_row_index().collect()["index"].to_pylist() == list(range(8))


@pytest.mark.parametrize(
    ("call", "fault", "message"),
    [
        (lambda s: s.explode([]), ArgumentFault, "needs a column"),
        (lambda s: s.explode("id"), Exception, "columns of lists"),
        (lambda s: s.gather_every(0), ArgumentFault, "at least 1"),
        (lambda s: s.pivot("shop", on_columns=[], index="id", values="id"), ArgumentFault, "needs the values"),
        (
            lambda s: s.pivot("shop", on_columns=["a"], index="id", values="id", aggregate_function="x"),
            ArgumentFault, "one of",
        ),
        (lambda s: s.select(bm.col("id").rank("best")), ArgumentFault, "method must be"),
        (lambda s: s.select(bm.col("id").rolling_sum(0)), ArgumentFault, "at least 1"),
        (lambda s: s.select(bm.col("id").quantile(0.5)), ArgumentFault, "interpolation"),
        (lambda s: s.group_by("shop").agg(bm.col("id").shift().max()), ArgumentFault, "cannot stand here"),
        (lambda s: s.group_by("shop").agg(bm.col("id").shift()), ArgumentFault, "with_columns"),
        (lambda s: s.select(bm.col("id").over("shop")), ArgumentFault, "behind an aggregate"),
    ],
)  # fmt: skip
def test_faults(call: Callable[[bm.Frame], object], fault: type[Exception], message: str, sales: bm.Frame) -> None:
    with pytest.raises(fault, match=message):
        call(sales)

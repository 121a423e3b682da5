"""TPC-H queries through the DataFrame API, with the same answers as the SQL texts beside this file.

Each function takes a session in which the eight tables are registered, and gives a lazy frame.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import bireme as bm
from bireme import col, lit

REVENUE = col("l_extendedprice") * (1 - col("l_discount"))


def q1(session: bm.Session) -> bm.Frame:
    price, discount, tax = col("l_extendedprice"), col("l_discount"), col("l_tax")
    return (
        session.table("lineitem")
        .filter(col("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=col("l_quantity").sum(),
            sum_base_price=price.sum(),
            sum_disc_price=(price * (1 - discount)).sum(),
            sum_charge=(price * (1 - discount) * (1 + tax)).sum(),
            avg_qty=col("l_quantity").mean(),
            avg_price=price.mean(),
            avg_disc=discount.mean(),
            count_order=bm.count(),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q3(session: bm.Session) -> bm.Frame:
    cut = date(1995, 3, 15)
    customer = session.table("customer").filter(col("c_mktsegment") == "BUILDING")
    orders = session.table("orders").filter(col("o_orderdate") < cut)
    return (
        session.table("lineitem")
        .filter(col("l_shipdate") > cut)
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(customer, left_on="o_custkey", right_on="c_custkey")
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue=REVENUE.sum())
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
    )


def q4(session: bm.Session) -> bm.Frame:
    late = session.table("lineitem").filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        session.table("orders")
        .filter(col("o_orderdate") >= date(1993, 7, 1), col("o_orderdate") < date(1993, 10, 1))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=bm.count())
        .sort("o_orderpriority")
    )


def q5(session: bm.Session) -> bm.Frame:
    asia = session.table("region").filter(col("r_name") == "ASIA")
    nation = session.table("nation").join(asia, left_on="n_regionkey", right_on="r_regionkey", how="semi")
    orders = session.table("orders").filter(
        col("o_orderdate") >= date(1994, 1, 1), col("o_orderdate") < date(1995, 1, 1)
    )
    supplier = session.table("supplier")
    return (
        session.table("customer")
        .join(nation, left_on="c_nationkey", right_on="n_nationkey")
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(session.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .join(supplier, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .group_by("n_name")
        .agg(revenue=REVENUE.sum())
        .sort("revenue", descending=True)
    )


def q6(session: bm.Session) -> bm.Frame:
    return (
        session.table("lineitem")
        .filter(
            col("l_shipdate") >= date(1994, 1, 1),
            col("l_shipdate") < date(1995, 1, 1),
            col("l_discount").between(lit("0.05", "decimal(15,2)"), lit("0.07", "decimal(15,2)")),
            col("l_quantity") < 24,
        )
        .select(revenue=(col("l_extendedprice") * col("l_discount")).sum())
    )


def q9(session: bm.Session) -> bm.Frame:
    part = session.table("part").filter(col("p_name").str.contains("green", literal=True))
    amount = REVENUE - col("ps_supplycost") * col("l_quantity")
    return (
        session.table("lineitem")
        .join(part, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(session.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(session.table("partsupp"), left_on=["l_suppkey", "l_partkey"], right_on=["ps_suppkey", "ps_partkey"])
        .join(session.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .join(session.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .select(nation="n_name", o_year=col("o_orderdate").dt.year(), amount=amount)
        .group_by("nation", "o_year")
        .agg(sum_profit=col("amount").sum())
        .sort("nation", "o_year", descending=[False, True])
    )


def q10(session: bm.Session) -> bm.Frame:
    orders = session.table("orders").filter(
        col("o_orderdate") >= date(1993, 10, 1), col("o_orderdate") < date(1994, 1, 1)
    )
    keys = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    return (
        session.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(session.table("lineitem").filter(col("l_returnflag") == "R"), left_on="o_orderkey", right_on="l_orderkey")
        .join(session.table("nation"), left_on="c_nationkey", right_on="n_nationkey")
        .group_by(*keys)
        .agg(revenue=REVENUE.sum())
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .sort("revenue", descending=True)
        .head(20)
    )


def q12(session: bm.Session) -> bm.Frame:
    urgent = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    lineitem = session.table("lineitem").filter(
        col("l_shipmode").is_in(["MAIL", "SHIP"]),
        col("l_commitdate") < col("l_receiptdate"),
        col("l_shipdate") < col("l_commitdate"),
        col("l_receiptdate") >= date(1994, 1, 1),
        col("l_receiptdate") < date(1995, 1, 1),
    )
    return (
        session.table("orders")
        .join(lineitem, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("l_shipmode")
        .agg(
            high_line_count=bm.when(urgent).then(1).otherwise(0).sum(),
            low_line_count=bm.when(urgent).then(0).otherwise(1).sum(),
        )
        .sort("l_shipmode")
    )


def q13(session: bm.Session) -> bm.Frame:
    orders = session.table("orders").filter(~col("o_comment").str.like("%special%requests%"))
    return (
        session.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c_count=col("o_orderkey").count())
        .group_by("c_count")
        .agg(custdist=bm.count())
        .sort("custdist", "c_count", descending=True)
    )


def q14(session: bm.Session) -> bm.Frame:
    promotion = bm.when(col("p_type").str.starts_with("PROMO")).then(REVENUE).otherwise(lit(0))
    return (
        session.table("lineitem")
        .filter(col("l_shipdate") >= date(1995, 9, 1), col("l_shipdate") < date(1995, 10, 1))
        .join(session.table("part"), left_on="l_partkey", right_on="p_partkey")
        .select(promo_revenue=100.0 * promotion.sum() / REVENUE.sum())
    )


def q18(session: bm.Session) -> bm.Frame:
    large = (
        session.table("lineitem")
        .group_by("l_orderkey")
        .agg(quantity=col("l_quantity").sum())
        .filter(col("quantity") > 300)
    )
    return (
        session.table("customer")
        .join(session.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .join(large, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .join(session.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .group_by("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(col("l_quantity").sum())
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .head(100)
    )


def q21(session: bm.Session) -> bm.Frame:
    lineitem = session.table("lineitem")
    suppliers = lineitem.group_by("l_orderkey").agg(suppliers=col("l_suppkey").n_unique())
    late = lineitem.filter(col("l_receiptdate") > col("l_commitdate"))
    late_suppliers = late.group_by("l_orderkey").agg(late_suppliers=col("l_suppkey").n_unique())
    saudi = session.table("nation").filter(col("n_name") == "SAUDI ARABIA")
    return (
        session.table("supplier")
        .join(saudi, left_on="s_nationkey", right_on="n_nationkey", how="semi")
        .join(late, left_on="s_suppkey", right_on="l_suppkey")
        .join(
            session.table("orders").filter(col("o_orderstatus") == "F"),
            left_on="l_orderkey",
            right_on="o_orderkey",
            how="semi",
        )
        .join(suppliers.filter(col("suppliers") > 1), on="l_orderkey", how="semi")
        .join(late_suppliers.filter(col("late_suppliers") == 1), on="l_orderkey", how="semi")
        .group_by("s_name")
        .agg(numwait=bm.count())
        .sort("numwait", "s_name", descending=[True, False])
        .head(100)
    )


QUERIES: dict[int, Callable[[bm.Session], bm.Frame]] = {
    1: q1, 3: q3, 4: q4, 5: q5, 6: q6, 9: q9, 10: q10, 12: q12, 13: q13, 14: q14, 18: q18, 21: q21,
}  # fmt: skip

"""One chain of calls in bireme and in Polars, over the same small tables, with rows that can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa

from support.small_tables import SALES, SHOPS

# Each case is one function of (module, sales, shops): it is called with bireme and with Polars.
Case = Callable[[Any, Any, Any], Any]


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9) + 0.0
    return float(value) if isinstance(value, Decimal) else value


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(plain(value) for value in row.values()) for row in table.to_pylist()]


def by_text(row: tuple[Any, ...]) -> str:
    return repr(row)


def expected(case: Case) -> pl.DataFrame:
    sales, shops = pl.from_arrow(SALES), pl.from_arrow(SHOPS)
    assert isinstance(sales, pl.DataFrame)
    assert isinstance(shops, pl.DataFrame)
    return case(pl, sales.lazy(), shops.lazy()).collect()

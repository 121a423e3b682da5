"""Two small tables with NULLs, NaN, old dates and duplicate keys, for tests of front ends."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa

SALES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
        "shop": pa.array(["a", "b", "a", None, "c", "b", "a", "é"], pa.string()),
        "amount": pa.array([10, -3, None, 7, 0, 12, 10, 5], pa.int32()),
        "price": pa.array([1.5, float("nan"), 2.25, None, -0.0, 3.0, 9.75, 1e300], pa.float64()),
        "cost": pa.array(
            [
                Decimal("1.10"),
                None,
                Decimal("-2.50"),
                Decimal("0.00"),
                Decimal("3.75"),
                Decimal("9.99"),
                Decimal("1.10"),
                None,
            ],
            pa.decimal128(15, 2),
        ),
        "day": pa.array(
            [datetime.date(1994, 1, 31), datetime.date(1969, 12, 31), None, datetime.date(2024, 2, 29)] * 2, pa.date32()
        ),
        "ok": pa.array([True, False, None, True, False, None, True, False], pa.bool_()),
    }
)
SHOPS = pa.table(
    {
        "shop": pa.array(["a", "b", "d", None], pa.string()),
        "city": pa.array(["Oslo", "Bergen", "Narvik", "Nowhere"], pa.string()),
        "id": pa.array([100, 200, 300, 400], pa.int64()),
    }
)

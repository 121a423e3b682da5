"""Arrays by their buffers: what pyarrow's own converters give, without the import of pandas that these begin with."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bireme.data import arrays

SIZES = (0, 1, 7, 8, 9, 100)
KINDS = (np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", SIZES)
def test_values_go_and_come(kind: type, rows: int) -> None:
    random = np.random.default_rng(rows)
    values = (random.random(rows) * 5).astype(kind)
    missing = random.random(rows) < 0.3
    array, plain = arrays.from_numpy(values, missing=missing), arrays.from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, mask=missing))
    assert plain.equals(pa.array(values))
    if kind is not np.bool_:
        assert (arrays.to_numpy(plain) == values).all()
        assert (arrays.to_numpy(plain.slice(rows // 2)) == values[rows // 2 :]).all()


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_flags_of_slices(values: list[bool | None], start: int, length: int) -> None:
    array = pa.array(values, pa.bool_()).slice(min(start, len(values)), length)
    assert arrays.is_true(array).tolist() == [value is True for value in array.to_pylist()]
    assert arrays.is_false(array).tolist() == [value is False for value in array.to_pylist()]
    assert arrays.is_valid(array).tolist() == array.is_valid().to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.string(), pa.bool_(), pa.null(), pa.dictionary(pa.int32(), pa.string())]
)
def test_nothing_is_valid_among_nulls(kind: pa.DataType) -> None:
    assert not arrays.is_valid(pa.nulls(9, kind)).any()


def test_pandas_stays_out() -> None:
    program = """
import sys
import numpy as np
import pyarrow as pa
from bireme.data import arrays, record
from bireme.data.schema import Schema
numbers = arrays.from_numpy(np.arange(9), missing=np.arange(9) % 2 == 0)
arrays.to_numpy(numbers), arrays.is_valid(numbers), arrays.is_true(arrays.from_numpy(np.ones(3, np.bool_)))
record.empty(Schema.from_arrow(pa.schema([("a", pa.string()), ("b", pa.int64())])))
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

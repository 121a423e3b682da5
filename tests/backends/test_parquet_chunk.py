"""The chunk reader against pyarrow, over selections of rows."""

import decimal
import random

import pyarrow as pa
import pytest
from support.parquet_chunks import chunk_of, written

ROWS = 6000


def _drawn(rng: random.Random, null_share: float) -> dict[str, tuple[pa.Array, pa.DataType]]:
    """Columns by name, and the type in which the engine reads each."""

    def column(draw, stored: pa.DataType, target: pa.DataType | None = None) -> tuple[pa.Array, pa.DataType]:
        values = [None if rng.random() < null_share else draw() for _ in range(ROWS)]
        return pa.array(values, stored), target or stored

    def cents() -> decimal.Decimal:
        return decimal.Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2)

    return {
        "int64": column(lambda: rng.randrange(-1000, 1000), pa.int64()),
        "int32": column(lambda: rng.randrange(2**31), pa.int32()),
        "int8": column(lambda: rng.randrange(-128, 128), pa.int8()),
        "text": column(lambda: f"word é {rng.randrange(400)}", pa.string()),
        "decimal": column(cents, pa.decimal128(12, 2), pa.decimal64(12, 2)),
        "wide decimal": column(cents, pa.decimal128(30, 2)),
        "date": column(lambda: rng.randrange(20000), pa.date32()),
    }


def _selections(rng: random.Random) -> list[pa.Array | None]:
    chosen = [sorted(rng.sample(range(ROWS), count)) for count in (0, 1, 60, 4000)]
    chosen.append(list(range(777, 5000)))
    return [None, *[pa.array(rows, pa.uint32()) for rows in chosen]]


@pytest.mark.parametrize("null_share", [0, 0.2, 0.999])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary_bytes", [0, 3000, 2**20])
def test_reads_what_pyarrow_reads(null_share, version, dictionary_bytes):
    rng = random.Random(7)
    drawn = _drawn(rng, null_share)
    content = written(
        pa.table({name: array for name, (array, _) in drawn.items()}),
        compression=rng.choice(["none", "snappy", "zstd"]),
        write_page_checksum=True,
        data_page_version=version,
        data_page_size=5000,
        use_dictionary=dictionary_bytes > 0,
        dictionary_pagesize_limit=dictionary_bytes or 1,
    )
    for column, (array, target) in enumerate(drawn.values()):
        expected = array.cast(target)
        chunk = chunk_of(content, target, column=column, is_indexed=rng.random() < 0.5)
        for rows in _selections(rng):
            found = pa.array(chunk.read(rows))
            found.validate(full=True)
            assert found.equals(expected if rows is None else expected.take(rows))


@pytest.mark.parametrize("null_share", [0, 0.2, 1])
def test_codes_and_the_rows_of_kept_codes(null_share):
    rng = random.Random(8)
    text, target = _drawn(rng, null_share)["text"]
    chunk = chunk_of(written(pa.table({"text": text}), data_page_size=2000), target)
    assert chunk.is_dictionary()
    words = pa.array(chunk.dictionary())
    keep = bytes(rng.random() < 0.3 for _ in words)
    for rows in _selections(rng):
        codes = pa.array(chunk.read_codes(rows))
        numbers = list(range(ROWS)) if rows is None else rows.to_pylist()
        assert words.take(codes).equals(text if rows is None else text.take(rows))
        for keep_null in (False, True):
            found = pa.array(chunk.select_codes(rows, keep, keep_null)).to_pylist()
            kept = [keep_null if code is None else keep[code] for code in codes.to_pylist()]
            assert found == [row for row, is_kept in zip(numbers, kept, strict=True) if is_kept]

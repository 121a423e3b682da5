"""Damaged files: the answer is rows or an error of ours that names the file, never pyarrow's error, never a crash."""

import base64
import os
import random
import struct

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest
from support.parquet_files import COLUMNS, fetch, pyarrow_file, read_rows, table_of

from bireme.data.types import BOOL, INT64
from bireme.errors import BiremeError, SourceCorrupt, SourceMissing, StorageError, Unsupported
from bireme.plan.expr import Call, Column, Literal
from bireme.storage.parquet import open_parquet

FEW = ["int64", "double", "decimal", "wide decimal", "string", "few strings", "date", "timestamp", "bool"]
TABLE = table_of(60, random.Random(7), columns={name: COLUMNS[name] for name in FEW})


def touch_everything(path):
    """All that planner and runtime ask of a table. The rows come as text: a damaged date may not be one of Python's."""
    source = open_parquet(path)
    columns = list(range(len(source.schema)))
    list(source.statistics().columns)
    source.sample(columns)
    positive = Call("gt", (Column(0, INT64), Literal(0, INT64)), BOOL)
    if columns and source.schema[0].type is INT64:
        source.splits(columns, [positive])
    assert all(split.decoded_bytes >= 0 for split in source.splits(columns, []))
    texts = []
    for split in source.splits(columns, []):
        for batch in split.decode(fetch(split)):
            texts.append("\n".join(str(column) for column in batch.columns))
    return texts


def damaged(content: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    data = bytearray(content)
    if kind == 0:
        return content[: rng.randrange(len(content))]
    if kind == 1:
        start = rng.randrange(len(data))
        return bytes(data[:start] + data[start + rng.randint(1, 40) :])
    # The footer is small but says everything: half of the flips hit it.
    (footer_length,) = struct.unpack("<I", data[-8:-4])
    low = len(data) - footer_length - 8 if kind == 2 else 0
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(low, len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_damage_gives_rows_or_an_error_of_ours(tmp_path, seed, checksums):
    rng = random.Random(seed)
    content = pyarrow_file(
        TABLE,
        row_group_size=25,
        compression=rng.choice(["none", "snappy", "zstd"]),
        write_page_checksum=checksums,
        store_decimal_as_integer=rng.random() < 0.5,
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(["1.0", "2.0"]),
    )
    path = tmp_path / "t.parquet"
    named = []
    for _ in range(60):
        path.write_bytes(damaged(content, rng))
        try:
            touch_everything(path)
        except BiremeError as error:
            named.append(error)
    assert all(isinstance(error, (StorageError, Unsupported)) and "t.parquet" in str(error) for error in named)
    assert len(named) > 20


def test_page_checksums_notice_every_flipped_bit_in_pages(tmp_path):
    content = pyarrow_file(TABLE, compression="none", write_page_checksum=True, use_dictionary=False)
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    expected = str(touch_everything(path))
    (footer_length,) = struct.unpack("<I", content[-8:-4])
    rng = random.Random(3)
    noticed = 0
    for _ in range(150):
        data = bytearray(content)
        data[rng.randrange(4, len(data) - footer_length - 8)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            # A flip in a page header's statistics or padding may change nothing; it must never change an answer.
            assert str(touch_everything(path)) == expected
        except SourceCorrupt:
            noticed += 1
    assert noticed > 100


def test_a_damaged_page_names_file_row_group_and_place(tmp_path):
    content = bytearray(pyarrow_file(TABLE.select(["int64", "string"]), row_group_size=30, write_page_checksum=True))
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    chunk = pq.read_metadata(path).row_group(1).column(1)
    content[chunk.dictionary_page_offset + chunk.total_compressed_size - 5] ^= 4
    path.write_bytes(content)
    source = open_parquet(path)
    with pytest.raises(SourceCorrupt, match=r"t\.parquet', row group 1, column 'string' is damaged"):
        read_rows(source, [0, 1])
    assert len(read_rows(source, [0])) == 60


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", SourceCorrupt, "is empty"),
        (b"P", SourceCorrupt, "not a Parquet file"),
        (b"PAR1", SourceCorrupt, "not a Parquet file"),
        (b"PAR1PAR1", SourceCorrupt, "not a Parquet file"),
        (b"a,b\n1,2\n" * 100, SourceCorrupt, "not a Parquet file"),
        (b"PAR1" + b"x" * 90 + struct.pack("<I", 50) + b"PARE", Unsupported, "encrypted"),
        (b"PAR1" + b"x" * 90 + struct.pack("<I", 1 << 31) + b"PAR1", SourceCorrupt, "footer of 2147483648 bytes"),
        (b"PAR1" + b"x" * 90 + struct.pack("<I", 50) + b"PAR1", SourceCorrupt, "footer cannot be read"),
        (b"PAR1" + struct.pack("<I", 0) + b"PAR1", SourceCorrupt, "footer cannot be read"),
    ],
)
def test_what_is_not_parquet_is_said(tmp_path, content, error, message):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        open_parquet(tmp_path / "t.parquet")
    assert "t.parquet" in str(caught.value)


def test_half_a_file_is_said(tmp_path):
    content = pyarrow_file(TABLE)
    (tmp_path / "t.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(SourceCorrupt, match="cut off"):
        open_parquet(tmp_path / "t.parquet")


def test_missing_and_unreadable(tmp_path):
    with pytest.raises(SourceMissing, match="no file or folder"):
        open_parquet(tmp_path / "missing.parquet")
    (tmp_path / "loop.parquet").symlink_to(tmp_path / "loop.parquet")
    with pytest.raises(StorageError):
        open_parquet(tmp_path / "loop.parquet")
    if os.getuid():
        path = tmp_path / "secret.parquet"
        path.write_bytes(pyarrow_file(TABLE))
        path.chmod(0)
        with pytest.raises(StorageError, match="right to read"):
            open_parquet(path)


class PlainKeys(encryption.KmsClient):
    """Wraps keys by encoding them: enough to write a file that needs a key."""

    def __init__(self, _):
        super().__init__()

    def wrap_key(self, key_bytes, _):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, _):
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plain_footer", [False, True])
def test_an_encrypted_file_is_said(tmp_path, plain_footer):
    configuration = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["int64"]}, plaintext_footer=plain_footer
    )
    properties = encryption.CryptoFactory(PlainKeys).file_encryption_properties(
        encryption.KmsConnectionConfig(), configuration
    )
    pq.write_table(TABLE, tmp_path / "t.parquet", encryption_properties=properties)
    with pytest.raises(Unsupported, match=r"t\.parquet.*decrypt"):
        open_parquet(tmp_path / "t.parquet")

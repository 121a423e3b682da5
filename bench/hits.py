"""A table of page views made up here, in the manner of the one that ClickBench queries: 29 columns, strong skew.

    python bench/hits.py FOLDER [--rows 10000000]

Everything follows from the row number and a seed. Views lie in the order of their site (`counter_id`) and, within
it, of time. Popularity of sites, users, pages and phrases falls off like a power; most phrases are empty. Addresses,
titles and phrases are made of invented words, half of them Cyrillic, so that texts are not all ASCII.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SEED = 62
CHUNK_ROWS = 1 << 20
ROW_GROUP_ROWS = 1 << 17
DAYS = 31
FIRST_DAY = datetime.date(2013, 7, 1)
SITES = 6_000
REGIONS = 5_000
# Known to the queries: a site that is neither the largest nor small.
KNOWN_SITE, KNOWN_SITE_RANK = 62, 4

Keys = npt.NDArray[np.uint64]


def mixed(values: npt.NDArray[np.generic], salt: int) -> Keys:
    """Pseudo-random 64 bits for each value (the finalizer of splitmix64), other ones for each salt."""
    with np.errstate(over="ignore"):
        key = values.astype(np.uint64) + np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return key ^ (key >> np.uint64(31))


def drawn(keys: npt.NDArray[np.generic], salt: int) -> npt.NDArray[np.float64]:
    """A number from 0 to below 1 for each key: always the same for one key and salt."""
    return (mixed(keys, salt) >> np.uint64(11)).astype(np.float64) / 2.0**53


def ranked(random: np.random.Generator, rows: int, count: npt.NDArray[np.int64] | int, power: float) -> Keys:
    """Ranks below `count`, low ones often: the share of ranks below r is (r / count) ** (1 / power)."""
    return np.floor(count * random.random(rows) ** power).astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Invented words, and texts made of them."""

    words: pa.Array

    @classmethod
    def invented(cls, count: int) -> Vocabulary:
        random = np.random.default_rng(SEED)
        latin = ["ba", "ko", "ri", "tel", "mon", "sa", "vu", "ne", "dor", "lin", "ex", "pa"]
        cyrillic = ["ба", "ко", "ри", "тел", "мон", "са", "ву", "не", "дор", "лин", "ек", "па"]
        words = []
        for index in range(count):
            syllables = latin if index % 2 else cyrillic
            words.append("".join(random.choice(syllables, size=int(random.integers(2, 5)))))
        return cls(pa.array(words))

    def pick(self, keys: Keys, salt: int) -> pa.Array:
        """A word for each key, low numbers more often."""
        return self.words.take(pa.array(np.floor(len(self.words) * drawn(keys, salt) ** 2).astype(np.int64)))

    def phrases(self, keys: Keys, words_max: int, special: str) -> pa.Array:
        """One to `words_max` words for each key, of which one in five hundred is `special`."""
        length = mixed(keys, 90) % np.uint64(words_max) + np.uint64(1)
        parts = []
        for position in range(words_max):
            word = self.pick(keys, 91 + position)
            if position == 0:
                word = pc.if_else(pa.array(mixed(keys, 89) % np.uint64(500) == 0), special, word)
            parts.append(pc.if_else(pa.array(length > position), word, pa.scalar(None, pa.string())))
        return pc.binary_join_element_wise(*parts, " ", null_handling="skip")

    def addresses(self, keys: Keys, sites: npt.NDArray[np.generic]) -> pa.Array:
        """A page address for each key, on a host that belongs to the site."""
        latin = Vocabulary(self.words.filter(pa.array(np.arange(len(self.words)) % 2 == 1)))
        scheme = pa.array(["http://", "https://", "http://www."]).take(pa.array(mixed(sites, 1) % np.uint64(3)))
        suffix = pa.array([".ru/", ".com/", ".net/", ".com.tr/"]).take(pa.array(mixed(sites, 4) % np.uint64(4)))
        google = pa.array(mixed(keys, 6) % np.uint64(1000) == 0)
        folder = pc.if_else(google, "google", latin.pick(keys, 7))
        host = [scheme, latin.pick(mixed(sites, 2), 0), latin.pick(mixed(sites, 3), 0), suffix]
        number = pa.array(mixed(keys, 9) % np.uint64(10_000_000)).cast(pa.string())
        middle = pa.array(["/", "?id=", "/index.html?page=", "#/item/"]).take(pa.array(mixed(keys, 10) % np.uint64(4)))
        return pc.binary_join_element_wise(*host, folder, "/", latin.pick(keys, 8), middle, number, "")


@dataclass(frozen=True, slots=True)
class Sites:
    """Which site each row belongs to: rows lie in the order of the sites' numbers."""

    numbers: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def over(cls, rows: int) -> Sites:
        weights = (np.arange(SITES) + 1.0) ** -1.1
        numbers = np.random.default_rng(SEED).permutation(np.arange(1, 20 * SITES, 20))
        numbers[KNOWN_SITE_RANK] = KNOWN_SITE
        order = np.argsort(numbers)
        ends = np.round(np.cumsum(weights[order]) / weights.sum() * rows).astype(np.int64)
        ends[-1] = rows
        return cls(numbers[order], ends)

    def of(self, row: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """For each row the site's number, the row's position within the site, and how many rows the site has."""
        at = np.searchsorted(self.ends, row, side="right")
        starts = np.concatenate([[0], self.ends[:-1]])
        return self.numbers[at], row - starts[at], self.ends[at] - starts[at]


def page_key(sites: npt.NDArray[np.generic], rank: Keys) -> Keys:
    """What identifies the page of a rank on a site."""
    with np.errstate(over="ignore"):
        return mixed(sites.astype(np.uint64) * np.uint64(1 << 32) + rank, 11)


def chunk(sites: Sites, words: Vocabulary, first: int, rows: int, total: int) -> pa.Table:
    """The rows from `first` on, of a table of `total`."""
    random = np.random.default_rng([SEED, first])
    row = np.arange(first, first + rows)
    site, position, size = sites.of(row)
    user = ranked(random, rows, max(1, total // 5), 2.5)
    user_bits = mixed(user, 12)
    address = user * np.uint64(3) + random.integers(0, 3, rows).astype(np.uint64)
    seconds = np.clip(position / size * DAYS + random.normal(0, 0.2, rows), 0, DAYS - 1e-6) * 86_400
    start = np.datetime64(FIRST_DAY, "us")
    moment = start + seconds.astype(np.int64) * np.timedelta64(1_000_000, "us")
    columns = {
        "watch_id": pa.array(mixed(row, 13).astype(np.int64)),
        "event_time": pa.array(moment),
        "event_date": pa.array(moment.astype("datetime64[D]")),
        "counter_id": pa.array(site.astype(np.int32)),
        "client_ip": pa.array(mixed(address, 14).astype(np.int32)),
        "region_id": pa.array((REGIONS * drawn(user, 23) ** 4).astype(np.int32) + 1),
        "user_id": pa.array(user_bits.astype(np.int64)),
        **pages(random, words, site, size),
        **searches(random, words, rows, total),
        **devices(random, user_bits),
        **flags(random, rows),
    }  # fmt: skip
    return pa.table(columns)


def pages(
    random: np.random.Generator, words: Vocabulary, site: npt.NDArray[np.int64], site_rows: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    """What was looked at, and from where."""
    rows = len(site)
    rank = ranked(random, rows, site_rows, 3.0)
    kind = random.random(rows)
    # A fifth came from nowhere, a third from the same site, the rest from others, popular ones mostly.
    other_site = np.where(kind < 0.55, site, mixed(ranked(random, rows, SITES, 3.0), 15) % np.uint64(1 << 20))
    other = page_key(other_site, ranked(random, rows, np.where(kind < 0.55, site_rows, 1_000), 3.0))
    came = kind >= 0.2
    referer = pc.if_else(pa.array(came), words.addresses(other, other_site), "")
    page = page_key(site, rank)
    return {
        "url": words.addresses(page, site),
        "title": words.phrases(page_key(site, rank // np.uint64(3)), 9, "Google"),
        "referer": referer,
        "url_hash": pa.array(mixed(page, 16).astype(np.int64)),
        "referer_hash": pa.array(np.where(came, mixed(other, 16), np.uint64(0)).astype(np.int64)),
    }


def searches(random: np.random.Generator, words: Vocabulary, rows: int, total: int) -> dict[str, pa.Array]:
    """What was searched for, if that is how the page was found, and through which engine or advertisement."""
    searched = random.random(rows) < 0.13
    phrase = mixed(ranked(random, rows, max(1, total // 8), 2.0), 17)
    engine = np.where(searched | (random.random(rows) < 0.02), 1 + ranked(random, rows, 60, 4.0), 0)
    advertised = np.where(random.random(rows) < 0.006, 1 + ranked(random, rows, 20, 3.0), 0)
    source = random.choice(np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8], np.int16), rows, p=_SOURCE_SHARES)
    return {
        "search_phrase": pc.if_else(pa.array(searched), words.phrases(phrase, 5, "google"), ""),
        "search_engine_id": pa.array(engine.astype(np.int16)),
        "advertising_engine_id": pa.array(advertised.astype(np.int16)),
        "traffic_source_id": pa.array(source),
    }


_SOURCE_SHARES = np.array([0.3, 0.2, 0.2, 0.12, 0.08, 0.04, 0.02, 0.02, 0.01, 0.01])
_SCREENS = np.array([0, 320, 640, 800, 1024, 1152, 1280, 1366, 1440, 1600, 1680, 1920, 2560], np.int16)


def devices(random: np.random.Generator, user_bits: Keys) -> dict[str, pa.Array]:
    """What the user looks with: mostly the same for all views of a user."""
    rows = len(user_bits)
    mobile = mixed(user_bits, 18) % np.uint64(20) == 0
    model = np.floor(166 * drawn(user_bits, 24) ** 3).astype(np.int64)
    models = pa.array([f"model {chr(65 + index % 26)}{index}" for index in range(166)])
    screen = mixed(user_bits, 19) % np.uint64(len(_SCREENS))
    languages = pa.array(["ru", "en", "tr", "uk", "de", "kk", "be", ""])
    return {
        "mobile_phone": pa.array(np.where(mobile, 1 + model % 70, 0).astype(np.int16)),
        "mobile_phone_model": pc.if_else(pa.array(mobile), models.take(pa.array(model)), ""),
        "resolution_width": pa.array(_SCREENS[screen.astype(np.int64)]),
        "window_client_width": pa.array(random.integers(0, 2_000, rows).astype(np.int16)),
        "window_client_height": pa.array(random.integers(0, 1_100, rows).astype(np.int16)),
        "user_agent": pa.array((mixed(user_bits, 20) % np.uint64(90)).astype(np.int16)),
        "operating_system": pa.array((mixed(user_bits, 21) % np.uint64(60)).astype(np.int16)),
        "browser_language": languages.take(pa.array((mixed(user_bits, 22) % np.uint64(8)).astype(np.int64))),
    }


def flags(random: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    """Rare truths about a view, as small integers."""
    shares = {"is_refresh": 0.13, "is_link": 0.08, "is_download": 0.003, "dont_count_hits": 0.03, "is_event": 0.05}
    return {name: pa.array((random.random(rows) < share).astype(np.int16)) for name, share in shares.items()}


def hits_file(folder: Path, rows: int) -> Path:
    """The file of `rows` rows in a cache folder, made now if it is not there yet."""
    target = folder / f"hits-{rows}" / "hits.parquet"
    if target.is_file():
        return target
    print(f"making {target} …", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        beside = Path(scratch) / target.name
        write(beside, rows)
        beside.rename(target)
    return target


def write(path: Path, rows: int) -> None:
    """Writes a table of `rows` rows."""
    sites, words = Sites.over(rows), Vocabulary.invented(6_000)
    writer = None
    for first in range(0, rows, CHUNK_ROWS):
        table = chunk(sites, words, first, min(CHUNK_ROWS, rows - first), rows)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy", write_page_index=True)
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    if writer is not None:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    print(hits_file(options.folder, options.rows))


if __name__ == "__main__":
    main()

"""Sessions: from scripts, threads and running loops; streaming, interrupting, closing; many queries at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme import col
from bireme.errors import ArgumentFault, BiremeError, ConfigError, NameFault, Overflow, SourceMismatch
from bireme.storage.parquet import ParquetSource

ROWS = 400_000


@pytest.fixture(scope="module")
def session() -> Iterator[bm.Session]:
    numbers = pa.table(
        {"n": pa.array(range(ROWS), pa.int64()), "m": pa.array([i % 1000 for i in range(ROWS)], pa.int32())}
    )
    with bm.connect(threads=2, memory_limit="512MiB") as session:
        session.register("numbers", numbers)
        yield session


def test_one_row(session: bm.Session) -> None:
    assert session.sql("select 1 as one, 'x' as x").collect().to_pylist() == [{"one": 1, "x": "x"}]


def test_a_text_asked_again_means_what_its_tables_are_now(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), file)
    with bm.connect(threads=1) as session:
        session.register("t", file)
        text = "select * from t order by 1"
        first = session.sql(text)
        assert session.sql(text)._plan is first._plan
        assert session.sql(text).collect().to_pylist() == [{"a": 1}, {"a": 2}]
        pq.write_table(pa.table({"b": ["x"], "c": [1.5]}), file)
        assert session.sql(text).collect().to_pylist() == [{"b": "x", "c": 1.5}]
        session.register("t", pa.table({"a": [7]}))
        assert session.sql(text).collect().to_pylist() == [{"a": 7}]
        session.drop("t")
        with pytest.raises(NameFault):
            session.sql(text)


def files_named(folder: Path) -> dict[str, object]:
    """All ways to name the only file of a folder."""
    file = folder / "t.parquet"
    return {"path": file, "text": str(file), "list": [file], "glob": str(folder / "*.parquet"), "folder": folder}


@pytest.mark.parametrize("first", ["path", "list", "folder"])
@pytest.mark.parametrize("then", ["path", "text", "list", "glob", "folder"])
def test_frames_run_whatever_becomes_of_the_name_of_their_table(first: str, then: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    ways = files_named(tmp_path)
    with bm.connect(threads=1) as session:
        session.register("t", ways[first])
        frames = [session.sql("select sum(a) as a from t")]
        session.register("t", ways[then])
        frames.append(session.sql("select sum(a) as a from t"))
        session.register("T", ways[first])
        frames += [session.sql("select sum(a) as a from T"), session.table("t")]
        while frames:
            session.register("t", ways[first])
            assert sum(row["a"] for row in frames.pop(0).collect().to_pylist()) == 3
            assert sum(row["a"] for row in session.table("t").collect().to_pylist()) == 3
            if "t" in session.tables() and frames:
                session.drop("t")
                assert sum(row["a"] for row in frames[-1].collect().to_pylist()) == 3
        pq.write_table(pa.table({"a": [7]}), tmp_path / "more.parquet")
        assert session.sql("select count(*) as n from t").collect().to_pylist() == [
            {"n": 3 if first == "folder" else 2}
        ]


def test_a_file_named_in_a_query_that_is_forgotten_and_named_again(tmp_path: Path) -> None:
    for number in range(66):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number}.parquet")
    with bm.connect(threads=1) as session:
        frame = session.sql(f"select a from '{tmp_path}/0.parquet'")
        for _ in range(2):
            for number in range(66):
                session.sql(f"select a from '{tmp_path}/{number}.parquet'")
        assert frame.collect().to_pylist() == [{"a": 0}]


@pytest.mark.parametrize("data", [None, pa.table({"a": [7]})], ids=["dropped", "registered"])
def test_a_name_that_changes_while_its_files_are_looked_at(
    data: pa.Table | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    with bm.connect(threads=1) as session:
        session.register("t", file)
        refresh = ParquetSource.refresh

        def changing(source: ParquetSource) -> ParquetSource:
            session.drop("t")
            if data is not None:
                session.register("t", data)
            return refresh(source)

        pq.write_table(pa.table({"a": [1, 2]}), file)
        with monkeypatch.context() as patch:
            patch.setattr(ParquetSource, "refresh", changing)
            frame = session.table("t")
        assert frame.collect().to_pylist() == [{"a": 1}, {"a": 2}]
        assert session.tables() == ([] if data is None else ["t"])
        if data is not None:
            assert session.table("t").collect().to_pylist() == [{"a": 7}]


@pytest.mark.parametrize("name", [None, 7, "", "u", b"t"])
def test_a_name_that_cannot_be_dropped(name: object) -> None:
    with bm.connect(threads=1) as session:
        session.register("t", pa.table({"a": [1]}))
        with pytest.raises(ArgumentFault, match="no table is called"):
            session.drop(name)  # type: ignore[arg-type]
        assert session.tables() == ["t"]


def test_texts_of_which_there_are_many_are_forgotten() -> None:
    with bm.connect(threads=1) as session:
        for number in range(100):
            session.sql(f"select {number} as n")
        assert len(session._statements._kept) == 64


def test_parameters(session: bm.Session) -> None:
    frame = session.sql("select n from numbers where n between ? and ? order by n", [3, 5])
    assert frame.collect().column("n").to_pylist() == [3, 4, 5]


def test_streaming_gives_every_row_in_order(session: bm.Session) -> None:
    rows = [
        n for batch in session.table("numbers").filter(col("m") == 7).to_batches() for n in batch.column(0).to_pylist()
    ]
    assert rows == list(range(7, ROWS, 1000))


def test_stopping_early_frees_everything(session: bm.Session) -> None:
    batches = session.table("numbers").to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    statistics = session.statistics()
    assert (statistics.queries, statistics.reservations) == (0, 0)


def test_a_running_loop_can_collect_and_iterate(session: bm.Session) -> None:
    async def main() -> int:
        assert session.sql("select count(*) as c from numbers").collect().column("c").to_pylist() == [ROWS]
        rows = 0
        async for batch in session.table("numbers"):
            rows += batch.num_rows
        return rows

    assert asyncio.run(main()) == ROWS


def test_leaving_an_async_iteration_cancels(session: bm.Session) -> None:
    async def main() -> None:
        stream = session.table("numbers").__aiter__()
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    assert session.statistics().queries == 0


def test_threads_share_a_session(session: bm.Session) -> None:
    results: list[int] = []

    def work(key: int) -> None:
        table = session.sql(f"select count(*) as c from numbers where m = {key}").collect()
        results.append(table.column("c").to_pylist()[0])

    threads = [threading.Thread(target=work, args=(key,)) for key in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ROWS // 1000] * 10


def test_an_error_leaves_the_session_usable(session: bm.Session) -> None:
    with pytest.raises(Overflow):
        session.sql("select n + 9223372036854775807 from numbers").collect()
    assert session.sql("select max(n) as m from numbers").collect().column("m").to_pylist() == [ROWS - 1]


def test_other_libraries_take_frames(session: bm.Session) -> None:
    polars = pytest.importorskip("polars")
    frame = session.table("numbers").filter(col("n") < 5)
    assert polars.DataFrame(frame).height == 5
    assert pa.table(frame).num_rows == 5
    assert frame.to_polars().height == 5
    assert len(frame.to_pandas()) == 5


def test_arrow_in_from_polars_and_pandas(session: bm.Session) -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    data = {"a": [1, 2, None], "b": ["x", None, "z"]}
    for source in (polars.DataFrame(data), pandas.DataFrame({"a": [1.0, 2.0, None], "b": ["x", None, "z"]})):
        frame = session.from_arrow(source).filter(col("b").is_not_null())
        assert frame.collect().column("b").to_pylist() == ["x", "z"]


def test_sink_parquet(session: bm.Session, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert session.table("numbers").filter(col("m") < 2).sink_parquet(path) == 2 * ROWS // 1000
    assert pq.read_table(path).column("n").to_pylist() == [n for n in range(ROWS) if n % 1000 < 2]


def test_explain_says_what_and_how(session: bm.Session) -> None:
    frame = session.sql("select m, count(*) from numbers where n > 5 group by m")
    assert "numbers" in frame.explain()
    assert "pipeline 0" in frame.explain(physical=True)
    assert "tasks" in frame.explain(analyze=True)


def test_levers_that_are_off_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIREME_LEVERS", "none, +clustering")
    with bm.connect(threads=1) as session:
        assert "levers off: dense_keys, runtime_filters" in session.sql("select 1").explain(physical=True)
    with bm.connect(threads=1, levers="-late_columns") as session:
        assert "levers off: late_columns" in session.sql("select 1").explain(physical=True)
    with bm.connect(threads=1, levers=bm.config.Levers()) as session:
        assert "levers off" not in session.sql("select 1").explain(physical=True)


def test_a_closed_session_says_so() -> None:
    session = bm.connect(threads=1)
    frame = session.from_arrow(pa.table({"a": [1]}))
    session.close()
    session.close()
    with pytest.raises(ConfigError, match="closed"):
        frame.collect()


@pytest.mark.parametrize(
    "settings",
    [
        {"threads": 0},
        {"memory_limit": "much"},
        {"memory_limit": -1},
        {"backend": "abacus"},
        {"levers": "-sails"},
        {"levers": "clustering"},
        {"levers": 1},
    ],
)
def test_wrong_settings(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        bm.connect(**settings)  # type: ignore[arg-type]


def test_errors_point_into_the_query(session: bm.Session) -> None:
    with pytest.raises(BiremeError) as caught:
        session.sql("select n,\n  mm\nfrom numbers")
    message = str(caught.value)
    assert "line 2:3" in message
    assert "^^" in message


def test_a_plan_saved_in_one_session_runs_in_another(session: bm.Session) -> None:
    frame = session.sql(
        "select m, count(*) as c from numbers where n < (select avg(n) from numbers) group by m order by m limit 3"
    )
    text = frame.serialize()
    with bm.connect(threads=1) as other:
        with pytest.raises(NameFault, match="numbers"):
            other.deserialize(text)
        other.register("numbers", pa.table({"n": [1, 2, 3, 400], "m": pa.array([7, 7, 8, 9], pa.int32())}))
        assert other.deserialize(text).collect().to_pylist() == [{"m": 7, "c": 2}, {"m": 8, "c": 1}]
        other.register("numbers", pa.table({"n": ["x"], "m": [1]}))
        with pytest.raises(SourceMismatch, match="numbers"):
            other.deserialize(text)
        with pytest.raises(ArgumentFault, match="JSON"):
            other.deserialize("select 1")


def test_what_another_backend_does_is_shown(session: bm.Session) -> None:
    windows = session.sql("select n, lag(n ignore nulls) over (order by n desc) as r from numbers")
    assert "reference backend" in windows.explain(analyze=True)
    spans = session.sql("select to_days(m) as d, count(*) as c from numbers where n < 10 group by d")
    assert "reference backend" in spans.explain(analyze=True)

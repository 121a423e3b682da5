"""Which files paths, globs and folders name; DuckDB as the oracle where both mean the same."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from bireme.errors import SourceMissing, StorageError
from bireme.storage.source_path import expand, working_folder


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def shown(pattern: str | Path, root: Path | str = "/") -> list[str]:
    return [each.shown for each in expand(pattern, suffix=".parquet", root=str(root))]


TREE = (
    "a.parquet", "b.parquet", "c.csv", "a-b/x.parquet", "a/x.parquet", "a/y.parquet", "a/b/x.parquet",
    "a/b/c/z.parquet", "year=2024/month=1/x.parquet",
    "year=2024/month=2/x.parquet", "year=2023/month=1/y.parquet", "odd [1]/x.parquet",
    "ä/ö.parquet", "a b/x y.parquet", "A.PARQUET",
)  # fmt: skip
PATTERNS = (
    "*.parquet", "?.parquet", "[ab].parquet", "[!a].parquet", "[a-c].*", "*/x.parquet", "*/*.parquet", "a*/*.parquet",
    "a/**/x.parquet", "**/x.parquet", "**/*.parquet", "a/**/*.parquet", "year=*/month=1/*.parquet",
    "year=2024/**/*.parquet", "*/month=[12]/x.parquet", "**/b/*.parquet", "*/**/x.parquet", "a/b/c/*.parquet",
    "ä/*.parquet", "a b/*", "?/?.parquet", "**/?.parquet", "*/b/**/*.parquet",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_globs_are_those_of_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    make(tmp_path, *TREE)
    monkeypatch.chdir(tmp_path)
    for asked in (pattern, f"{tmp_path}/{pattern}"):
        expected = [file for (file,) in duckdb.execute("from glob(?)", [asked]).fetchall()]
        assert expected
        assert shown(asked, tmp_path) == sorted(expected)


def test_relative_paths_begin_where_they_are_said_to(tmp_path: Path) -> None:
    make(tmp_path, "[root]*/a/x.parquet", "[root]*/b/c/x.parquet")
    root = tmp_path / "[root]*"
    for pattern, names in {
        "a": ["a/x.parquet"],
        ".": ["a/x.parquet", "b/c/x.parquet"],
        "*/x.parquet": ["a/x.parquet"],
        "**/x.parquet": ["a/x.parquet", "b/c/x.parquet"],
        "b/../a/x.parquet": ["b/../a/x.parquet"],
        "*": ["a/x.parquet", "b/c/x.parquet"],
    }.items():
        assert shown(pattern, root) == names
        assert [each.path for each in expand(pattern, suffix=".parquet", root=str(root))] == [
            os.path.join(root, name) for name in names
        ]


def test_a_link_is_left_by_its_own_way(tmp_path: Path) -> None:
    make(tmp_path, "far/away/in.parquet", "far/x.parquet", "near/x.parquet")
    (tmp_path / "near/link").symlink_to(tmp_path / "far/away")
    (found,) = expand(tmp_path / "near/link/../x.parquet", suffix=".parquet", root="/")
    assert os.path.samefile(found.path, tmp_path / "far/x.parquet")


@pytest.mark.parametrize("pattern", ["", "**", "**/*.parquet", "**/**/x.parquet"])
def test_links_that_lead_back_up_give_no_file_twice(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, "a/x.parquet", "b/x.parquet")
    for name in ("one", "two", "three"):
        (tmp_path / "a" / name).symlink_to(tmp_path)
        (tmp_path / "b" / name).symlink_to(tmp_path / "a")
    found = shown(tmp_path / pattern)
    assert sorted({os.path.realpath(each) for each in found}) == [f"{tmp_path}/{each}/x.parquet" for each in "ab"]
    assert len(found) == 2


def test_hidden_files_are_passed_by_unless_they_are_asked_for(tmp_path: Path) -> None:
    make(
        tmp_path, "x.parquet", "_SUCCESS", ".x.parquet.crc", "_temporary/0/x.parquet", ".git/x.parquet",
        "_key=1/x.parquet", "sub/_part.parquet", "sub/.part.parquet",
    )  # fmt: skip
    seen = [f"{tmp_path}/{name}" for name in ("_key=1/x.parquet", "x.parquet")]
    for pattern in ("", "**", "**/*.parquet", "**/x.parquet"):
        assert shown(tmp_path / pattern) == seen
    assert shown(tmp_path / "**/_p*.parquet") == [f"{tmp_path}/sub/_part.parquet"]
    assert shown(tmp_path / "**/.part.parquet") == [f"{tmp_path}/sub/.part.parquet"]
    assert shown(tmp_path / "sub/_*") == [f"{tmp_path}/sub/_part.parquet"]
    assert shown(tmp_path / "_temporary/**") == [f"{tmp_path}/_temporary/0/x.parquet"]


def test_a_glob_needs_no_file_in_each_of_its_folders(tmp_path: Path) -> None:
    make(tmp_path, "a/x.parquet", "b/log.txt")
    (tmp_path / "empty").mkdir()
    assert shown(tmp_path / "*") == [f"{tmp_path}/a/x.parquet"]
    with pytest.raises(SourceMissing, match="no file matches"):
        shown(tmp_path / "[be]*")
    with pytest.raises(SourceMissing, match="holds no file"):
        shown(tmp_path / "empty")


def test_what_the_system_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="name too long"):
        shown(tmp_path / ("x" * 300 + ".parquet"))

    def refused(*_: object, onerror: object, **__: object) -> list[object]:
        onerror(PermissionError(13, "Permission denied", "secret"))  # type: ignore[operator]
        return []

    make(tmp_path, "x.parquet")
    monkeypatch.setattr(os, "walk", refused)
    for pattern in ("", "**/*.parquet"):
        with pytest.raises(StorageError, match="give this user the right to read it"):
            shown(tmp_path / pattern)


def test_without_a_working_folder_relative_paths_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "x.parquet")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert working_folder() == ""
    for missing in ("x.parquet", "*.parquet", "sub/**"):
        with pytest.raises(SourceMissing):
            shown(missing, working_folder())
    assert shown(tmp_path / "*.parquet", working_folder()) == [f"{tmp_path}/x.parquet"]

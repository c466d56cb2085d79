"""A crash leaves the old file or the new one, and the next run takes away what it left beside."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from drtool.host import writing


def break_off(path: Path) -> None:
    with writing.beside(path) as file:
        file.write(b"new")
        raise KeyError


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    writing.write(tmp_path / "f", b"old")
    with pytest.raises(KeyError):
        break_off(tmp_path / "f")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"old"}


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_what_is_no_file_is_not_replaced_by_one(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if kind == "directory":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/null")  # as /dev/stdout leads to a pipe
    before = place.lstat()
    with pytest.raises(FileExistsError, match="no regular file"):
        writing.write(place, b"new")
    assert place.lstat().st_ino == before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_what_a_killed_run_left_is_swept_by_name_and_age(tmp_path: Path) -> None:
    for name in (".f.0123.part", ".f.4567.part", ".g.0123.part", "f", "f.part"):
        (tmp_path / name).touch()
    hour_ago = time.time() - 3601
    os.utime(tmp_path / ".f.0123.part", (hour_ago, hour_ago))
    writing.sweep(tmp_path / "f", age=3600)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".f.4567.part", ".g.0123.part", "f", "f.part"]
    writing.sweep(tmp_path / "f")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".g.0123.part", "f", "f.part"]


def test_a_directory_that_is_not_there_has_nothing_to_sweep(tmp_path: Path) -> None:
    writing.sweep(tmp_path / "absent/f")

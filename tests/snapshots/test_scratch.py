"""Why a server that was started ended: in its own words, and in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError
from snapshots import scratch
from tests.small_disk import small_disk


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "it said nothing"),
        ("one\ntwo\n", "two"),
        ('{"level":"fatal","msg":"listen","error":"bind"}\n{"level":"info","msg":"closing"}\n', "listen: bind"),
        (
            '{"level":"panic","msg":"failed to create WAL","error":"no space left","stacktrace":"a\\nb"}',
            "no space left",
        ),
        ("panic: page 7\n\ngoroutine 1\n", "panic: page 7"),
        ("[1]\n", "[1]"),
    ],
)
def test_the_last_words(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "log").write_text(log)
    said = scratch.last_words(tmp_path / "log")
    assert said.endswith(words)
    assert "stacktrace" not in said


def test_an_etcd_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "small", "1m") as small,
        pytest.raises(DrtoolError, match=r"^etcd ended with status \d+: .*no space left on device$"),
        scratch.running(small),
    ):
        pass

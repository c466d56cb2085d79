"""The throwaway S3 server beside others, and its end told where it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError
from snapshots import scratch, scratch_s3


def test_two_stand_beside_each_other(s3_server: scratch_s3.Server, tmp_path: Path) -> None:
    """Every port is chosen: a listener of a fixed port would end the second one of a machine."""
    with scratch_s3.running(tmp_path / "second") as second:
        assert second.endpoint != s3_server.endpoint
        assert s3_server.process.poll() is None


def test_a_server_that_ends_has_its_last_words_told(s3_server: scratch_s3.Server, tmp_path: Path) -> None:
    (tmp_path / "filerldb2").write_text("a file where the filer wants its directory")
    with pytest.raises(DrtoolError, match=r"weed ended with status \d+: .*filerldb2"), scratch_s3.running(tmp_path):
        pass


def test_the_reason_is_told_and_not_what_was_said_after_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "I1130 started\nF1130 12:45:03 filer.go:1] mkdir filerldb2: not a directory\nI1130 not current leader\n"
    )
    assert scratch.last_words(log).startswith("F1130")
    log.write_text('{"level":"fatal","msg":"discovery failed"}\n{"level":"info","msg":"closing"}\n')
    assert "discovery failed" in scratch.last_words(log)
    log.write_text("one\ntwo\n")
    assert scratch.last_words(log) == "two"
    log.write_text("")
    assert scratch.last_words(log) == "it said nothing"

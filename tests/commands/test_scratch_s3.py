"""The throwaway S3 server beside others, and its end told where it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError
from snapshots import scratch_s3


def test_two_stand_beside_each_other(s3_server: scratch_s3.Server, tmp_path: Path) -> None:
    """Every port is chosen: a listener of a fixed port would end the second one of a machine."""
    with scratch_s3.running(tmp_path / "second") as second:
        assert second.endpoint != s3_server.endpoint
        assert s3_server.process.poll() is None


def test_a_server_that_ends_has_its_last_words_told(s3_server: scratch_s3.Server, tmp_path: Path) -> None:
    (tmp_path / "filerldb2").write_text("a file where the filer wants its directory")
    with pytest.raises(DrtoolError, match=r"weed ended with status \d+: .*filerldb2"), scratch_s3.running(tmp_path):
        pass

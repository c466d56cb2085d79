"""Small files only, whatever is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.host.reading import LARGEST, small


def test_what_does_not_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"k" * LARGEST)
    assert len(small(tmp_path / "key")) == LARGEST
    for endless in (Path("/dev/zero"), tmp_path / "large"):
        (tmp_path / "large").write_bytes(b"k" * (LARGEST + 1))
        with pytest.raises(OSError, match="File too large"):
            small(endless)

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.kill_backup import campaign, setting


@pytest.mark.slow
@pytest.mark.parametrize(("store", "kills"), [("directory", 20), ("s3", 12)])
def test_a_killed_backup_is_no_backup_and_leaves_nothing_to_the_next(tmp_path: Path, store: str, kills: int) -> None:
    with setting(tmp_path, store) as where:
        tally = campaign(where, kills, seed=7)
    assert tally.kills > kills // 3
    assert tally.listed >= 1

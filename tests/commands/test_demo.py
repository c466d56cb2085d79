"""The demo, as a person runs it: real etcd, real S3 server, and nothing left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_whole_story(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path / "empty")}
    done = subprocess.run(
        [sys.executable, "-m", "drtool.cli", "demo"], capture_output=True, text=True, env=environment, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert "This node's address 192.0.2.111 is gone; it has 192.0.2.120" in done.stdout
    assert "all 3000 keys are equal" in done.stdout
    processes = [int(number) for number in re.findall(r"process (\d+)", done.stdout)]
    assert len(processes) == 2
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    assert list(tmp_path.iterdir()) == []

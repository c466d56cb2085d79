"""What a command prints beside the UI arrives whole, however often it is looked at."""

from __future__ import annotations

import os
import subprocess
import sys

from tui.running import Running


def test_looking_at_what_was_printed_does_not_move_where_the_process_writes_next() -> None:
    running = Running("explain")
    while running.status() is None:
        running.lines()
    told = subprocess.run([sys.executable, "-m", "drtool.cli", "explain"], capture_output=True, text=True).stdout
    file = running._file.fileno()
    os.lseek(file, 3, os.SEEK_SET)
    assert running.lines() == told.splitlines()
    assert os.lseek(file, 0, os.SEEK_CUR) == 3
    running.close()

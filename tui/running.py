"""Commands run beside the UI, each a process of its own: what they print is shown, and a plan outlives the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile


class Running:
    """`words` as on the command line, without `drtool`. `detached`: it goes on when the terminal goes away."""

    def __init__(self, words: str, detached: bool = False) -> None:
        self.words = words
        self.detached = detached
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "drtool.cli", *shlex.split(words)],
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=detached,
        )

    def status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def lines(self) -> list[str]:
        """What it has printed by now."""
        # by position: the process writes through the same open file, and a seek here would move its next line
        file = self._file.fileno()
        data = os.pread(file, os.fstat(file).st_size, 0)
        return data.decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """What is not detached ends with its screen; a plan goes on, and is found again among the plans."""
        if not self.detached and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._file.close()

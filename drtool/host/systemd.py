"""Units of systemd, through systemctl."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass

from drtool.core.errors import DrtoolError


@dataclass(frozen=True, slots=True)
class Systemd:
    """Implements host.machine.Services. `seconds` is how long one call of systemctl may take."""

    seconds: float = 90.0

    def active(self, unit: str) -> bool:
        return self._run("is-active", unit).stdout.strip() == "active"

    def start(self, unit: str) -> None:
        self._turn("start", unit, active=True)

    def stop(self, unit: str) -> None:
        self._turn("stop", unit, active=False)

    def restart(self, unit: str) -> None:
        self._turn("restart", unit, active=True)

    def _read_again(self) -> None:
        """A plan may have edited a drop-in; where nothing changed this does nothing."""
        with suppress(FileNotFoundError, subprocess.TimeoutExpired):  # the call that follows says so
            subprocess.run(["systemctl", "daemon-reload"], capture_output=True, timeout=self.seconds, check=False)

    def _turn(self, verb: str, unit: str, active: bool) -> None:
        if active:
            self._read_again()
        done = self._run(verb, unit)
        if self.active(unit) != active:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise DrtoolError(
                f"{unit} did not {verb}{': ' + said[-1] if said else ''}",
                f"systemctl status {unit}; journalctl -u {unit}",
            )

    def _run(self, verb: str, unit: str) -> subprocess.CompletedProcess[str]:
        command = ["systemctl", verb, f"{unit}.service"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=self.seconds, check=False)
        except FileNotFoundError as absent:
            raise DrtoolError(
                "no systemctl on this machine", "drtool repairs nodes whose kubelet runs under systemd"
            ) from absent
        except subprocess.TimeoutExpired as stuck:
            raise DrtoolError(
                f"{unit} did not {verb} within {self.seconds:.0f} s", f"systemctl status {unit}; journalctl -u {unit}"
            ) from stuck

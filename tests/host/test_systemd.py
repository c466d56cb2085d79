from __future__ import annotations

import os
from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError
from drtool.host.systemd import Systemd

SCRIPT = """#!/bin/sh
# keeps one word, the state, in a file beside it
here=$(dirname "$0"); echo "$*" >> "$here/calls"
case "$1" in
  is-active) cat "$here/state" ;;
  start|restart) [ -e "$here/broken" ] && { echo "Job for $2 failed" >&2; exit 1; }; echo active > "$here/state" ;;
  stop) echo inactive > "$here/state" ;;
esac
"""


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "systemctl"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    (tmp_path / "state").write_text("active\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_a_unit_is_stopped_and_started(systemctl: Path) -> None:
    assert Systemd().active("kubelet")
    Systemd().stop("kubelet")
    assert not Systemd().active("kubelet")
    Systemd().restart("kubelet")
    assert Systemd().active("kubelet")
    assert "restart kubelet.service" in (systemctl / "calls").read_text()
    assert "daemon-reload" in (systemctl / "calls").read_text()


def test_a_unit_that_does_not_start_is_named_with_what_systemd_says(systemctl: Path) -> None:
    Systemd().stop("kubelet")
    (systemctl / "broken").touch()
    with pytest.raises(DrtoolError, match=r"kubelet did not start: Job for kubelet\.service failed") as caught:
        Systemd().start("kubelet")
    assert "journalctl -u kubelet" in caught.value.hint


def test_a_machine_without_systemd_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for call in (Systemd().active, Systemd().start, Systemd().stop):
        with pytest.raises(DrtoolError, match="no systemctl"):
            call("kubelet")

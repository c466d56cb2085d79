"""Programs on PATH, as scripts that print what the real ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.host.programs import Silent, journal, says, unit, version


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def made(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return made


@pytest.mark.parametrize(
    ("name", "printed", "expected"),
    [
        ("kubelet", "Kubernetes v1.37.2", "v1.37.2"),
        ("kubelet", "Kubernetes v1.38.0-alpha.1", "v1.38.0-alpha.1"),
        ("containerd", "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", "1.6.20"),
        ("containerd", "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7", "2.1.4"),
        ("crio", "crio version 1.33.0\\n   GitCommit: unknown", "1.33.0"),
    ],
)
def test_versions_are_read_from_what_each_program_prints(program, name: str, printed: str, expected: str) -> None:  # type: ignore[no-untyped-def]
    program(name, f'printf "{printed}\\n"')
    assert version(name) == expected


def test_a_program_that_is_absent_fails_or_hangs_is_silent(program) -> None:  # type: ignore[no-untyped-def]
    program("fails", "echo no such unit >&2; exit 1")
    program("hangs", "exec sleep 60")
    for command, said in (
        (["absent-program"], "no absent-program"),
        (["fails"], "no such unit"),
        (["hangs"], "did not answer"),
    ):
        with pytest.raises(Silent, match=said):
            says(command, seconds=0.5 if command == ["hangs"] else 20)


def test_units_of_systemd_and_of_its_stand_ins(program) -> None:  # type: ignore[no-untyped-def]
    program("systemctl", 'printf "LoadState=loaded\\nActiveState=activating\\nSubState=auto-restart\\n"')
    assert unit("kubelet.service") == {"name": "kubelet.service", "active": "activating", "sub": "auto-restart"}
    program("systemctl", 'echo "ActiveState=active"')
    assert unit("kubelet.service") == {"name": "kubelet.service", "active": "active", "sub": ""}
    program("systemctl", 'printf "LoadState=not-found\\nActiveState=inactive\\nSubState=dead\\n"')
    assert unit("crio.service") is None
    program("systemctl", "exit 0")
    assert unit("crio.service") is None


def test_a_journal_is_asked_by_unit_and_the_kernels_by_k(program) -> None:  # type: ignore[no-untyped-def]
    program("journalctl", 'echo "$@"')
    assert journal("kubelet").strip() == "--no-pager -q -o short-iso -n 2000 -u kubelet"
    assert journal("kernel").strip().endswith("-n 2000 -k")

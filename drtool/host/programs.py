"""What programs on this machine say of it, each asked with a time limit: versions, units, journals."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

SECONDS = 5.0
LARGEST = 8 << 20
JOURNAL_LINES = 2000


class Silent(Exception):
    """The program is absent, failed, or did not answer in time; the text says which."""


def says(command: Sequence[str], seconds: float = SECONDS) -> str:
    """Standard output, at most LARGEST characters of its end. Raises Silent."""
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except FileNotFoundError:
        raise Silent(f"no {command[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise Silent(f"{command[0]} did not answer within {seconds:.0f} s") from None
    except OSError as failed:
        raise Silent(f"{command[0]}: {failed.strerror}") from failed
    if done.returncode and not done.stdout:
        complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Silent(f"{command[0]} failed: {complaint[-1] if complaint else f'exit status {done.returncode}'}")
    return done.stdout[-LARGEST:].decode("utf-8", "replace")


def version(program: str) -> str:
    """The version that `PROGRAM --version` prints, "v1.37.2" for the kubelet, "2.1.4" for a runtime; without a build's
    suffix. Seen: `Kubernetes v1.37.2`, `crio version 1.33.0`,
    `containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3`.
    """
    found = re.search(r"\bv?\d+\.\d+\.\d+(-(alpha|beta|rc)\.?\d+)?", says([program, "--version"]))
    if found is None:
        raise Silent(f"{program} --version names no version")
    return found[0] if program == "kubelet" else found[0].removeprefix("v")


def unit(name: str) -> dict[str, str] | None:
    """`{"name", "active", "sub"}`; None for a unit that systemd does not know."""
    lines = says(["systemctl", "show", "--property=LoadState,ActiveState,SubState", name]).splitlines()
    told = dict(line.partition("=")[::2] for line in lines)
    if not told.get("ActiveState") or told.get("LoadState") == "not-found":
        return None
    return {"name": name, "active": told["ActiveState"], "sub": told.get("SubState", "")}


def journal(name: str) -> str:
    """The last lines of a unit's journal, or of the kernel's log for "kernel"."""
    of = ["-k"] if name == "kernel" else ["-u", name]
    return says(["journalctl", "--no-pager", "-q", "-o", "short-iso", "-n", str(JOURNAL_LINES), *of])

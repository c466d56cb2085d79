"""A node's tree below a temporary directory, with small ways to break it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from drtool.core.check import load, run
from drtool.core.report import Outcome
from drtool.host.root import Root
from manifests.kubeadm import Design, kernel_addresses, lay
from manifests.node import Node, read
from manifests.pki.issuing import Issued

NOW = datetime(2026, 12, 15, tzinfo=UTC)
BORN = datetime(2026, 11, 30, 4, tzinfo=UTC)


@dataclass
class Tree:
    """Paths are the node's own, as in findings."""

    root: Path
    design: Design = field(default_factory=Design)
    authorities: dict[str, Issued] = field(default_factory=dict)

    def place(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        return self.place(path).read_text()

    def write(self, path: str, data: str | bytes, mode: int = 0o644) -> None:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
        place.chmod(mode)

    def replace(self, path: str, old: str, new: str) -> None:
        """Every occurrence; fails where there is none, so that a test never passes by breaking nothing."""
        text = self.read(path)
        assert old in text, f"{old!r} is not in {path}"
        self.write(path, text.replace(old, new), self.place(path).stat().st_mode & 0o777)

    def sub(self, path: str, pattern: str, new: str) -> None:
        text = self.read(path)
        assert re.search(pattern, text), f"{pattern!r} does not match in {path}"
        self.write(path, re.sub(pattern, new, text), self.place(path).stat().st_mode & 0o777)

    def set_flag(self, program: str, name: str, value: str | None) -> None:
        """Sets, adds, or (None) takes out a flag of a control-plane program's manifest."""
        path = f"/etc/kubernetes/manifests/{program}.yaml"
        text = re.sub(rf"\n *- --{name}=[^\n]*", "", self.read(path))
        if value is not None:
            text = re.sub(rf"(\n( *)- {program}\n)", rf"\1\2- --{name}={value}\n", text, count=1)
            assert f"--{name}={value}" in text
        self.write(path, text, 0o600)

    def remove(self, path: str) -> None:
        place = self.place(path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def addresses(self, *addresses: str) -> None:
        """What the host has from now on."""
        for path, text in kernel_addresses(*addresses).items():
            self.write(path, text)

    def log(self, container: str, *lines: str, time: str = "2026-12-14T23:00:00.000000000Z") -> None:
        """A container's log in the CRI format, where the kubelet puts it."""
        pod = f"/var/log/pods/kube-system_{container}-{self.design.name}_0123456789abcdef/{container}/0.log"
        self.write(pod, "".join(f"{time} stderr F {line}\n" for line in lines))

    def journal(self, unit: str, *lines: str, time: str = "2026-12-14T23:00:00+00:00") -> None:
        head = f"{time} {self.design.name} {unit}[812]: "
        self.write(f"/drtool/journal/{unit}.log", "".join(f"{head}{line}\n" for line in lines))

    def node(self, at: datetime = NOW) -> Node:
        return read(Root(self.root), at)


def laid(root: Path, design: Design | None = None, shared: Mapping[str, Issued] | None = None) -> Tree:
    """A healthy node below `root`. The plain design is made once and copied; others are laid anew."""
    if design is None and shared is None:
        shutil.copytree(_template()[0], root, symlinks=True, dirs_exist_ok=True)
        return Tree(root, Design(), dict(_template()[1]))
    design = design or Design()
    return Tree(root, design, lay(root, design, BORN, shared))


@cache
def _template() -> tuple[Path, dict[str, Issued]]:
    root = Path(mkdtemp(prefix="drtool-tree-"))
    import atexit

    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root, lay(root, Design(), BORN)


def outcomes(node: Node) -> dict[str, Outcome]:
    """Every check of the node's own files, by id."""
    import manifests.checks

    return {outcome.id: outcome for outcome in run(load(manifests.checks), node)}

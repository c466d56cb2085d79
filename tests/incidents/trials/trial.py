"""What a trial is: a real tree with one thing done to it, and the causes that may be named for it.

Written from ../shared/incidents.md alone, as somebody would who does not know the checks: the smallest change to the
files that `decide` names, and lines as the programs print them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from manifests.pki.expected import AUTHORITIES
from tests.builders.real import _design, _has_key, _issued, _unpacked
from tests.builders.tree import Tree

MANIFESTS = "/etc/kubernetes/manifests"
PKI = "/etc/kubernetes/pki"
TIME = "2026-12-14T22:50:00"


class Copy(Tree):
    """A tree whose files are links to the unpacked ones until they are changed."""

    def says(self, container: str, *lines: str, time: str = TIME) -> None:
        """Appends to the newest log of a container, in the CRI format."""
        found = sorted(self.root.glob(f"var/log/pods/*_{container}-*/{container}/*.log"))
        pod = f"/var/log/pods/kube-system_{container}-{self.design.name}_0b68508595b81a1be441ed783418fcff"
        path = str(found[-1].relative_to(self.root)) if found else f"{pod}/{container}/0.log"
        self.append(path, "".join(f"{time}.000000001Z stderr F {line}\n" for line in lines))

    def unit(self, unit: str, *lines: str, time: str = TIME) -> None:
        """Appends to what journalctl -o short-iso printed of a unit."""
        head = f"{time}+0000 {self.design.name} {unit}[812]: "
        self.append(f"/drtool/journal/{unit}.log", "".join(f"{head}{line}\n" for line in lines))

    def append(self, path: str, text: str) -> None:
        place = self.place(path)
        old = place.read_bytes() if place.is_file() else b""
        mode = place.stat().st_mode & 0o777 if old else 0o644
        self.write(path, old + text.encode(), mode)

    def flag(self, program: str, name: str, value: str | None) -> None:
        self.set_flag(program, name, value)

    def own(self, path: str) -> Path:
        """A copy of its own of a large file that is to be changed in place; holes stay holes."""
        place = self.place(path)
        data = place.read_bytes().rstrip(b"\0")
        size = place.stat().st_size
        place.unlink()
        with place.open("wb") as file:
            file.write(data)
            file.truncate(size)
        return place

    @property
    def address(self) -> str:
        return self.design.address


def beside(name: str, path: str) -> Path:
    """A file of another tree, untouched."""
    return _unpacked(name) / path.lstrip("/")


def copy(name: str, into: Path) -> Copy:
    """Skips where the archive is not at hand."""
    shutil.copytree(_unpacked(name), into, symlinks=True, copy_function=_link)
    design = _design(into)
    for place in ("kubeadm-config.yaml", "etc/kubernetes/kubeadm-config.yaml"):
        if (into / place).is_file() and (
            found := re.search(r'(?m)^controlPlaneEndpoint: "?([^"\s]+)', (into / place).read_text())
        ):
            design = replace(design, endpoint=found[1])
    tree = Copy(into, design)
    tree.authorities.update({a.path: _issued(tree, a.path) for a in AUTHORITIES if _has_key(tree, a.path)})
    return tree


def _link(source: str, target: str) -> str:
    Path(target).hardlink_to(source)
    return target


@dataclass(frozen=True, slots=True)
class Trial:
    """`expected` holds each acceptable answer; `trees` those that are judged together."""

    name: str
    trees: tuple[str, ...]
    change: Callable[..., None]
    expected: tuple[tuple[str, ...], ...]

    @property
    def title(self) -> str:
        return f"{self.name} [{'+'.join(self.trees)}]"

    @property
    def incident(self) -> str:
        return self.name.partition(":")[0].partition(" ")[0]


@dataclass
class Trials:
    listed: list[Trial] = field(default_factory=list)

    def on(self, name: str, trees: str, *expected: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """For each word of `trees` (several judged together joined by +) a trial; each of `expected` is acceptable,
        ids in one joined by commas are all needed, in order; none is `healthy`."""
        answers = tuple(tuple(filter(None, answer.split(","))) for answer in expected)

        def kept(change: Callable[..., None]) -> Callable[..., None]:
            title = f"{name}: {change.__name__.strip('_')}" if change.__name__.strip("_") else name
            for word in trees.split():
                self.listed.append(Trial(title, tuple(word.split("+")), change, answers))
            return change

        return kept

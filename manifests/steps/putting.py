"""Steps that put lost files of a node back, from copies that were laid ready beside the plan."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import PurePosixPath

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import STATE, Host, lost
from manifests.steps.running import Program, let_start, prove_stopped


def staged(plan: str, path: str) -> str:
    """Where the copy lies that a plan puts to `path`: the plan's own directory, which only root can read."""
    return f"{STATE}/plans/{plan}/staged{path}"


@dataclass(frozen=True, slots=True)
class PutFile:
    """A file that the node does not have any more; `link` is the target of what is a symbolic link, `sha256` else."""

    path: str
    mode: int
    uid: int
    gid: int
    sha256: str = ""
    link: str = ""

    def describe(self) -> str:
        return f"put {self.path} back" + (f" (a link to {self.link})" if self.link else "")

    def apply(self, host: Host) -> None:
        if host.exists(self.path) and not self._ours(host):
            raise Refused(f"{self.path} has appeared meanwhile", "look at it, then make the plan again")
        self._make_parents(host)
        if self.link:
            host.remember(self._made, b"")
            host.link(self.path, self.link)
            return
        host.keep(self.path)
        data = host.read(staged(host.plan, self.path))
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise Refused(f"the copy laid ready for {self.path} was changed", "make the plan again")
        host.replace(self.path, data, self.mode)
        host.own(self.path, self.uid, self.gid)

    def revert(self, host: Host) -> None:
        if self.link:
            if host.remembered(self._made) is not None and host.link_target(self.path) == self.link:
                host.remove_link(self.path)
        else:
            host.put_back(self.path)
        for parent in reversed(json.loads(host.remembered(self._parents) or b"[]")):
            host.remove_empty(parent)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        if not self.link:
            host.foresee_put_back(self.path, ahead, complete)
        elif complete and host.remembered(self._made) is None:
            raise lost(host.memory(self._made))

    def _ours(self, host: Host) -> bool:
        if self.link:
            return host.link_target(self.path) == self.link
        return host.digest(self.path) == self.sha256

    def _make_parents(self, host: Host) -> None:
        above = [str(parent) for parent in reversed(PurePosixPath(self.path).parents)]
        host.remember(self._parents, json.dumps([parent for parent in above if not host.exists(parent)]).encode())
        host.make_directories(os.path.dirname(self.path), 0o755)  # noqa: PTH120 - a path of the node, not of this machine

    @property
    def _made(self) -> str:
        return f"linked{self.path.replace('/', '_')}"

    @property
    def _parents(self) -> str:
        return f"parents{self.path.replace('/', '_')}"


@dataclass(frozen=True, slots=True)
class PutStaticPod:
    """A lost manifest put back, which starts its program; taken away again, the program is proved down."""

    program: Program
    file: PutFile

    def describe(self) -> str:
        return f"start {self.program.name}: {self.file.describe()}"

    def apply(self, host: Host) -> None:
        self.file.apply(host)
        let_start(host, self.program)

    def revert(self, host: Host) -> None:
        self.file.revert(host)
        prove_stopped(host, self.program)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        self.file.foresee(host, ahead, complete)

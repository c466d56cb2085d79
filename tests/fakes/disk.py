"""A disk whose process is killed before its n-th call, or half way through a write."""

from __future__ import annotations

import os
import signal

from drtool.host.disk import Disk


class DyingDisk(Disk):
    """`dies_at` counts instants from 1; 0 never dies, and `instants` then says how many there were."""

    def __init__(self, dies_at: int = 0) -> None:
        self.dies_at = dies_at
        self.instants = 0

    def _instant(self) -> None:
        self.instants += 1
        if self.instants == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, descriptor: int, data: bytes) -> None:
        self._instant()
        super().write(descriptor, data[: len(data) // 2])
        self._instant()
        super().write(descriptor, data[len(data) // 2 :])

    def sync(self, descriptor: int) -> None:
        self._instant()
        super().sync(descriptor)

    def move(self, source: int, name: str, target: int, new: str) -> None:
        self._instant()
        super().move(source, name, target, new)

    def replace(self, parent: int, name: str, over: str) -> None:
        self._instant()
        super().replace(parent, name, over)

    def make_directory(self, parent: int, name: str, mode: int) -> None:
        self._instant()
        super().make_directory(parent, name, mode)

    def remove_empty(self, parent: int, name: str) -> None:
        self._instant()
        super().remove_empty(parent, name)

    def link(self, parent: int, name: str, target: str) -> None:
        self._instant()
        super().link(parent, name, target)

    def remove_part(self, parent: int, name: str) -> None:
        self._instant()
        super().remove_part(parent, name)

    def change_mode(self, parent: int, name: str, mode: int) -> None:
        self._instant()
        super().change_mode(parent, name, mode)

"""Steps on a node's files: manifests, kubeconfigs, other texts."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import PurePosixPath

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, lost
from manifests.editing import Change, Edit, changed, edit, reverse

SHOWN = 90
MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class EditFile:
    """Some bytes of one file; `before` and `after` are the sha256 of the whole, so that nobody's edit is lost."""

    path: str
    changes: tuple[Change, ...]
    before: str
    after: str

    def describe(self) -> str:
        counted = Counter(_words(change) for change in self.changes)
        words = [f"{text} ({count} times)" if count > 1 else text for text, count in counted.items()]
        more = [f"and {len(words) - MOST_SHOWN} more"] if len(words) > MOST_SHOWN else []
        return f"edit {self.path}: {'; '.join(words[:MOST_SHOWN] + more)}"

    def apply(self, host: Host) -> None:
        self._turn(host, self.before, self.after, self.changes)

    def revert(self, host: Host) -> None:
        if host.remembered(self._memory) is not None:
            self._turn(host, self.after, self.before, reverse(self.changes))

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        if host.remembered(self._memory) is None:
            if complete and host.remembered(self._found) is None:
                raise lost(host.memory(self._memory))
            return
        if not will_exist(host, ahead, self.path):
            raise lost(self.path)
        if will_be(host, ahead, self.path) not in {self.before, self.after}:
            raise Refused(
                f"{self.path} was changed by someone else meanwhile",
                "take that change out again, or leave the plan as it stands",
            )
        ahead.becomes(self.path, self.before)

    def diff(self, data: bytes) -> tuple[str, ...]:
        """The lines that it changes, and no others (they may hold keys), as `diff -U0` has them.

        `data` is the file as it was before or as it is after.
        """
        found = hashlib.sha256(data).hexdigest()
        if found not in {self.before, self.after}:
            return (f"{self.path} is neither as this step found it nor as it left it",)
        old = data if found == self.before else changed(data, reverse(self.changes))
        new = changed(data, self.changes) if found == self.before else data
        before, after = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
        return tuple(unified_diff(before, after, self.path, self.path, n=0, lineterm=""))

    @property
    def _memory(self) -> str:
        """Made before the first write: without it the file is none of this step's."""
        return f"edited{self.path.replace('/', '_')}-{self.after[:12]}"

    @property
    def _found(self) -> str:
        """Made where someone had made this very edit before: it is none of this step's, and stays."""
        return f"found{self._memory.removeprefix('edited')}"

    def _turn(self, host: Host, old: str, new: str, changes: tuple[Change, ...]) -> None:
        host.sweep(self.path)
        data = host.read(self.path)
        found = hashlib.sha256(data).hexdigest()
        if found == new:
            if new == self.after and host.remembered(self._memory) is None:
                host.remember(self._found, b"")
            return
        if found != old:
            raise Refused(f"{self.path} was changed by someone else meanwhile", "look at it, then make the plan again")
        host.remember(self._memory, b"")
        host.replace(self.path, changed(data, changes))


def _words(change: Change) -> str:
    old, new = change.old.strip(), change.new.strip()
    if not new:
        return f"remove {_short(old)}"
    return f"{_short(old)} -> {_short(new)}" if old else f"add {_short(new)}"


def _short(text: str) -> str:
    text = text.removeprefix("- ")
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def edit_file(path: str, data: bytes, changes: tuple[Change, ...]) -> tuple[EditFile, ...]:
    """The step that makes these changes; none where there are none."""
    if not changes:
        return ()
    after = changed(data, changes)
    return (EditFile(path, changes, hashlib.sha256(data).hexdigest(), hashlib.sha256(after).hexdigest()),)


def edit_yaml(path: str, data: bytes, edits: tuple[Edit, ...]) -> tuple[EditFile, ...]:
    return edit_file(path, data, edit(path, data, edits))


@dataclass(frozen=True, slots=True)
class ParkFile:
    """A file moved out of a directory whose every file counts, to another one on the same file system."""

    path: str
    to: str

    def describe(self) -> str:
        return f"move {self.path} to {self.to}"

    def apply(self, host: Host) -> None:
        move_once(host, self.path, self.to)

    def revert(self, host: Host) -> None:
        move_back(host, self.path, self.to)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        foresee_move(host, ahead, self.to, self.path, complete)

    def kept(self, _: str) -> tuple[str, ...]:
        return (self.to,)


def move_once(host: Host, path: str, to: str) -> None:
    """Move, unless it was moved already. Refuses where both are there: someone put a new one in its place."""
    if not host.exists(path):
        if host.exists(to):
            return
        raise Refused(f"{path} is gone, and is not at {to} either", "someone moved it; find it before going on")
    host.make_directories(str(PurePosixPath(to).parent))
    host.move(path, to)


def move_back(host: Host, path: str, to: str) -> None:
    """What was moved to `to` returns; nothing where it never went there."""
    if host.exists(to):
        host.move(to, path)
    host.remove_empty(str(PurePosixPath(to).parent))


def foresee_move(host: Host, ahead: Ahead, path: str, to: str, complete: bool) -> None:
    """Whether what lies at `path` can return to `to`, unless it did already. Raises Refused."""
    here, there = will_exist(host, ahead, path), will_exist(host, ahead, to)
    if here and there:
        raise Refused(f"{path} cannot return: there is another {to}", f"move that {to} away first")
    if complete and not here and not there:
        raise lost(path)
    if here:
        ahead.moves(path, to)


def will_exist(host: Host, ahead: Ahead, path: str) -> bool:
    place = ahead.of(path)
    return host.exists(place) if place.startswith("/") else bool(place)


def will_be(host: Host, ahead: Ahead, path: str) -> str:
    """The sha256 in hex of what will be there."""
    place = ahead.of(path)
    return host.digest(place) if place.startswith("/") else place


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """Permission bits of one file or directory."""

    path: str
    before: int
    after: int

    def describe(self) -> str:
        return f"change the mode of {self.path} from {self.before:04o} to {self.after:04o}"

    def apply(self, host: Host) -> None:
        host.change_mode(self.path, self.after)

    def revert(self, host: Host) -> None:
        if host.exists(self.path) and host.mode(self.path) != self.before:
            host.change_mode(self.path, self.before)


@dataclass(frozen=True, slots=True)
class PointLink:
    """A symbolic link to another file; `before` is its old target as written, "" where a plain file is in its place."""

    path: str
    before: str
    target: str

    def describe(self) -> str:
        return f"point {self.path} to {self.target}" + (f" instead of {self.before}" if self.before else "")

    def apply(self, host: Host) -> None:
        if not self.before and not (host.exists(self.path) and host.link_target(self.path)):
            host.keep(self.path)
        host.link(self.path, self.target)

    def revert(self, host: Host) -> None:
        if self.before:
            host.link(self.path, self.before)
        else:
            host.put_back_over_link(self.path)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        if not self.before:
            host.foresee_put_back(self.path, ahead, complete)

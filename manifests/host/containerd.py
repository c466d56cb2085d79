"""containerd's configuration, and whether it is the runtime that the kubelet talks to."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import PurePosixPath
from typing import Any, TypeVar

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence
from manifests.capture import CONTAINERD, imported
from manifests.host import crio
from manifests.logs import Line
from manifests.node import Node
from manifests.pod import version

MAIN = CONTAINERD
CRI = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images")
NAMES = {1: ("cri",), 2: CRI[:1], 3: CRI[1:]}
"""The CRI plugin's tables by the version of the configuration; those of another version are ignored."""
STARTED = re.compile(r'msg="starting containerd".* version="?v?(\d+\.\d+\.\d+)')
PACKAGE = re.compile(r"status installed containerd(?:\.io)?:?\S* (?:\d+:)?v?(\d+\.\d+\.\d+)")
AT_LINE, END = re.compile(r"\(at line (\d+), column \d+\)$"), "(at end of document)"  # how tomllib tells the place
T = TypeVar("T")


@dataclass(frozen=True)
class Configuration:
    """One file as it stands. `data` is empty where it cannot be parsed; `problem` says why, `line` where if known."""

    path: str
    data: dict[str, Any] = field(repr=False)
    problem: str = ""
    line: int | None = None

    @property
    def header(self) -> int:
        """The version that the file says it has; 1 without one (containerd up to 1.7), or 0 for no number."""
        found = self.data.get("version", 1)
        return found if isinstance(found, int) else 0

    def table(self, *keys: str) -> dict[str, Any]:
        value: Any = self.data
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def cri(self) -> tuple[dict[str, Any], ...]:
        """The CRI plugin's tables, by the names of this version."""
        return tuple(filter(None, (self.table("plugins", name) for name in NAMES.get(self.header, ()))))


def in_use(node: Node) -> None:
    """Raises NotApplicable where the kubelet talks to another runtime."""
    endpoint, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    text = str(endpoint)
    if "docker" in text:
        raise NotApplicable(f"the kubelet's runtime is at {text}")
    if crio.in_use(node):
        raise NotApplicable("the runtime is CRI-O")


def configurations(node: Node) -> tuple[Configuration, ...]:
    """The main file and those it imports, in the order in which containerd reads them: each once, breadth first.

    No release imports conf.d by itself: the pattern in containerd 2.2's defaults counts only where the file has it.
    EvidenceMissing where a file is not in the tree.
    """
    found: dict[str, Configuration] = {}
    pending = [MAIN]
    for path in pending:  # which grows
        if path not in found:
            found[path] = _read(node, path)
            for pattern in imported(path, node.entry(path).data or b""):
                pending += _matching(node, pattern) if "*" in pattern else [pattern]
            if any("*" in text and not text.startswith("/") for text in _texts(found[path].data.get("imports"))):
                _looks_beside_the_file(node)
    return tuple(found.values())


def _matching(node: Node, pattern: str) -> list[str]:
    """In byte order, as Go's filepath.Glob; `*` stays within one component."""
    return [path for path in sorted(node.capture.entries) if PurePosixPath(path).match(pattern)]


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _looks_beside_the_file(node: Node) -> None:
    """Before 1.6.30 and 1.7.16 a relative pattern was looked for from containerd's working directory."""
    numbers, _ = release(node)
    if numbers < (1, 6, 30) or (1, 7, 0) <= numbers < (1, 7, 16):
        raise EvidenceMissing(
            f"{MAIN} imports by a relative pattern, which this containerd does not look for beside it"
        )


def setting(node: Node, ask: Callable[[Configuration], T]) -> T:
    """What `ask` finds in the files taken together, as containerd takes them.

    Up to 1.7 a file's table of a plugin replaces the whole table of the files before it; from 2.0 on they are merged
    key by key (pull request 9982). EvidenceMissing where that makes a difference and nothing tells the release, where
    files are of versions 2 and 3 (each release migrates them in its own way), and where a file cannot be parsed.
    """
    files = configurations(node)
    for file in files:
        if file.problem:
            raise EvidenceMissing(f"{file.path}: {file.problem}")
    if {2, 3} <= {file.header for file in files}:
        raise EvidenceMissing(f"{MAIN} and what it imports are of versions 2 and 3")
    answers = [ask(reduce(lambda one, other: _with(one, other, whole), files)) for whole in _whole(node, files)]
    if any(answer != answers[0] for answer in answers):
        raise EvidenceMissing("containerd 1 and 2 take imported files differently, and nothing tells which one runs")
    return answers[0]


def _whole(node: Node, files: tuple[Configuration, ...]) -> tuple[bool, ...]:
    """Whether tables are replaced whole; both where nothing tells. Version 3 is containerd 2's."""
    try:
        return (release(node)[0] < (2, 0, 0),)
    except EvidenceMissing:
        return (False,) if any(file.header >= 3 for file in files) else (True, False)


def _with(one: Configuration, other: Configuration, whole: bool) -> Configuration:
    """`other` on top of `one`, in what is asked of it: the version and the plugins' tables."""
    plugins, added = one.table("plugins"), other.table("plugins")
    data = {**one.data, **other.data, "plugins": {**plugins, **added} if whole else _merged(plugins, added)}
    return Configuration(one.path, data)


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{key: _merged(one.get(key), value) for key, value in other.items()}}
    return other


def _read(node: Node, path: str) -> Configuration:
    entry = node.entry(path)
    if node.capture.live and path != MAIN and entry.kind == "absent":  # of a copy it may just not have been copied
        return Configuration(path, {}, entry.error)
    text = node.text(path)
    try:
        return Configuration(path, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        at = AT_LINE.search(str(wrong))
        last = len(text.splitlines()) if END in str(wrong) else 0
        return Configuration(path, {}, str(wrong) or "nested too deep", int(at[1]) if at else last or None)


def line_of(node: Node, path: str, pattern: str) -> Evidence:
    """The first line of a file that matches, else the file."""
    found = node.find(path, pattern)
    return found[0][1] if found else Evidence(path)


def last_line(node: Node, pattern: str) -> Evidence | None:
    """The last line that matches, of the last of the files that has one; None where none has."""
    for file in reversed(configurations(node)):
        found = node.find(file.path, pattern)
        if found:
            return found[-1][1]
    return None


def release(node: Node) -> tuple[tuple[int, int, int], Evidence]:
    """containerd's version: what a bundle says, its journal, the package log. EvidenceMissing where nothing tells."""
    told = node.versions.get("containerd")
    numbers = version(str(told)) if told else None
    if numbers:
        return numbers, Evidence("/drtool/versions.json", None, f"containerd {told}")
    for line in reversed(node.journal("containerd")):
        match = STARTED.search(line.text)
        if match:
            return _numbers(match[1]), line.evidence
    for match, evidence in reversed(node.find("/var/log/dpkg.log", PACKAGE.pattern)):
        return _numbers(match[1]), evidence
    raise EvidenceMissing("nothing in this tree says which containerd it runs")


def _numbers(text: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


def recent_journal(node: Node) -> tuple[Line, ...]:
    """containerd's journal from its last start on."""
    lines = node.journal("containerd")
    starts = [place for place, line in enumerate(lines) if 'msg="starting containerd"' in line.text]
    return lines[starts[-1] :] if starts else lines

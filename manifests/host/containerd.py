"""containerd's configuration, and whether it is the runtime that the kubelet talks to."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence
from manifests.logs import Line
from manifests.node import Node
from manifests.pod import version

MAIN = "/etc/containerd/config.toml"
CRI = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images")
STARTED = re.compile(r'msg="starting containerd".* version="?v?(\d+\.\d+\.\d+)')
PACKAGE = re.compile(r"status installed containerd(?:\.io)?:?\S* (?:\d+:)?v?(\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class Configuration:
    """One file as it stands. `data` is empty where it cannot be parsed, and `problem` says why."""

    path: str
    data: dict[str, Any] = field(repr=False)
    problem: str = ""

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
        """The tables of the CRI plugin, under whichever names they stand."""
        return tuple(filter(None, (self.table("plugins", name) for name in (*CRI, "cri"))))


def in_use(node: Node) -> None:
    """Raises NotApplicable where the kubelet talks to another runtime."""
    endpoint, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    text = str(endpoint)
    if "crio" in text or "docker" in text:
        raise NotApplicable(f"the kubelet's runtime is at {text}")
    if not text and node.entry("/etc/crio/crio.conf").data is not None and node.entry(MAIN).data is None:
        raise NotApplicable("the runtime is CRI-O")


def configurations(node: Node) -> tuple[Configuration, ...]:
    """The main file and those it imports, in the order in which they count. EvidenceMissing where there is none."""
    main = _read(node, MAIN)
    imports = main.data.get("imports")
    found = [main]
    for pattern in imports if isinstance(imports, list) else ():
        place = str(pattern) if str(pattern).startswith("/") else f"/etc/containerd/{pattern}"
        entries = node.capture.matching(fnmatch.translate(place))
        found += [_read(node, entry.path) for entry in entries if entry.data is not None and entry.path != MAIN]
    return tuple(found)


def _read(node: Node, path: str) -> Configuration:
    text = node.text(path)
    try:
        return Configuration(path, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        return Configuration(path, {}, str(wrong) or "nested too deep")


def line_of(node: Node, path: str, pattern: str) -> Evidence:
    """The first line of a file that matches, else the file."""
    found = node.find(path, pattern)
    return found[0][1] if found else Evidence(path)


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

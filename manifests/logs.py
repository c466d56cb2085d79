"""Log lines as evidence: the kubelet's container logs and journals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from drtool.core.report import Evidence
from drtool.host.root import Entry

CRI = re.compile(r"^(\d{4}-\d\d-\d\dT\S+) (stdout|stderr) ([FP]) (.*)$")
SHORT_ISO = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^ ]*) \S+ ([^:]+): (.*)$")
HEAD = {"ts", "caller", "msg", "v"}
SECRET = re.compile(r"(?i)(bearer |token[=:]\s*|password[=:]\s*)\S+")


@dataclass(frozen=True, slots=True)
class Line:
    """`time` is as written (it sorts as text), "" where the line has none."""

    time: str
    text: str
    evidence: Evidence


def read_container(entry: Entry) -> tuple[Line, ...]:
    """The CRI log format: time, stream, F or P (a part of a line), text. No line numbers where the head was cut."""
    found: list[Line] = []
    part = ""
    for number, raw in _numbered(entry):
        match = CRI.match(raw)
        if match is None:
            continue
        text = part + match[4]
        if match[3] == "P" and len(text) < 65536:
            part = text
            continue
        part = ""
        found.append(Line(match[1], _plain(text), _evidence(entry, number, text)))
    return tuple(found)


def read_containers(entries: Iterable[Entry]) -> Mapping[str, tuple[Line, ...]]:
    lines: dict[str, list[Line]] = {}
    for entry in entries:
        container = entry.path.split("/")[-2]
        lines.setdefault(container, []).extend(read_container(entry))
    return {container: tuple(sorted(found, key=lambda line: line.time)) for container, found in lines.items()}


def read_journal(entry: Entry) -> tuple[Line, ...]:
    found = []
    for number, raw in _numbered(entry):
        match = SHORT_ISO.match(raw)
        time, text = (match[1], match[3]) if match else ("", raw)
        found.append(Line(time, _plain(text), _evidence(entry, number, text)))
    return tuple(found)


def _plain(text: str) -> str:
    """A line of --logging-format=json as Kubernetes' text format has it: "message" key="value". etcd's JSON stays."""
    if not text.startswith('{"ts":'):
        return text
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return text
    words = [f"{key}={json.dumps(value)}" for key, value in fields.items() if key not in HEAD]
    return " ".join([json.dumps(fields.get("msg", "")), *words])


def _numbered(entry: Entry) -> Iterable[tuple[int | None, str]]:
    lines = (entry.data or b"").decode("utf-8", "replace").split("\n")
    cut = entry.cut
    return ((None if cut else number, line) for number, line in enumerate(lines, 1) if line)


def _evidence(entry: Entry, number: int | None, text: str) -> Evidence:
    return Evidence(entry.path, number, SECRET.sub(r"\1<hidden>", text)[:300])

"""What only a live node's programs tell, all asked at the same time, each with a limit of its own.

What they say becomes files below /drtool in the shapes of a bundle, so that checks read a live node and a bundle alike.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from drtool.commands.endpoints import etcd_clients, runtime_socket, targets
from drtool.commands.etcd_live import ask_etcd
from drtool.core.errors import DrtoolError
from drtool.host import filesystems, listeners, programs, runtime
from drtool.host.patience import together
from drtool.host.probes import Answer, probe_all
from drtool.host.root import Root
from manifests import live
from manifests.node import Node
from manifests.pki.certificates import certificate_of, utc

OVERALL = 8.0
UNITS = ("kubelet.service", "containerd.service", "crio.service", "docker.service", "cri-docker.service")
JOURNALS = ("kubelet", "containerd", "crio", "kernel")

# a file's path and data for each answer; an exception says what is missing
Question = Callable[[], Mapping[str, Any]]


def ask(node: Node, root: Root, overall: float = OVERALL) -> dict[str, bytes]:
    """What programs say, as files below /drtool; what was asked in vain is named in capture.json under `missing`."""
    questions = _questions(node, root)
    answers = together(questions, overall)
    told: dict[str, bytes] = {}
    missing: dict[str, str] = {}
    for path in questions:
        answer = answers.get(path, TimeoutError(f"no answer within {overall:.0f} s"))
        if isinstance(answer, Exception):
            missing[path] = _reason(answer)
        else:
            told.update({name: _encoded(data) for name, data in answer.items()})
    told["/drtool/capture.json"] = _encoded(record(missing, datetime.now(UTC)))
    return told


def ask_rehearsed(node: Node, root: Root, ports: Sequence[int]) -> dict[str, bytes]:
    """Whether a rehearsal's etcd is well: it has these ports of loopback, whatever address its manifest names."""
    clients = etcd_clients(node.components["etcd"], root) if "etcd" in node.components else ()
    asked = dict.fromkeys(replace(client, host="127.0.0.1") for client in clients if client.port in ports)
    return {live.PROBES: _encoded([_probed(answer) for answer in probe_all(list(asked))])}


def record(missing: Mapping[str, str], at: datetime) -> dict[str, Any]:
    """capture.json: when, by which drtool, and what could not be had."""
    return {
        "schemaVersion": 1,
        "capturedAt": utc(at),
        "drtool": importlib.metadata.version("drtool"),
        "missing": dict(missing),
    }


def _questions(node: Node, root: Root) -> dict[str, Question]:
    socket = runtime_socket(node)
    mounts = (node.entry("/proc/mounts").data or b"").decode("utf-8", "replace")
    questions: dict[str, Question] = {
        "/drtool/versions.json": lambda: {"/drtool/versions.json": _versions()},
        live.UNITS: lambda: {live.UNITS: _units()},
        live.FILESYSTEMS: lambda: {live.FILESYSTEMS: filesystems.filesystems(mounts)},
        live.LISTENERS: lambda: {live.LISTENERS: listeners.listeners()},
        live.PROBES: lambda: {live.PROBES: [*_runtime(socket), *map(_probed, probe_all(targets(node, root)))]},
    }
    if socket:
        questions[live.CONTAINERS] = lambda: {live.CONTAINERS: runtime.containers(Path(socket))}
        questions[live.IMAGES] = lambda: {live.IMAGES: runtime.images(Path(socket))}
    if "etcd" in node.components:
        endpoints = etcd_clients(node.components["etcd"], root)
        questions[live.ETCD] = lambda: {live.ETCD: ask_etcd(endpoints)}
    for unit in JOURNALS:
        path = f"/drtool/journal/{unit}.log"
        questions[path] = partial(_journal, path, unit)
    return questions


def _journal(path: str, unit: str) -> Mapping[str, Any]:
    text = programs.journal(unit)
    return {path: text.encode()} if text else {}


def _versions() -> dict[str, str | None]:
    answers = together(
        {name: partial(programs.version, name) for name in ("kubelet", "containerd", "crio")}, OVERALL / 2
    )
    return {
        name: found if isinstance(found := answers.get(name), str) else None
        for name in ("kubelet", "containerd", "crio")
    }


def _units() -> list[dict[str, str]]:
    answers = together({unit: partial(programs.unit, unit) for unit in UNITS}, OVERALL / 2)
    if answers and all(isinstance(answer, programs.Silent) for answer in answers.values()):
        raise next(answer for answer in answers.values() if isinstance(answer, programs.Silent))
    return [found for unit in UNITS if isinstance(found := answers.get(unit), dict)]


def _runtime(socket: str) -> list[dict[str, Any]]:
    if not socket:
        return []
    said = {"component": "container-runtime", "kind": "cri", "url": f"unix://{socket}"}
    try:
        return [{**said, "ok": True, "version": runtime.version(Path(socket))}]
    except DrtoolError as silent:
        return [{**said, "ok": False, "error": silent.what}]


def _probed(answer: Answer) -> dict[str, Any]:
    target = answer.target
    said: dict[str, Any] = {
        "component": target.component,
        "kind": "http" if target.path else "tls" if target.tls else "tcp",
        "url": target.url,
        "ok": _healthy(answer),
        "status": answer.status,
        "failing": list(_failing(answer)),
        "error": answer.error,
    }
    certificate = certificate_of(target.url, answer.certificate) if answer.certificate else None
    if certificate is not None:
        said["certificate"] = {
            "fingerprint": certificate.fingerprint,
            "subject": certificate.subject,
            "issuer": certificate.issuer,
            "notBefore": utc(certificate.not_before),
            "notAfter": utc(certificate.not_after),
            "names": list(certificate.names()),
        }
    return said


def _healthy(answer: Answer) -> bool:
    if not answer.target.path:
        return not answer.error
    return answer.status == 200 and b'"health":"false"' not in answer.body


def _failing(answer: Answer) -> tuple[str, ...]:
    """`[-]etcd failed: reason withheld` of a verbose answer; `reason` of etcd's /health."""
    if answer.body.startswith(b"{"):
        try:
            health = json.loads(answer.body)
        except (ValueError, RecursionError):
            return ()
        reason = health.get("reason") if isinstance(health, dict) else None
        return (str(reason)[:200],) if reason else ()
    lines = answer.body.decode("utf-8", "replace").splitlines()
    return tuple(line[3:].partition(" ")[0][:200] for line in lines if line.startswith("[-]"))


def _encoded(data: Any) -> bytes:
    return data if isinstance(data, bytes) else json.dumps(data, indent=1).encode()


def _reason(error: Exception) -> str:
    return error.what if isinstance(error, DrtoolError) else str(error) or type(error).__name__

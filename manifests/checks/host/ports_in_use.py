"""The ports of the control plane must be held by the control plane.

A program that finds its port taken exits with `bind: address already in use`. On a live node the holder is named; in a
copied tree the kernel's table names no program, so the component's own log must say that it could not bind.

Fix: stop what holds the port (`ss -ltnp`), or move it to another port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import Layout
from manifests.live import Listener
from manifests.logs import Line
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "kubelet-not-running")
EVERY = "0.0.0.0"  # noqa: S104 - the programs' default
NAME_LENGTH = 15  # the kernel cuts a program's name


@dataclass(frozen=True, slots=True)
class Port:
    program: str
    number: int
    bind: str
    evidence: Evidence


def find(node: Node) -> Iterator[Finding]:
    ports = tuple(_ports(node))
    if not ports:
        raise NotApplicable("neither a control plane nor a kubelet here")
    gap: EvidenceMissing | None = None
    listeners: tuple[Listener, ...] = ()
    try:
        listeners = node.listeners
    except EvidenceMissing as missing:
        gap = missing
    for port in ports:
        here = [found for found in listeners if found.port == port.number and _same(found.address, port.bind)]
        line = _refused(node, port)
        if any(found.command in _names(port.program) for found in here):
            continue
        strangers = [found for found in here if found.command]
        if strangers:
            title = f"Port {port.number} of {port.program} is held by {strangers[0].command}"
            yield Finding(title, (strangers[0].evidence, port.evidence, *_evidence(line)))
        elif line is not None:
            title = f"{port.program} cannot listen on port {port.number}: another program does"
            yield Finding(title, (line.evidence, port.evidence, *(found.evidence for found in here[:1])))
    if gap:
        raise gap


def _names(program: str) -> tuple[str, ...]:
    """What the kernel may call the program, and what stands in for it."""
    return (program[:NAME_LENGTH], *(("cilium-agent", "kube-router") if program == "kube-proxy" else ()))


def _evidence(line: Line | None) -> tuple[Evidence, ...]:
    return (line.evidence,) if line is not None else ()


def _ports(node: Node) -> Iterator[Port]:
    for program, flag, default in (
        ("kube-apiserver", "secure-port", 6443),
        ("kube-controller-manager", "secure-port", 10257),
        ("kube-scheduler", "secure-port", 10259),
    ):
        component = node.components.get(program)
        if component is None:
            continue
        text = component.value(flag, str(default))
        at = component.flag(flag).evidence if component.has(flag) else component.image_evidence
        if text.isdecimal():
            yield Port(program, int(text), component.value("bind-address", EVERY), at)
    yield from _every_node(node)
    etcd = node.components.get("etcd")
    for name in ("listen-client-urls", "listen-peer-urls", "listen-metrics-urls"):
        for urls in etcd.all(name) if etcd else ():
            for host, number in re.findall(r"://(\[[^\]]*\]|[^:/,]*):(\d+)", urls.value):
                yield Port("etcd", int(number), host.strip("[]"), urls.evidence)


def _every_node(node: Node) -> Iterator[Port]:
    """The kubelet's port, and kube-proxy's health port; the latter only where nothing but workers' things run."""
    if "/etc/kubernetes/kubelet.conf" not in node.kubeconfigs:
        return
    port, evidence = node.kubelet.setting("port", "port", default=10250)
    address, _ = node.kubelet.setting("address", "address", default=EVERY)
    if str(port).isdecimal():
        yield Port("kubelet", int(port), str(address), evidence)
    if node.layout is Layout.WORKER:
        yield Port("kube-proxy", 10256, EVERY, Evidence("/etc/kubernetes/kubelet.conf"))


def _same(listening: str, bind: str) -> bool:
    """Whether a listener stands in the way of a bind: either is every address, or both are one."""
    one, other = address_of(listening), address_of(bind)
    return one is None or other is None or one.is_unspecified or other.is_unspecified or one == other


def _refused(node: Node, port: Port) -> Line | None:
    """Among the last words of the program."""
    lines = node.journal("kubelet") if port.program == "kubelet" else node.container_logs.get(port.program, ())
    for line in reversed(lines[-20:]):
        if re.search(rf":{port.number}\b.*address already in use", line.text):
            return line
    return None

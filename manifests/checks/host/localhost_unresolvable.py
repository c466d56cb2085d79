"""`localhost` must resolve to the loopback address by /etc/hosts.

Without the line a search domain in resolv.conf may answer for it: etcd then tries to bind another host's address, and
the API server says `lookup localhost: no such host`. systemd-resolved and nss-myhostname answer on their own, so
without a line in a log this is only a warning.

Fix: put `127.0.0.1 localhost` into /etc/hosts.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.logs import Line
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("etcd-servers-vs-etcd", "container-exited", "component-not-ready")
FAILED = re.compile(r"lookup localhost|listen tcp \S+: bind: cannot assign requested address")


def find(node: Node) -> Iterator[Finding]:
    node.text("/etc/hosts")
    addresses = node.resolve("localhost")
    if any(address.is_loopback for address in addresses):
        return
    wrong = [evidence for _, evidence in node.hosts.get("localhost", ())]
    said = _said(node)
    yield Finding(
        f"localhost is {addresses[0]} in /etc/hosts" if addresses else "/etc/hosts has no line for localhost",
        (*(wrong or [Evidence("/etc/hosts")]), *_search(node), *(line.evidence for line in said)),
        severity=Severity.CRITICAL if said or addresses or _uses_localhost(node) else Severity.WARNING,
    )


def _uses_localhost(node: Node) -> bool:
    """A URL that says localhost needs the name; nothing answers for it where nsswitch.conf asks files and DNS only."""
    named = any("//localhost" in flag.value for c in node.components.values() for flag in c.container.flags)
    switch = node.find("/etc/nsswitch.conf", r"^hosts:\s*(.*)")
    return (
        named
        and bool(_search(node))
        and not any(m[1] and ("myhostname" in m[1] or "resolve" in m[1]) for m, _ in switch)
    )


def _search(node: Node) -> tuple[Evidence, ...]:
    return tuple(evidence for _, evidence in node.find("/etc/resolv.conf", r"^search\s"))


def _said(node: Node) -> list[Line]:
    lines = [line for container in ("etcd", "kube-apiserver") for line in node.container_logs.get(container, ())]
    return [line for line in lines if FAILED.search(line.text)][-1:]

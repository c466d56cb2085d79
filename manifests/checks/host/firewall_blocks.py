"""A firewall must let the control plane's ports through.

6443, 2379-2380 and 10250 have to be open between the nodes. A blocked port shows as `i/o timeout` or `no route to host`
towards another node, a program that is down as `connection refused`. Closed ports without such a line are a warning: on
a single node nothing has to come in. Chains of kube-proxy and the network plugin, and a policy of accept, are fine.

Fix: open the ports (`firewall-cmd --permanent --add-port=...`, `ufw allow`), FlushAllOnReload=no in firewalld.conf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.logs import Line
from manifests.messages import CONTROL_PLANE, said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("component-not-ready", "container-exited", "etcd-quorum-impossible")
SERVICES = {
    "kube-apiserver": (6443,),
    "kube-api": (6443,),
    "kube-control-plane": (6443, 2379, 2380, 10250),
    "kube-control-plane-secure": (6443, 2379, 2380, 10250),
    "etcd-client": (2379,),
    "etcd-server": (2380,),
    "kubelet": (10250,),
    "kube-nodeport-services": (),
}
FILES = ("/etc/firewalld/firewalld.conf", "/etc/ufw/ufw.conf", "/etc/nftables.conf")
TIMEOUT = (
    r"dial tcp \S*:(\d+): (i/o timeout|connect: no route to host|connect: connection timed out)"
    r"|:(2380)\S* .*i/o timeout"
)


def find(node: Node) -> Iterator[Finding]:
    needed = _needed(node)
    if not needed:
        raise NotApplicable("no port of the control plane has to be open here")
    if not any(node.entry(path).data is not None for path in FILES) and not _enabled(node, "firewalld"):
        raise NotApplicable("no firewall's configuration in this tree")
    closed, evidence = _closed(node, needed)
    if not closed:
        return
    line = _timeout(node, closed)
    listed = ", ".join(map(str, closed))
    severity = None if line else Severity.WARNING
    yield Finding(
        f"The host's firewall does not open {listed}", (evidence, *((line.evidence,) if line else ())), severity
    )


def _needed(node: Node) -> tuple[int, ...]:
    ports: list[int] = []
    if "kube-apiserver" in node.components:
        text = node.components["kube-apiserver"].value("secure-port", "6443")
        ports += [int(text)] if text.isdecimal() else []
    if "etcd" in node.components:
        ports += [2379, 2380]
    return (*ports, 10250) if ports else ()


def _closed(node: Node, needed: tuple[int, ...]) -> tuple[list[int], Evidence]:
    """Ports that an enabled firewall does not open, and what says so."""
    if _enabled(node, "firewalld"):
        return _firewalld(node, needed)
    enabled = node.find("/etc/ufw/ufw.conf", r"^\s*ENABLED\s*=\s*yes")
    if enabled:
        rules = (node.entry("/etc/ufw/user.rules").data or b"").decode("utf-8", "replace")
        opened = {port for port in needed if _ufw_opens(rules, port)}
        return [port for port in needed if port not in opened], enabled[0][1]
    dropping = node.find("/etc/nftables.conf", r"hook input .*policy drop")
    if dropping and _enabled(node, "nftables"):
        rules = (node.entry("/etc/nftables.conf").data or b"").decode("utf-8", "replace")
        return [port for port in needed if not _nft_opens(rules, port)], dropping[0][1]
    return [], Evidence("/etc")


def _enabled(node: Node, unit: str) -> bool:
    return any(node.capture.matching(rf"/etc/systemd/system/[^/]+\.wants/{unit}\.service"))


def _firewalld(node: Node, needed: tuple[int, ...]) -> tuple[list[int], Evidence]:
    """The default zone's file; the shipped `public` opens ssh alone, `trusted` and a target of ACCEPT everything."""
    default = node.find("/etc/firewalld/firewalld.conf", r"^\s*DefaultZone\s*=\s*(\S+)")
    zone = default[-1][0][1] if default else "public"
    path = f"/etc/firewalld/zones/{zone}.xml"
    text = (node.entry(path).data or b"").decode("utf-8", "replace")
    if zone == "trusted" or re.search(r'target="ACCEPT"', text):
        return [], Evidence(path)
    opened = {port for name, ports in SERVICES.items() if f'<service name="{name}"' in text for port in ports}
    for first, last in re.findall(r'<port [^>]*port="(\d+)(?:-(\d+))?"', text):
        opened |= {port for port in needed if int(first) <= port <= int(last or first)}
    at = Evidence(path, None, f"zone {zone} does not open them" if text else f"zone {zone} as shipped: ssh alone")
    return [port for port in needed if port not in opened], at


def _ufw_opens(rules: str, port: int) -> bool:
    """ACCEPT rules name ports as `--dport 6443` or `--dports 2379:2380,10250`; without a port they open all."""
    for line in rules.splitlines():
        if not line.startswith("-A ufw-user-input") or "-j ACCEPT" not in line:
            continue
        named = re.search(r"--dports? (\S+)", line)
        for part in named[1].split(",") if named else ():
            first, _, last = part.partition(":")
            if first.isdecimal() and int(first) <= port <= int(last if last.isdecimal() else first):
                return True
        if named is None and "-s " in line:
            return True  # a source that is trusted on every port
    return False


def _nft_opens(rules: str, port: int) -> bool:
    for match in re.finditer(r"dport\s+(\{[^}]*\}|[\w-]+)[^\n]*accept", rules):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", match[1]):
            if int(first) <= port <= int(last or first):
                return True
    return False


def _timeout(node: Node, closed: list[int]) -> Line | None:
    for line in said(node, TIMEOUT, *CONTROL_PLANE, "kubelet"):
        match = re.search(TIMEOUT, line.text)
        if match and int(match[1] or match[3]) in closed:
            return line
    return None

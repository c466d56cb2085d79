"""net.ipv4.ip_forward must be 1: kubeadm refuses to go on, since Pods could not leave their node.

Since Kubernetes itself asks for nothing else, overlay, br_netfilter and bridge-nf-call-* are the network plugin's wish:
see kernel-modules-missing. The value must also stand in a file, or the next boot forgets it.

Fix: net.ipv4.ip_forward = 1 in a file of /etc/sysctl.d that sorts last, and `sysctl --system`.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("FileContent--proc-sys-net-ipv4-ip_forward",)
NAME = "net.ipv4.ip_forward"
FILES = r"/(etc|run|usr/lib)/sysctl\.d/[^/]+\.conf|/etc/sysctl\.conf"
FIX = Fix("drtool preflight --fix", f"sets {NAME} = 1 now and in /etc/sysctl.d")


def find(node: Node) -> Iterator[Finding]:
    value, evidence = node.sysctl(NAME)
    if value != "1":
        yield Finding(f"{NAME} is {value}, and must be 1", (evidence,), fix=FIX)
    kept = _at_boot(node)
    if kept is None:
        yield Finding(f"No file sets {NAME}: the next boot forgets it", (evidence,), severity=Severity.WARNING, fix=FIX)
    elif kept[0] != "1":
        yield Finding(
            f"{NAME} becomes {kept[0]} with the next boot", (kept[1], evidence), severity=Severity.WARNING, fix=FIX
        )


def _at_boot(node: Node) -> tuple[str, Evidence] | None:
    """What the last file in the order of names sets (sysctl.d(5); /etc/sysctl.conf comes last)."""
    paths = sorted(
        (entry.path for entry in node.capture.matching(FILES)),
        key=lambda path: (path == "/etc/sysctl.conf", path.rpartition("/")[2]),
    )
    pattern = rf"^\s*-?{re.escape(NAME).replace(chr(92) + '.', '[./]')}\s*=\s*(\d)"
    found = [(match[1], evidence) for path in paths for match, evidence in node.find(path, pattern)]
    return found[-1] if found else None

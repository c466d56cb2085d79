"""The runtime must look for CNI plugins where they were installed.

Distribution packages put them into /usr/lib/cni or /usr/libexec/cni, kubeadm's and every DaemonSet's into
/opt/cni/bin. When bin_dir names one and the files lie in the other, Pods stay at `failed to find plugin`. CRI-O
searches several directories.

Fix: set bin_dir (CRI-O: plugin_dirs) to where the plugins are, restart the runtime.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import BIN_DIR, bin_dirs, installed, used
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = ("cni-binary-missing", "node-network-unavailable")
USUAL = (BIN_DIR, "/usr/lib/cni", "/usr/libexec/cni")


def find(node: Node) -> Iterator[Finding]:
    needed = {program for program, _ in used(node).programs()} - {"loopback"}
    directories, told = bin_dirs(node)
    try:
        missing = needed - installed(node, directories)
    except EvidenceMissing:
        missing = needed
    if not missing:
        return
    for place in USUAL:
        if place not in directories and needed <= set(node.capture.listings.get(place, ())):
            yield Finding(
                f"The runtime looks for CNI plugins in {', '.join(directories)}, and they are in {place}",
                (told, Evidence(place, None, f"has {', '.join(sorted(needed))}")),
            )
            return
    if all(directory not in node.capture.listings for directory in directories):
        raise EvidenceMissing(f"{', '.join(directories)} not in this tree")

"""Every flag that systemd gives the kubelet must be one that its version knows.

It exits with `failed to parse kubelet flag: unknown flag` otherwise, and no static Pod starts. Flags come from
kubeadm-flags.env, /etc/default/kubelet or /etc/sysconfig/kubelet and drop-ins; `kubeadm upgrade` cleans the first one
alone. --pod-infra-container-image, gone in 1.35, and --network-plugin, gone in 1.24, are the usual ones. Flags that are
only deprecated still work.

Fix: take the flag out of the file that is named, `systemctl daemon-reload`, restart the kubelet.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.installed import kubelet_release
from manifests.node import Node
from manifests.releases import tables
from manifests.releases.tables import State

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready")

ENVIRONMENT = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")


def find(node: Node) -> Iterator[Finding]:
    if not node.kubelet.flags and not _sources(node):
        raise EvidenceMissing("neither the kubelet's unit nor its environment files are in this tree")
    if not node.kubelet.flags:
        return
    release = kubelet_release(node)
    if tables.flags("kubelet", release.numbers) is None:
        raise EvidenceMissing(f"no release data of the kubelet {release}")
    for flag in node.kubelet.flags:
        verdict = tables.explain_flag("kubelet", flag.name, release.numbers)
        if verdict is None or verdict.accepted or (verdict.state is State.NOT_YET and not release.certain):
            continue
        yield Finding(f"--{flag.name} of the kubelet {verdict.why}", (flag.evidence, release.evidence))


def _sources(node: Node) -> bool:
    return bool(node.kubelet_unit.files) or any(node.entry(path).data is not None for path in ENVIRONMENT)

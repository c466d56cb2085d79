"""A node needs a usable network configuration before a Pod that is not hostNetwork can start on it.

Without one the kubelet says `cni plugin not initialized` and the node is NotReady. The control plane's own Pods are
hostNetwork and run all the same, so it is never the cause of an API outage; and on a control plane whose CNI is yet
to be installed it is what one sees. Where the cluster has a network plugin, or Pods with addresses run, the file has
gone.

Fix: restart the CNI's agent on this node, or put the file back; then restart the runtime.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import SUFFIXES, conf_dir, networks
from manifests.network.cni_plugins import plugin_of
from snapshots.registry.cluster import evidence

SEVERITY = Severity.ERROR
SYMPTOM = True  # any fault below may have taken it away
EXPLAINS = ("node-network-unavailable",)
OFF = (".bak", ".disabled", ".old", ".orig", ".rpmsave", ".dpkg-old", "~")


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    directory = conf_dir(node)
    try:
        found = networks(node)
    except EvidenceMissing:
        if not _copied(case, directory):
            raise
        found = ()
    if any(not network.problem for network in found):
        return
    if found:
        broken = found[0]
        at = node.line(broken.path, broken.line) if broken.line else Evidence(broken.path)
        yield Finding(f"The network configuration {broken.path} cannot be used: {broken.problem}", (at,))
        return
    before = _was_there(case, directory)
    yield Finding(
        f"No network configuration in {directory}",
        (Evidence(directory, None, "no file that a runtime reads"), *before),
        severity=None if before else Severity.WARNING,
    )


def _copied(case: Case, directory: str) -> bool:
    """Whether the directory is gone from a tree that has what lies beside it."""
    absent = case.node.entry(directory).kind == "absent"
    return absent and case.node.entry("/etc/hosts").kind != "absent"


def _was_there(case: Case, directory: str) -> tuple[Evidence, ...]:
    """What says that this node had a network: a file put aside, an agent's leftovers, a plugin, Pods."""
    for name in case.node.capture.listings.get(directory, ()):
        stem = next((name.removesuffix(suffix) for suffix in OFF if name.endswith(suffix)), "")
        if stem.endswith(SUFFIXES) or "kubeconfig" in name:
            return (Evidence(f"{directory}/{name}", None, "left behind"),)
    if case.node.entry("/run/flannel/subnet.env").data is not None:
        return (Evidence("/run/flannel/subnet.env", None, "flannel ran here"),)
    try:
        for daemon_set in case.cluster.all("DaemonSet"):
            if plugin_of(daemon_set.name):
                return (evidence(daemon_set),)
        for pod in case.cluster.all("Pod"):
            mine = pod.at("spec", "nodeName") == case.node.name and not pod.at("spec", "hostNetwork")
            if mine and pod.at("status", "podIP"):
                return (evidence(pod, "status", "podIP"),)
    except EvidenceMissing:
        return ()
    return ()

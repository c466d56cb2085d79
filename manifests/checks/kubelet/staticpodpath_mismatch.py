"""The kubelet must look for static Pods where the control plane's manifests lie.

Without staticPodPath (or --pod-manifest-path) it runs none, and with another directory it runs what lies there; the
manifests in /etc/kubernetes/manifests are then only files. A worker with an empty directory is healthy.

Fix: set staticPodPath to the directory of the manifests in the kubelet's configuration and restart the kubelet.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import kubelet_configuration
from manifests.node import MANIFESTS, PROGRAMS, Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("manifest-missing", "container-exited", "component-not-ready", "etcd-servers-vs-etcd")


def find(node: Node) -> Iterator[Finding]:
    here = node.capture.listings.get(MANIFESTS, ())
    meant = [name for program in PROGRAMS for name in (f"{program}.yaml", f"{program}.yml") if name in here]
    if not meant:
        raise NotApplicable(f"no control-plane manifests in {MANIFESTS}")
    kubelet = node.kubelet
    if not kubelet.flag("pod-manifest-path"):
        kubelet_configuration(node)
    path, evidence = kubelet.setting("pod-manifest-path", "staticPodPath", default="")
    there = Evidence(f"{MANIFESTS}/{meant[0]}")
    if not path:
        title = f"The kubelet has no staticPodPath, so it runs nothing of {MANIFESTS}"
        yield Finding(title, (Evidence(kubelet.config_path, None, "no staticPodPath"), there))
    elif str(path).rstrip("/") != MANIFESTS and not _same_directory(node, str(path).rstrip("/"), meant):
        yield Finding(f"The kubelet reads {path}, and the manifests lie in {MANIFESTS}", (evidence, there))


def _same_directory(node: Node, path: str, meant: list[str]) -> bool:
    """Reached over a link, or a directory that holds a control plane too (then that one counts)."""
    return any(name in node.capture.listings.get(path, ()) for name in meant)

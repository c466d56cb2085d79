"""The kubelet must be pointed to the socket of a runtime that is installed.

It exits with `validate service connection` otherwise. Left-overs are /var/run/dockershim.sock (gone in 1.24), the
socket of a runtime that was replaced, and an address whose scheme was put on twice. /run and /var/run are the same
place; two runtimes side by side are fine as long as the kubelet's is one of them.

Fix: set containerRuntimeEndpoint (or --container-runtime-endpoint) to the runtime's socket, and the node's cri-socket
annotation with it.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import kubelet_configuration
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready", "cri-socket-annotation")
SOCKETS = {
    "containerd": r"/containerd/containerd\.sock$",
    "crio": r"/crio/crio\.sock$",
    "cri-dockerd": r"/cri-dockerd\.sock$",
    "dockershim": r"/dockershim\.sock$",
}
TRACES = {
    "containerd": ("/etc/containerd/config.toml", "/run/containerd/containerd.sock"),
    "crio": ("/etc/crio/crio.conf", "/run/crio/crio.sock"),
    "cri-dockerd": ("/run/cri-dockerd.sock",),
}
UNITS = {"containerd": "containerd", "crio": "crio", "cri-dockerd": "cri-docker"}


def find(node: Node) -> Iterator[Finding]:
    endpoint, evidence = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    endpoint = str(endpoint)
    if not endpoint and not node.kubelet.flag("container-runtime-endpoint"):
        kubelet_configuration(node)
    if not endpoint:
        raise EvidenceMissing("no runtime endpoint is configured; the kubelet's default depends on its version")
    if endpoint.count("://") > 1:
        yield Finding(f"The kubelet's runtime endpoint has its scheme more than once: {endpoint}", (evidence,))
        return
    scheme = endpoint.partition("://")[0] if "://" in endpoint else ""
    if scheme and scheme not in {"unix", "tcp", "npipe"}:
        yield Finding(f"The kubelet's runtime endpoint has an unknown scheme: {endpoint}", (evidence,))
        return
    wanted = next((name for name, pattern in SOCKETS.items() if re.search(pattern, endpoint)), "")
    if wanted == "dockershim":
        title = f"The kubelet is pointed to dockershim ({endpoint}), which Kubernetes 1.24 removed"
        yield Finding(title, (evidence, *_proofs(node)))
        return
    installed = {name: proof for name in TRACES if (proof := _proof(node, name)) is not None}
    if wanted and wanted not in installed and installed:
        others = ", ".join(installed)
        yield Finding(
            f"The kubelet is pointed to {wanted} ({endpoint}), and this host has {others}",
            (evidence, *installed.values()),
        )
    elif not wanted and installed and (hint := _speaks_no_cri(node, endpoint)):
        title = f"The kubelet is pointed to {endpoint}, where no runtime speaks CRI"
        yield Finding(title, (evidence, *hint, *installed.values()))
    elif not installed:
        raise EvidenceMissing("no trace of any container runtime in this tree")


def _speaks_no_cri(node: Node, endpoint: str) -> tuple[Evidence, ...]:
    """Docker's own socket never does; of another unknown one the kubelet must say so."""
    path = endpoint.partition("://")[2] or endpoint
    line = last_said(node, rf"validate service connection.*{re.escape(path)}", "kubelet")
    if line is not None:
        return (line.evidence,)
    return (Evidence(path, None, "Docker's own API"),) if path.endswith("/docker.sock") else ()


def _proof(node: Node, runtime: str) -> Evidence | None:
    """A socket, a configuration or a unit of the runtime; containerd's also serves Docker and needs no unit."""
    for path in TRACES[runtime]:
        if node.entry(path).kind in {"file", "link", "socket", "special"}:
            return Evidence(path)
    unit = UNITS[runtime]
    pattern = rf"/(etc|usr/lib|lib)/systemd/system/{unit}\.service|/etc/crio/crio\.conf\.d/.+"
    for entry in node.capture.matching(pattern):
        if unit in entry.path:
            return Evidence(entry.path)
    told = node.versions.get(runtime)
    return Evidence("/drtool/versions.json", None, f"{runtime} {told}") if told else None


def _proofs(node: Node) -> tuple[Evidence, ...]:
    return tuple(proof for name in TRACES if (proof := _proof(node, name)) is not None)

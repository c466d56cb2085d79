"""kubeadm must find one container runtime: none, or several and none named, stops it.

unix:///var/run/containerd/containerd.sock, unix:///var/run/crio/crio.sock, unix:///var/run/cri-dockerd.sock (Docker
Engine only through cri-dockerd since 1.24). Where there are several, name one as criSocket.

Fix: install containerd or CRI-O and start it; or name the socket.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("CRI",)
SOCKETS = {
    "/run/containerd/containerd.sock": "containerd",
    "/run/crio/crio.sock": "CRI-O",
    "/run/cri-dockerd.sock": "cri-dockerd",
}


def find(node: Node) -> Iterator[Finding]:
    found = [path for path in SOCKETS if node.entry(path).kind == "socket"]
    if not found and not node.capture.live:
        raise EvidenceMissing("sockets do not outlive a copy: which runtime runs is not known")
    named, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    if not found:
        paths = tuple(Evidence(path, None, "absent") for path in SOCKETS)
        yield Finding("No container runtime's socket is there", paths)
    elif len(found) > 1 and not named:
        names = " and ".join(SOCKETS[path] for path in found)
        yield Finding(f"{names} are both there, and none is named", tuple(Evidence(path) for path in found))

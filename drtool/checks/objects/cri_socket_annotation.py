"""The runtime socket that kubeadm noted should be the one that the kubelet uses.

kubeadm upgrade and reset ask the runtime at the socket in the Node's annotation kubeadm.alpha.kubernetes.io/cri-socket.
After a change of runtime it names the old one, and they fail. Newer kubeadm keeps the socket in
/var/lib/kubelet/instance-config.yaml instead; without the annotation there is nothing to compare.

Fix: kubectl annotate node NAME --overwrite kubeadm.alpha.kubernetes.io/cri-socket=unix:///PATH
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from snapshots.registry.cluster import evidence

SEVERITY = Severity.WARNING
ANNOTATION = "kubeadm.alpha.kubernetes.io/cri-socket"


def find(case: Case) -> Iterator[Finding]:
    name = case.node.kubelet.node_name
    node = case.cluster.get("Node", name)
    if node is None:
        raise EvidenceMissing(f"the db holds no Node {name}")
    noted = (node.metadata.get("annotations") or {}).get(ANNOTATION)
    if not noted:
        raise NotApplicable(f"Node {name} has no annotation {ANNOTATION}")
    used, source = case.node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    if not used:
        raise EvidenceMissing("the kubelet's configuration does not name a runtime endpoint")
    if _socket(str(noted)) != _socket(str(used)):
        yield Finding(
            f"kubeadm's annotation of Node {name} names {_socket(str(noted))}, the kubelet uses {_socket(str(used))}",
            (Evidence(evidence(node).path, text=f"{ANNOTATION}: {noted}"), source),
            fix=Fix(
                f"kubectl annotate node {name} --overwrite {ANNOTATION}=unix://{_socket(str(used))}",
                "lets kubeadm upgrade and reset find the runtime",
            ),
        )


def _socket(endpoint: str) -> str:
    """The path; /var/run is /run, and the scheme may be left out."""
    path = endpoint.removeprefix("unix://")
    return "/run/" + path.removeprefix("/var/run/") if path.startswith("/var/run/") else path

"""kube-vip needs the API server to hold the virtual address, and reaches the API server by that address.

Its leader election takes a lease from the API. A generated manifest maps the name `kubernetes`, which it dials, to
127.0.0.1 in hostAliases; without that (or kubernetes_addr) nothing brings the address up again once every node has been
down, though API server and etcd are well. While another node holds the address it is a risk, and shows later.

Fix: put hostAliases with `kubernetes` for 127.0.0.1 back into kube-vip.yaml.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.identity import members
from manifests.network.kube_vip import lock_errors, the_kube_vip
from manifests.node import Node

SEVERITY = Severity.CRITICAL
UNREACHED = r"no route to host|timeout|no such host|deadline exceeded|connection refused"


def find(node: Node) -> Iterator[Finding]:
    vip = the_kube_vip(node)
    mounted = vip.kubeconfig
    if not vip.control_plane or mounted is None:
        raise NotApplicable("kube-vip does not serve the control plane with a kubeconfig here")
    config = node.kubeconfigs.get(mounted[0])
    if config is None:
        raise EvidenceMissing(f"{mounted[0]} is not in this tree")
    given = vip.value("address", "vip_address").partition("/")[0]
    same = given.lower() == config.host.lower() and bool(given)
    by_address = same or (vip.address is not None and vip.address in node.resolve(config.host))
    if vip.local_override or "kubernetes" in node.hosts or not by_address:
        return
    errors = lock_errors(node, UNREACHED)
    held = vip.address is not None and _held_here(node, vip.address)
    alone = len(members(node)) < 2
    yield Finding(
        f"kube-vip reaches the API server by {config.host}, the address that it has to bring up itself",
        (config.server_evidence, vip.evidence("address", "vip_address"), mounted[1], *errors[-1:]),
        severity=Severity.CRITICAL if errors or (alone and not held) else Severity.WARNING,
    )


def _held_here(node: Node, address: object) -> bool:
    try:
        return address in node.addresses.local
    except EvidenceMissing:
        return False

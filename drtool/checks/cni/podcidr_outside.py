"""A Node's Pod addresses must lie in the cluster's range.

The cluster's range is the controller manager's --cluster-cidr, or kubeadm's podSubnet. A Node whose podCIDR lies
outside it was made under another setting: kube-proxy, network policies and masquerading rules treat its Pods as
strangers, and the controller manager refuses to go on with it (`cidr 10.244.0.0/24 is out the range of cluster cidr`).

Fix: delete the Node object and let its kubelet register again; or set --cluster-cidr to a range that holds all Nodes'.
"""

from __future__ import annotations

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.messages import last_said
from manifests.network.cni_plugins import gives_out_addresses
from snapshots.checks.cni import podcidr_outside as over_objects

SEVERITY = Severity.ERROR
CONTROLLER_MANAGER = "kube-controller-manager"
REFUSED = r"is out (?:of )?the range of cluster cidr|failed to mark cidr\[.*as occupied"


def find(case: Case) -> Iterator[Finding]:
    """The manifest counts before what the mirror Pod in the db was started with."""
    manager = case.node.components.get(CONTROLLER_MANAGER)
    line = last_said(case.node, REFUSED, CONTROLLER_MANAGER)
    if line is not None:
        told = (manager.flag("cluster-cidr").evidence,) if manager and manager.has("cluster-cidr") else ()
        yield Finding(
            "A Node's Pod addresses lie outside --cluster-cidr, as its controller says", (line.evidence, *told)
        )
        return
    if manager is None or not manager.has("cluster-cidr") or gives_out_addresses(case.node) is not None:
        yield from over_objects.find(case.cluster)
        return
    flag = manager.flag("cluster-cidr")
    try:
        ranges = over_objects.parsed(flag.value)
    except EvidenceMissing:
        return  # a value that is no range is another check's
    over_objects.refuse_own(case.cluster)
    yield from over_objects.strangers(case.cluster, ranges, flag.evidence)

"""A CA's private key is not on this node.

Legal: with an external CA kubeadm works without keys, and somebody else signs. Then nothing here can be renewed, and
the controller-manager must not be told to sign: with --cluster-signing-key-file naming an absent file its requests for
certificates stay without an answer. If the key is lost rather than kept elsewhere, copy it from another control plane.

Fix: none needed with an external CA; else bring the key back from another control plane or a backup.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import Layout
from manifests.node import PKI, Node
from manifests.pki.credentials import private_half
from manifests.pki.expected import AUTHORITIES

SEVERITY = Severity.INFO


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.programs:
        raise NotApplicable(f"a {node.layout} node keeps no CA keys")
    here = [a for a in AUTHORITIES if f"{PKI}/{a.path}.crt" in node.pems]
    if not here:
        raise EvidenceMissing(f"no CA certificate in {PKI}")
    for authority in here:
        path = f"{PKI}/{authority.path}.key"
        others = authority.path == "etcd/ca" and node.layout is Layout.EXTERNAL_ETCD
        if others or private_half(node, path) is not None:
            continue
        entry = node.entry(path)
        if entry.data is None and entry.kind not in {"absent", "dangling"}:
            raise EvidenceMissing(f"{path}: {entry.error}")
        signing = _signing(node, path)
        yield Finding(
            f"{path} is not on this node: an external CA, or a lost key",
            (Evidence(f"{PKI}/{authority.path}.crt"), *signing),
            severity=Severity.WARNING if signing else Severity.INFO,
        )


def _signing(node: Node, path: str) -> tuple[Evidence, ...]:
    manager = node.components.get("kube-controller-manager")
    if manager is None or not manager.has("cluster-signing-key-file"):
        return ()
    flag = manager.flag("cluster-signing-key-file")
    return (flag.evidence,) if (manager.container.host_path(flag.value) or flag.value) == path else ()

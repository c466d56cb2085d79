"""A serving certificate was made for another node.

Only the CAs and the sa pair are shared between control planes. After copying one node's pki/ over the others - often in
a hurry, when certificates had expired - etcd's members refuse each other ("does not match any of DNSNames") and clients
refuse the API server. A certificate that carries this node's name or address is not meant: a host that was renamed, or
moved, has other faults.

Fix: delete the node's own leafs and let `kubeadm init phase certs` (apiserver, etcd-server, etcd-peer) make them anew.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.credentials import credentials
from manifests.pki.serving import own_names, strangers

SEVERITY = Severity.CRITICAL
EXPLAINS = ("san-missing-own-address", "san-missing-endpoint", "san-missing-service-address")


def find(node: Node) -> Iterator[Finding]:
    serving = [c for c in credentials(node) if c.serving and c.certificate is not None]
    if not serving or not own_names(node):
        raise EvidenceMissing("no serving certificate, or no name of this node, in this tree")
    for credential in serving:
        names = strangers(node, credential)
        if names and credential.certificate is not None:
            certificate = credential.certificate
            yield Finding(
                f"The {credential.role} certificate was made for {names[0]}, this node is {node.name}",
                (certificate.says(f"CN={certificate.common_name}, {', '.join(certificate.names())}"), *_own(node)),
                layer=credential.layer,
                fix=Fix("drtool fix cert-of-other-node", "issues this node's own leafs with its names and addresses"),
            )


def _own(node: Node) -> tuple[Evidence, ...]:
    etcd = node.components.get("etcd")
    named = (etcd.flag("name").evidence,) if etcd and etcd.has("name") else ()
    return (*named, Evidence("/etc/hostname", 1, node.hostname)) if node.hostname else named

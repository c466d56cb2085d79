"""A server's certificate lacks the address or name that this node's own flags make clients dial.

The API server is reached by --advertise-address (behind the `kubernetes` Service), etcd by its advertised URLs and by
--etcd-servers. Since etcd 3.2 a peer's certificate is also held against the address it calls from. DNS names alone do
where the URLs are names.

Fix: delete the certificate and its key and let `kubeadm init phase certs` make them anew with the right address.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Fix, Severity
from manifests.network.addresses import address_of
from manifests.node import Node
from manifests.pki.serving import dialled

SEVERITY = Severity.CRITICAL
EXPLAINS = ("san-missing-endpoint", "san-missing-service-address")  # one certificate, issued anew once


def find(node: Node) -> Iterator[Finding]:
    found = tuple(dialled(node))
    if not found:
        raise EvidenceMissing("no serving certificate with the flags that name its addresses in this tree")
    for dial in found:
        address = address_of(dial.host)
        if address is not None and address.is_unspecified:
            continue
        if not dial.certificate.covers(dial.host):
            names = ", ".join(dial.certificate.names()) or "none"
            yield Finding(
                f"{dial.certificate.path} is not valid for {dial.host} ({dial.by})",
                (dial.certificate.says(f"names: {names}"), dial.evidence),
                layer=dial.layer,
                fix=Fix("drtool fix san-missing-own-address", "issues the certificate anew with this node's address"),
            )

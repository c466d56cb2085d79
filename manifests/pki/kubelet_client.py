"""The kubelet's own client certificate: where rotation puts it, and whether kubelet.conf follows.

The kubelet writes each new pair to a dated file and moves the link kubelet-client-current.pem to it
(k8s.io/client-go/util/certificate, certificate_store.go).
"""

from __future__ import annotations

from manifests.node import Node
from manifests.pki.certificates import Certificate
from manifests.pki.credentials import Credential

DIRECTORY = "/var/lib/kubelet/pki"
CURRENT = f"{DIRECTORY}/kubelet-client-current.pem"


def rotated(node: Node) -> Certificate | None:
    """The newest certificate that rotation left in its directory, whatever the link says."""
    prefix = f"{DIRECTORY}/kubelet-client-"
    found = [pem.certificates[0] for path, pem in node.pems.items() if path.startswith(prefix) and pem.certificates]
    return max(found, key=lambda certificate: certificate.not_after, default=None)


def rotates(node: Node) -> bool:
    value, _ = node.kubelet.setting("rotate-certificates", "rotateCertificates", default=False)
    return str(value).lower() == "true"


def superseded(node: Node, credential: Credential) -> bool:
    """A certificate inside kubelet.conf beside the ones that rotation wrote: kubelet-client-link names that fault."""
    return credential.reader == "kubelet.conf" and credential.embedded and rotated(node) is not None

"""A certificate in use has expired.

Leafs of kubeadm live one year and are renewed by upgrades only; the kubelet renews its own client certificate, but not
while it is stopped. What stops depends on the certificate: etcd's and the API server's take the control plane down, the
kubelet's client takes every static Pod of this node with it (it exits, complaining of a missing bootstrap-kubelet.conf,
which is normal and not the fault), the front proxy's only aggregated APIs, admin.conf's only people. `kubeadm certs
check-expiration` does not look at the kubelet's, and old kubelet-client-<date>.pem files expire by design.

Fix: `kubeadm certs renew all` and a restart of the static Pods; for the kubelet `kubeadm init phase kubeconfig kubelet`
on a node that has ca.key, then a restart; `drtool fix cert-expired` does both.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.validity import Term, cas, leaves

SEVERITY = Severity.CRITICAL


def find(node: Node) -> Iterator[Finding]:
    for term in (*cas(node), *leaves(node)):
        if term.certificate.not_after < node.at:
            yield _finding(node, term)


def _finding(node: Node, term: Term) -> Finding:
    days = (node.at - term.certificate.not_after).days
    expired = utc(term.certificate.not_after)
    return Finding(
        f"{_sentence(term.what)} expired {days} days ago" if days else f"{_sentence(term.what)} expired today",
        (term.certificate.says(f"CN={term.certificate.common_name}, valid until {expired}"), *term.also),
        severity=term.loss,
        layer=term.layer,
        fix=Fix("drtool fix cert-expired", "issues what has expired anew, with its names, and restarts who reads it"),
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]

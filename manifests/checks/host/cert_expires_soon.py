"""A certificate in use expires soon: within 30 days, or as `drtool check --expiry-days` says.

kubeadm renews leafs when it upgrades a node, and never by itself. Files of the kubelet's rotation that no link names
any more are left out.

Fix: `kubeadm certs renew all`, then restart the static Pods; or upgrade the node.
"""

from collections.abc import Iterator
from datetime import timedelta

from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.validity import cas, leaves

SEVERITY = Severity.WARNING


def find(node: Node) -> Iterator[Finding]:
    soon = timedelta(days=node.expiry_days)
    for term in (*cas(node), *leaves(node)):
        left = term.certificate.not_after - node.at
        if timedelta(0) <= left <= soon:
            until = utc(term.certificate.not_after)
            yield Finding(
                f"{term.what[0].upper()}{term.what[1:]} expires in {left.days} days",
                (term.certificate.says(f"CN={term.certificate.common_name}, valid until {until}"), *term.also),
                layer=term.layer,
                fix=Fix("drtool fix cert-expires-soon", "issues it anew with its names, and restarts who reads it"),
            )

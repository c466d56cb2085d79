"""A certificate begins in the future: nobody accepts it yet.

Either the host's clock is behind, or it was ahead when the certificate was made. kubeadm backdates leafs to their CA's
beginning, so a few minutes between hosts do no harm and are allowed here too.

Fix: correct the clock first (chronyc tracking, timedatectl); only then re-issue what is still not valid.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.validity import SKEW, cas, leaves

SEVERITY = Severity.CRITICAL


def find(node: Node) -> Iterator[Finding]:
    for term in (*cas(node), *leaves(node)):
        if term.certificate.not_before > node.at + SKEW:
            begins = utc(term.certificate.not_before)
            yield Finding(
                f"{term.what[0].upper()}{term.what[1:]} is not valid before {begins}",
                (term.certificate.says(f"CN={term.certificate.common_name}, valid from {begins}"), *term.also),
                severity=term.loss,
                layer=term.layer,
                fix=Fix("drtool fix cert-not-yet-valid", "issues it anew; correct the clock first"),
            )

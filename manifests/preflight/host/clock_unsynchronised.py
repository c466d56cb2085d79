"""Nothing keeps this host's clock right.

Certificates, tokens and leases are judged by it; a jump of minutes takes a control plane down. chrony,
systemd-timesyncd or ntpd must be enabled.

Fix: install and enable chrony.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
WANTS = r"/etc/systemd/system/[^/]+\.wants/[^/]+"
UNITS = (
    "chrony.service",
    "chronyd.service",
    "systemd-timesyncd.service",
    "ntp.service",
    "ntpd.service",
    "ntpsec.service",
)


def find(node: Node) -> Iterator[Finding]:
    wanted = {entry.path.rpartition("/")[2] for entry in node.capture.matching(WANTS)}
    if not wanted & set(UNITS):
        if not wanted:
            raise EvidenceMissing("no systemd units in this tree: what keeps the clock right is not known")
        units = "no chrony, ntp or timesyncd among the enabled units"
        yield Finding("No unit that sets the clock is enabled", (Evidence("/etc/systemd/system", None, units),))

"""A network configuration should be written for CNI 0.4.0 or newer; 1.0.0 is what runtimes recommend.

Below 0.4.0 there is no CHECK and no chaining of results, and runtimes drop those versions one by one.

Fix: set cniVersion in the file; the plugins must know it.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.network.cni import used
from manifests.node import Node

SEVERITY = Severity.WARNING
LEAST = (0, 4, 0)


def find(node: Node) -> Iterator[Finding]:
    network = used(node)
    numbers = [int(part) for part in network.version.split(".") if part.isdecimal()]
    if network.document is not None and tuple(numbers) < LEAST:
        yield Finding(
            f"{network.path} is of CNI {network.version or '0.1.0 (no cniVersion)'}, older than 0.4.0",
            (network.document.evidence("cniVersion"),),
        )

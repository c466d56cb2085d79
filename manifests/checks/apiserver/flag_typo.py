"""A misspelt flag stops the program that it is given to.

The flag libraries of Kubernetes and etcd take no unknown flag: the program prints `unknown flag` and exits before it
does anything else. A flag that is one or two letters away from one that this release knows is taken for a typing error.

Fix: correct the flag's name in the manifest.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.installed import covered, layer_of
from manifests.node import Node
from manifests.releases import tables

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    for component in node.components.values():
        try:
            release = covered(node, component)
        except EvidenceMissing as missing:
            gap = gap or missing
            continue
        for flag in component.container.flags:
            verdict = tables.explain_flag(component.program, flag.name, release.numbers)
            if verdict is not None and verdict.nearest:
                yield Finding(
                    f"--{flag.name} of {component.program} is no flag; --{verdict.nearest} is meant",
                    (flag.evidence, release.evidence),
                    severity=None if release.certain else Severity.WARNING,
                    layer=layer_of(component.program),
                )
    if gap:
        raise gap

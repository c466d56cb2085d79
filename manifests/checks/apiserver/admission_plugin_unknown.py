"""The admission plugins that the API server is told to use must exist in its version.

It exits with `enable-admission-plugins plugin "X" is unknown` otherwise. PodSecurityPolicy (gone in 1.25) and
SecurityContextDeny (gone in 1.30) are the usual ones. A plugin may not be enabled and disabled at once either.

Fix: take the plugin out of --enable-admission-plugins or --disable-admission-plugins, and out of extraArgs.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.installed import covered
from manifests.node import Node
from manifests.releases import tables

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
LISTS = ("enable-admission-plugins", "disable-admission-plugins", "admission-control")


def find(node: Node) -> Iterator[Finding]:
    apiserver = node.apiserver
    named = {name: apiserver.names(name) for name in LISTS}
    both = sorted(set(named[LISTS[0]]) & set(named[LISTS[1]]))
    if both:
        evidence = tuple(apiserver.flag(name).evidence for name in LISTS[:2])
        yield Finding(f"Admission plugin {', '.join(both)} is enabled and disabled at once", evidence)
    if not any(named.values()):
        return
    release = covered(node, apiserver)
    for name in LISTS:
        for flag in apiserver.all(name):
            for plugin in filter(None, map(str.strip, flag.value.split(","))):
                verdict = tables.explain_plugin(plugin, release.numbers)
                if verdict is not None and not verdict.accepted:
                    yield Finding(
                        f"Admission plugin {plugin} of kube-apiserver {release} {verdict.why}",
                        (flag.evidence, release.evidence),
                        severity=None if release.certain else Severity.WARNING,
                    )

"""etcd's flags must be of its own line: each of 3.4 to 3.7 dropped some and brought others.

`--enable-v2` and the proxy's flags went with 3.6, the `--experimental-` names with 3.7, while 3.5 knows none of the
new ones. etcd prints `flag provided but not defined` and exits. It happens when a manifest with flags of one's own is
upgraded, or rolled back.

Fix: take the flag out or write its new name; also in kubeadm's etcd.local.extraArgs, or the next upgrade brings it
back.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.installed import covered
from manifests.node import Node
from manifests.releases import tables
from manifests.releases.tables import State

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    release = covered(node, etcd)
    for flag in etcd.container.flags:
        verdict = tables.explain_flag("etcd", flag.name, release.numbers)
        if verdict is None or verdict.nearest or not flag.name.replace("-", "").isalnum():
            continue  # a near name is a typing error; odd characters are quoting: checks of their own
        if verdict.state in {State.REMOVED, State.NOT_YET, State.UNKNOWN}:
            yield Finding(
                f"etcd {release} does not take --{flag.name}: it {verdict.why}",
                (flag.evidence, release.evidence),
                severity=None if release.certain else Severity.WARNING,
            )

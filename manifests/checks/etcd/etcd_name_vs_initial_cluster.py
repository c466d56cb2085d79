"""A member that starts for the first time must find its own name and URL in --initial-cluster.

etcd exits with `couldn't find local name "node-2" in the initial cluster configuration` (a short name against an
FQDN, a renamed host), or with `--initial-cluster has ... but missing from --initial-advertise-peer-urls`. A member
that already has data reads neither flag: there the difference means nothing.

Fix: make --name, --initial-cluster and --initial-advertise-peer-urls in etcd.yaml agree.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import data_directory, has_data, last_words
from manifests.node import Node

SEVERITY = Severity.CRITICAL
REFUSED = r"couldn't find local name|--initial-cluster has .* but missing from --initial-advertise-peer-urls"
EXPLAINS = (
    "etcd-data-dir-missing",
    "node-name-mismatch",
    "cert-of-other-node",
    "container-exited",
    "component-not-ready",
)


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    listed = etcd.flag("initial-cluster")
    words = last_words(node, REFUSED)
    if words is not None:
        yield Finding("etcd does not find itself in --initial-cluster, as it says itself", (words, listed.evidence))
        return
    if _has_data(node):
        raise NotApplicable("the member has data: --initial-cluster is not read")
    urls: dict[str, set[str]] = {}
    for part in listed.value.split(","):
        name, _, url = part.strip().partition("=")
        urls.setdefault(name, set()).add(url.rstrip("/"))
    own = etcd.value("name", "default")
    named = etcd.flag("name").evidence if etcd.has("name") else etcd.image_evidence
    empty = Evidence(data_directory(node), None, "holds no member yet")
    if own not in urls:
        yield Finding(f"etcd's --name {own} is not in its --initial-cluster", (named, listed.evidence, empty))
    elif etcd.has("initial-advertise-peer-urls"):
        advertised = etcd.flag("initial-advertise-peer-urls")
        if {url.strip().rstrip("/") for url in advertised.value.split(",")} != urls[own]:
            yield Finding(
                f"--initial-cluster gives {own} another URL than --initial-advertise-peer-urls",
                (listed.evidence, advertised.evidence, empty),
            )


def _has_data(node: Node) -> bool:
    """Where /var/lib was copied, a data directory that is absent holds no member either."""
    try:
        return has_data(node)
    except EvidenceMissing:
        bundle = node.entry("/drtool/capture.json").kind != "absent"
        if bundle or node.entry("/var/lib/kubelet/pki").kind == "absent":
            raise
        return False

"""The cluster objects in a node's own db, for the checks over objects: read beside the files, never through an API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import DrtoolError
from drtool.core.report import Evidence
from drtool.host.root import Root
from manifests.identity import members
from manifests.node import Node
from manifests.pki.serving import API_SERVER, serving
from snapshots import bolt as bbolt
from snapshots import mvcc
from snapshots.facts import DataDirectory
from snapshots.registry import encryption
from snapshots.registry.cluster import Cluster
from snapshots.registry.encryption import Keys
from snapshots.registry.objects import Registry
from snapshots.still import held_still

LARGEST_COPY = 256 << 20


@contextmanager
def objects(root: Root, node: Node, stored: DataDirectory | None) -> Iterator[Cluster | str]:
    """The cluster while its db is open, or why there is none: no db, too many pages for a look, damage."""
    if stored is None:
        yield "no etcd data on this node"
        return
    try:
        database = stored.database
        if not database.checked or database.damage:
            yield f"{database.path}: " + (database.damage or "too large to read every object here")
            return
        place = root.locate(database.path)
    except (EvidenceMissing, NotApplicable, OSError, ValueError) as gap:
        yield str(gap)
        return
    apiserver = node.components.get("kube-apiserver")
    prefix = apiserver.value("etcd-prefix", "/registry") if apiserver else "/registry"
    with ExitStack() as stack:
        try:
            if database.busy:  # what is mapped would change under the checks
                bolt = stack.enter_context(held_still(place, LARGEST_COPY))
            else:
                bolt = stack.enter_context(bbolt.opened(place))
            index = mvcc.keyspace(bolt).index()
        except (DrtoolError, OSError) as gap:
            yield str(gap).replace(str(place), database.path)
            return
        yield _cluster(node, Registry(index, database.path, _secrets(node), prefix))


def _cluster(node: Node, registry: Registry) -> Cluster:
    """With what the node's own files say about the same things."""
    saved = {kind: one for kind, one in node.kubeadm_documents.items() if isinstance(one.data, dict)}
    return Cluster(
        registry,
        saved={kind: one.data for kind, one in saved.items()},
        saved_path=saved["ClusterStatus"].path if "ClusterStatus" in saved else "",
        servers=_servers(node),
        named=_named(node),
    )


def _servers(node: Node) -> dict[str, Evidence]:
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None or not apiserver.has("advertise-address"):
        return {}
    flag, etcd = apiserver.flag("advertise-address"), node.components.get("etcd")
    listed = etcd.flag("initial-cluster").evidence if etcd and etcd.has("initial-cluster") else flag.evidence
    others = {str(address): listed for addresses in members(node).values() for address in addresses}
    return others | {flag.value: flag.evidence}


def _named(node: Node) -> frozenset[str]:
    try:
        return frozenset(serving(node, API_SERVER).names())
    except EvidenceMissing:
        return frozenset()


def _secrets(node: Node) -> Keys:
    """The keys of the node's own encryption configuration; none where it has no usable one."""
    apiserver = node.components.get("kube-apiserver")
    name = "encryption-provider-config"
    if apiserver is None or not apiserver.has(name):
        return Keys()
    flag = apiserver.flag(name)
    path = apiserver.container.host_path(flag.value) or flag.value
    try:
        return encryption.parse(node.text(path), path)
    except (EvidenceMissing, DrtoolError):
        return Keys()

"""The cluster objects in a node's own db, for the checks over objects: read beside the files, never through an API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import DrtoolError
from drtool.host.root import Root
from manifests.node import Node
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
        yield Cluster(Registry(index, database.path, _secrets(node), prefix))


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

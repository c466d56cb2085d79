"""etcd's data directory must be a volume of the host, and hold the member that was there.

Where --data-dir lies outside of every mount, etcd writes into its container, and all is gone with it. Where the volume
leads elsewhere than to the data, or the directory was moved or wiped, etcd founds a new, empty cluster under the old
name, or the kubelet refuses to start the Pod.

Fix: point volume and --data-dir back to where the data is; else restore a backup. Never let an empty member run.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import DATA_DIR, data_directory, has_data
from manifests.node import Node
from manifests.pod import Component, Mount

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
SERVED = re.compile(r"ready to serve client requests|published local member to cluster")
GONE = re.compile(r"hostPath type check failed: (\S+)")


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    if not etcd.has("data-dir") and not any(name == "ETCD_DATA_DIR" for name, _, _ in etcd.container.environment()):
        title = f"etcd has no --data-dir: it would found a new, empty cluster in {etcd.value('name', 'default')}.etcd"
        yield Finding(title, (etcd.pod.evidence(*etcd.container.position, "command"),))
        return
    inside = etcd.value("data-dir", DATA_DIR).rstrip("/")
    told = etcd.flag("data-dir").evidence if etcd.has("data-dir") else etcd.image_evidence
    if etcd.container.host_path(inside) is None:
        yield Finding(
            f"etcd's data directory {inside} is on no volume of the host: its data goes with the container",
            (told, *(mount.evidence for mount in etcd.container.mounts)),
        )
        return
    path = data_directory(node)
    try:
        if has_data(node):
            return
    except EvidenceMissing:
        hint = _hint_of_absence(node, path)
        if hint is None:
            raise
        yield Finding(f"etcd's data directory {path} is not there", (told, *_volume(etcd, inside), hint))
        return
    hint = _elsewhere(node, path) or _served(node)
    if hint is not None:
        yield Finding(
            f"etcd's data directory {path} holds no member: etcd would found a new, empty cluster",
            (told, *_volume(etcd, inside), hint),
        )


def _volume(etcd: Component, inside: str) -> tuple[Evidence, ...]:
    covering: list[Mount] = [m for m in etcd.container.mounts if f"{inside}/".startswith(f"{m.path.rstrip('/')}/")]
    for index, volume in enumerate(etcd.pod.document.get("spec", "volumes", default=[])):
        host = volume.get("hostPath") if isinstance(volume, dict) else None
        if isinstance(host, dict) and host.get("path") in [mount.host_path for mount in covering]:
            return (etcd.pod.evidence("spec", "volumes", index, "hostPath", "path"),)
    return ()


def _hint_of_absence(node: Node, path: str) -> Evidence | None:
    """An absent file in a partial copy proves nothing: something else must say that the directory is not there."""
    for line in node.journal("kubelet"):
        match = GONE.search(line.text)
        if match and match[1].rstrip("/") == path:
            return line.evidence
    return _elsewhere(node, path)


def _elsewhere(node: Node, path: str) -> Evidence | None:
    """A member that lies somewhere else than where etcd looks."""
    for place in (DATA_DIR, *sorted(node.capture.listings)):
        if place != path and not place.startswith(f"{path}/") and _is_member(node, place):
            return Evidence(place, None, "holds a member")
    return None


def _is_member(node: Node, place: str) -> bool:
    return place.startswith(("/var/lib/", "/data", "/mnt", "/srv", "/opt")) and (
        "member" in node.capture.listings.get(place, ())
        and "snap" in node.capture.listings.get(f"{place}/member", ("snap",))
    )


def _served(node: Node) -> Evidence | None:
    line = next((line for line in node.container_logs.get("etcd", ()) if SERVED.search(line.text)), None)
    return line.evidence if line else None

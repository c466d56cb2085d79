"""etcd must be able to write its data directory, and nobody else should read it.

A member that runs as another user than the directory's owner (securityContext.runAsUser, a rootless control plane)
exits with `permission denied`; so does one whose volume is mounted read-only. As root etcd writes anywhere; a mode
other than 0700 is a risk then, since the files hold every Secret.

Fix: `chown` the directory to the user that etcd runs as, `chmod 0700` it.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import data_directory, directory
from manifests.node import Node
from manifests.pod import Component

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "key-file-readable")


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    path = data_directory(node)
    yield from _read_only(etcd, path)
    entry = directory(node)
    if entry.kind not in {"directory", "link"}:
        raise EvidenceMissing(f"{path}: {entry.error or entry.kind}")
    mode = Evidence(path, None, f"mode {entry.mode:04o}, owner {entry.uid}:{entry.gid}")
    user, said = _user(etcd)
    if user and entry.uid != user and not entry.mode & 0o002 and not (entry.mode & 0o020 and _group(etcd) == entry.gid):
        yield Finding(f"etcd runs as user {user} and cannot write {path}, which is user {entry.uid}'s", (said, mode))
    elif user and not entry.mode & 0o200:
        yield Finding(f"etcd runs as user {user}, and {path} lets its owner write nothing", (said, mode))
    elif entry.mode & 0o077:
        yield Finding(f"{path} is open to others than its owner", (mode,), severity=Severity.WARNING)


def _read_only(etcd: Component, path: str) -> Iterator[Finding]:
    for mount in etcd.container.mounts:
        host = (mount.host_path or "").rstrip("/")
        if mount.read_only and host and f"{path}/".startswith(f"{host}/"):
            yield Finding(f"etcd's data directory {path} is mounted read-only", (mount.evidence,))


def _user(etcd: Component) -> tuple[int, Evidence]:
    """The user that the container runs as, 0 for root and where the image decides (etcd's own images run as root)."""
    return _security(etcd, "runAsUser")


def _group(etcd: Component) -> int:
    return _security(etcd, "runAsGroup")[0]


def _security(etcd: Component, key: str) -> tuple[int, Evidence]:
    for where in ((*etcd.container.position, "securityContext", key), ("spec", "securityContext", key)):
        value = etcd.pod.document.get(*where)
        if isinstance(value, int):
            return value, etcd.pod.evidence(*where)
    return 0, etcd.image_evidence

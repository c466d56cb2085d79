"""Every file that a static Pod's flags name must be mounted into its container, and must exist on the host.

A container sees only its mounts. An audit policy or admission configuration beside them, or a path that exists only on
another control plane, makes the program exit with `no such file or directory`; a log path under a read-only mount, with
`read-only file system`. Where what lies on the host is not of the hostPath's type, the kubelet starts no container.

Fix: add the volume and its mount to the manifest, or put the file where the flag says.
"""

import posixpath
import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Layer, Severity
from manifests.node import Node
from manifests.pod import Component, Flag, Mount
from manifests.releases import tables

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
READ = re.compile(r"(file|certificate|-key|kubeconfig|-config|^config|-policy|-cert)$")
WRITTEN = re.compile(r"(audit-log-path|log-file|-dir)$")
LAYERS = {"etcd": Layer.ETCD, "kube-apiserver": Layer.APISERVER}
OPTIONAL = {"cluster-signing-key-file", "cluster-signing-cert-file"}  # external CA mode: the controller only logs it
ABSENT = {"absent", "dangling"}
KINDS = {
    "File": {"file"},
    "FileOrCreate": {"file"},
    "Directory": {"directory"},
    "DirectoryOrCreate": {"directory"},
    "Socket": {"socket"},
}
"""hostPath.type to what may lie there; a link is followed, and where to, a copied tree may not tell."""


def find(node: Node) -> Iterator[Finding]:
    for program, component in node.components.items():
        layer = LAYERS.get(program, Layer.CONTROLLERS)
        for flag in component.container.flags:
            for path in _paths(flag):
                problem = _problem(node, component, flag, path)
                if problem:
                    yield Finding(f"{program} --{flag.name}: {problem[0]}", (flag.evidence, *problem[1]), layer=layer)
        for mount in component.container.mounts:
            wrong = _wrong_kind(node, mount)
            if wrong:
                yield Finding(f"The kubelet cannot start {program}: {wrong}", (mount.evidence,), layer=layer)
            elif (odd := _emptied(component, mount)) is not None:
                title = f"{mount.path} is an empty directory for {program}: its volume {mount.volume} has no hostPath"
                yield Finding(title, (odd, mount.evidence), layer=layer)


def _paths(flag: Flag) -> list[str]:
    if not (READ.search(flag.name) or WRITTEN.search(flag.name)):
        return []
    files = flag.value.partition(":")[0] if flag.name == "tls-sni-cert-key" else flag.value  # CERT,KEY[:NAMES]
    return [part for part in files.split(",") if part.startswith("/")]


def _problem(node: Node, component: Component, flag: Flag, path: str) -> tuple[str, tuple[Evidence, ...]] | None:
    mount = _covering(component, path)
    if WRITTEN.search(flag.name):
        if mount is not None and mount.read_only:
            return f"{path} is under a read-only mount, and the program writes there", (mount.evidence,)
        return None
    if mount is None:
        return f"{path} is in none of the container's mounts", (component.pod.evidence("spec", "volumes"),)
    if mount.host_path is None:
        return None
    host = component.container.host_path(path) or path
    missing = _missing(node, host)
    if missing and flag.name not in OPTIONAL:
        return f"{host} does not exist on this host", (missing,)
    return None


def _emptied(component: Component, mount: Mount) -> Evidence | None:
    """A volume whose source the API does not know, as `hostpath`, is an emptyDir; here with files that flags name."""
    paths = [path for flag in component.container.flags for path in _paths(flag) if not WRITTEN.search(flag.name)]
    filled = {
        mount.get("name")
        for container in component.pod.document.get("spec", "initContainers", default=[])
        for mount in container.get("volumeMounts") or []
    }
    if mount.volume in filled or not any(_covering(component, path) == mount for path in paths):
        return None
    for index, volume in enumerate(component.pod.document.get("spec", "volumes", default=[])):
        sources = [key for key in volume if key != "name"]
        if volume.get("name") == mount.volume and not set(sources) & tables.pod_fields("Volume"):
            return component.pod.evidence("spec", "volumes", index, *sources[:1])
    return None


def _covering(component: Component, path: str) -> Mount | None:
    inside = [m for m in component.container.mounts if path == m.path or path.startswith(m.path.rstrip("/") + "/")]
    return max(inside, key=lambda mount: len(mount.path), default=None)


def _missing(node: Node, path: str) -> Evidence | None:
    """Only where the tree has the directory: a file that a partial copy left out is not missing on the host."""
    entry = node.entry(path)
    if entry.kind not in ABSENT or path in node.kept_keys:
        return None
    parent = posixpath.dirname(path)
    if parent not in node.capture.listings and node.entry(parent).kind != "absent":
        return None
    if parent not in node.capture.listings and not _near(node, parent):
        return None
    return Evidence(path, None, entry.error or "absent")


def _near(node: Node, directory: str) -> bool:
    """Whether the directory above is in the tree, so that the absence of this one is the host's own."""
    return directory.startswith("/etc/") and posixpath.dirname(directory) in node.capture.listings


def _wrong_kind(node: Node, mount: Mount) -> str:
    """hostPath.type is checked by the kubelet before the container starts (pkg/volume/hostpath, checkTypeInternal)."""
    if mount.host_path is None:
        return ""
    wants = KINDS.get(mount.host_type)
    kind = node.entry(mount.host_path).kind
    if wants is None or kind in {*wants, "link"}:
        return ""
    if kind in ABSENT:
        made = mount.host_type.endswith("OrCreate") or _missing(node, mount.host_path) is None
        return "" if made else f"{mount.host_path} does not exist, and the mount asks for a {mount.host_type}"
    return f"{mount.host_path} is a {kind}, and the mount asks for a {mount.host_type}"

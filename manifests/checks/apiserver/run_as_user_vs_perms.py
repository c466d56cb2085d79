"""A control-plane program that does not run as root must be able to read its keys and write its data.

In kubeadm's rootless mode (RootlessControlPlane) each program has a user of its own, and its keys, kubeconfig and data
directory belong to it. With files of another owner, as after a restore or a renewal by hand as root, it ends with
`permission denied`.

Fix: give the files to the user and group that the manifest names, or take runAsUser out.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.ownership import Files, Identity
from manifests.installed import layer_of
from manifests.node import Node
from manifests.pod import Component

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "etcd-data-dir-permissions")


def find(node: Node) -> Iterator[Finding]:
    identities = {p: i for p, c in node.components.items() if (i := _identity(c)) is not None and i.user != 0}
    if not identities:
        raise NotApplicable("the control plane runs as root")
    if node.entry("/etc/kubernetes").uid != 0:
        raise EvidenceMissing("this copy has lost its owners: /etc/kubernetes does not belong to root")
    for program, identity in identities.items():
        for entry, bit in _files(node, node.components[program]):
            if not identity.may(entry, bit):
                verb = "write" if bit == 2 else "read"
                held = f"{entry.uid}:{entry.gid} {entry.mode:04o}"
                yield Finding(
                    f"{program} runs as user {identity.user} and cannot {verb} {entry.path} ({held})",
                    (identity.evidence, Evidence(entry.path, None, held)),
                    layer=layer_of(program),
                )


def _identity(component: Component) -> Identity | None:
    """The container's securityContext wins over the Pod's."""
    document, position = component.pod.document, component.container.position
    places = ((*position, "securityContext"), ("spec", "securityContext"))

    def first(key: str) -> tuple[int | None, Evidence]:
        for place in places:
            value = document.get(*place, key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value, document.evidence(*place, key)
        return None, Evidence(document.path)

    user, evidence = first("runAsUser")
    if user is None:
        return None
    extra = document.get("spec", "securityContext", "supplementalGroups", default=[])
    found = {first("runAsGroup")[0] or 0, *(extra if isinstance(extra, list) else [])}
    return Identity(user, frozenset(group for group in found if isinstance(group, int)), evidence)


def _files(node: Node, component: Component) -> Files:
    for flag in component.container.flags:
        write = flag.name in {"data-dir", "wal-dir"}
        if not (write or flag.name.endswith(("key-file", "keyfile", "kubeconfig", "-config", "private-key-file"))):
            continue
        entry = node.entry(component.container.host_path(flag.value) or flag.value)
        if entry.kind in {"file", "link", "directory"}:
            yield entry, 2 if write else 4

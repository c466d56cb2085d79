"""The control plane's images on one node belong together: one minor version, one registry.

kubeadm writes API server, controller-manager and scheduler of one version. Different minors on one node mean an upgrade
that stopped half-way or a manifest put back from an old backup; controller-manager and scheduler newer than the API
server are outside the version skew policy. etcd, CoreDNS and the pause image have tags of their own; a mirror is fine
as long as every component uses it.

Fix: run the same `kubeadm upgrade` again, which may be repeated, or put the matching manifests back from
/etc/kubernetes/tmp/kubeadm-backup-manifests-*.
"""

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.node import Node
from manifests.pod import Component

SEVERITY = Severity.CRITICAL
EXPLAINS = ("upgrade-leftovers",)
TOGETHER = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def find(node: Node) -> Iterator[Finding]:
    components = [node.components[name] for name in TOGETHER if name in node.components]
    if len(components) < 2:
        raise NotApplicable("fewer than two control-plane programs to compare")
    yield from _versions(components)
    yield from _registries([*components, *([node.components["etcd"]] if "etcd" in node.components else [])])


def _versions(components: list[Component]) -> Iterator[Finding]:
    first, *others = [c for c in components if c.version]
    for other in others:
        if first.version == other.version or not first.version or not other.version:
            continue
        same_minor = first.version[:2] == other.version[:2]
        what = "patch releases" if same_minor else "minor versions"
        yield Finding(
            f"{first.program} {_dotted(first)} and {other.program} {_dotted(other)} are of different {what}",
            (first.image_evidence, other.image_evidence),
            severity=Severity.WARNING if same_minor else None,
        )


def _dotted(component: Component) -> str:
    return ".".join(map(str, component.version or ()))


def _registries(components: list[Component]) -> Iterator[Finding]:
    first, *others = components
    for other in others:
        if _registry(other.container.image) != _registry(first.container.image):
            yield Finding(
                f"{other.program} is pulled from {_registry(other.container.image)},"
                f" {first.program} from {_registry(first.container.image)}",
                (other.image_evidence, first.image_evidence),
                severity=Severity.WARNING,
            )


def _registry(image: str) -> str:
    """The host part of an image's name; docker.io where it has none."""
    host, slash, _ = image.partition("/")
    return host if slash and re.search(r"[.:]|^localhost$", host) else "docker.io"

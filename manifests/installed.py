"""Which release of a program runs here, and how sure that is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Layer
from manifests.document import Document
from manifests.node import Node
from manifests.pod import Component, version
from manifests.releases import tables

# Builds that carry patches and flags of their own.
VENDORS = re.compile(r"(?i)eks|openshift|okd|rancher|rke2|k3s|hyperkube|gke|aks\b|talos|microk8s")
KUBELET_CONFIG = "kubelet.config.k8s.io/v1beta1"
DPKG = re.compile(r"status installed kubelet:?\S* (?:\d+:)?(\d+\.\d+\.\d+)")
DPKG_STATUS = "/var/lib/dpkg/status"
DPKG_VERSION = re.compile(r"Version: (?:\d+:)?(\d+)\.(\d+)\.(\d+)")
LAYER_OF = {"etcd": Layer.ETCD, "kube-apiserver": Layer.APISERVER, "kubelet": Layer.KUBELET}


def layer_of(program: str) -> Layer:
    return LAYER_OF.get(program, Layer.CONTROLLERS)


@dataclass(frozen=True, slots=True)
class Release:
    """`certain` is false where the version is only likely: a vendor's build, or no tag of its own."""

    numbers: tuple[int, int, int]
    evidence: Evidence
    certain: bool = True

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


def release_of(node: Node, component: Component) -> Release:
    """From the image's tag; else what the rest of the control plane runs. EvidenceMissing where nothing tells."""
    own = component.version
    vendor = bool(VENDORS.search(component.container.image))
    if own is not None:
        return Release(own, component.image_evidence, not vendor)
    for other in node.components.values():
        if other.version and (other.program == "etcd") == (component.program == "etcd"):
            return Release(other.version, other.image_evidence, certain=False)
    raise EvidenceMissing(f"the version of {component.program} is unknown: its image is {component.container.image!r}")


def covered(node: Node, component: Component) -> Release:
    """Like release_of, and EvidenceMissing where the release tables do not go that far."""
    release = release_of(node, component)
    if tables.flags(component.program, release.numbers) is None:
        raise EvidenceMissing(f"no release data of {component.program} {release}")
    return release


def kubelet_release(node: Node) -> Release:
    """What the bundle, the kubelet's log or dpkg's log says; else, uncertain, the API server's version."""
    kubelet = node.kubelet
    if kubelet.version is not None:
        return Release(kubelet.version, kubelet.version_evidence or Evidence("/drtool/versions.json"))
    installed = node.find("/var/log/dpkg.log", DPKG.pattern)
    if installed:
        match, evidence = installed[-1]
        numbers = version(match[1])
        if numbers is not None:
            return Release(numbers, evidence)
    listed = dpkg_version(node, "kubelet")
    if listed is not None:
        return Release(*listed)
    apiserver = node.components.get("kube-apiserver")
    if apiserver is not None and apiserver.version is not None:
        return Release(apiserver.version, apiserver.image_evidence, certain=False)
    raise EvidenceMissing("the kubelet's version is unknown")


def dpkg_version(node: Node, package: str) -> tuple[tuple[int, int, int], Evidence] | None:
    """Of an installed Debian package, from dpkg's own list (paragraphs of `Field: value`, as in deb-control(5))."""
    lines = (node.capture.entry(DPKG_STATUS).data or b"").decode("utf-8", "replace").splitlines()
    if f"Package: {package}" not in lines:
        return None
    start = lines.index(f"Package: {package}")
    end = next((place for place, line in enumerate(lines[start:], start) if not line.strip()), len(lines))
    fields = {line.partition(": ")[0]: (place, line) for place, line in enumerate(lines[start:end], start + 1)}
    place, line = fields.get("Version", (0, ""))
    found = DPKG_VERSION.match(line)
    if found is None or not fields.get("Status", (0, ""))[1].endswith(" installed"):
        return None
    major, minor, patch = map(int, found.groups())
    return (major, minor, patch), Evidence(DPKG_STATUS, place, line)


def kubelet_configuration(node: Node) -> Document:
    """EvidenceMissing where the kubelet can read none: its settings are then unknown, not the defaults."""
    kubelet = node.kubelet
    config = kubelet.config
    kind = (config.get("kind"), config.get("apiVersion")) if config else ()
    if config is None or kind != ("KubeletConfiguration", KUBELET_CONFIG):
        raise EvidenceMissing(f"{kubelet.config_path}: {kubelet.config_problem or 'no KubeletConfiguration'}")
    return config

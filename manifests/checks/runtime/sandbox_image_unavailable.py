"""The runtime must be able to get the sandbox (pause) image: no Pod starts without it, static ones included.

It comes from the runtime's own configuration, not from the kubelet's. Behind a private registry, without network, or
pointing to a registry that is gone, every Pod stays at `failed to get sandbox image`. Another version than kubeadm's
does no harm as long as it can be pulled.

Fix: set sandbox_image (containerd 2: pinned_images.sandbox; CRI-O: pause_image) to an image that is there, restart
the runtime.
"""

import re
from collections.abc import Iterator
from typing import Any

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host import crio
from manifests.host.containerd import MAIN, Configuration, configurations, in_use, last_line, setting
from manifests.logs import Line
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("component-not-ready", "container-exited", "image-not-pullable")
FAILED = re.compile(r"failed to get sandbox image \\*\"([^\"\\]+)|creating pod sandbox.*pause.*(?:pull|not found)")
MADE = re.compile(r"RunPodSandbox for .* returns sandbox id")
GONE = ("k8s.gcr.io/", "gcr.io/google_containers/", "gcr.io/google-containers/")


def find(node: Node) -> Iterator[Finding]:
    failed = _failed(node)
    try:
        configured = _configured(node)
    except EvidenceMissing:
        if failed is None:
            raise
        configured = None  # what the runtime says counts without it
    if failed is not None:
        match = FAILED.search(failed.text)
        image = (match[1] if match else "") or (configured[0] if configured else "its sandbox image")
        yield Finding(
            f"The runtime cannot get {image}, so no Pod starts",
            (failed.evidence, *((configured[1],) if configured else ())),
        )
    elif configured and configured[0].startswith(GONE):
        yield Finding(
            f"The sandbox image {configured[0]} is of a registry that is frozen",
            (configured[1],),
            severity=Severity.WARNING,
        )
    elif configured is None:
        in_use(node)
        configurations(node)


def _configured(node: Node) -> tuple[str, Evidence] | None:
    if crio.in_use(node):
        return crio.setting(node, "image", "pause_image")
    image = setting(node, _sandbox_image) if node.entry(MAIN).data is not None else ""
    return (image, last_line(node, rf'=\s*["\']{re.escape(image)}["\']') or Evidence(MAIN)) if image else None


def _sandbox_image(config: Configuration) -> str:
    found = [image for table in config.cri() for image in (table.get("sandbox_image"), _pinned(table))]
    return next((image for image in found if isinstance(image, str)), "")


def _pinned(table: dict[str, Any]) -> object:
    images = table.get("pinned_images")
    return images.get("sandbox") if isinstance(images, dict) else None


def _failed(node: Node) -> Line | None:
    """The last failure, unless a sandbox was made after it."""
    lines = (*node.journal("containerd"), *node.journal("crio"), *node.journal("kubelet"))
    failures = [line for line in lines if FAILED.search(line.text)]
    made = [line for line in lines if MADE.search(line.text)]
    if not failures or (made and made[-1].time > failures[-1].time):
        return None
    return failures[-1]

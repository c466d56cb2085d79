"""An image that a static Pod names must be on the node or be pullable.

With a tag that does not exist, a registry out of reach or imagePullPolicy Never the kubelet says ErrImagePull or
ImagePullBackOff in its own log alone, and the program is missing. A private mirror or an older tag is fine as long as
the pull works or the image is already there.

Fix: correct the image in the manifest, or bring the image to the node (`ctr -n k8s.io images import`).
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.installed import layer_of
from manifests.logs import Line
from manifests.messages import JOURNALS, said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
PULL = r"[Pp]ull|present on machine"  # what both of the others have in common
FAILED = re.compile(
    r"ErrImagePull|ImagePullBackOff|ErrImageNeverPull|[Ff]ailed to pull|PullImage (\S+|from image service) failed"
)
PULLED = re.compile(r"Successfully pulled image|already present on machine|PullImage \S+ returns image reference")


def find(node: Node) -> Iterator[Finding]:
    if not node.components:
        raise NotApplicable("no control-plane Pods here")
    yield from _never_pulled(node)
    if not any(node.journal(unit) for unit in JOURNALS):
        raise EvidenceMissing("no log of the kubelet or the runtime says whether images are pulled")
    pulls = tuple(said(node, PULL, "containerd", "crio", "kubelet"))
    for program, component in node.components.items():
        image = component.container.image
        failure = _last(pulls, FAILED, image)
        if failure is None or _there(node, image) or _later(_last(pulls, PULLED, image), failure):
            continue
        yield Finding(
            f"The image of {program} is not on this node and cannot be pulled: {image}",
            (component.image_evidence, failure.evidence),
            layer=layer_of(program),
        )


def _never_pulled(node: Node) -> Iterator[Finding]:
    """imagePullPolicy Never, on a node whose runtime was asked and does not hold the image."""
    for program, component in node.components.items():
        policy = (*component.container.position, "imagePullPolicy")
        if component.pod.document.get(*policy) != "Never" or _there(node, component.container.image, unasked=True):
            continue
        yield Finding(
            f"The image of {program} is not on this node and may not be pulled: {component.container.image}",
            (component.image_evidence, component.pod.evidence(*policy)),
            layer=layer_of(program),
        )


def _last(pulls: tuple[Line, ...], what: re.Pattern[str], image: str) -> Line | None:
    named = re.compile(rf"{re.escape(image)}(?![\w.-])")
    found = [line for line in pulls if what.search(line.text) and named.search(line.text)]
    return max(found, key=lambda line: line.time, default=None)


def _later(success: Line | None, failure: Line) -> bool:
    return success is not None and success.time >= failure.time


def _there(node: Node, image: str, unasked: bool = False) -> bool:
    """Where the runtime was asked: whether it holds the image; else `unasked`."""
    try:
        return any(image in (*held.tags, *held.digests) for held in node.images)
    except (EvidenceMissing, NotApplicable):
        return unasked

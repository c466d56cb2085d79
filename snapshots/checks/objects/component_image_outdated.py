"""A control-plane program runs an older patch than the cluster knows.

Patches are known from the cluster alone: what other nodes run, and the images that lie on nodes. It is no fault: it
tells that a patch upgrade stopped half-way, or that a newer image was pulled and not used. Nothing is looked up.

Fix: finish the upgrade: `drtool upgrade-plan` gives the order.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from snapshots.registry.cluster import Cluster, dotted, evidence, image_version, version
from snapshots.registry.tables.cells import dicts

SEVERITY = Severity.INFO
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
Version = tuple[int, int, int]


def find(cluster: Cluster) -> Iterator[Finding]:
    running = [
        (program, pod, at)
        for program in PROGRAMS
        for pod in cluster.components(program)
        if (at := image_version(pod, program))
    ]
    if not running:
        raise EvidenceMissing("no Pod of a control-plane program tells its version")
    known = _on_nodes(cluster)
    for program, pod, at in running:
        known.setdefault((program, at[:2]), []).append((at, evidence(pod, "spec", "containers", 0, "image")))
    for program, pod, at in running:
        newest, source = max(known[program, at[:2]], key=lambda each: each[0])
        if newest > at:
            yield Finding(
                f"{pod.name} runs {dotted(at)}, and {dotted(newest)} is in this cluster",
                (evidence(pod, "spec", "containers", 0, "image"), source),
            )


def _on_nodes(cluster: Cluster) -> dict[tuple[str, tuple[int, ...]], list[tuple[Version, Evidence]]]:
    """Images that lie on Nodes, by program and minor."""
    known: dict[tuple[str, tuple[int, ...]], list[tuple[Version, Evidence]]] = {}
    for node in cluster.all("Node"):
        for image in dicts(node.at("status", "images")):
            for name in image.get("names") or ():
                repository, _, tag = str(name).rpartition(":")
                program, at = repository.rpartition("/")[2], version(tag)
                if program in PROGRAMS and at:
                    shown = Evidence(evidence(node).path, text=f"status.images: {name}")
                    known.setdefault((program, at[:2]), []).append((at, shown))
    return known

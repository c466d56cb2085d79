"""The file that --config names must be a KubeletConfiguration that this kubelet can read.

Broken YAML, an empty file, another kind (a kubeconfig, of all things), a missing apiVersion or a value of the wrong
type stops the kubelet. So do values that it refuses (swapBehavior: UnlimitedSwap since 1.30, an eviction signal that
does not exist, a percentage above 100) or that do not go together (evictionSoft without a grace period,
cpuManagerPolicy: static without reserved CPU); a flag stands in for its field there.

A field that it does not know, or one that is given twice, makes it read the file leniently: it warns once in its log,
drops the field, and runs on without what was meant; that is an error here, unless the field is of another release and
holds no value, as `crashLoopBackOff: {}` of a newer kubeadm. Files of --config-dir are read one by one: each must be
YAML and name its kind.

Fix: correct the file; --config=/var/lib/kubelet/config.yaml in the drop-in where it names a kubeconfig.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Document
from manifests.installed import KUBELET_CONFIG, kubelet_release
from manifests.kubelet import Kubelet
from manifests.kubelet_values import refused_values
from manifests.node import Node
from manifests.releases import tables
from manifests.releases.tables import State

SEVERITY = Severity.CRITICAL
SKEW = 3  # minors that a kubelet may be behind the API server
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready", "staticpodpath-mismatch")


def find(node: Node) -> Iterator[Finding]:
    kubelet = node.kubelet
    if kubelet.config_entry.data is None:
        raise NotApplicable(f"{kubelet.config_path}: {kubelet.config_problem or 'not read'}")
    document = kubelet.config
    if document is None or not isinstance(document.data, dict):
        problem = kubelet.config_problem.partition(": ")[2] or "it is no mapping"
        yield Finding(f"The kubelet cannot read {kubelet.config_path}: {problem}", (_where(kubelet),))
        return
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind != "KubeletConfiguration" or version != KUBELET_CONFIG:
        named = [flag.evidence for flag in kubelet.flags if flag.name == "config"]
        wrong = f"{kind or 'no kind'}, {version or 'no apiVersion'}"
        yield Finding(
            f"{kubelet.config_path} is no KubeletConfiguration of {KUBELET_CONFIG}: {wrong}",
            (document.evidence("kind" if kind != "KubeletConfiguration" else "apiVersion"), *named),
        )
        return
    for refused in kubelet.refused_drop_ins:
        yield Finding(f"The kubelet cannot read {refused.path}, which --config-dir gives it", (refused,))
    for each in (document, *kubelet.drop_ins):
        yield from _types(node, each)
        yield from _lenient(node, each)
    yield from _refused(node)


def _where(kubelet: Kubelet) -> Evidence:
    """The parser's own line, where it names one: `PATH:LINE: problem`."""
    head = kubelet.config_problem.removeprefix(kubelet.config_path).partition(": ")[0].lstrip(":")
    return Evidence(kubelet.config_path, int(head) if head.isdecimal() else None, kubelet.config_problem[:300])


def _types(node: Node, document: Document) -> Iterator[Finding]:
    for path, wanted in tables.mistyped_kubelet_fields(document.data, kubelet_release(node).numbers) or ():
        name = ".".join(map(str, path))
        yield Finding(f"{name} in {document.path} must be {wanted}", (document.evidence(*path),))


def _refused(node: Node) -> Iterator[Finding]:
    release = kubelet_release(node)
    newest = release.numbers[1]
    oldest = newest if release.certain else newest - SKEW
    for title, lines in refused_values(node.kubelet, range(oldest, newest + 1)):
        yield Finding(f"The kubelet refuses its configuration: {title}", lines)


def _lenient(node: Node, document: Document) -> Iterator[Finding]:
    for key, line in document.duplicates:
        at = Evidence(document.path, line, document.text[line - 1].strip()[:200])
        yield Finding(f'"{key}" is set twice in {document.path}', (at,), severity=Severity.ERROR)
    config: dict[str, Any] = document.data
    release = kubelet_release(node)
    for path, verdict in tables.unknown_kubelet_fields(config, release.numbers) or ():
        if not release.certain and verdict.state is not State.UNKNOWN:
            continue  # a field of another release, and which one runs here is only likely
        name = ".".join(str(part) for part in path)
        yield Finding(
            f"{name} in {document.path} {verdict.why}: the kubelet {release} drops it",
            (document.evidence(*path), release.evidence),
            severity=Severity.ERROR,
        )

"""kubeadm's configuration must name no flag that its release has removed.

kubeadm writes the manifests anew at every upgrade, with the extraArgs of its ConfigMap: a flag that the manifests were
cured of comes back with the next one, and the program does not start. extraArgs are a map, from v1beta4 on a list of
names and values; both are read.

Fix: kubectl -n kube-system edit configmap kubeadm-config, and take the flag out or write what replaces it.
"""

from collections.abc import Iterator
from typing import Any

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.releases import tables
from manifests.releases.tables import State
from snapshots.registry.cluster import evidence, version

SEVERITY = Severity.WARNING
SECTIONS = {
    "apiServer": "kube-apiserver",
    "controllerManager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}


def find(case: Case) -> Iterator[Finding]:
    document, config_map = case.cluster.kubeadm()
    at = version(str(document.get("kubernetesVersion")))
    if at is None:
        raise EvidenceMissing("kubeadm-config does not tell the cluster's version")
    if tables.flags("kube-apiserver", at) is None:
        raise EvidenceMissing(f"no release data of {'.'.join(map(str, at))}")
    source = evidence(config_map).path
    for section, program in SECTIONS.items():
        settings = document.get(section)
        for name, value in _arguments(settings.get("extraArgs") if isinstance(settings, dict) else None):
            verdict = tables.explain_flag(program, name, at)
            if verdict is not None and verdict.state is State.REMOVED:
                yield Finding(
                    f"kubeadm's extraArgs give {program} --{name}: {verdict.why}",
                    (
                        Evidence(source, text=f"{section}.extraArgs: {name}: {value}"),
                        Evidence(source, text=f"kubernetesVersion: {document.get('kubernetesVersion')}"),
                    ),
                )


def _arguments(given: Any) -> Iterator[tuple[str, str]]:
    """The map of old, the list of {name, value} of v1beta4."""
    if isinstance(given, dict):
        yield from ((str(name), str(value)) for name, value in given.items())
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict):
            yield str(each.get("name", "")), str(each.get("value", ""))

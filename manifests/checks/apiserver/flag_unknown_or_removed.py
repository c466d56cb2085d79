"""Every flag of a control-plane program must be one that its version knows, and the required ones must be there.

With a flag that its release has removed, or has not got yet, a program prints `unknown flag` and exits; deprecated
flags still work. It happens after an upgrade of a manifest with flags of one's own, with an old manifest put back, and
with a flag of another component. Without --service-account-issuer and its key files the API server does not start
either (1.20 and newer). etcd's flags have a check of their own.

Fix: take the flag out, or write what replaces it; in kubeadm's configuration too (extraArgs), or the next upgrade
brings it back.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Layer, Severity
from manifests.installed import Release, covered, layer_of
from manifests.node import Node
from manifests.pod import Component
from manifests.releases import tables
from manifests.releases.tables import COMPONENTS, State, Verdict

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
REQUIRED = ("etcd-servers", "service-account-issuer", "service-account-signing-key-file")


def find(node: Node) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    yield from _kube_vip(node)
    yield from _required(node)
    for component in node.components.values():
        if component.program == "etcd":
            continue
        try:
            yield from _unknown(component, covered(node, component))
        except EvidenceMissing as missing:
            gap = gap or missing
    if gap:
        raise gap


def _unknown(component: Component, release: Release) -> Iterator[Finding]:
    for flag in component.container.flags:
        verdict = tables.explain_flag(component.program, flag.name, release.numbers)
        if verdict is None or verdict.accepted or verdict.nearest or not flag.name.replace("-", "").isalnum():
            continue  # a near name is a typing error; odd characters are quoting: checks of their own
        yield Finding(
            f"--{flag.name} of {component.program} {release} {_why(verdict, component.program, release)}",
            (flag.evidence, release.evidence),
            severity=None if release.certain else Severity.WARNING,
            layer=layer_of(component.program),
        )


def _why(verdict: Verdict, program: str, release: Release) -> str:
    if verdict.state is State.UNKNOWN:
        for other in COMPONENTS[:4]:
            elsewhere = tables.explain_flag(other, verdict.name, release.numbers)
            if other != program and elsewhere and elsewhere.accepted:
                return f"is unknown; it is a flag of {other}"
    return verdict.why


def _required(node: Node) -> Iterator[Finding]:
    """As kube-apiserver's own validation: nothing in it can be left to a default."""
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None or (apiserver.version or (1, 0, 0)) < (1, 20, 0):
        return
    missing = [name for name in REQUIRED if not apiserver.has(name)]
    if not (apiserver.has("service-account-key-file") or apiserver.has("service-account-signing-endpoint")):
        missing.append("service-account-key-file")
    if apiserver.has("service-account-signing-endpoint"):
        missing = [name for name in missing if name != "service-account-signing-key-file"]
    for name in missing:
        where = apiserver.pod.evidence(*apiserver.container.position, "command")
        yield Finding(
            f"The API server has no --{name}, and does not start without it", (where, apiserver.image_evidence)
        )


def _kube_vip(node: Node) -> Iterator[Finding]:
    """kube-vip 0.1 kept its peers in a file; since 0.2 it takes environment variables and leases instead."""
    path = "/etc/kube-vip/config.yaml"
    for match, evidence in node.find(path, r"^\s*(localPeer|remotePeers):"):
        yield Finding(
            f"{match[1]} in {path} is of kube-vip's old peer protocol, gone since kube-vip 0.2",
            (evidence, Evidence(path)),
            severity=Severity.ERROR,
            layer=Layer.VIP,
        )
        return

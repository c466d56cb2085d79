"""Every flag of a control-plane program must be one that its version knows, and they must go together.

With a flag that its release has removed, or has not got yet, a program prints `unknown flag` and exits; deprecated
flags still work. It happens after an upgrade of a manifest with flags of one's own, with an old manifest put back, and
with a flag of another component. Without --service-account-issuer and its key files the API server does not start
either (1.20 and newer), nor with flags that exclude each other: --authorization-config beside --authorization-mode,
which kubeadm writes unless it is told otherwise, or a mode without its file. etcd's flags have a check of their own.

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
# What kube-apiserver itself refuses (Validate() of its options, 1.24 to 1.37).
EXCLUDES = {
    "authorization-config": (
        "authorization-mode",
        "authorization-webhook-config-file",
        "authorization-webhook-version",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ),
    "authentication-config": (
        "oidc-issuer-url",
        "oidc-client-id",
        "oidc-ca-file",
        "oidc-username-claim",
        "oidc-username-prefix",
        "oidc-groups-claim",
        "oidc-groups-prefix",
        "oidc-signing-algs",
        "oidc-required-claim",
    ),
    "service-account-signing-endpoint": ("service-account-key-file", "service-account-signing-key-file"),
}
MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
FILE_OF_MODE = {"ABAC": "authorization-policy-file", "Webhook": "authorization-webhook-config-file"}
REQUIRED = ("etcd-servers", "service-account-issuer", "service-account-signing-key-file")


def find(node: Node) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    yield from _kube_vip(node)
    yield from _required(node)
    if "kube-apiserver" in node.components:
        yield from _together(node.components["kube-apiserver"])
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
    if not (apiserver.has("service-account-key-file") or apiserver.value("service-account-signing-endpoint")):
        missing.append("service-account-key-file")
    if apiserver.value("service-account-signing-endpoint"):
        missing = [name for name in missing if name != "service-account-signing-key-file"]
    for name in missing:
        where = apiserver.pod.evidence(*apiserver.container.position, "command")
        yield Finding(
            f"The API server has no --{name}, and does not start without it", (where, apiserver.image_evidence)
        )


def _together(apiserver: Component) -> Iterator[Finding]:
    for name, others in EXCLUDES.items():
        beside = [other for other in others if apiserver.value(name) and apiserver.has(other)]  # "" is not set
        if beside:
            yield Finding(
                f"The API server does not start with --{name} beside --{beside[0]}",
                (apiserver.flag(name).evidence, *(apiserver.flag(other).evidence for other in beside)),
            )
    if not apiserver.value("authorization-config"):
        yield from _modes(apiserver)


def _modes(apiserver: Component) -> Iterator[Finding]:
    modes = apiserver.names("authorization-mode")
    at = tuple(flag.evidence for flag in apiserver.all("authorization-mode"))
    for mode in dict.fromkeys(modes):
        if mode not in MODES:
            yield Finding(f"There is no authorization mode {mode}; the API server takes {', '.join(MODES)}", at)
        elif modes.count(mode) > 1:
            yield Finding(f"Authorization mode {mode} is given twice, which the API server refuses", at)
        if mode in FILE_OF_MODE and not apiserver.value(FILE_OF_MODE[mode]):
            yield Finding(
                f"Authorization mode {mode} needs --{FILE_OF_MODE[mode]}, or the API server does not start", at
            )
    for mode, name in FILE_OF_MODE.items():
        if apiserver.value(name) and mode not in modes:
            title = f"--{name} is of authorization mode {mode}, without which the API server refuses it"
            yield Finding(title, (apiserver.flag(name).evidence, *at))


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

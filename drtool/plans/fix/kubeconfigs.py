"""Kubeconfigs: today's CA in them, a client certificate of it, and the server that their program should dial."""

from __future__ import annotations

import base64

from drtool.core.check import EvidenceMissing
from drtool.core.errors import Refused
from drtool.plans import site
from drtool.plans.fix import Case, Repair, together
from drtool.plans.fix.kubelet import reissue_client
from manifests.editing import Edit, Set
from manifests.node import PKI, Node
from manifests.pki.expected import CLIENT, KUBECONFIGS, ClientConfig
from manifests.steps.files import edit_yaml
from manifests.steps.issuing import IssueKubeconfig, Subject

RESTART = {"controller-manager.conf": "kube-controller-manager", "scheduler.conf": "kube-scheduler"}


def reissue_kubeconfig(case: Case, path: str) -> Repair:
    """The kubelet's certificate usually lies in a file of its own, beside the kubeconfig."""
    name = path.rpartition("/")[2]
    known = next((one for one in KUBECONFIGS if one.name == name), None)
    config = case.node.kubeconfigs[path]
    if name == "kubelet.conf" and config.client_file:
        return reissue_client(case)
    if known is None:
        return Repair(by_hand=(f"{path} is none of kubeadm's kubeconfigs: decide whom it is for",))
    try:
        signer = site.signer(case.node, "ca")
    except Refused as refused:
        return Repair(by_hand=(f"{path}: {refused.what}; have its client certificate signed by the CA's holder",))
    cluster, user = _positions(case.node, path)
    step = IssueKubeconfig(path, cluster, user, signer, _subject(case.node, known, path))
    return Repair((step,), frozenset({RESTART[name]} if name in RESTART else ()), kubelet=name == "kubelet.conf")


def _subject(node: Node, known: ClientConfig, path: str) -> Subject:
    """Whom the present certificate is for, since groups changed between releases; else the table's answer."""
    client = node.kubeconfigs[path].client
    if client is not None and client.certificates:
        certificate = client.certificates[0]
        return Subject(certificate.common_name, (CLIENT,), certificate.organizations)
    name = known.common_name + node.name if known.common_name.endswith(":") else known.common_name
    return Subject(name, (CLIENT,), known.organizations)


def _positions(node: Node, path: str) -> tuple[int, int]:
    """Which cluster and user the current context names."""
    document = node.document(path)
    current = document.get("current-context")
    contexts = document.get("contexts", default=[])
    context: dict[str, object] = next((one["context"] for one in contexts if one.get("name") == current), {})

    def position(section: str, name: object) -> int:
        names = [one.get("name") for one in document.get(section, default=[])]
        return names.index(name) if name in names else 0

    return position("clusters", context.get("cluster")), position("users", context.get("user"))


def stale_ca(case: Case) -> Repair:
    """The client certificate is issued anew only where the CA that is there did not sign it."""
    return together(_stale(case, finding.evidence[0].path) for finding in case.findings)


def _stale(case: Case, path: str) -> Repair:
    if path not in case.node.kubeconfigs:
        return Repair(by_hand=(f"copy the new /etc/kubernetes/admin.conf over {path}",))
    config, ca = case.node.kubeconfigs[path], case.node.certificate(f"{PKI}/ca.crt")
    ours = (
        config.client is not None and bool(config.client.certificates) and config.client.certificates[0].issued_by(ca)
    )
    if not ours and not config.client_file:
        return reissue_kubeconfig(case, path)
    cluster, _ = _positions(case.node, path)
    data, name = site.file_data(case.node, path), path.rpartition("/")[2]
    edits: tuple[Edit, ...] = (
        Set(("clusters", cluster, "cluster", "certificate-authority-data"), _encoded(case.node)),
    )
    restart = frozenset({RESTART[name]} if name in RESTART else ())
    trusted = Repair(edit_yaml(path, data, edits), restart, kubelet=name == "kubelet.conf")
    return trusted if ours else trusted + reissue_client(case)


def _encoded(node: Node) -> str:
    return base64.b64encode(site.file_data(node, f"{PKI}/ca.crt")).decode()


def unknown_server(case: Case) -> Repair:
    return together(_server(case, finding.evidence[0].path) for finding in case.findings)


def _server(case: Case, path: str) -> Repair:
    name = path.rpartition("/")[2]
    known = next((one for one in KUBECONFIGS if one.name == name), None)
    try:
        told = case.node.cluster_configuration.get("controlPlaneEndpoint", default="")
    except EvidenceMissing:
        told = None
    if known is None or (told is None and not known.local):
        return Repair(by_hand=(f"{path}: the cluster's endpoint is not known here; decide where it should point",))
    server = site.own_server(case.node) if known.local or not told else site.endpoint(case.node)
    cluster, _ = _positions(case.node, path)
    data = site.file_data(case.node, path)
    steps = edit_yaml(path, data, (Set(("clusters", cluster, "cluster", "server"), f"https://{server}"),))
    return Repair(steps, frozenset({RESTART[name]} if name in RESTART else ()), kubelet=name == "kubelet.conf")


BUILDERS = {"kubeconfig-ca-stale": stale_ca, "kubeconfig-server-unknown-address": unknown_server}

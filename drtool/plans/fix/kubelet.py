"""The kubelet's client certificate: the link to the newest one that is valid, or a new one."""

from __future__ import annotations

import re

from drtool.core.errors import Refused
from drtool.plans import site
from drtool.plans.fix import Case, Repair
from manifests.editing import Change, Edit, Set
from manifests.node import PKI, Node
from manifests.pki.certificates import Certificate
from manifests.pki.expected import CLIENT
from manifests.pki.kubelet_client import CURRENT, DIRECTORY
from manifests.steps.files import EditFile, PointLink, edit_file, edit_yaml
from manifests.steps.issuing import IssueKubeletClient, Subject

CONFIG = "/etc/kubernetes/kubelet.conf"


def reissue_client(case: Case) -> Repair:
    node = case.node
    try:
        signer = site.signer(node, "ca")
    except Refused as refused:
        made = f"kubeadm kubeconfig user --org system:nodes --client-name system:node:{node.name}"
        return Repair(by_hand=(f"{refused.what}; on a node that has it: {made}; copy what it prints to {CONFIG}",))
    file = f"{DIRECTORY}/kubelet-client-{case.plan[:16]}.pem"
    subject = Subject(f"system:node:{node.name}", (CLIENT,), ("system:nodes",))
    return Repair((*_named(node), IssueKubeletClient(CURRENT, file, signer, subject)), kubelet=True)


def relink(case: Case) -> Repair:
    """To the newest certificate of its directory where that is valid and this cluster's, else to a new one."""
    newest = _newest(case.node)
    if newest is None:
        return reissue_client(case)
    target = case.node.entry(CURRENT).target
    return Repair((*_named(case.node), PointLink(CURRENT, target, newest.path)), kubelet=True)


def _newest(node: Node) -> Certificate | None:
    ca = node.certificate(f"{PKI}/ca.crt")
    dated = (
        pem for path, pem in node.pems.items() if path.startswith(f"{DIRECTORY}/kubelet-client-") and path != CURRENT
    )
    pairs = (pem for pem in dated if pem.certificates and pem.certificates[0].public_key in pem.private_keys)
    valid = [
        pem.certificates[0]
        for pem in pairs
        if pem.certificates[0].not_before <= node.at <= pem.certificates[0].not_after
        and pem.certificates[0].issued_by(ca)
    ]
    return max(valid, key=lambda one: one.not_after, default=None)


def _named(node: Node) -> tuple[EditFile, ...]:
    """kubelet.conf made to name the link, where it names another file."""
    config = node.kubeconfigs.get(CONFIG)
    if config is None or not config.client_file or config.client_file == CURRENT:
        return ()
    edits: tuple[Edit, ...] = tuple(
        Set(("users", 0, "user", f"client-{half}"), CURRENT) for half in ("certificate", "key")
    )
    return edit_yaml(CONFIG, site.file_data(node, CONFIG), edits)


ENVIRONMENT = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")


def remove_flags(case: Case) -> Repair:
    """Flags that the release has removed, out of the files that systemd reads; all of one file in one step."""
    gone: dict[str, list[str]] = {}
    by_hand = []
    for finding in case.findings:
        path, name = finding.evidence[0].path, re.match(r"--([\w-]+) of the kubelet", finding.title)
        if path in ENVIRONMENT and name and "removed" in finding.title:
            gone.setdefault(path, []).append(name[1])
        else:
            by_hand.append(f"{finding.title}: decide what was meant, in {path}")
    steps = [step for path, names in gone.items() for step in _without(case.node, path, names)]
    return Repair(tuple(steps), kubelet=bool(steps), by_hand=tuple(by_hand))


def _without(node: Node, path: str, names: list[str]) -> tuple[EditFile, ...]:
    """--name=value, --name="a b", --name value and --name alone, with the blank before it."""
    data = site.file_data(node, path)
    flags = "|".join(re.escape(name) for name in names)
    pattern = re.compile(rf" ?--(?:{flags})(?:=[^\s\"']*|(?:[ \t]|\\\n)+(?!-)[^\s\"'\\]+)?(?=[\s\"']|$)", re.MULTILINE)
    text = data.decode()
    found = [(match.start(), match[0]) for match in pattern.finditer(text)]
    return edit_file(path, data, tuple(Change(len(text[:at].encode()), old, "") for at, old in found))


BUILDERS = {"kubelet-client-link": relink, "kubelet-flag-removed": remove_flags}

"""Manifests: copies parked, flags that this version does not have taken out, probes and --etcd-servers put right."""

from __future__ import annotations

from drtool.core.report import Finding
from drtool.plans import site
from drtool.plans.fix import Case, Repair, together
from drtool.plans.rebuild import flag_edits
from drtool.plans.restore import parking
from drtool.plans.site import NodeStep
from manifests.document import Path
from manifests.editing import Edit, Remove, Set
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from manifests.node import PKI, Node
from manifests.pod import Component
from manifests.steps.files import ParkFile, edit_yaml


def park_copies(case: Case) -> Repair:
    """The finding names the copy first: the file of the Pod's own name is the one to keep."""
    paths = dict.fromkeys(finding.evidence[0].path for finding in case.findings)
    return Repair(tuple(ParkFile(path, parking(path, case.plan)) for path in paths))


def remove_flags(case: Case) -> Repair:
    """Only what the release has removed: another may be a typing error, and a missing one has no known value."""
    return together(_flag(case, finding) for finding in case.findings)


def _flag(case: Case, finding: Finding) -> Repair:
    evidence = finding.evidence[0]
    component = next((one for one in case.node.components.values() if one.path == evidence.path), None)
    place = _argument(component, evidence.line) if component else None
    if component is None or place is None or "removed" not in finding.title:
        return Repair(by_hand=(f"{finding.title}: decide what was meant",))
    steps = edit_yaml(component.path, site.file_data(case.node, component.path), (Remove(place),))
    return Repair(steps)


def _argument(component: Component, line: int | None) -> Path | None:
    document, where = component.container.document, component.container.position
    for key in ("command", "args"):
        for index, _ in enumerate(document.get(*where, key, default=[])):
            if document.lines.get((*where, key, index)) == line:
                return (*where, key, index)
    return None


def aim_probes(case: Case) -> Repair:
    """Every HTTP probe of the manifests that the findings name, to where their program listens."""
    paths = {finding.evidence[0].path for finding in case.findings}
    steps: list[NodeStep] = []
    for component in case.node.components.values():
        if component.path in paths:
            edits = _probe_edits(component)
            steps += edit_yaml(component.path, site.file_data(case.node, component.path), edits)
    return Repair(tuple(steps))


def _probe_edits(component: Component) -> tuple[Edit, ...]:
    host, port, scheme = _listens(component)
    edits: list[Edit] = []
    document, where = component.container.document, component.container.position
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        get = document.get(*where, kind, "httpGet")
        if not isinstance(get, dict):
            continue
        edits += [Set((*where, kind, "httpGet", "host"), host)] if "host" in get else []
        edits += [Set((*where, kind, "httpGet", "scheme"), scheme)] if "scheme" in get else []
        if isinstance(get.get("port"), int):
            edits.append(Set((*where, kind, "httpGet", "port"), port))
    ports = document.get(*where, "ports", default=[])
    named = [i for i, one in enumerate(ports) if isinstance(one, dict) and one.get("name") == "probe-port"]
    edits += [Set((*where, "ports", i, "containerPort"), port) for i in named]
    return tuple(edits)


def _listens(component: Component) -> tuple[str, int, str]:
    if component.program == "etcd":
        url = component.names("listen-metrics-urls")[0]
        host, number = split_url(url)
        return host, number or 2381, "HTTPS" if url.startswith("https") else "HTTP"
    flag, default = site.OWN_PORTS[component.program]
    port = int(component.value(flag, default))
    bound = component.value("bind-address", "0.0.0.0")  # noqa: S104 - the program's default
    address = address_of(bound)
    if address is not None and not address.is_unspecified:
        return bound, port, "HTTPS"
    return component.value("advertise-address", "127.0.0.1"), port, "HTTPS"


def aim_etcd_servers(case: Case) -> Repair:
    """Stacked etcd only: where it listens, loopback first, with the files that kubeadm makes for it."""
    apiserver, etcd = site.present(case.node, "kube-apiserver"), site.present(case.node, "etcd")
    if apiserver is None or etcd is None:
        return Repair(
            by_hand=("which external etcd is right stands in nothing on this node: decide, then edit by hand",)
        )
    wanted = {"etcd-servers": ",".join(site.local_endpoints(case.node))}
    files = {
        "etcd-cafile": "etcd/ca.crt",
        "etcd-certfile": "apiserver-etcd-client.crt",
        "etcd-keyfile": "apiserver-etcd-client.key",
    }
    if wanted["etcd-servers"].startswith("https") and all(_there(case.node, path) for path in files.values()):
        wanted |= {flag: f"{PKI}/{path}" for flag, path in files.items()}
    edits = tuple(edit for flag, value in wanted.items() for edit in flag_edits(apiserver, flag, value))
    return Repair(edit_yaml(apiserver.path, site.file_data(case.node, apiserver.path), edits))


def _there(node: Node, path: str) -> bool:
    return node.entry(f"{PKI}/{path}").data is not None


BUILDERS = {
    "duplicate-static-pod": park_copies,
    "flag-unknown-or-removed": remove_flags,
    "etcd-flag-vs-version": remove_flags,
    "probe-target-mismatch": aim_probes,
    "etcd-servers-vs-etcd": aim_etcd_servers,
}

"""Checks of CNI's files: each on a healthy node and on a broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.checks import Case
from drtool.checks.cni import cni_config_missing, cni_config_order
from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity, Status
from manifests.network.cni import used
from tests.builders.tree import Tree, laid, outcomes

NET = "/etc/cni/net.d"
BRIDGE = {"type": "bridge", "ipam": {"type": "host-local"}}
CALICO = {"type": "calico", "ipam": {"type": "calico-ipam"}}
Change = Callable[[Tree], object]


def conflist(*plugins: object, version: str = "1.0.0") -> str:
    return json.dumps({"cniVersion": version, "name": "net", "plugins": list(plugins)})


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = laid(tmp_path)
    made.write(f"{NET}/10-net.conflist", conflist(BRIDGE, {"type": "portmap"}))
    for program in ("bridge", "host-local", "portmap", "loopback"):
        made.write(f"/opt/cni/bin/{program}", b"", 0o755)
    return made


def kubeconfig(tree: Tree, authority: str) -> None:
    """A CNI agent's kubeconfig that trusts one of the tree's CAs."""
    text = tree.read("/etc/kubernetes/scheduler.conf")
    import base64

    data = base64.b64encode(tree.authorities[authority].certificate_pem).decode()
    tree.write(f"{NET}/calico-kubeconfig", text)
    tree.sub(f"{NET}/calico-kubeconfig", "certificate-authority-data: .*", f"certificate-authority-data: {data}")


IDS = ("cni-binary-missing", "cni-bin-dir-mismatch", "cni-version-too-old")


@pytest.mark.parametrize("id_", IDS)
def test_a_healthy_node_passes(tree: Tree, id_: str) -> None:
    assert outcomes(tree.node())[id_].status is Status.PASSED


BROKEN: list[tuple[str, Change]] = [
    ("cni-binary-missing", lambda tree: tree.remove("/opt/cni/bin/host-local")),
    ("cni-binary-missing", lambda tree: tree.write(f"{NET}/05-x.conf", '{"cniVersion": "1.0.0", "type": "macvlan"}')),
    ("cni-bin-dir-mismatch", lambda tree: tree.place("/opt/cni/bin").rename(tree.place("/usr/lib/cni"))),
    ("cni-version-too-old", lambda tree: tree.write(f"{NET}/10-net.conflist", conflist(BRIDGE, version="0.3.1"))),
    ("cni-stale-kubeconfig", lambda tree: kubeconfig(tree, "front-proxy-ca")),
]


@pytest.mark.parametrize(("id_", "change"), BROKEN)
def test_broken(tree: Tree, id_: str, change: Change) -> None:
    tree.place("/usr/lib").mkdir(parents=True, exist_ok=True)
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert outcome.status is Status.FAILED
    assert all(found.evidence for found in outcome.findings)


def test_loopback_is_built_into_newer_runtimes(tree: Tree) -> None:
    tree.write(f"{NET}/10-net.conflist", conflist(BRIDGE, {"type": "loopback"}))
    tree.remove("/opt/cni/bin/loopback")
    assert outcomes(tree.node())["cni-binary-missing"].findings[0].severity is Severity.WARNING


FLANNEL: list[tuple[dict[str, object], set[str]]] = [
    ({}, {"flannel", "bridge", "host-local"}),
    ({"delegate": {"hairpinMode": True, "isDefaultGateway": True}}, {"flannel", "bridge", "host-local"}),
    ({"delegate": {"type": "ipvlan"}}, {"flannel", "ipvlan", "host-local"}),
    ({"delegate": {"type": "ipvlan"}, "ipam": {"type": "dhcp"}}, {"flannel", "ipvlan", "dhcp"}),
    ({"ipam": {"routes": []}}, {"flannel", "bridge", "host-local"}),
    ({"delegate": []}, {"flannel", "bridge", "host-local"}),
]


@pytest.mark.parametrize(("more", "programs"), FLANNEL)
def test_what_flannel_delegates_to_must_be_there(tree: Tree, more: dict[str, object], programs: set[str]) -> None:
    tree.write(f"{NET}/10-net.conflist", conflist({"type": "flannel", **more}, {"type": "portmap"}))
    for name in programs:
        tree.write(f"/opt/cni/bin/{name}", b"", 0o755)
    assert {name for name, _ in used(tree.node()).programs()} == programs | {"portmap"}
    assert outcomes(tree.node())["cni-binary-missing"].status is Status.PASSED
    for name in programs:
        tree.remove(f"/opt/cni/bin/{name}")
        (found,) = outcomes(tree.node())["cni-binary-missing"].findings
        assert f"CNI plugin {name} " in found.title
        assert found.evidence[0].line == 1
        tree.write(f"/opt/cni/bin/{name}", b"", 0o755)


def test_any_plugins_delegate_must_be_there(tree: Tree) -> None:
    delegate = {"type": "macvlan", "ipam": {"type": "static"}}
    tree.write(f"{NET}/10-net.conflist", conflist({"type": "wrapper", "delegate": delegate}))
    assert {name for name, _ in used(tree.node()).programs()} == {"wrapper", "macvlan", "static"}


def test_a_kubeconfig_that_trusts_the_cluster_is_well(tree: Tree) -> None:
    assert outcomes(tree.node())["cni-stale-kubeconfig"].status is Status.SKIPPED
    kubeconfig(tree, "ca")
    assert outcomes(tree.node())["cni-stale-kubeconfig"].status is Status.PASSED


def missing(tree: Tree) -> list[Finding]:
    return list(cni_config_missing.find(Case(tree.node())))


def order(tree: Tree) -> list[Finding]:
    return list(cni_config_order.find(Case(tree.node())))


def test_no_configuration_is_a_risk_until_something_says_that_there_was_one(tree: Tree) -> None:
    assert missing(tree) == []
    tree.remove(f"{NET}/10-net.conflist")
    assert [found.severity for found in missing(tree)] == [Severity.WARNING]
    tree.write(f"{NET}/10-net.conflist.bak", conflist(BRIDGE))
    assert [found.severity for found in missing(tree)] == [None]


def test_a_configuration_that_is_no_json_is_none(tree: Tree) -> None:
    tree.write(f"{NET}/10-net.conflist", '{\n"cniVersion": "1.0.0",\n"plugins" [\n')
    (found,) = missing(tree)
    assert "cannot be used" in found.title
    assert (found.evidence[0].line, found.evidence[0].text) == (3, '"plugins" [')


def test_a_tree_without_etc_is_unknown(tree: Tree) -> None:
    tree.remove("/etc/cni")
    tree.remove("/etc/hosts")
    with pytest.raises(EvidenceMissing):
        missing(tree)


def test_the_first_file_must_be_the_installed_plugins(tree: Tree) -> None:
    assert order(tree) == []
    tree.write(f"{NET}/05-calico.conflist", conflist(CALICO))
    assert [found.severity for found in order(tree)] == [None]
    tree.write("/opt/cni/bin/calico", b"")
    tree.write("/opt/cni/bin/calico-ipam", b"")
    assert [found.severity for found in order(tree)] == [Severity.WARNING]
    tree.write(f"{NET}/00-multus.conf", '{"cniVersion": "1.0.0", "type": "multus"}')
    assert order(tree) == []


def test_a_parked_file_does_not_count(tree: Tree) -> None:
    tree.write(f"{NET}/05-calico.conflist.disabled", conflist(CALICO))
    assert order(tree) == []

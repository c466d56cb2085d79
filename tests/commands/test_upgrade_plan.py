"""Upgrade plans from trees: order, refusals, risks, and no forbidden state on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.upgrade_plan import Step, UpgradePlan, upgrade_plan
from drtool.core.errors import CannotTell, Refused, UsageError
from drtool.host.root import Root
from manifests.kubeadm import Design
from manifests.releases import apis
from tests.builders.tree import Tree, laid


def node(root: Path, name: str = "cp-1", version: str = "v1.36.3", **more: str) -> Tree:
    tree = laid(root, Design(name=name, kubernetes=version, etcd=more.get("etcd", "3.6.8-0")))
    tree.write("/drtool/versions.json", f'{{"kubelet": "{more.get("kubelet", version)}"}}')
    return tree


def plan(*trees: Tree, to: str = "1.37") -> UpgradePlan:
    return upgrade_plan([Root(tree.root) for tree in trees], to)


def whats(steps: tuple[Step, ...]) -> list[str]:
    return [f"{step.node} {step.what}" for step in steps]


def test_one_control_plane(tmp_path: Path) -> None:
    found = plan(node(tmp_path))
    assert whats(found.steps) == [
        "- take a backup and prove it",
        "- bring 1.36 to its newest patch first",
        "cp-1 control plane to 1.37",
        "cp-1 kubelet to 1.37",
    ]
    assert "kubeadm upgrade apply v1.37.PATCH" in found.steps[2].commands
    assert "etcd 3.6.8 -> 3.7.0" in found.steps[2].restarts
    assert found.risks == ()
    assert any("cluster's objects" in what for what in found.unseen)


def test_three_control_planes_and_no_forbidden_state(tmp_path: Path) -> None:
    trees = [node(tmp_path / name, name) for name in ("cp-1", "cp-2", "cp-3")]
    found = plan(*trees)
    assert [step.node for step in found.steps] == ["-", "-", "cp-1", "cp-2", "cp-3", "cp-1", "cp-2", "cp-3"]
    assert found.steps[3].commands[-1] == "kubeadm upgrade node"
    assert all(step.leaves == () for step in found.steps)
    assert "kube-proxy" not in found.steps[2].restarts
    assert "kube-proxy and CoreDNS" in found.steps[4].restarts


def test_an_upgrade_under_way_goes_on_with_the_rest(tmp_path: Path) -> None:
    found = plan(
        node(tmp_path / "a", "cp-1", "v1.37.2", etcd="3.7.0-0", kubelet="v1.36.3"), node(tmp_path / "b", "cp-2")
    )
    assert found.current == "1.37"
    assert [step.node for step in found.steps[2:4]] == ["cp-1", "cp-2"]


@pytest.mark.parametrize(
    ("version", "kubelet", "to", "words"),
    [
        ("v1.34.4", "v1.34.4", "1.36", "skips a minor"),
        ("v1.37.2", "v1.37.2", "1.36", "does not go back"),
        ("v1.36.3", "v1.37.2", "1.37", "outside the version skew policy"),
        ("v1.36.3", "v1.32.0", "1.37", "outside the version skew policy"),
    ],
)
def test_refusals(tmp_path: Path, version: str, kubelet: str, to: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        plan(node(tmp_path, version=version, kubelet=kubelet), to=to)
    assert words in str(caught.value)


def test_a_kubelet_that_the_target_would_leave_behind_is_shown(tmp_path: Path) -> None:
    found = plan(node(tmp_path, version="v1.36.3", kubelet="v1.33.1"))
    assert found.steps[2].leaves == ("kubelet 1.33 on cp-1 is more than 3 minors older than API server 1.37",)


@pytest.mark.parametrize("to", ["2.0", "1", "newest", "1.99"])
def test_no_version(tmp_path: Path, to: str) -> None:
    with pytest.raises(UsageError):
        plan(node(tmp_path), to=to)


def test_no_api_server(tmp_path: Path) -> None:
    with pytest.raises(CannotTell):
        plan(Tree(tmp_path))


def test_flags_gates_and_plugins_that_the_target_does_not_know(tmp_path: Path) -> None:
    tree = node(tmp_path, version="v1.34.4", etcd="3.6.5-0")
    tree.write("/var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=pause:3.9"\n')
    tree.set_flag("kube-apiserver", "feature-gates", "NoSuchGate=true")
    tree.set_flag("kube-apiserver", "enable-admission-plugins", "NodeRestriction,PodSecurityPolicy")
    risks = plan(tree, to="1.35").risks
    assert any("--pod-infra-container-image was removed in 1.35" in risk for risk in risks)
    assert any("NoSuchGate" in risk for risk in risks)
    assert any("PodSecurityPolicy" in risk for risk in risks)
    assert all(risk.startswith("/") for risk in risks)


def test_the_member_store_trap(tmp_path: Path) -> None:
    risks = plan(node(tmp_path, version="v1.33.5", etcd="3.5.16-0"), to="1.34").risks
    assert any("run 3.5.24 or newer first" in risk for risk in risks)
    assert plan(node(tmp_path / "b", version="v1.33.5", etcd="3.5.24-0"), to="1.34").risks == ()


def test_packages_as_the_distribution_installs_them(tmp_path: Path) -> None:
    tree = node(tmp_path)
    assert "install kubeadm v1.37.PATCH" in plan(tree).steps[2].commands
    assert "install kubelet and kubectl v1.37.PATCH" in plan(tree).steps[3].commands
    tree.write("/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")
    assert "apt-get install --allow-change-held-packages -y kubeadm='1.37.*-*'" in plan(tree).steps[2].commands
    assert all(command.strip(" &") for step in plan(tree).steps for command in step.commands)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (
            "/etc/apt/sources.list.d/kubernetes.list",
            "deb [signed-by=/a.gpg] https://example.com/core:/stable:/v1.{}/deb/ /",
        ),
        ("/etc/yum.repos.d/kubernetes.repo", "baseurl=https://example.com/core:/stable:/v1.{}/rpm/"),
    ],
)
def test_a_package_repository_of_another_minor(tmp_path: Path, path: str, line: str) -> None:
    tree = node(tmp_path)
    tree.write(path, line.format(36) + "\n# " + line.format(37) + "\n")
    (risk,) = plan(tree).risks
    assert risk.startswith(f"{path}:1: ")
    assert "has the packages of 1.36 alone: name 1.37 there" in risk
    tree.write(path, line.format(37) + "\n")
    assert plan(tree).risks == ()


def test_what_the_release_data_says() -> None:
    gone = {(one.api_version, one.kind): one for one in apis.removed(31, 32)}
    assert gone["flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema"].instead == "flowcontrol.apiserver.k8s.io/v1"
    assert apis.removed(32, 32) == ()
    assert (apis.etcd_image(33), apis.etcd_image(34), apis.etcd_image(99)) == ("3.5.24-0", "3.6.5-0", "")

"""Checks of the container runtime: each on a healthy node and on a broken one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.core.report import Severity, Status
from tests.builders.tree import Tree, laid, outcomes

CONFIG = "/etc/containerd/config.toml"
TOML = """version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
REGISTRY = """  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""
MIRRORS = """    [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
      endpoint = ["https://mirror.example.org"]
"""
# lines that containerd 1.6.20 wrote when its meta.db was overwritten, and when it could not reach a registry
NO_DB = 'level=warning msg="failed to load plugin io.containerd.metadata.v1.bolt" error="invalid database"'
PANIC = "panic: invalid freelist page: 0, page type is unknown<00>"
NO_PAUSE = (
    'level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-cp-1} failed, error" '
    'error="failed to get sandbox image \\"registry.k8s.io/pause:3.6\\": failed to pull image"'
)
MADE = 'level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-cp-1} returns sandbox id \\"33158f51\\""'
Change = Callable[[Tree], object]


def config(text: str) -> Change:
    return lambda tree: tree.write(CONFIG, text)


def versions(containerd: str, kubelet: str = "v1.37.2") -> Change:
    return lambda tree: tree.write(
        "/drtool/versions.json", f'{{"kubelet": "{kubelet}", "containerd": "{containerd}", "crio": null}}'
    )


def journal(*lines: str) -> Change:
    return lambda tree: tree.journal("containerd", *lines)


def imported(tree: Tree) -> None:
    tree.write(CONFIG, 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + TOML)
    tree.write("/etc/containerd/conf.d/docker.toml", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')


BROKEN: list[tuple[str, Change]] = [
    ("containerd-cri-disabled", config('disabled_plugins = ["cri"]\n')),
    ("containerd-cri-disabled", config(TOML.replace("internal.v1.opt", "grpc.v1.cri"))),
    ("containerd-cri-disabled", imported),
    ("containerd-config-conflict", config(TOML + REGISTRY + MIRRORS)),
    ("containerd-config-conflict", config(TOML + TOML)),
    ("containerd-config-conflict", config("version = 2\n[plugins\n")),
    ("containerd-too-old", versions("1.4.3")),
    ("containerd-state-corrupt", journal(NO_DB)),
    ("containerd-state-corrupt", journal(PANIC, "goroutine 43 [running]:")),
    ("sandbox-image-unavailable", journal(MADE, NO_PAUSE)),
]
RISKY: list[tuple[str, Change]] = [
    ("containerd-config-conflict", config(TOML.replace("version = 2\n", ""))),
    ("containerd-config-conflict", config(TOML.replace("version = 2", "version = 3"))),
    ("sandbox-image-unavailable", config(TOML.replace("registry.k8s.io", "k8s.gcr.io"))),
]
WELL: list[tuple[str, Change]] = [
    ("containerd-cri-disabled", config(TOML)),
    ("containerd-config-conflict", config(TOML + REGISTRY)),
    ("containerd-config-conflict", lambda tree: [config(TOML + REGISTRY + MIRRORS)(tree), versions("1.4.3")(tree)]),
    ("containerd-too-old", versions("1.6.20")),
    ("containerd-too-old", versions("1.4.3", "v1.25.4")),
    ("containerd-state-corrupt", journal(PANIC, 'level=info msg="starting containerd" version=1.6.20', MADE)),
    ("sandbox-image-unavailable", config(TOML.replace("3.10.1", "3.6"))),
]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


@pytest.mark.parametrize(("id_", "change"), BROKEN)
def test_broken(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert outcome.status is Status.FAILED
    assert all(found.severity is None and found.evidence for found in outcome.findings)


@pytest.mark.parametrize(("id_", "change"), RISKY)
def test_a_risk(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert [found.severity for found in outcome.findings] == [Severity.WARNING] * len(outcome.findings) != []


@pytest.mark.parametrize(("id_", "change"), WELL)
def test_healthy(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    assert outcomes(tree.node())[id_].status is Status.PASSED


def test_another_runtime_does_not_need_containerd(tree: Tree) -> None:
    tree.sub("/var/lib/kubelet/config.yaml", "unix://.*", "unix:///run/cri-dockerd.sock")
    config('disabled_plugins = ["cri"]\n')(tree)
    found = outcomes(tree.node())
    for id_ in (
        "containerd-cri-disabled",
        "containerd-config-conflict",
        "containerd-too-old",
        "containerd-state-corrupt",
    ):
        assert found[id_].status is Status.SKIPPED


def test_a_sandbox_made_later_says_that_the_image_is_there(tree: Tree) -> None:
    tree.write(
        "/drtool/journal/containerd.log",
        f"2026-12-14T22:00:00+00:00 cp-1 containerd[1]: {NO_PAUSE}\n"
        f"2026-12-14T23:00:00+00:00 cp-1 containerd[1]: {MADE}\n",
    )
    config(TOML)(tree)
    assert outcomes(tree.node())["sandbox-image-unavailable"].status is Status.PASSED
